"""Plugins that hide or disturb repetition. Each needs its plugin installed and is skipped, visibly, without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Start, write

THREE = "def test_a(): assert 0\ndef test_b(): pass\ndef test_c(): pass\n"


def options(pytester: pytest.Pytester, line: str, tests: str = THREE) -> None:
    write(pytester.path / "pytest.ini", "[pytest]\naddopts = --strict-markers %s\n" % line)
    write(pytester.path / "test_a.py", tests)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("-x", "maxfail"),
        ("--maxfail=1", "maxfail"),
        ("--exitfirst", "maxfail"),
        ("--collect-only", "collect-only"),
        ("--setup-only", "setup-only"),
        ("--setup-plan", "setup-plan"),
        ("--sw", "stepwise"),
        ("--lf", "last-failed"),
        ("--ff", "failed-first"),
        ("--nf", "new-first"),
        ("--pdb", "pdb"),
        ("--trace", "pdb"),
    ],
)
def test_options_of_pytest_itself(pytester: pytest.Pytester, start: Start, line: str, name: str) -> None:
    options(pytester, line)
    run = start("-p", "cacheprovider", "-p", "stepwise")
    got = run.go()
    assert list(got.short().items()) == [("test_a", "failed"), ("test_b", "passed"), ("test_c", "passed")]
    assert name in [told for told, _ in run.hello["switched_off"]]


def test_nothing_is_said_about_what_is_not_there(pytester: pytest.Pytester, start: Start) -> None:
    options(pytester, "")
    run = start("-p", "no:randomly", "-p", "no:xdist").collect()
    told = {name for name, _ in run.hello["switched_off"]}
    assert not told & {"maxfail", "xdist", "cov", "randomly", "pdb", "collect-only"}


def test_it_can_be_left_on(pytester: pytest.Pytester, start: Start) -> None:
    options(pytester, "-x")
    run = start("-p", "no:randomly", neutralise=False)
    got = run.go()
    assert "test_c" not in got.short()
    assert run.hello["switched_off"] == []


@pytest.mark.parametrize(
    "line", ["-n 2", "-n auto", "-n 2 --dist loadfile", "--tx 2*popen --dist load", "-d --tx popen"]
)
def test_xdist_starts_no_workers(pytester: pytest.Pytester, start: Start, line: str) -> None:
    pytest.importorskip("xdist")
    options(
        pytester,
        line,
        "import os\ndef test_a(worker_id): assert worker_id == 'master' and os.getpid() == PID\nPID = os.getpid()\n",
    )
    run = start()
    got = run.go()
    assert got.short() == {"test_a": "passed"}
    assert "xdist" in [name for name, _ in run.hello["switched_off"]]
    assert "xdist" in [name for name, _ in run.hello["plugins"]]


FLAKY = """
import pytest, threading
COUNT = []
@pytest.mark.flaky(reruns=3)
def test_marked():
    COUNT.append(1)
    assert len(COUNT) > 1
def test_plain():
    COUNT.append(1)
    assert len(COUNT) > 3
