"""Lists what in this process would make a forked child unlike a fresh process.

It must not change anything it looks at, and it must not import what the project did not import.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import stat
import sys
import threading
from typing import FrozenSet, Iterator, List

Hazard = List[str]

_SHOWN = 5
_BREAKING_MODULES = {
    "mpi4py.MPI": "MPI is initialised and does not survive a fork",
    "pytest_twisted": "its reactor runs in a greenlet of the parent",
}


def find(own: FrozenSet[int]) -> List[Hazard]:
    """Lists hazards; ``own`` are the plugin's descriptors."""
    return [*_threads(), *_children(), *_descriptors(own), *_namespaces(), *_plugins()]


def _threads() -> Iterator[Hazard]:
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others:
        names = ", ".join("%s (%s)" % (thread.name, type(thread).__name__) for thread in others[:_SHOWN])
        yield ["threads", "%d threads are alive besides the main one: %s" % (len(others), names)]
    native = _entries("/proc/self/task") - 1 - len(others)
    # OpenBLAS stops its pool before a fork and starts it again when needed, on both sides.
    if native > 0 and not _is_mapped("openblas"):
        yield ["threads", "%d threads are alive that Python did not start" % native]


def _children() -> Iterator[Hazard]:
    children: List[str] = []
    for task in _names("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/children" % task, encoding="ascii") as listing:
                children += listing.read().split()
        except OSError:
            continue
    if children:
        yield ["child_processes", "%d child processes are alive: %s" % (len(children), ", ".join(children[:_SHOWN]))]


def _descriptors(own: FrozenSet[int]) -> Iterator[Hazard]:
    sockets = loops = 0
    streams = [os.fstat(number) for number in (1, 2)]
    for name in _names("/proc/self/fd"):
        descriptor = int(name)
        if descriptor <= 2 or descriptor in own:
            continue
        try:
            target = os.readlink("/proc/self/fd/" + name)
            status = os.fstat(descriptor)
            mode = status.st_mode
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        except OSError:
            continue
        if any(os.path.samestat(status, stream) for stream in streams):
            continue  # pytest keeps duplicates of its standard output.
        if target == "anon_inode:[eventpoll]":
            loops += 1
        elif stat.S_ISSOCK(mode):
            sockets += 1
        elif stat.S_ISREG(mode) and flags & os.O_ACCMODE != os.O_RDONLY and not target.endswith(" (deleted)"):
            if _is_sqlite(target):
                yield ["sqlite", "the database %s is open" % target]
            else:
                yield ["writable_file", "%s is open for writing" % target]
    if loops:
        yield ["event_loop", "%d event loops or selectors are open" % loops]
    if sockets:
        yield ["sockets", "%d sockets are open" % sockets]


def _namespaces() -> Iterator[Hazard]:
    if importlib.util.find_spec("_ctypes") is None:
        yield ["namespaces", "this Python has no ctypes, so a child cannot enter namespaces"]


def _plugins() -> Iterator[Hazard]:
    for module, why in _BREAKING_MODULES.items():
        if module in sys.modules:
            yield ["plugin", "%s: %s" % (module, why)]
    monkey = sys.modules.get("gevent.monkey")
    patched = getattr(monkey, "is_module_patched", None)
    if patched is not None and patched("os"):
        yield ["plugin", "gevent: os.fork is replaced"]


def _is_sqlite(path: str) -> bool:
    if "sqlite3" not in sys.modules and "_sqlite3" not in sys.modules:
        return False
    try:
        with open(path, "rb") as database:
            head = database.read(16)
    except OSError:
        return False
    # An empty file is a database nothing was written to yet.
    return head == b"SQLite format 3\0" or (not head and path.endswith((".db", ".sqlite", ".sqlite3")))


def _is_mapped(library: str) -> bool:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return any(library in line for line in maps)
    except OSError:
        return False


def _names(directory: str) -> List[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _entries(directory: str) -> int:
    return len(_names(directory))
