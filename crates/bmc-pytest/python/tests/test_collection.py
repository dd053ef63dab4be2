from __future__ import annotations

from typing import Any, Dict

import pytest
from conftest import Start, write


def only_error(start: Start) -> Dict[str, Any]:
    run = start().collect()
    assert len(run.errors) == 1, run.output
    error: Dict[str, Any] = run.errors[0]
    assert run.ready is None
    assert [frame["exitstatus"] for frame in run.early if frame["t"] == "finish"] == [2]
    assert run.collected["more"] is False
    return error


def test_collect_mode_runs_nothing(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "a" / "test_a.py", "def test_x(): assert 0\ndef test_y(): assert 0")
    write(pytester.path / "test_b.py", "def test_z(): assert 0")
    run = start("-k", "not test_y", mode="collect").collect()
    assert sorted(run.ids) == ["a/test_a.py::test_x", "test_b.py::test_z"]
    assert sorted(run.files) == ["a/test_a.py", "test_b.py"]
    assert run.collected["deselected"] == 1
    assert run.collected["missing"] == []
    assert run.collected["collect_s"] > 0
    assert run.ready is None
    assert run.early == [{"t": "finish", "exitstatus": 0, "message": None}]


def test_hello_describes_the_session(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "pytest.ini", "[pytest]")
    write(pytester.path / "test_a.py", "def test_x(): pass")
    run = start()
    run.collect()
    hello = run.hello
    assert hello["pid"] == run.process.pid
    assert hello["rootdir"] == str(pytester.path)
    assert hello["inifile"] == "pytest.ini"
    assert hello["pytest"] == pytest.__version__
    assert run.ready == {"t": "ready", "hazards": [], "random_seeded": False, "numpy_seeded": None}


def test_nothing_to_collect_is_status_5(start: Start) -> None:
    got = start().go()
    assert got.finish == {"t": "finish", "exitstatus": 5, "message": None}


def test_missing_module_is_named_with_the_way_to_it(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "shop" / "__init__.py", "")
    write(pytester.path / "shop" / "cart.py", "import json\n\nimport no_such_module_x.sub\n")
    write(pytester.path / "test_a.py", "import json\nfrom shop import cart\n")
    error = only_error(start)
    longrepr = error.pop("longrepr")
    assert error == {
        "t": "collect_error",
        "nodeid": "test_a.py",
        "kind": "module_not_found",
        "message": "No module named 'no_such_module_x'",
        "module": "no_such_module_x",
        "path": "shop/cart.py",
        "line": 3,
        "source": "import no_such_module_x.sub",
        "chain": [["test_a.py", 2, "from shop import cart"], ["shop/cart.py", 3, "import no_such_module_x.sub"]],
    }
    assert "no_such_module_x" in longrepr


def test_missing_name(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "from json import no_such_name\n")
    error = only_error(start)
    assert (error["kind"], error["module"], error["line"]) == ("import_error", "json", 1)


def test_syntax_error(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "shop.py", "def f():\n    return +\n")
    write(pytester.path / "test_a.py", "import shop\n")
    error = only_error(start)
    assert (error["kind"], error["path"], error["line"], error["source"]) == ("syntax_error", "shop.py", 2, "return +")
    assert error["chain"] == [["test_a.py", 1, "import shop"]]


def test_same_file_name_twice(pytester: pytest.Pytester, start: Start) -> None:
    for name in ("a", "b"):
        write(pytester.path / name / "test_same.py", "def test(): pass")
    error = only_error(start)
    assert error["kind"] == "import_mismatch"
    assert error["nodeid"] == "b/test_same.py"


def test_parametrizing_an_unknown_argument(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "import pytest\n@pytest.mark.parametrize('x', [1])\ndef test(): pass")
    assert only_error(start)["kind"] == "fixture"


def test_an_exception_at_import(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "x = {}\nx['y']\n")
    error = only_error(start)
    assert (error["kind"], error["message"], error["path"], error["line"]) == (
        "other",
        "KeyError: 'y'",
        "test_a.py",
        2,
    )


def test_exit_at_import(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "import sys\nsys.exit(3)\n")
    run = start().collect()
    [error] = run.errors
    assert (error["kind"], error["message"], error["line"]) == ("exit", "SystemExit: 3", 2)
    assert run.ready is None


