"""Tests that do to the process what real suites do, on purpose or not."""

from __future__ import annotations

from typing import Callable

import pytest
from conftest import Start, write
from driver import Results

Runner = Callable[..., Results]


def test_closing_standard_output_is_told(results: Runner) -> None:
    got = results(
        """
        import sys
        def test_a(): pass
        def test_b(): sys.stdout.close()
        def test_c(): pass
        """
    )
    assert got.started == ["test_it.py::test_a", "test_it.py::test_b", "test_it.py::test_c"]
    assert ("test_it.py::test_b", {"kind": "closed_stdout"}) in got.remarks
    assert got.short()["test_a"] == "passed"
    assert got.short()["test_c"] != "passed"


def test_low_descriptors_may_be_closed(results: Runner) -> None:
    got = results(
        """
        import os
        def test_a(): pass
        def test_b():
            for number in range(10):
                try: os.close(number)
                except OSError: pass
        def test_c(): pass
        """
    )
    assert got.short()["test_a"] == "passed"
    # pytest itself does not survive: its capture is among these descriptors. We must still hear of that.
    assert got.started[-1] == "test_it.py::test_b"
    assert got.finish is not None
    assert got.finish["exitstatus"] in (1, 3)
    assert "Bad file descriptor" in got.finish["message"]


def test_changes_of_directory_clock_and_functions_do_not_matter(results: Runner) -> None:
    got = results(
        """
        import json, os, time
        def test_a(tmp_path): os.chdir(tmp_path)
        def test_b():
            os.write = os.getpid = time.perf_counter = json.dumps = None
        def test_c(): assert 0
        """
    )
    assert got.short()["test_a"] == "passed"
    assert got.started[-1] == "test_it.py::test_c"
    assert got.details["test_it.py::test_c"]["path"] == "test_it.py"


def test_a_process_that_comes_back_does_not_write(results: Runner) -> None:
    got = results(
        """
        import os
        PIDS = []
        def test_a():
            pid = os.fork()
            PIDS.append(pid)
            assert pid, "in the child"
        def test_b():
            if PIDS[0]: os.waitpid(PIDS[0], 0)
        """
    )
    assert got.short() == {"test_a": "passed", "test_b": "passed"}
    assert got.started == ["test_it.py::test_a", "test_it.py::test_b"]
    assert [remark for _, remark in got.remarks] == [{"kind": "forked_without_exit"}]
    assert len([frame for frame in got.frames if isinstance(frame, dict)]) == 1


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("pytest.exit('enough')", 2, "Exit: enough"),
        ("pytest.exit('enough', returncode=9)", 9, "Exit: enough"),
        ("raise KeyboardInterrupt", 2, "KeyboardInterrupt: "),
        ("request.session.shouldstop = 'stop it'", 2, "Interrupted: stop it"),
        ("request.session.shouldfail = 'fail it'", 1, "fail it"),
    ],
)
def test_sessions_that_stop_early_say_why(results: Runner, body: str, status: int, message: str) -> None:
    got = results(
        "import pytest\ndef test_a(): pass\ndef test_b(request):\n    %s\ndef test_c(): pass\n" % body,
    )
    assert got.finish == {"t": "finish", "exitstatus": status, "message": message}
    assert got.started == ["test_it.py::test_a", "test_it.py::test_b"]
    stopped = "session" in body
    assert got.short() == ({"test_a": "passed", "test_b": "passed"} if stopped else {"test_a": "passed"})


def test_a_failing_end_of_session_is_no_test(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "def test(): pass")
    write(pytester.path / "conftest.py", "def pytest_sessionfinish(): raise ValueError('at the end')")
    run = start()
    got = run.go()
    assert got.short() == {"test": "passed"}
    assert got.finish == {"t": "finish", "exitstatus": 1, "message": "ValueError: at the end"}
    assert run.process.returncode == 1


@pytest.mark.parametrize("hook", ["configure", "sessionstart"])
def test_a_session_that_does_not_begin_says_why(pytester: pytest.Pytester, start: Start, hook: str) -> None:
    write(pytester.path / "test_a.py", "def test(): pass")
    write(pytester.path / "conftest.py", "import pytest\ndef pytest_%s(): raise pytest.UsageError('bad')" % hook)
    run = start().collect()
    assert run.ready is None
    assert run.early == [{"t": "finish", "exitstatus": 4, "message": "UsageError: bad"}]
    assert run.process.wait() == 4


def test_a_broken_hook_is_an_internal_error(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "def test(): pass")
    write(pytester.path / "conftest.py", "def pytest_runtest_logreport(): raise ValueError('hook')")
    got = start().go()
    assert got.finish == {"t": "finish", "exitstatus": 3, "message": "internal error: ValueError: hook"}


def test_a_runner_that_goes_away_ends_the_run(pytester: pytest.Pytester, start: Start) -> None:
    write(
        pytester.path / "test_a.py",
        """
        import pytest, time
        @pytest.mark.parametrize("x", range(1000))
        def test(x): time.sleep(0.02)
        """,
    )
    run = start().collect()
    run.socket.send({"t": "go"})
    assert run.socket.receive() == ["s", 0]
    run.socket.end.close()
    assert run.process.wait(10) == 1


def test_stacks_are_written_on_the_signal(pytester: pytest.Pytester, start: Start) -> None:
    import signal

    write(
        pytester.path / "test_a.py",
        """
        import sys, time
        def here_it_hangs():
            sys.stdout.close()
            while True: time.sleep(0.01)
        def test(): here_it_hangs()
        """,
    )
    number = signal.SIGRTMIN + 3
    run = start(stack_signal=int(number)).collect()
    run.socket.send({"t": "go"})
    assert run.socket.receive() == ["s", 0]
    for _ in range(500):
        run.process.send_signal(number)
        try:
            run.process.wait(0.02)
        except Exception:
            if "here_it_hangs" in run.output:
                break
    assert "here_it_hangs" in run.output
    assert run.process.poll() is None
