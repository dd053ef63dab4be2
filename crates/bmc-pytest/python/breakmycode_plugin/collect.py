"""Reports what collection does and how it fails, and arranges what is run.

It must not collect anything itself, and it must not run a collector's code to describe it.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import linecache
import os
import time
from collections import Counter
from types import TracebackType
from typing import Any, Dict, Generator, List, NamedTuple, Optional, Sequence, Tuple

import pytest
from _pytest.pathlib import ImportPathMismatchError

from .failure import relative, say
from .wire import Channel, cut

Key = Tuple[str, int]

_MESSAGE_LIMIT = 4000
_SOURCE_LIMIT = 300
_CHAIN_LIMIT = 50
_IDS_IN_A_FRAME = 400_000
"""Characters of node ids in one frame: well below the largest frame even if every one takes two bytes."""


class Collection:
    """Watches collection."""

    def __init__(self, channel: Channel, longrepr_limit: int) -> None:
        self._channel = channel
        self._limit = longrepr_limit
        self._clock = time.perf_counter
        self._began = 0.0
        self.seconds = 0.0
        self.deselected = 0

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, None]:
        self._began = self._clock()
        yield
        self.seconds = self._clock() - self._began

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.deselected += len(items)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        root = str(collector.config.rootpath)
        if isinstance(collector, pytest.File) and not isinstance(collector, pytest.Package):
            self._channel.send({"t": "file", "path": relative(str(collector.path), root)})
        outcome = yield
        if outcome.excinfo is not None:
            # Neither SystemExit nor KeyboardInterrupt becomes a report: they end the session.
            error = outcome.excinfo[1]
            self._send_error(collector.nodeid, error, "", root)
            return
        report = outcome.get_result()
        call = getattr(report, "call", None)
        if report.outcome == "failed" and call is not None and call.excinfo is not None:
            text = str(getattr(report, "longreprtext", ""))
            self._send_error(collector.nodeid, call.excinfo.value, text, root)

    def _send_error(self, nodeid: str, error: BaseException, longrepr: str, root: str) -> None:
        try:
            self._channel.send(describe(nodeid, error, longrepr, root, self._limit))
        except Exception:
            self._channel.complain()


class Arranged(NamedTuple):
    """The items to run, in order, and what was asked for but is not there."""

    items: List[pytest.Item]
    missing: List[Key]


def arrange(items: Sequence[pytest.Item], select: Optional[List[Key]], order: Optional[List[Key]]) -> Arranged:
    """Leaves out what is not selected and puts the rest in the order asked for.

    An item is named by its node id and how many items with that id came before it: ids need not be unique.
    """
    seen: Counter[str] = Counter()
    known: Dict[Key, pytest.Item] = {}
    for item in items:
        known[(item.nodeid, seen[item.nodeid])] = item
        seen[item.nodeid] += 1
    missing: Dict[Key, None] = {}
    for wanted in (select, order):
        missing.update((key, None) for key in wanted or () if key not in known)
    chosen = known if select is None else {key: known[key] for key in known.keys() & set(select)}
    if order is not None:
        keys = [key for key in dict.fromkeys(order) if key in chosen]
    else:
        keys = [key for key in known if key in chosen]
    return Arranged([known[key] for key in keys], list(missing))


def send_collected(channel: Channel, arranged: Arranged, deselected: int, seconds: float) -> None:
    """Sends the `collected` frames."""
    part: List[str] = []
    size = 0
    for item in arranged.items:
        if part and size + len(item.nodeid) > _IDS_IN_A_FRAME:
            channel.send({"t": "collected", "ids": part, "more": True})
            part, size = [], 0
        part.append(item.nodeid)
        size += len(item.nodeid) + 3
    last: Dict[str, Any] = {"t": "collected", "ids": part, "more": False, "deselected": deselected}
    last["missing"] = [list(key) for key in arranged.missing]
    last["collect_s"] = round(seconds, 6)
    channel.send(last)


def describe(nodeid: str, error: BaseException, longrepr: str, root: str, limit: int) -> Dict[str, Any]:
    """Describes why collecting a node failed, from the exception rather than from its text."""
    if isinstance(error, pytest.Collector.CollectError) and error.__cause__ is not None:
        error = error.__cause__
    # An error in a conftest.py arrives wrapped.
    error = error.__cause__ if type(error).__name__ == "ConftestImportFailure" and error.__cause__ else error
    chain = _project_frames(error.__traceback__, root)
    path, line, source = chain[-1] if chain else (None, None, None)
    if isinstance(error, SyntaxError) and error.filename:
        path, line = relative(str(error.filename), root), error.lineno
        source = cut((error.text or "").strip(), _SOURCE_LIMIT)
    return {
        "t": "collect_error",
        "nodeid": nodeid,
        "kind": _kind(error),
        "message": cut(_message(error), _MESSAGE_LIMIT),
        "module": error.name if isinstance(error, ImportError) else None,
        "path": path,
        "line": line,
        "source": source,
        "longrepr": cut(longrepr or _message(error), limit),
        "chain": [list(step) for step in chain[-_CHAIN_LIMIT:]],
    }


def _kind(error: BaseException) -> str:
    if isinstance(error, ImportPathMismatchError):
        return "import_mismatch"
    if isinstance(error, ModuleNotFoundError):
        return "module_not_found"
    if isinstance(error, ImportError):
        return "import_error"
    if isinstance(error, SyntaxError):
        return "syntax_error"
    if isinstance(error, (SystemExit, KeyboardInterrupt, pytest.exit.Exception)):
        return "exit"
    if isinstance(error, pytest.FixtureLookupError) or _raised_by_pytest_about_fixtures(error):
        return "fixture"
    return "other"


def _message(error: BaseException) -> str:
    if isinstance(error, ImportPathMismatchError):
        return "module %s was imported from %s, not from %s" % error.args
    if isinstance(error, SyntaxError):
        return str(error.msg)
    if isinstance(error, SystemExit):
        return "SystemExit: %s" % error.code
    if isinstance(error, (ImportError, pytest.fail.Exception, pytest.exit.Exception, pytest.Collector.CollectError)):
        return str(error)
    return say(error)


def _raised_by_pytest_about_fixtures(error: BaseException) -> bool:
    """Says whether pytest refused a fixture's or a parametrization's declaration."""
    step, name = error.__traceback__, ""
    while step is not None:
        if os.path.basename(step.tb_frame.f_code.co_filename) != "outcomes.py":
            name = step.tb_frame.f_code.co_filename
        step = step.tb_next
    pytest_own = os.path.join("_pytest", "fixtures.py"), os.path.join("_pytest", "python.py")
    return isinstance(error, pytest.fail.Exception) and name.endswith(pytest_own)


def _project_frames(traceback: Optional[TracebackType], root: str) -> List[Tuple[str, int, str]]:
    """Lists the steps inside the project that led to an error: outermost first."""
    frames = []
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if os.path.isabs(name) and relative(name, root) != name and not _is_installed(relative(name, root)):
            line = traceback.tb_lineno
            frames.append((relative(name, root), line, cut(linecache.getline(name, line).strip(), _SOURCE_LIMIT)))
        traceback = traceback.tb_next
    return frames


def _is_installed(path: str) -> bool:
    # A virtual environment often lies inside the project.
    parts = path.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts
