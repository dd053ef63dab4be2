"""Children that enter namespaces made by a stand-in for the sandbox. Skipped, visibly, where none can be made."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Iterator, List, Tuple

import pytest
from conftest import Start, write

NAMES = ["user", "mnt", "net", "ipc", "uts", "pid"]
FLAGS = 0x10000000 | 0x00020000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x20000000

# Becomes the first process of new namespaces below the current ones, with a private /tmp, and waits.
WORLD = (
    """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
if libc.unshare(%d): sys.exit("unshare: %%d" %% ctypes.get_errno())
for name, text in (("setgroups", "deny"), ("uid_map", "%%d %%d 1" %% (uid, uid)), ("gid_map", "%%d %%d 1" %% (gid, gid))):
    with open("/proc/self/" + name, "w") as file: file.write(text)
pid = os.fork()
if pid == 0:
    for source, target, kind, flags in (
        (b"none", b"/", None, 0x4000 | 0x40000),
        (b"tmpfs", b"/mnt", b"tmpfs", 0),
        (b"proc", b"/proc", b"proc", 0),
    ):
        if libc.mount(source, target, kind, flags, None): sys.exit("mount: %%d" %% ctypes.get_errno())
    os.write(1, b"ready\\n")
    os.read(0, 1)
    os._exit(0)
os.write(1, b"%%d\\n" %% pid)
os.waitpid(pid, 0)
"""
    % FLAGS
)


@pytest.fixture
def world() -> Iterator[List[Tuple[str, int]]]:
    # The server must own the user namespace, so it must not be in another one: both start from here.
    process = subprocess.Popen([sys.executable, "-c", WORLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    said = [process.stdout.readline(), process.stdout.readline()]
    pids = [line for line in said if line.strip().isdigit()]
    if b"ready\n" not in said or not pids:
        process.kill()
        process.communicate()
        pytest.skip("namespaces cannot be made here")
    descriptors = [(name, os.open("/proc/%d/ns/%s" % (int(pids[0]), name), os.O_RDONLY)) for name in NAMES]
    yield descriptors
    for _, descriptor in descriptors:
        os.close(descriptor)
    process.communicate(b"x")


INSIDE = (
    """
import os, socket
OUTSIDE = {name: os.readlink("/proc/self/ns/" + name) for name in %r}
def test_all_are_entered():
    assert not [name for name in OUTSIDE if os.readlink("/proc/self/ns/" + name) == OUTSIDE[name]]
def test_pid():
    assert os.getpid() == int(os.readlink("/proc/self")) < 100
    assert os.getsid(0) == os.getpid()
def test_mounts(): open("/mnt/only-inside", "w").close()
def test_capabilities():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Cap"))
    assert int(lines["CapEff"], 16) == int(lines["CapPrm"], 16) == 1, lines
    assert int(lines["CapInh"], 16) == 0
    assert int(lines["CapBnd"], 16) == 1
def test_network(): assert [name for _, name in socket.if_nameindex()] == ["lo"]
def test_directory(): assert os.getcwd() == HERE
HERE = os.getcwd()
"""
    % NAMES
)


def test_a_child_lives_in_its_namespaces(
    pytester: pytest.Pytester, start: Start, world: "list[tuple[str, int]]"
) -> None:
    write(pytester.path / "test_it.py", INSIDE)
    run = start(mode="server", run=None).collect()
    assert run.ready is not None
    assert run.ready["hazards"] == []
    for number in (1, 2):
        child = run.fork(number, namespaces=world, cwd=str(pytester.path), keep_caps=["CAP_CHOWN"])
        got = child.results()
        assert set(got.outcomes.values()) == {"passed"}, (got.details, run.socket.receive())
    assert not os.path.exists("/mnt/only-inside")
    frames = [run.socket.receive() for _ in range(4)]
    assert sorted(frame["t"] for frame in frames) == ["exited", "exited", "forked", "forked"]


def test_a_child_without_capabilities(pytester: pytest.Pytester, start: Start, world: "list[tuple[str, int]]") -> None:
    write(
        pytester.path / "test_it.py",
        """
        def test(): assert "CapEff:\\t0000000000000000\\n" in list(open("/proc/self/status"))
        """,
    )
    run = start(mode="server", run=None).collect()
    assert run.fork(1, namespaces=world, cwd="/").results().short() == {"test": "passed"}


def test_namespaces_that_cannot_be_entered_are_told(
    pytester: pytest.Pytester, start: Start, world: "list[tuple[str, int]]"
) -> None:
    write(pytester.path / "test_it.py", "def test(): pass")
    run = start(mode="server", run=None).collect()
    with open(os.devnull) as nothing:
        run.fork(1, namespaces=[("user", nothing.fileno())]).socket.end.close()
        frame = run.socket.receive()
    assert (frame["t"], frame["run"]) == ("fork_failed", 1)
    assert "cannot enter the user namespace" in frame["message"]
    run.fork(2, namespaces=world, cwd="/", keep_caps=["no_such"]).socket.end.close()
    frame = run.socket.receive()
    assert (frame["t"], frame["run"]) == ("fork_failed", 2)
    assert "no_such" in frame["message"]


def test_ctypes_is_not_needed_without_namespaces(pytester: pytest.Pytester, start: Start) -> None:
    write(pytester.path / "test_it.py", "import sys\ndef test(): assert 'ctypes' not in sys.modules")
    run = start(mode="server", run=None).collect()
    assert run.fork(1).results().short() == {"test": "passed"}
