"""Serves `fork`, `go` and `quit` after collection.

It must not run a test: a fork comes back from `serve` as a process of its own and runs its tests through
pytest's loop like any other.

For each run two processes are forked. The first enters the namespaces, which is the only way to have the second
in a pid namespace, and waits for the second, because the namespaces hide the second one from the server.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import _socket
import json
import os
import select
import signal
import sys
import traceback
import warnings
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Union

import pytest

from . import child, hazards, neutralise, seeds
from .wire import Channel, Closed, ProtocolError, length_of, parse

_DESCRIPTORS_IN_A_FRAME = 16
_CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0x40000000)
_GRACE_MS = 500
"""How long `quit` waits for one more child: their ends are reported within milliseconds."""
_FAILED = 71
"""Exit code of a process that could not become a child; its parent was told why."""


class Go(NamedTuple):
    """Run in this very process."""

    indices: Optional[List[int]]


class Child(NamedTuple):
    """This process was forked for one run."""

    indices: Optional[List[int]]
    stack_signal: int

    def leave(self, status: int) -> NoReturn:
        """Ends the process at once: what the interpreter does at its end belongs to the server."""
        child.flush_streams()
        os._exit(status & 0xFF)


Task = Union[Go, Child, None]


class _Fork:
    """A `fork` frame with its descriptors."""

    def __init__(self, raw: Dict[str, Any], descriptors: List[int]) -> None:
        self.run = int(raw["run"])
        self.seed = int(raw["seed"])
        self.indices = _indices(raw)
        self.env = {str(name): str(value) for name, value in (raw.get("env") or {}).items()}
        self.namespaces = [str(name) for name in raw.get("namespaces") or ()]
        self.cwd: Optional[str] = raw.get("cwd")
        self.keep_caps = [str(name) for name in raw.get("keep_caps") or ()]
        self.stack_signal = int(raw.get("stack_signal") or 0)
        if len(descriptors) != 2 + len(self.namespaces):
            raise ProtocolError("fork needs %d descriptors and has %d" % (2 + len(self.namespaces), len(descriptors)))
        self.result, self.output = descriptors[:2]
        self.entries = descriptors[2:]


class _Live:
    """A child that was forked and has not been reported as gone."""

    def __init__(self, run: int, pid: int) -> None:
        self.run = run
        self.pid = pid
        self.buffer = b""
        self.failed = False
        self.exited = False


class ForkServer:
    """The state of a session that waits to run tests."""

    def __init__(self, channel: Channel, session: pytest.Session, watch: seeds.Watch) -> None:
        self._channel = channel
        self._session = session
        self._seeds = watch
        self._live: Dict[int, _Live] = {}
        self._socket: Optional[_socket.socket] = None
        self._arrived: List[int] = []
        self._inherited = child.Descriptors([], [])

    def ready(self) -> Dict[str, Any]:
        """Prepares for forks and describes the process."""
        self._seeds.collected()
        found = hazards.find(frozenset((self._channel.descriptor,)))
        # No gc.freeze(), although it would keep more memory shared: frozen objects are invisible to
        # gc.get_referrers(), which Hypothesis asks. No gc.collect() either: what it finds would be found at another
        # moment in a plain run.
        return {
            "t": "ready",
            "hazards": found,
            "random_seeded": self._seeds.random_seeded,
            "numpy_seeded": self._seeds.numpy_seeded,
        }

    def wait_for_go(self) -> Task:
        """Waits in a process that only runs once."""
        message = self._channel.receive()
        if message["t"] == "go":
            return Go(_indices(message))
        if message["t"] == "quit":
            return None
        raise ProtocolError("%r is not understood here" % message["t"])

    def serve(self) -> Task:
        """Serves until this process, or one forked from it, has something to run."""
        self._socket = _socket.socket(fileno=os.dup(self._channel.descriptor))
        main = self._socket.fileno()
        poll = select.poll()
        poll.register(main, select.POLLIN)
        try:
            while True:
                for descriptor, _ in poll.poll():
                    if descriptor != main:
                        if self._read_status(descriptor):
                            poll.unregister(descriptor)
                            os.close(descriptor)
                        continue
                    message = self._receive()
                    descriptors, self._arrived = self._arrived, []
                    if message["t"] == "fork":
                        started = self._fork(message, descriptors)
                        if isinstance(started, Child):
                            return started
                        if started is not None:
                            poll.register(started, select.POLLIN)
                        continue
                    for extra in descriptors:
                        os.close(extra)
                    if message["t"] == "go":
                        return Go(_indices(message))
                    if message["t"] == "quit":
                        self._settle_accounts(poll, main)
                        return None
                    raise ProtocolError("%r is not understood here" % message["t"])
        finally:
            self._socket.close()

    def _settle_accounts(self, poll: "select.poll", main: int) -> None:
        """Reports children that end now. Those that go on are killed when this process lets go of their pipes."""
        poll.unregister(main)
        while self._live:
            ready = poll.poll(_GRACE_MS)
            if not ready:
                return
            for descriptor, _ in ready:
                if self._read_status(descriptor):
                    poll.unregister(descriptor)
                    os.close(descriptor)

    def _receive(self) -> Dict[str, Any]:
        return parse(self._exactly(length_of(self._exactly(4))))

    def _exactly(self, count: int) -> bytes:
        assert self._socket is not None
        parts = []
        while count:
            space = _socket.CMSG_SPACE(_DESCRIPTORS_IN_A_FRAME * 4)
            part, ancillary, _, _ = self._socket.recvmsg(count, space, _CLOSE_ON_EXEC)
            for level, kind, data in ancillary:
                if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                    usable = len(data) - len(data) % 4
                    self._arrived += [int.from_bytes(data[i : i + 4], sys.byteorder) for i in range(0, usable, 4)]
            if not part:
                raise Closed("the runner closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    # The server's side of a fork

    def _fork(self, message: Dict[str, Any], descriptors: List[int]) -> Union[Child, int, None]:
        """Forks for one run. Comes back in the server with the status pipe, and in the child with its task."""
        try:
            order = _Fork(message, descriptors)
            count = len(self._session.items)
            indices = order.indices
            if indices is not None and (
                len(set(indices)) != len(indices) or any(not 0 <= index < count for index in indices)
            ):
                raise ProtocolError("the indices must be distinct and below %d" % count)
            if order.namespaces:
                _load_namespaces()
            child.flush_streams()
            own = frozenset((self._channel.descriptor, self._listening, *self._live, *descriptors))
            self._inherited = child.survey(self._session, own)
            reading, writing = os.pipe()
            pid = _quiet_fork()
        except Exception as problem:
            run = message.get("run")
            self._channel.send(
                {"t": "fork_failed", "run": run, "message": "%s: %s" % (type(problem).__name__, problem)}
            )
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        if pid == 0:
            os.close(reading)
            return self._become_child(order, writing)
        os.close(writing)
        for descriptor in descriptors:
            os.close(descriptor)
        self._live[reading] = _Live(order.run, pid)
        return reading

    @property
    def _listening(self) -> int:
        return self._socket.fileno() if self._socket is not None else -1

    def _read_status(self, descriptor: int) -> bool:
        """Passes on what is known about a child; says whether it is gone."""
        live = self._live[descriptor]
        data = os.read(descriptor, 1 << 16)
        if data:
            live.buffer += data
            *lines, live.buffer = live.buffer.split(b"\n")
            for line in lines:
                message = json.loads(line.decode("utf-8"))
                live.failed = live.failed or message["t"] == "fork_failed"
                live.exited = live.exited or message["t"] == "exited"
                if message["t"] != "exited" or not live.failed:
                    self._channel.send(message)
            return False
        _, status = os.waitpid(live.pid, 0)
        del self._live[descriptor]
        if not live.exited and not live.failed:
            # The waiting process was killed, so nothing more is known.
            code, number = _split(status)
            self._channel.send({"t": "exited", "run": live.run, "code": code, "signal": number})
        return True

    # The forked processes

    def _become_child(self, order: _Fork, status: int) -> Child:
        """Runs in the first forked process; comes back only in the second."""
        try:
            if self._socket is not None:
                self._socket.close()
            os.close(self._channel.descriptor)
            for descriptor in self._live:
                os.close(descriptor)
            # As bytes: a path need not be text. Entering a mount namespace leads to its root directory.
            here = os.getcwdb() if order.cwd is None else os.fsencode(order.cwd)
            if order.namespaces:
                from . import namespaces

                namespaces.enter(zip(order.namespaces, order.entries))
            for descriptor in order.entries:
                os.close(descriptor)
            os.chdir(here)
            pid = _quiet_fork()
        except BaseException as problem:
            _tell(
                status, {"t": "fork_failed", "run": order.run, "message": "%s: %s" % (type(problem).__name__, problem)}
            )
            os._exit(_FAILED)
        if pid:
            os.close(order.result)
            os.close(order.output)
            _wait_and_leave(order.run, pid, status)
        try:
            return self._settle(order, status)
        except BaseException:
            _tell(status, {"t": "fork_failed", "run": order.run, "message": traceback.format_exc()})
            os._exit(_FAILED)

    def _settle(self, order: _Fork, status: int) -> Child:
        """Makes the second process a pytest of its own."""
        os.setsid()
        if order.namespaces:
            from . import namespaces

            namespaces.keep_capabilities(order.keep_caps)
            namespaces.die_with_parent()
        child.replace(self._inherited, order.output)
        os.close(order.output)
        self._channel.rebind(order.result)
        child.reset_session(self._session, order.run, "mnt" in order.namespaces, order.env)
        self._seeds.set_in_child(order.seed)
        neutralise.seed_randomly(self._session.config, order.seed)
        _tell(status, {"t": "forked", "run": order.run})
        os.close(status)
        return Child(order.indices, order.stack_signal)


def _wait_and_leave(run: int, pid: int, status: int) -> NoReturn:
    """Waits for the second process and tells how it ended. Kills it when the server is gone."""
    try:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.register(status, 0)
        while True:
            done, code, usage = os.wait4(pid, os.WNOHANG)
            if done:
                break
            for descriptor, _ in poll.poll():
                if descriptor == status:
                    os.kill(pid, signal.SIGKILL)
                    os._exit(_FAILED)
                os.read(reading, 4096)
        exit_code, number = _split(code)
        _tell(
            status,
            {
                "t": "exited",
                "run": run,
                "code": exit_code,
                "signal": number,
                "maxrss_kb": usage.ru_maxrss,
                "user_s": round(usage.ru_utime, 6),
                "system_s": round(usage.ru_stime, 6),
            },
        )
        os._exit(0)
    finally:
        os._exit(_FAILED)


def _tell(status: int, message: Dict[str, Any]) -> None:
    try:
        os.write(status, json.dumps(message).encode("ascii") + b"\n")
    except OSError:
        os._exit(_FAILED)  # The server is gone.


def _split(status: int) -> "tuple[Optional[int], Optional[int]]":
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def _quiet_fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns about threads; they are reported as a hazard, and warnings may be errors here.
        warnings.simplefilter("ignore")
        return os.fork()


def _load_namespaces() -> None:
    # Once here, so that not every child has to.
    from . import namespaces  # noqa: F401


def _indices(message: Dict[str, Any]) -> Optional[List[int]]:
    raw: Optional[Sequence[Any]] = message.get("indices")
    if raw is None:
        return None
    if not all(isinstance(index, int) and not isinstance(index, bool) for index in raw):
        raise ProtocolError("the indices must be whole numbers")
    return list(raw)
