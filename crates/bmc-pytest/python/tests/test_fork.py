from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import Start, write
from driver import Ended, Run

Serve = Callable[..., Run]


@pytest.fixture
def serve(pytester: pytest.Pytester, start: Start) -> Serve:
    """Starts a server on one test file."""

    def begin(source: str, *arguments: str, **config: Any) -> Run:
        write(pytester.path / "test_it.py", source)
        run = start(*arguments, mode="server", run=None, **config).collect()
        assert run.ready is not None, run.output
        return run

    return begin


def ends(run: Run, count: int) -> "dict[int, dict[str, Any]]":
    """Receives the frames of a number of children up to their ends."""
    found: "dict[int, dict[str, Any]]" = {}
    forked = []
    while len(found) < count:
        frame = run.socket.receive()
        if frame["t"] == "forked":
            forked.append(frame["run"])
        else:
            assert frame["t"] == "exited", frame
            found[frame["run"]] = frame
    assert sorted(forked) == sorted(found)
    return found


STATE = """
import os, random
SEEN = []
def test_a(): SEEN.append(1)
def test_b(): assert SEEN == [1], SEEN
def test_c(): assert 0
"""


def test_children_start_from_the_same_state(serve: Serve) -> None:
    run = serve(STATE)
    children = [run.fork(number) for number in (1, 2, 3)]
    for child in children:
        got = child.results()
        assert list(got.short().items()) == [("test_a", "passed"), ("test_b", "passed"), ("test_c", "failed")]
        assert got.finish == {"t": "finish", "exitstatus": 1, "message": None}
    exits = ends(run, 3)
    for exited in exits.values():
        assert (exited["code"], exited["signal"]) == (1, None)
        assert exited["maxrss_kb"] > 1000
        assert exited["user_s"] >= 0


def test_the_garbage_collector_is_as_in_a_plain_run(serve: Serve) -> None:
    run = serve(
        """
        import gc
        class Referred: pass
        HOLDER = [Referred()]
        def test_referrers(): assert any(r is HOLDER for r in gc.get_referrers(HOLDER[0]))
        def test_nothing_is_frozen(): assert gc.get_freeze_count() == 0
        def test_enabled(): assert gc.isenabled()
        """
    )
    got = run.fork(1).results()
    assert set(got.short().values()) == {"passed"}, got.short()


def test_indices_choose_and_order_in_a_child(serve: Serve) -> None:
    run = serve(STATE)
    got = run.fork(1, indices=[2, 1]).results()
    assert list(got.short().items()) == [("test_c", "failed"), ("test_b", "failed")]
    assert run.fork(2, indices=[]).results().finish == {"t": "finish", "exitstatus": 5, "message": None}


def test_go_runs_in_the_server_afterwards(serve: Serve) -> None:
    run = serve("import os\nPID = os.getpid()\ndef test_a(): assert os.getpid() == PID\n")
    assert run.fork(1).results().short() == {"test_a": "failed"}
    ends(run, 1)
    assert run.go().short() == {"test_a": "passed"}
    assert run.process.returncode == 0


def test_quit_tells_of_the_last_child(serve: Serve) -> None:
    run = serve(STATE)
    run.fork(1).results()
    run.socket.send({"t": "quit"})
    kinds = [frame["t"] for frame in run.socket.rest()]
    assert kinds == ["forked", "exited", "finish"]


def test_how_a_child_dies_is_told(serve: Serve) -> None:
    run = serve(
        """
        import os, signal
        def test_a(): os.kill(os.getpid(), signal.SIGSEGV)
        def test_b(): os._exit(0)
        """
    )
    got = run.fork(1, indices=[0]).results()
    assert (got.started, got.finish) == (["test_it.py::test_a"], None)
    got = run.fork(2, indices=[1]).results()
    assert (got.started, got.finish) == (["test_it.py::test_b"], None)
    exits = ends(run, 2)
    assert (exits[1]["code"], exits[1]["signal"]) == (None, signal.SIGSEGV)
    assert (exits[2]["code"], exits[2]["signal"]) == (0, None)


def test_a_frame_without_its_descriptors_is_refused(serve: Serve) -> None:
    run = serve(STATE)
    child = run.fork(7, namespaces=[("user", 0)], indices=None)
    child.socket.end.close()
    frame = run.socket.receive()
    assert (frame["t"], frame["run"]) == ("fork_failed", 7)
    run.socket.send({"t": "fork", "run": 8, "seed": 1, "namespaces": []})
    frame = run.socket.receive()
    assert (frame["t"], frame["run"]) == ("fork_failed", 8)
    assert "2 descriptors" in frame["message"]
    run.fork(9, indices=[5]).socket.end.close()
    assert "below 3" in run.socket.receive()["message"]
    run.fork(10, cwd="/no/such/directory").socket.end.close()
    assert "/no/such/directory" in run.socket.receive()["message"]
    assert run.fork(11).results().finish is not None


