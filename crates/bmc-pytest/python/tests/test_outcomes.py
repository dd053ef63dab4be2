from __future__ import annotations

import importlib.util
from typing import Callable

import pytest
from driver import Results

Runner = Callable[..., Results]
PYTEST = tuple(int(part) for part in pytest.__version__.split(".")[:2])


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("def test(): pass", "passed"),
        ("def test(): assert 1 == 2", "failed"),
        ("def test(): pytest.fail('x')", "failed"),
        ("def test(): raise SystemExit(0)", "failed"),
        ("def test(nothing): pass", "error"),
        ("def test(bad_setup): pass", "error"),
        ("def test(bad_teardown): pass", "error"),
        ("def test(bad_teardown): assert 0", "failed"),
        ("def test(): pytest.skip('x')", "skipped"),
        ("@pytest.mark.skip\ndef test(): pass", "skipped"),
        ("@pytest.mark.xfail\ndef test(): assert 0", "xfailed"),
        ("@pytest.mark.xfail(run=False)\ndef test(): assert 0", "xfailed"),
        ("def test(): pytest.xfail('x')", "xfailed"),
        ("@pytest.mark.xfail\ndef test(bad_setup): pass", "xfailed"),
        ("@pytest.mark.xfail\ndef test(bad_teardown): assert 0", "xfailed"),
        ("@pytest.mark.xfail\ndef test(bad_teardown): pass", "xfailed"),
        ("@pytest.fixture\ndef late():\n    yield\n    pytest.skip('x')\ndef test(late): pass", "passed"),
        ("@pytest.mark.xfail\ndef test(): pass", "xpassed"),
        ("@pytest.mark.xfail(strict=True)\ndef test(): pass", "xpassed_strict"),
        ("@pytest.mark.xfail(raises=KeyError)\ndef test(): assert 0", "failed"),
    ],
)
def test_outcome(results: Runner, body: str, outcome: str) -> None:
    got = results(
        """
        import pytest
        @pytest.fixture
        def bad_setup(): raise ValueError("setup")
        @pytest.fixture
        def bad_teardown():
            yield
            raise ValueError("teardown")
        """.replace("\n        ", "\n")
        + body
        + "\ndef test_other(): pass\n"
    )
    assert got.short() == {"test": outcome, "test_other": "passed"}
    assert got.remarks == []
    assert got.finish is not None
    assert got.finish["exitstatus"] == (1 if outcome in ("failed", "error", "xpassed_strict") else 0)


def test_a_failure_is_described(results: Runner) -> None:
    got = results(
        """
        class Trouble(Exception): pass
        def helper():
            raise Trouble("first line\\nsecond: line")
        def test():
            helper()
        """
    )
    detail = got.details["test_it.py::test"]
    longrepr = detail.pop("longrepr")
    assert detail == {
        "phase": "call",
        "type": "Trouble",
        "message": "first line\nsecond: line",
        "path": "test_it.py",
        "line": 4,
        "extra": [],
    }
    assert "raise Trouble" in longrepr
    assert got.durations["test_it.py::test"] > 0


def test_the_first_line_of_an_assertion_is_kept(results: Runner) -> None:
    got = results("def test(): assert {'a': 1} == {'a': 2}")
    detail = got.details["test_it.py::test"]
    assert detail["type"] == "AssertionError"
    assert detail["message"].startswith("assert {'a': 1} == {'a': 2}")


def test_a_failing_call_and_teardown_are_both_told(results: Runner) -> None:
    got = results(
        """
        import pytest
        @pytest.fixture
        def bad():
            yield
            raise OSError("teardown")
        def test(bad): assert 0, "call"
        """
    )
    detail = got.details["test_it.py::test"]
    assert (detail["phase"], detail["message"].split("\n")[0]) == ("call", "call")
    assert [(more["phase"], more["type"], more["message"]) for more in detail["extra"]] == [
        ("teardown", "OSError", "teardown")
    ]


