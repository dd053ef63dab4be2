"""Frames and the descriptor they travel on, as PROTOCOL.md has them.

It must not know pytest, and it must not use ``sys.stdout`` or anything else a test may replace.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import struct
import traceback
from typing import Any, Dict, List, Optional

VERSION = 1
MAX_FRAME = 1 << 20
"""Largest payload either side accepts."""

_HEADER = struct.Struct("<I")
# Room for the header, in case the other side counts it in.
_LARGEST_SENT = MAX_FRAME - _HEADER.size
# A number above what tests close in loops (the usual soft limit is 1024), but low enough for a small
# descriptor table: the kernel copies the table up to the highest number at every fork.
_HIGHEST_NUMBER = 4000

pack_length = _HEADER.pack
# Kept here because tests replace ``json.dumps``.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ProtocolError(Exception):
    """The other side said something PROTOCOL.md does not allow."""


class Closed(Exception):
    """The other side is gone."""


def cut(text: str, limit: int) -> str:
    """Keeps head and tail of a text that is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    mark = "\n[... %d characters left out ...]\n" % (len(text) - limit)
    room = max(limit - len(mark), 0)
    head = room * 2 // 3
    tail = room - head
    return text[:head] + mark.strip() if not room else text[:head] + mark + (text[-tail:] if tail else "")


def clean(value: Any) -> Any:
    """Replaces what is not valid Unicode by backslash escapes, in every string inside."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(inner) for inner in value]
    return value


def shrink(value: Any, limit: int) -> Any:
    """Cuts every string to ``limit`` characters, and long lists in proportion."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, dict):
        return {key: shrink(inner, limit) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shrink(inner, limit) for inner in value[: max(limit // 16, 8)]]
    return value


def payload(value: Any) -> bytes:
    """Writes a value as JSON that is valid UTF-8 and fits into one frame."""
    data = _dump(value)
    limit = 1 << 16
    while len(data) > _LARGEST_SENT:
        data = _dump(shrink(value, limit))
        limit //= 2
        if not limit:
            raise ProtocolError("a frame cannot be made to fit: %r" % data[:80])
    return data


def frame(data: bytes) -> bytes:
    """Puts the length before a payload."""
    return pack_length(len(data)) + data


def _dump(value: Any) -> bytes:
    try:
        return _encode(value).encode("utf-8")
    except UnicodeEncodeError:
        return _encode(clean(value)).encode("utf-8")


def parse(data: bytes) -> Dict[str, Any]:
    """Reads the payload of an object frame."""
    try:
        value = json.loads(data.decode("utf-8"))
    except ValueError as problem:
        raise ProtocolError("a frame is not JSON: %s" % problem) from problem
    if not isinstance(value, dict) or not isinstance(value.get("t"), str):
        raise ProtocolError("a frame is not an object with a type: %r" % data[:80])
    return value


def length_of(header: bytes) -> int:
    """Reads a header."""
    length: int = _HEADER.unpack(header)[0]
    if length > MAX_FRAME:
        raise ProtocolError("a frame of %d bytes is longer than %d" % (length, MAX_FRAME))
    return length


def move_high(descriptor: int, close: bool = True) -> int:
    """Duplicates a descriptor to a high close-on-exec number, out of the way of tests."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = _HIGHEST_NUMBER if soft == resource.RLIM_INFINITY else min(soft - 8, _HIGHEST_NUMBER)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(highest, 3))
    if close:
        os.close(descriptor)
    return moved


class Channel:
    """One end of the socket, usable only in the process that it was made for.

    The functions are kept on the object: fake file systems and frozen clocks replace module attributes.
    """

    def __init__(self, descriptor: int) -> None:
        self._write = os.write
        self._read = os.read
        self._getpid = os.getpid
        self._exit = os._exit
        self._pending = b""
        self.rebind(descriptor)

    def rebind(self, descriptor: int) -> None:
        """Makes the channel belong to the current process and another descriptor."""
        self.descriptor = move_high(descriptor)
        os.set_blocking(self.descriptor, True)
        self.pid = self._getpid()
        self._pending = b""
        self._dead = False

    @property
    def mine(self) -> bool:
        """Says whether this is the process the channel was made for."""
        return self._getpid() == self.pid

    def send(self, value: Any) -> None:
        """Sends one object frame now."""
        self.write(frame(payload(value)))

    def hold(self, frames: bytes) -> None:
        """Keeps frames until the next write."""
        self._pending += frames

    def flush(self) -> None:
        """Sends what was held."""
        if self._pending:
            self.write(b"")

    def write(self, frames: bytes) -> None:
        """Sends what was held, then these frames. Other processes never write."""
        if self._getpid() != self.pid or self._dead:
            return
        data = self._pending + frames
        self._pending = b""
        try:
            done = self._write(self.descriptor, data)
            while done < len(data):
                done += self._write(self.descriptor, data[done:])
        except OSError as problem:
            self._dead = True
            if problem.errno in (errno.EPIPE, errno.ECONNRESET):
                # Nobody is left to hear the result, so nothing of this session matters any more.
                self._exit(1)
            # A test closed the descriptor: the runner sees an end without `finish` and blames that test.

    def complain(self) -> None:
        """Reports the exception that is being handled as a fault of the plugin itself."""
        self.send({"t": "internal_error", "message": traceback.format_exc()})

    def receive(self) -> Dict[str, Any]:
        """Waits for one object frame that carries no descriptors."""
        return parse(self._exactly(length_of(self._exactly(_HEADER.size))))

    def _exactly(self, count: int) -> bytes:
        parts: List[bytes] = []
        while count:
            part = self._read(self.descriptor, count)
            if not part:
                raise Closed("the runner closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class Settings:
    """The `config` frame."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        if raw.get("t") != "config" or raw.get("v") != VERSION:
            raise ProtocolError("the first frame must be a config of version %d: %r" % (VERSION, raw))
        try:
            self._read(raw)
        except (KeyError, TypeError, ValueError) as problem:
            raise ProtocolError("the config is malformed: %r" % problem) from problem

    def _read(self, raw: Dict[str, Any]) -> None:
        self.mode = str(raw["mode"])
        if self.mode not in ("collect", "run", "server"):
            raise ProtocolError("the mode %r is unknown" % self.mode)
        self.seed = int(raw["seed"])
        self.select = _keys(raw.get("select"))
        self.order = _keys(raw.get("order"))
        self.longrepr_limit = int(raw.get("longrepr_limit", 4000))
        self.stack_signal = int(raw.get("stack_signal") or 0)
        self.neutralise = bool(raw.get("neutralise", True))
        self.continue_on_collection_errors = bool(raw.get("continue_on_collection_errors", False))
        argv = raw.get("argv")
        self.argv: Optional[List[str]] = None if argv is None else [str(word) for word in argv]


def _keys(raw: Any) -> Optional[List["tuple[str, int]"]]:
    if raw is None:
        return None
    return [(str(nodeid), int(occurrence)) for nodeid, occurrence in raw]