@pytest.mark.parametrize("capture", ["fd", "sys", "no", "tee-sys"])
def test_output_goes_to_the_childs_descriptor(serve: Serve, capture: str) -> None:
    run = serve(
        """
        import logging, os, sys
        OUT = sys.stdout
        logging.getLogger().addHandler(logging.StreamHandler(sys.stderr))
        def test_a(capfd):
            print("by python"); os.write(1, b"by descriptor\\n")
            out = capfd.readouterr().out
            assert "by python" in out and "by descriptor" in out
        def test_b(capsys): print("x"); assert capsys.readouterr().out == "x\\n"
        def test_c(capfd):
            with capfd.disabled(): os.write(2, b"shown\\n")
        def test_d():
            print("kept from import", file=OUT)
            logging.getLogger().warning("logged")
        def test_e(): os.system("echo from a process"); assert 0
        """,
        "--capture=" + capture,
    )
    children = [run.fork(1), run.fork(2)]
    for child in children:
        got = child.results()
        assert {name: outcome for name, outcome in got.short().items() if outcome != "passed"} == {"test_e": "failed"}
        assert "shown" in child.output
        if capture == "fd":
            assert "from a process" not in child.output
        else:
            assert "from a process" in child.output
    assert "from a process" not in run.output


def test_report_sections_hold_only_the_own_output(pytester: pytest.Pytester, serve: Serve) -> None:
    write(
        pytester.path / "conftest.py",
        """
        def pytest_runtest_logreport(report):
            if report.when == "call" and "test_a" in report.nodeid:
                lines = report.capstdout.split()
                assert len(lines) == 200 and len(set(lines)) == 1, lines[:5]
        """,
    )
    run = serve(
        """
        import os, time
        def test_a():
            for _ in range(200):
                os.write(1, b"%07d\\n" % os.getpid())
                time.sleep(0.0005)
        """
    )
    children = [run.fork(number) for number in range(4)]
    for child in children:
        finish = child.results().finish
        assert finish == {"t": "finish", "exitstatus": 0, "message": None}


def test_the_terminal_reporter_is_there_and_silent(serve: Serve) -> None:
    run = serve("def test(pytestconfig): assert pytestconfig.pluginmanager.getplugin('terminalreporter')\n")
    child = run.fork(1)
    assert child.results().short() == {"test": "passed"}
    assert child.output == ""


def test_each_child_has_its_own_offset_in_files(pytester: pytest.Pytester, serve: Serve) -> None:
    (pytester.path / "data.txt").write_text("".join("%05d\n" % number for number in range(1000)))
    run = serve(
        """
        import os, tempfile, time
        DATA = open("data.txt")
        DATA.readline()
        NAMELESS = tempfile.TemporaryFile("w+")
        NAMELESS.write("head\\n"); NAMELESS.flush()
        def test_named():
            for number in range(1, 1000):
                assert DATA.readline() == "%05d\\n" % number
                time.sleep(0.0002)
        def test_nameless():
            for number in range(200):
                NAMELESS.write("%d\\n" % os.getpid()); NAMELESS.flush()
                time.sleep(0.0005)
            NAMELESS.seek(0)
            assert NAMELESS.read() == "head\\n" + "%d\\n" % os.getpid() * 200
        """
    )
    children = [run.fork(number) for number in (1, 2, 3)]
    for child in children:
        assert child.results().short() == {"test_named": "passed", "test_nameless": "passed"}


def test_tmp_path_is_not_shared(serve: Serve, pytester: pytest.Pytester) -> None:
    run = serve(
        """
        def test(tmp_path, tmp_path_factory):
            assert not list(tmp_path.iterdir())
            (tmp_path / "x").write_text("")
            assert 0, tmp_path_factory.getbasetemp()
        """,
        "--basetemp",
        str(pytester.path / "base"),
    )
    children = [run.fork(1), run.fork(2)]
    places = {child.results().details["test_it.py::test"]["message"].splitlines()[0] for child in children}
    assert len(places) == 2


def test_the_environment_is_extended(serve: Serve, pytester: pytest.Pytester) -> None:
    (pytester.path / "elsewhere").mkdir()
    run = serve(
        """
        import os
        def test():
            assert os.environ["SHOP"] == "caf\\u00e9"
            assert os.path.basename(os.getcwd()) == "elsewhere"
            assert os.getsid(0) == os.getpid()
        """
    )
    child = run.fork(1, env={"SHOP": "caf\u00e9"}, cwd=str(pytester.path / "elsewhere"))
    got = child.results()
    assert got.short() == {"test": "passed"}, got.details


RANDOM = """
import random
{seeding}
def test(): assert 0, random.random()
"""


@pytest.mark.parametrize("seeding", ["", "random.random()", "[random.random() for _ in range(5000)]"])
def test_random_follows_the_seed_of_the_run(serve: Serve, seeding: str) -> None:
    run = serve(RANDOM.format(seeding=seeding))
    assert run.ready is not None
    assert run.ready["random_seeded"] is False
    said = [
        run.fork(number, seed=seed).results().details["test_it.py::test"]["message"].splitlines()[0]
        for number, seed in enumerate([1, 2, 1])
    ]
    assert said[0] == said[2] != said[1]