def test_a_path_outside_of_the_root_stays_absolute(results: Runner) -> None:
    got = results("import json\ndef test(): json.loads('{')")
    detail = got.details["test_it.py::test"]
    assert detail["type"] == "JSONDecodeError"
    assert detail["path"].startswith("/")


def test_reasons_are_told(results: Runner) -> None:
    got = results(
        """
        import pytest, unittest
        @pytest.mark.skip(reason="no display")
        def test_a(): pass
        @pytest.mark.xfail(reason="issue 7")
        def test_b(): assert 0
        class T(unittest.TestCase):
            def test_c(self): self.skipTest("later")
            @unittest.expectedFailure
            def test_d(self): assert 0
        """
    )
    assert {name.rsplit("::", 1)[1]: detail["message"] for name, detail in got.details.items()} == {
        "test_a": "no display",
        "test_b": "issue 7",
        "test_c": "later",
        "test_d": "",
    }


def test_long_text_is_cut_to_the_limit(results: Runner) -> None:
    got = results("def test(): assert 0, 'x' * 100000 + 'end'", longrepr_limit=500)
    detail = got.details["test_it.py::test"]
    assert len(detail["longrepr"]) == 500
    assert "characters left out" in detail["longrepr"]
    assert len(detail["message"]) == 4000


def test_a_failure_that_cannot_be_shown_is_still_one(results: Runner) -> None:
    got = results(
        """
        class Bad(Exception):
            def __str__(self): raise RuntimeError("no")
            __repr__ = __str__
        def test(): raise Bad
        def test_lone(): raise ValueError("\\udc80")
        """
    )
    assert got.short() == {"test": "failed", "test_lone": "failed"}
    assert got.details["test_it.py::test_lone"]["message"] == "\\udc80"
    assert not [frame for frame in got.frames if isinstance(frame, dict) and frame["t"] == "internal_error"]


SCOPED = """
import pytest, unittest
@pytest.fixture(scope="{scope}")
def shared():
    yield
    raise ValueError("still open")
class TestA:
    def test_a(self, shared): pass
    def test_b(self, shared): pass
"""


@pytest.mark.parametrize("scope", ["class", "module", "package", "session"])
def test_a_failing_teardown_of_a_wider_scope_is_not_the_tests(results: Runner, scope: str) -> None:
    got = results(SCOPED.format(scope=scope))
    assert got.short() == {"TestA::test_a": "passed", "TestA::test_b": "passed"}
    [(nodeid, remark)] = got.remarks
    assert nodeid == "test_it.py::TestA::test_b"
    detail = remark.pop("detail")
    assert remark == {
        "kind": "scope_teardown",
        "scope": scope,
        "fixture": "shared",
        "message": "ValueError: still open",
    }
    assert (detail["phase"], detail["type"], detail["line"]) == ("teardown", "ValueError", 6)
    assert got.finish is not None
    assert got.finish["exitstatus"] == 1


@pytest.mark.parametrize(
    "teardown",
    [
        "def teardown_module(): raise ValueError('x')",
        "def tearDownModule(): raise ValueError('x')",
        "class TestB:\n    @classmethod\n    def teardown_class(cls): raise ValueError('x')\n    def test_b(self): pass",
        "class B(unittest.TestCase):\n    @classmethod\n    def tearDownClass(cls): raise ValueError('x')\n"
        "    def test_b(self): pass",
    ],
)
def test_xunit_teardowns_of_a_wider_scope_are_not_the_tests(results: Runner, teardown: str) -> None:
    got = results("import unittest\ndef test_a(): pass\n" + teardown + "\n")
    assert set(got.outcomes.values()) == {"passed"}
    assert [remark["kind"] for _, remark in got.remarks] == ["scope_teardown"]