def test_threads(): assert threading.active_count() == 1
"""


@pytest.mark.parametrize("line", ["", "--reruns 3", "--reruns 3 -n 2", "--force-reruns 3"])
def test_rerunfailures_hides_nothing(pytester: pytest.Pytester, start: Start, line: str) -> None:
    plugin = pytest.importorskip("pytest_rerunfailures")
    if "-n" in line:
        pytest.importorskip("xdist")
    if "force" in line and "--force-reruns" not in Path(str(plugin.__file__)).read_text(encoding="utf-8"):
        pytest.skip("this version has no --force-reruns")
    options(pytester, line, FLAKY)
    run = start()
    got = run.go()
    assert got.short() == {"test_marked": "failed", "test_plain": "failed", "test_threads": "passed"}
    assert "rerunfailures" in [name for name, _ in run.hello["switched_off"]]


def test_a_rerun_counts_as_a_failure_when_left_on(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_rerunfailures")
    options(pytester, "-p no:flaky", FLAKY)
    # The tests share a counter, so another order would change what fails.
    run = start("-p", "no:randomly", "-p", "no:random_order", neutralise=False)
    got = run.go()
    assert got.short()["test_marked"] == "failed"
    assert got.details["test_a.py::test_marked"]["rerun"] is True


def test_flaky_retries_nothing(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("flaky")
    options(
        pytester,
        "--force-flaky --max-runs=3",
        """
        import flaky
        COUNT = []
        @flaky.flaky(max_runs=3)
        def test_a():
            COUNT.append(1)
            assert len(COUNT) > 1
        """,
    )
    run = start()
    assert run.go().short() == {"test_a": "failed"}
    assert "flaky" in [name for name, _ in run.hello["switched_off"]]


@pytest.mark.parametrize("line", ["--cov", "--cov=. --cov-report=xml --cov-fail-under=100", "--cov --no-cov"])
def test_coverage_never_starts(pytester: pytest.Pytester, start: Start, line: str) -> None:
    pytest.importorskip("pytest_cov")
    options(
        pytester,
        line,
        """
        import sys
        def test_a(cov, no_cover): assert cov is None
        def test_b(): assert sys.gettrace() is None and not (hasattr(sys, "monitoring") and sys.monitoring.get_tool(1))
        """,
    )
    write(pytester.path / "conftest.py", "import sys\nassert sys.gettrace() is None\n")
    run = start()
    got = run.go()
    assert got.short() == {"test_a": "passed", "test_b": "passed"}
    assert got.finish == {"t": "finish", "exitstatus": 0, "message": None}
    assert "cov" in [name for name, _ in run.hello["switched_off"]]
    assert sorted(path.name for path in pytester.path.glob("*cov*")) == []


@pytest.mark.parametrize("line", ["", "-p randomly -p xdist -n 2"])
def test_randomly_keeps_the_order_and_takes_our_seed(pytester: pytest.Pytester, start: Start, line: str) -> None:
    pytest.importorskip("pytest_randomly")
    if line:
        pytest.importorskip("xdist")
        line = "-n 2"
    tests = "".join("def test_%02d(): pass\n" % number for number in range(30))
    options(
        pytester,
        line,
        tests + "def test_seed(pytestconfig): assert pytestconfig.option.randomly_seed == SEED\nSEED = 5\n",
    )
    run = start(seed=(1 << 40) + 5)
    got = run.go()
    assert [nodeid.split("::")[1] for nodeid in got.started] == ["test_%02d" % number for number in range(30)] + [
        "test_seed"
    ]
    assert set(got.outcomes.values()) == {"passed"}
    assert "randomly" in [name for name, _ in run.hello["switched_off"]]


def test_randomly_gets_the_seed_of_each_child(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_randomly")
    options(
        pytester,
        "",
        "import random\ndef test_a(pytestconfig): assert not print(pytestconfig.option.randomly_seed)\ndef test_b(): assert 0, random.random()\n",
    )
    run = start(mode="server", run=None).collect()
    said = [run.fork(number, seed=number).results().details["test_a.py::test_b"]["message"] for number in (1, 2, 1)]
    assert said[0] == said[2] != said[1]


@pytest.mark.parametrize(
    "line", ["--random-order", "--random-order-bucket=global", "--random-order-seed=3 --random-order"]
)
def test_random_order_keeps_the_order(pytester: pytest.Pytester, start: Start, line: str) -> None:
    pytest.importorskip("random_order")
    options(pytester, line, "".join("def test_%02d(): pass\n" % number for number in range(30)))
    run = start("-p", "cacheprovider")
    got = run.go()
    assert got.started == sorted(got.started)
    assert len(got.started) == 30
    assert "random-order" in [name for name, _ in run.hello["switched_off"]]


def test_order_is_left_on(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_order")
    options(pytester, "", "import pytest\ndef test_a(): pass\n@pytest.mark.order(0)\ndef test_b(): pass\n")
    assert start().go().started == ["test_a.py::test_b", "test_a.py::test_a"]


def test_repeat_runs_once(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_repeat")
    options(pytester, "--count 3", "import pytest\n@pytest.mark.repeat(4)\ndef test_a(): pass\ndef test_b(): pass\n")
    assert start().go().started == ["test_a.py::test_a", "test_a.py::test_b"]


def test_flakefinder_runs_once(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_flakefinder")
    options(pytester, "--flake-finder --flake-runs=3", "def test_a(): pass\n")
    assert start().go().started == ["test_a.py::test_a"]


@pytest.mark.parametrize("line", ["--forked", ""])
def test_forked_forks_nothing(pytester: pytest.Pytester, start: Start, line: str) -> None:
    pytest.importorskip("pytest_forked")
    options(
        pytester,
        line,
        "import os, pytest\nPID = os.getpid()\n@pytest.mark.forked\ndef test_a(): assert os.getpid() == PID\n",
    )
    run = start()
    assert run.go().short() == {"test_a": "passed"}
    assert "forked" in [name for name, _ in run.hello["switched_off"]]


def test_async_tests_run_in_children(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_asyncio")
    options(
        pytester,
        "",
        "import asyncio, pytest\n@pytest.mark.asyncio\nasync def test_a(): await asyncio.sleep(0)\n@pytest.mark.asyncio\nasync def test_b(): assert 0\n",
    )
    run = start(mode="server", run=None).collect()
    for number in (1, 2):
        assert run.fork(number).results().short() == {"test_a": "passed", "test_b": "failed"}


def test_subtests_of_the_plugin(pytester: pytest.Pytester, start: Start) -> None:
    pytest.importorskip("pytest_subtests")
    options(
        pytester,
        "",
        "def test_a(subtests):\n    for i in range(3):\n        with subtests.test(i=i): assert i != 1, 'one'\n",
    )
    got = start().go()
    assert got.short() == {"test_a": "failed"}
    assert got.details["test_a.py::test_a"]["message"].startswith("one")