@pytest.mark.parametrize("seeding", ["random.seed(1)", "random.setstate(random.Random(1).getstate()); random.random()"])
def test_random_seeded_by_the_project_stays_so(serve: Serve, seeding: str) -> None:
    run = serve(RANDOM.format(seeding=seeding), "-p", "no:randomly")
    assert run.ready is not None
    assert run.ready["random_seeded"] is True
    said = {
        run.fork(number, seed=number).results().details["test_it.py::test"]["message"].splitlines()[0]
        for number in (1, 2)
    }
    assert len(said) == 1


def test_stacks_of_a_child_go_to_its_descriptor(serve: Serve, pytester: pytest.Pytester) -> None:
    number = int(signal.SIGRTMIN) + 3
    run = serve(
        """
        import os, time
        def here_it_hangs():
            with open("pid.tmp", "w") as file: file.write(str(os.getpid()))
            os.rename("pid.tmp", "pid")
            while True: time.sleep(0.01)
        def test(): here_it_hangs()
        """,
        stack_signal=number,
    )
    child = run.fork(1, stack_signal=number)
    assert child.socket.receive() == ["s", 0]
    pid = wait_for_pid(pytester.path / "pid")
    os.kill(pid, number)
    for _ in range(500):
        if "here_it_hangs" in child.output:
            break
        try:
            run.process.wait(0.01)
        except Exception:
            continue
    assert "here_it_hangs" in child.output
    assert "here_it_hangs" not in run.output


def wait_for_pid(path: Path) -> int:
    import time

    for _ in range(1000):
        if path.exists():
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError("no pid in %s" % path)


HANGS = """
import os, time
def test():
    with open("pid.tmp", "w") as file: file.write(str(os.getpid()))
    os.rename("pid.tmp", "pid")
    while True: time.sleep(0.01)
"""


@pytest.mark.parametrize("how", ["close", "kill", "quit"])
def test_a_child_does_not_outlive_the_server(serve: Serve, pytester: pytest.Pytester, how: str) -> None:
    run = serve(HANGS)
    child = run.fork(1)
    pid = wait_for_pid(pytester.path / "pid")
    if how == "close":
        run.socket.end.close()
    elif how == "quit":
        run.socket.send({"t": "quit"})
    else:
        run.process.kill()
    run.process.wait(10)
    assert child.socket.receive() == ["s", 0]
    with pytest.raises(Ended):
        child.socket.receive()
    assert not Path("/proc/%d/cwd" % pid).exists() or os.readlink("/proc/%d/cwd" % pid) != str(pytester.path)


def test_a_process_that_comes_back_is_told_by_its_own_child_only(serve: Serve) -> None:
    run = serve(
        """
        import os
        PIDS = [0]
        def test_a():
            PIDS[0] = os.fork()
        def test_b():
            if PIDS[0]: os.waitpid(PIDS[0], 0)
        """
    )
    first = run.fork(1, indices=[1])
    second = run.fork(2)
    assert first.results().remarks == []
    got = second.results()
    assert [remark for _, remark in got.remarks] == [{"kind": "forked_without_exit"}]
    assert run.fork(3, indices=[1]).results().remarks == []


def test_stops_and_faults_in_a_child(serve: Serve, pytester: pytest.Pytester) -> None:
    write(
        pytester.path / "conftest.py",
        """
        import os
        def pytest_sessionfinish():
            if "FAULT" in os.environ: raise ValueError("at the end")
        """,
    )
    run = serve(
        """
        import pytest
        def test_a(request): request.session.shouldstop = "stop it"
        def test_b(): pytest.exit("enough", returncode=9)
        def test_c(): pass
        """
    )
    assert run.fork(1, indices=[0, 2]).results().finish == {
        "t": "finish",
        "exitstatus": 2,
        "message": "Interrupted: stop it",
    }
    assert run.fork(2, indices=[1, 2]).results().finish == {"t": "finish", "exitstatus": 9, "message": "Exit: enough"}
    assert run.fork(3, indices=[2], env={"FAULT": "1"}).results().finish == {
        "t": "finish",
        "exitstatus": 1,
        "message": "ValueError: at the end",
    }
    exits = ends(run, 3)
    assert [exits[number]["code"] for number in (1, 2, 3)] == [2, 9, 1]


def test_fixtures_reports_and_junit_work_in_children(serve: Serve, pytester: pytest.Pytester) -> None:
    run = serve(
        """
        import pytest
        @pytest.fixture(scope="session")
        def shared(): yield []
        @pytest.mark.parametrize("x", [1, 2])
        def test(shared, x, monkeypatch, caplog, recwarn): shared.append(x)
        """,
        "--junitxml=out.xml",
        "--durations=3",
    )
    assert set(run.fork(1).results().outcomes.values()) == {"passed"}
    ends(run, 1)
    assert 'tests="2"' in (pytester.path / "out.xml").read_text()
