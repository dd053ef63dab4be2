from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import Start, write
from driver import PACKAGE_PARENT


def test_without_a_descriptor_nothing_happens(pytester: pytest.Pytester) -> None:
    write(
        pytester.path / "test_a.py",
        """
        import sys
        def test(pytestconfig):
            assert "breakmycode_plugin" in sys.modules
            assert "breakmycode_plugin.plugin" not in sys.modules
            assert not [name for name, _ in pytestconfig.pluginmanager.list_name_plugin() if "observer" in name]
        """,
    )
    env = {**os.environ, "PYTHONPATH": str(PACKAGE_PARENT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "breakmycode_plugin"]
    done = subprocess.run(command, cwd=str(pytester.path), env=env, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout


SEES = """
import os, subprocess, sys
def test_environment():
    assert not [name for name in os.environ if "BREAKMYCODE" in name]
    assert os.environ.get("PYTHONPATH") == {path!r}
    assert not [entry for entry in sys.path if {own!r} in entry]
def test_child():
    code = "import os; print(os.environ.get('PYTHONPATH'), [n for n in os.environ if 'BREAK' in n], len(os.listdir('/proc/self/fd')))"
    shown = subprocess.check_output([sys.executable, "-c", code], close_fds=False).decode()
    assert shown.split() == [{path!r} or "None", "[]", "4"], shown
def test_arguments():
    assert sys.argv[1:] == {argv!r}
"""


def test_tests_see_a_plain_run(pytester: pytest.Pytester, start: Start) -> None:
    write(
        pytester.path / "test_a.py",
        SEES.format(path=None, own=str(PACKAGE_PARENT), argv=["-p", "no:cacheprovider"]).replace(
            "None or", "str(None) or"
        ),
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    got = start(env=env).go()
    assert set(got.outcomes.values()) == {"passed"}, got.details


def test_the_users_path_is_kept(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "lib" / "only_here.py", "")
    path = str(pytester.path / "lib")
    write(
        pytester.path / "test_a.py",
        "import only_here\n" + SEES.format(path=path, own=str(PACKAGE_PARENT), argv=["-k", "x"]),
    )
    got = start(env={"PYTHONPATH": path}, argv=["-k", "x"]).go()
    assert set(got.outcomes.values()) == {"passed"}, got.details


def test_strict_projects_do_not_notice(pytester: pytest.Pytester, start: Start) -> None:
    write(
        pytester.path / "pytest.ini",
        """
        [pytest]
        filterwarnings = error
        addopts = --strict-markers --strict-config -W error
        xfail_strict = true
        """,
    )
    write(pytester.path / "test_a.py", "def test(): assert [1] == [1]")
    # pytest-asyncio warns about a setting that is missing here.
    run = start("-p", "no:asyncio", mode="server", run=None).collect()
    child = run.fork(1)
    got = child.results()
    assert got.short() == {"test": "passed"}
    assert run.early == []
    run.socket.send({"t": "go"})
    frames = run.socket.rest()
    assert frames[-1] == {"t": "finish", "exitstatus": 0, "message": None}
    assert "warning" not in run.output.lower()


def test_nothing_heavy_is_imported(pytester: pytest.Pytester, start: Start) -> None:
    write(
        pytester.path / "test_a.py",
        """
        import subprocess, sys
        def test():
            code = "import sys, pytest; pytest.main(['-q', '--collect-only', 'nothing']); print(*sys.modules)"
            plain = set(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE).stdout.decode().split())
            heavy = {"ctypes", "asyncio", "multiprocessing", "socket", "ssl", "concurrent.futures", "sqlite3", "unittest"}
            assert not heavy & set(sys.modules) - plain
        """,
    )
    run = start(mode="server", run=None).collect()
    assert run.fork(1).results().short() == {"test": "passed"}


def test_the_seed_is_set_before_project_code(pytester: pytest.Pytester, start: Start) -> None:
    import random

    write(
        pytester.path / "test_a.py",
        """
        import random
        AT_IMPORT = random.random()
        def test(): assert AT_IMPORT == %r
        """
        % random.Random(77).random(),
    )
    assert start(seed=77).go().short() == {"test": "passed"}


def test_another_protocol_is_refused_before_anything_runs(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_a.py", "def test(): pass")
    run = start(v=2)
    assert run.socket.rest() == []
    assert run.process.wait() != 0
    assert "version 1" in run.output