def test_a_broken_conftest_is_told_though_pytest_gives_up(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "conftest.py", "import json\nimport no_such_module_x\n")
    run = start().collect()
    [error] = run.errors
    assert (error["nodeid"], error["kind"], error["module"]) == ("conftest.py", "module_not_found", "no_such_module_x")
    assert (error["path"], error["line"]) == ("conftest.py", 2)
    assert run.hello["rootdir"] == str(pytester.path)
    assert run.process.wait() == 4


def test_errors_do_not_stop_when_asked_to_go_on(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "1 / 0")
    write(pytester.path / "test_b.py", "def test(): pass")
    run = start(continue_on_collection_errors=True)
    got = run.go()
    assert len(run.errors) == 1
    assert got.short() == {"test": "passed"}
    assert got.finish is not None
    assert got.finish["exitstatus"] == 1


THREE = "def test_x(): pass\ndef test_y(): pass\ndef test_z(): pass"


def key(name: str, occurrence: int = 0) -> "list[object]":
    return ["test_a.py::" + name, occurrence]


def test_selection_and_order(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", THREE)
    run = start(select=[key("test_z"), key("test_x"), key("gone")], order=[key("test_z"), key("test_y"), key("test_x")])
    got = run.go()
    assert run.ids == ["test_a.py::test_z", "test_a.py::test_x"]
    assert got.started == run.ids
    assert run.collected["missing"] == [key("gone")]


def test_order_holds_against_other_plugins(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", THREE)
    write(
        pytester.path / "conftest.py",
        """
        import pytest
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(items):
            yield
            items.reverse()
        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtestloop(session):
            session.items.sort(key=lambda item: item.name[-1] == "y")
            yield
        """,
    )
    order = [key("test_x"), key("test_y"), key("test_z")]
    got = start(order=order).go()
    assert [nodeid.rsplit("::")[1] for nodeid in got.started] == ["test_x", "test_y", "test_z"]


def test_indices_choose_and_order(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", THREE)
    got = start().go([2, 0])
    assert got.started == ["test_a.py::test_z", "test_a.py::test_x"]
    assert got.finish == {"t": "finish", "exitstatus": 0, "message": None}


@pytest.mark.parametrize("indices", [[0, 0], [3], [-1], ["x"], [True]])
def test_impossible_indices_are_refused(pytester: pytest.Pytester, start: Start, indices: "list[int]") -> None:
    write(pytester.path / "test_a.py", THREE)
    got = start().go(indices)
    assert got.started == []
    assert [frame["t"] for frame in got.frames] == ["internal_error", "finish"]
    assert got.finish is not None
    assert got.finish["exitstatus"] == 3


def test_duplicate_ids_are_told_apart(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "def test_x(request): assert request.node.twin == 'b'")
    write(
        pytester.path / "conftest.py",
        """
        import copy
        def pytest_collection_modifyitems(items):
            for name in "ab":
                twin = copy.copy(items[0])
                twin._initrequest()
                twin.twin = name
                items.append(twin)
            del items[0]
        """,
    )
    run = start()
    got = run.go()
    assert run.ids == ["test_a.py::test_x"] * 2
    assert [frame[2] for frame in got.frames if isinstance(frame, list) and frame[0] == "o"] == ["failed", "passed"]
    run = start(order=[key("test_x", 1), key("test_x", 0)])
    got = run.go()
    assert [frame[2] for frame in got.frames if isinstance(frame, list) and frame[0] == "o"] == ["passed", "failed"]


def test_many_long_ids_are_sent_in_parts(pytester: pytest.Pytester, start: Start) -> None:
    write(
        pytester.path / "test_a.py",
        """
        import pytest
        @pytest.mark.parametrize("x", range(200), ids=["%d-" % i + "x" * 20000 for i in range(200)])
        def test(x): pass
        """,
    )
    run = start(mode="collect").collect()
    assert len(run.ids) == 200
    assert len(set(run.ids)) == 200


def test_quit_ends_without_running(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", THREE)
    run = start().collect()
    run.socket.send({"t": "quit"})
    assert run.socket.rest() == [{"t": "finish", "exitstatus": 0, "message": None}]
    assert run.process.wait() == 0


def test_a_lost_runner_ends_the_session(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", THREE)
    run = start().collect()
    run.socket.end.close()
    assert run.process.wait() == 1
