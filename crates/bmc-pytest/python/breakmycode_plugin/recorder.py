"""Folds the reports of each test into one outcome and sends it.

It must not keep anything of a test after its outcome was sent, and it must not cost a passing test more than
a few microseconds.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import mmap
import sys
from typing import Any, Dict, Generator, List, Optional, Sequence, Tuple

import pytest

from . import failure
from .failure import Detail
from .wire import Channel, frame, pack_length, payload

_PLAIN = pytest.TestReport
_EXTRA_LIMIT = 50
"""A test with hundreds of failing subtests is described well enough by this many."""


class _Running:
    """What is known about the test that runs now."""

    __slots__ = ("calls", "duration", "errors", "finished", "index", "nodeid", "remarks", "reported", "state", "why")

    def __init__(self, index: int, nodeid: str) -> None:
        self.index = index
        self.nodeid = nodeid
        self.duration = 0.0
        self.reported = False
        self.finished = False
        self.state = "passed"
        self.why: Optional[str] = None
        # Failures of the call, and of setup or teardown, each with the report it came from.
        self.calls: List[Tuple[pytest.TestReport, Detail]] = []
        self.errors: List[Tuple[pytest.TestReport, Detail]] = []
        self.remarks: List[Detail] = []


class Recorder:
    """Watches tests run."""

    def __init__(self, channel: Channel, longrepr_limit: int) -> None:
        self._channel = channel
        self._limit = longrepr_limit
        self._root = ""
        self._positions: Dict[int, List[int]] = {}
        self._running: Optional[_Running] = None
        self._stdout_closed = False
        self._astray = False
        self.renew()

    def renew(self) -> None:
        """Makes the shared memory that belongs to one session.

        A process forked by a test that comes back into pytest leaves the number of its test (plus one) here: it must
        not write to the socket itself.
        """
        self._strays = mmap.mmap(-1, 8)

    def plan(self, root: str, items: Sequence[pytest.Item], indices: Sequence[int]) -> None:
        """Tells which index each of the items has that are about to run."""
        self._root = root
        self._positions = {}
        for item, index in zip(items, indices):
            self._positions.setdefault(id(item), []).append(index)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: Optional[pytest.Item]) -> Generator[None, Any, None]:
        try:
            self._begin(item)
        except Exception:
            self._channel.complain()
        outcome = yield
        try:
            self._end(nextitem, outcome.excinfo is not None)
        except Exception:
            self._channel.complain()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._running
        if test is None or report.nodeid != test.nodeid:
            return
        test.reported = True
        if report.when == "teardown":
            test.finished = True
        if report.outcome == "passed" and not hasattr(report, "wasxfail"):
            if type(report) is _PLAIN or not _is_subtest(report):
                test.duration += report.duration
            return
        try:
            self._note(test, report)
        except Exception:
            self._channel.complain()

    def pytest_exception_interact(self, call: "pytest.CallInfo[Any]", report: Any) -> None:
        test = self._running
        if test is None or call.excinfo is None:
            return
        error = call.excinfo.value
        try:
            for noted, detail in test.calls + test.errors:
                if noted is report:
                    failure.refine(detail, error)
            if report.when == "teardown":
                self._blame_scopes(test, report, error)
        except Exception:
            self._channel.complain()

    def pytest_sessionfinish(self) -> None:
        self._note_stray()

    def _begin(self, item: pytest.Item) -> None:
        positions = self._positions.get(id(item))
        if positions is None:
            self._running = None
            return
        index = positions.pop(0) if len(positions) > 1 else positions[0]
        self._running = _Running(index, item.nodeid)
        start = b'["s",%d]' % index
        self._channel.write(pack_length(len(start)) + start)

    def _end(self, nextitem: Optional[pytest.Item], interrupted: bool) -> None:
        test = self._running
        self._running = None
        if test is None:
            return
        if not self._channel.mine:
            if not self._astray:
                # The first test such a process ends is the one that forked it.
                self._astray = True
                self._strays[:] = (test.index + 1).to_bytes(8, "little")
            return
        if test.finished or (test.reported and not interrupted):
            self._channel.hold(self._outcome(test))
        for remark in test.remarks:
            self._channel.hold(frame(payload(["m", test.index, remark])))
        if not self._stdout_closed and getattr(sys.stdout, "closed", False) is True:
            self._stdout_closed = True
            self._channel.hold(frame(payload(["m", test.index, {"kind": "closed_stdout"}])))
        if self._strays[0] or self._strays[1]:
            self._note_stray()
        if nextitem is None or interrupted:
            self._channel.flush()

    def _outcome(self, test: _Running) -> bytes:
        microseconds = int(test.duration * 1e6)
        if not test.calls and not test.errors and test.why is None:
            data = b'["o",%d,"%s",%d]' % (test.index, test.state.encode("ascii"), microseconds)
            return pack_length(len(data)) + data
        failures = [detail for _, detail in test.calls] + [detail for _, detail in test.errors]
        if not failures:
            return frame(payload(["o", test.index, test.state, microseconds, {"message": test.why}]))
        detail = failures[0]
        detail["extra"] = failures[1 : 1 + _EXTRA_LIMIT]
        outcome = "failed" if test.calls else "error"
        if len(test.calls) == 1 and _is_strict_xpass(test.calls[0][0]):
            outcome = "xpassed_strict"
        return frame(payload(["o", test.index, outcome, microseconds, detail]))

    def _note(self, test: _Running, report: pytest.TestReport) -> None:
        subtest = _is_subtest(report)
        if not subtest:
            test.duration += report.duration
        outcome: str = report.outcome
        if outcome in ("failed", "rerun"):
            if subtest is False and test.calls and _only_counts_subtests(report):
                return
            detail = failure.describe_safely(report, self._root, self._limit)
            if outcome == "rerun":
                detail["rerun"] = True
            if outcome == "rerun" or report.when == "call":
                test.calls.append((report, detail))
            else:
                test.errors.append((report, detail))
        elif subtest:
            return
        elif outcome == "skipped":
            if report.when == "teardown" and not hasattr(report, "wasxfail"):
                return  # The test itself was not skipped.
            test.state = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            test.why = failure.skip_reason(report)
        elif outcome == "passed" and report.when == "call":
            test.state = "xpassed"

    def _blame_scopes(self, test: _Running, report: pytest.TestReport, error: BaseException) -> None:
        """Moves a teardown failure of a module, class or session fixture from the test to the scope."""
        found = failure.teardown_scopes(error)
        noted = next((known for known in test.errors if known[0] is report), None)
        own: List[Tuple[pytest.TestReport, Detail]] = []
        for scope, fixture, member in found:
            # The report describes all of them together.
            single = noted[1] if noted is not None and len(found) == 1 else None
            detail = single or failure.describe_member(member, self._root, self._limit)
            if scope is None or scope == "function":
                own.append((report, detail))
                continue
            test.remarks.append(
                {
                    "kind": "scope_teardown",
                    "scope": scope,
                    "fixture": fixture,
                    "message": failure.say(member),
                    "detail": detail,
                }
            )
        if noted is not None:
            test.errors.remove(noted)
            test.errors += own

    def _note_stray(self) -> None:
        number = int.from_bytes(self._strays[:], "little")
        if number and self._channel.mine:
            self._strays[:] = bytes(8)
            self._channel.hold(frame(payload(["m", number - 1, {"kind": "forked_without_exit"}])))


def _is_subtest(report: pytest.TestReport) -> bool:
    return type(report).__name__.lower() == "subtestreport"


def _is_strict_xpass(report: pytest.TestReport) -> bool:
    return isinstance(report.longrepr, str) and report.longrepr.startswith("[XPASS(strict)]")


def _only_counts_subtests(report: pytest.TestReport) -> bool:
    # pytest 9 fails the enclosing test with "contains 2 failed subtests" after the subtests were reported.
    text = str(getattr(report, "longreprtext", ""))
    return text.startswith("contains ") and "failed subtest" in text
