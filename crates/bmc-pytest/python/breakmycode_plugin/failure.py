"""Describes a failing report in the words of PROTOCOL.md.

It must not render anything for a passing test, and it must accept any kind of item and representation.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import traceback
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest
from _pytest.fixtures import FixtureDef

from .wire import cut

MESSAGE_LIMIT = 4000
"""A message is often a diff of two values; longer ones are in the long representation anyway."""

Detail = Dict[str, Any]

_FINISH = getattr(FixtureDef.finish, "__code__", None)


def relative(path: str, root: str) -> str:
    """Makes a path relative to the root where it lies below it."""
    prefix = root.rstrip(os.sep) + os.sep
    return path[len(prefix) :] if path.startswith(prefix) else path


def describe(report: pytest.TestReport, root: str, limit: int) -> Detail:
    """Describes one failed report. The exception's type is refined by `refine` where it is known."""
    representation: Any = report.longrepr
    crash: Any = getattr(representation, "reprcrash", None)
    text = str(getattr(report, "longreprtext", "") or "")
    message = str(getattr(crash, "message", "") or "") or _last_line(text)
    path, line = _place(report, crash)
    kind = _type_in(message)
    return {
        "phase": report.when or "call",
        "type": kind,
        "message": cut(_without_type(message, kind), MESSAGE_LIMIT),
        "path": None if path is None else relative(path, root),
        "line": line,
        "longrepr": cut(text, limit),
        "extra": [],
    }


def refine(detail: Detail, error: BaseException) -> None:
    """Puts the real type of the exception into a detail."""
    kind = type(error).__name__
    detail["type"] = kind
    detail["message"] = _without_type(detail["message"], kind)


def say(error: BaseException) -> str:
    """Names an exception and its text, even if the text cannot be had."""
    try:
        text = str(error)
    except Exception as problem:
        text = "<no text: %s>" % type(problem).__name__
    return "%s: %s" % (type(error).__name__, cut(text, MESSAGE_LIMIT))


def describe_safely(report: pytest.TestReport, root: str, limit: int) -> Detail:
    """Describes a failed report, or says why that cannot be done: rendering may run project code."""
    try:
        return describe(report, root, limit)
    except Exception as problem:
        return {
            "phase": report.when or "call",
            "type": "Failed",
            "message": "the failure cannot be shown: " + say(problem),
            "path": None,
            "line": None,
            "longrepr": "",
            "extra": [],
        }


def describe_member(error: BaseException, root: str, limit: int) -> Detail:
    """Describes one of several exceptions that a teardown raised together."""
    path, line = None, None
    step = error.__traceback__
    while step is not None:
        path, line = relative(step.tb_frame.f_code.co_filename, root), step.tb_lineno
        step = step.tb_next
    return {
        "phase": "teardown",
        "type": type(error).__name__,
        "message": say(error).partition(": ")[2],
        "path": path,
        "line": line,
        "longrepr": cut("".join(traceback.format_exception(type(error), error, error.__traceback__)), limit),
        "extra": [],
    }


def skip_reason(report: pytest.TestReport) -> str:
    """Says why a test was skipped or expected to fail."""
    expected = getattr(report, "wasxfail", None)
    if expected is not None:
        reason = str(expected)  # ``pytest.xfail(…)`` arrives with a prefix, the marker without.
        return cut(reason[len("reason: ") :] if reason.startswith("reason: ") else reason, MESSAGE_LIMIT)
    representation: Any = report.longrepr
    if isinstance(representation, tuple) and len(representation) == 3:
        reason = str(representation[2])
        return cut(reason[len("Skipped: ") :] if reason.startswith("Skipped: ") else reason, MESSAGE_LIMIT)
    return cut(str(getattr(report, "longreprtext", "") or ""), MESSAGE_LIMIT)


def teardown_scopes(error: BaseException) -> List[Tuple[Optional[str], Optional[str], BaseException]]:
    """Lists (scope, fixture, exception) for what went wrong in a teardown.

    Scope is that of the innermost fixture whose finalizer raised, None when it was no fixture.
    """
    return [(*_owner(leaf), leaf) for leaf in _leaves(error)]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    # Several teardown failures arrive as a group. Groups raised by a test itself have no fixture inside
    # their members' tracebacks, so they are kept whole.
    members = getattr(error, "exceptions", None)
    if isinstance(members, tuple) and say(error).partition(": ")[2].startswith("errors "):
        for member in members:
            yield from _leaves(member)
    else:
        yield error


def _owner(error: BaseException) -> Tuple[Optional[str], Optional[str]]:
    scope = fixture = None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code is _FINISH:
            definition: Any = step.tb_frame.f_locals.get("self")
            if definition is not None:
                scope, fixture = str(definition.scope), str(definition.argname)
        step = step.tb_next
    return scope, fixture


def _place(report: pytest.TestReport, crash: Any) -> Tuple[Optional[str], Optional[int]]:
    if crash is not None:
        path, line = getattr(crash, "path", None), getattr(crash, "lineno", None)
        if path is not None and isinstance(line, int) and line >= 0:
            return str(path), line
    location: Any = getattr(report, "location", None)
    if isinstance(location, tuple) and len(location) == 3:
        return str(location[0]), location[1] + 1 if isinstance(location[1], int) else None
    return None, None


def _type_in(message: str) -> str:
    head = message.split("\n", 1)[0].split(":", 1)[0].strip()
    if head and all(part.isidentifier() for part in head.split(".")):
        return head.rsplit(".", 1)[-1]
    return "AssertionError" if message.startswith("assert") else "Failed"


def _without_type(message: str, kind: str) -> str:
    head, colon, rest = message.partition(": ")
    if colon and head.rsplit(".", 1)[-1] == kind:
        return rest
    return message


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
