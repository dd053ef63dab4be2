"""Turns a forked process into one that looks like a pytest of its own.

It must not touch anything that processes share with their siblings, and it must keep Python objects alive that
project code may hold since collection: descriptors are replaced below them.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import tempfile
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

import pytest

_COPIED_BYTES = 1 << 26
"""An unlinked temporary file up to this size gets a copy for each child."""


class Inherited(NamedTuple):
    """A descriptor on a regular file, as the server sees it: /proc may be out of reach in the child."""

    descriptor: int
    path: str
    flags: int


class Descriptors(NamedTuple):
    """What the server has open when it forks."""

    files: List[Inherited]
    outputs: List[int]


def survey(session: pytest.Session, own: FrozenSet[int]) -> Descriptors:
    """Lists regular files, and every duplicate of standard output and error."""
    files: List[Inherited] = []
    outputs: Set[int] = set(_saved_by_capture(session))
    streams = _identities((1, 2))
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor in own or descriptor in outputs or descriptor in (1, 2):
            continue
        try:
            status = os.fstat(descriptor)
            target = os.readlink("/proc/self/fd/" + name)
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        except OSError:
            continue  # The listing's own descriptor is gone by now.
        if (status.st_dev, status.st_ino) in streams:
            outputs.add(descriptor)
        elif stat.S_ISREG(status.st_mode):
            files.append(Inherited(descriptor, target, flags))
    return Descriptors(files, sorted(outputs))


def _saved_by_capture(session: pytest.Session) -> List[int]:
    """Finds where pytest keeps the real standard output and error while it captures."""
    manager: Any = session.config.pluginmanager.getplugin("capturemanager")
    capture = getattr(manager, "_global_capturing", None)
    saved = [getattr(getattr(capture, name, None), "targetfd_save", None) for name in ("out", "err")]
    return [descriptor for descriptor in saved if isinstance(descriptor, int)]


def _identities(descriptors: Tuple[int, ...]) -> Set[Tuple[int, int]]:
    found = set()
    for descriptor in descriptors:
        try:
            status = os.fstat(descriptor)
        except OSError:
            continue
        # Others may have /dev/null open for reasons of their own.
        if not stat.S_ISCHR(status.st_mode):
            found.add((status.st_dev, status.st_ino))
    return found


def replace(inherited: Descriptors, output: int) -> None:
    """Points standard output and error elsewhere and gives the process its own file offsets."""
    for descriptor in (1, 2):
        os.dup2(output, descriptor, inheritable=True)
    for descriptor in inherited.outputs:
        os.dup2(output, descriptor, inheritable=os.get_inheritable(descriptor))
    for file in inherited.files:
        try:
            fresh = _reopen(file)
        except OSError:
            continue  # It stays shared, as after any fork.
        if fresh is not None:
            os.dup2(fresh, file.descriptor, inheritable=os.get_inheritable(file.descriptor))
            os.close(fresh)


def _reopen(file: Inherited) -> Optional[int]:
    offset = os.lseek(file.descriptor, 0, os.SEEK_CUR)
    before = os.fstat(file.descriptor)
    if before.st_nlink == 0 or file.path.endswith(" (deleted)"):
        fresh = _copy(file, before.st_size)
    else:
        keep = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_SYNC | os.O_DSYNC
        fresh = os.open(file.path, (file.flags & keep) | os.O_CLOEXEC | os.O_NOFOLLOW)
        after = os.fstat(fresh)
        # An overlay may show another inode number for the same file, but not another kind or size.
        if not stat.S_ISREG(after.st_mode) or after.st_size != before.st_size:
            os.close(fresh)
            return None
    if fresh is not None:
        os.lseek(fresh, offset, os.SEEK_SET)
    return fresh


def _copy(file: Inherited, size: int) -> Optional[int]:
    if size > _COPIED_BYTES or (size and file.flags & os.O_ACCMODE == os.O_WRONLY):
        return None
    if hasattr(os, "memfd_create"):
        fresh = os.memfd_create("copy", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile(buffering=0) as temporary:
            fresh = os.dup(temporary.fileno())
    done = 0
    while done < size:
        part = os.pread(file.descriptor, min(size - done, 1 << 20), done)
        if not part:
            break
        done += os.pwrite(fresh, part, done)
    if file.flags & os.O_APPEND:
        fcntl.fcntl(fresh, fcntl.F_SETFL, os.O_APPEND)
    return fresh


def reset_session(session: pytest.Session, run: Optional[int], private: bool, env: Dict[str, str]) -> None:
    """Forgets what one pytest process must not take over from another."""
    os.environ.update(env)
    if "TMPDIR" in env or "TEMP" in env or "TMP" in env:
        tempfile.tempdir = None
    factory: Any = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None:
        factory._basetemp = None
        given = getattr(factory, "_given_basetemp", None)
        if given is not None and not private:
            # A given directory is emptied by whoever uses it first, also under the feet of a sibling.
            factory._given_basetemp = given.parent / ("%s-%s" % (given.name, run))
    reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
    writer = getattr(reporter, "_tw", None)
    if writer is not None:
        writer._file = Silence()


class Silence:
    """A stream that takes everything and keeps nothing."""

    encoding = "utf-8"
    errors = "replace"
    closed = False

    def write(self, text: str) -> int:
        """Forgets a text."""
        return len(text)

    def flush(self) -> None:
        """Does nothing."""

    def isatty(self) -> bool:
        """Says no."""
        return False

    def fileno(self) -> int:
        """Refuses, as a stream in memory does."""
        raise OSError("this stream has no descriptor")


def flush_streams() -> None:
    """Writes what Python buffers, so that it is neither lost nor written twice."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue  # A test closed it.