@pytest.mark.parametrize(
    "teardown",
    [
        "def teardown_function(function): raise ValueError('x')\ndef test_a(): pass",
        "class TestB:\n    def teardown_method(self): raise ValueError('x')\n    def test_b(self): pass",
        "def test_a(request): request.addfinalizer(lambda: 1 / 0)",
    ],
)
def test_own_teardowns_are_the_tests(results: Runner, teardown: str) -> None:
    got = results(teardown + "\n")
    assert set(got.outcomes.values()) == {"error"}
    assert got.remarks == []


def test_own_and_shared_teardown_failing_together(results: Runner) -> None:
    got = results(
        """
        import pytest
        @pytest.fixture(scope="module")
        def shared():
            yield
            raise ValueError("shared")
        @pytest.fixture
        def own(shared):
            yield
            raise KeyError("own")
        def test(own): pass
        """
    )
    assert got.short() == {"test": "error"}
    kinds = [(remark["kind"], remark["message"]) for _, remark in got.remarks]
    # Old versions of pytest keep only the first exception of a teardown.
    assert kinds == ([("scope_teardown", "ValueError: shared")] if PYTEST >= (7, 4) else [])
    detail = got.details["test_it.py::test"]
    assert (detail["type"], detail["message"], detail["path"], detail["line"]) == (
        "KeyError",
        "'own'",
        "test_it.py",
        10,
    )
    assert "shared" not in detail["message"]
    assert detail["extra"] == []
    for _, remark in got.remarks:
        assert (remark["detail"]["type"], remark["detail"]["line"]) == ("ValueError", 6)


def test_a_failing_unittest_subtest_fails_its_test(results: Runner) -> None:
    got = results(
        """
        import unittest
        class T(unittest.TestCase):
            def test_a(self):
                for i in range(4):
                    with self.subTest(i=i): assert i % 2, i
            def test_b(self):
                with self.subTest("fine"): pass
        """
    )
    assert got.short() == {"T::test_a": "failed", "T::test_b": "passed"}
    detail = got.details["test_it.py::T::test_a"]
    assert detail["type"] == "AssertionError"
    # Without support for subtests the first failure ends the test.
    supported = PYTEST >= (9, 0) or importlib.util.find_spec("pytest_subtests") is not None
    assert len(detail["extra"]) == int(supported)


@pytest.mark.skipif(PYTEST < (9, 0), reason="subtests came with pytest 9")
def test_failing_subtests_are_told_one_by_one(results: Runner) -> None:
    got = results(
        """
        import pytest
        def test(subtests):
            for i in range(3):
                with subtests.test(i=i): assert i == 1, "number %d" % i
        def test_skips(subtests):
            with subtests.test(): pytest.skip("x")
        def test_xfails(subtests):
            with subtests.test(): pytest.xfail("x")
        """
    )
    assert got.short() == {"test": "failed", "test_skips": "passed", "test_xfails": "passed"}
    detail = got.details["test_it.py::test"]
    assert detail["message"].startswith("number 0")
    assert [more["message"].split("\n")[0] for more in detail["extra"]] == ["number 2"]


def test_doctests_and_custom_items_are_recorded(results: Runner) -> None:
    got = results(
        '''
        def good():
            """
            >>> 1 + 1
            2
            """
        def bad():
            """
            >>> 1 + 1
            3
            """
        ''',
        "--doctest-modules",
    )
    assert got.short() == {"test_it.good": "passed", "test_it.bad": "failed"}
    assert got.details["test_it.py::test_it.bad"]["path"] == "test_it.py"
    assert "Expected" in got.details["test_it.py::test_it.bad"]["longrepr"]


def test_a_start_is_on_the_wire_before_setup(results: Runner) -> None:
    got = results(
        """
        import os, pytest
        @pytest.fixture
        def crash(): os._exit(0)
        def test_a(): pass
        def test_b(crash): pass
        def test_c(): pass
        """
    )
    assert got.started == ["test_it.py::test_a", "test_it.py::test_b"]
    assert got.short() == {"test_a": "passed"}
    assert got.finish is None
