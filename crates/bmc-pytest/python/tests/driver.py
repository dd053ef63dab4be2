"""Plays the runner: starts pytest with the plugin and speaks the protocol, over a real socket pair.

``python tests/driver.py [--runs N] PYTEST_ARGUMENT…`` runs the suite in the current directory both ways and prints what differs.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

PACKAGE_PARENT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0
"""Seconds without a frame after which a test of this suite gives up, instead of hanging for good."""

Frame = Any


class Ended(Exception):
    """The other side closed."""


class Socket:
    """One end of a connection, in frames."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(PATIENCE)
        self.end = end

    def send(self, value: Frame, descriptors: Sequence[int] = ()) -> None:
        data = json.dumps(value).encode("utf-8")
        data = struct.pack("<I", len(data)) + data
        if descriptors:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
            done = self.end.sendmsg([data[:1]], rights)
            data = data[done:]
        self.end.sendall(data)

    def receive(self) -> Frame:
        (length,) = struct.unpack("<I", self._exactly(4))
        assert length <= 1 << 20
        return json.loads(self._exactly(length).decode("utf-8"))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                part = self.end.recv(count - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                if data:
                    raise AssertionError("a frame was cut off: %r" % data)
                raise Ended
            data += part
        return data

    def until(self, kind: str) -> List[Frame]:
        """Receives up to and with the next object frame of a kind."""
        frames = []
        while True:
            frame = self.receive()
            frames.append(frame)
            if isinstance(frame, dict) and frame["t"] == kind:
                return frames

    def rest(self) -> List[Frame]:
        """Receives until the other side closes."""
        frames = []
        while True:
            try:
                frames.append(self.receive())
            except Ended:
                return frames


class Results:
    """What a run said, by test."""

    def __init__(self, frames: Sequence[Frame], ids: Sequence[str]) -> None:
        self.frames = list(frames)
        self.started = [ids[frame[1]] for frame in frames if isinstance(frame, list) and frame[0] == "s"]
        ended = [frame for frame in frames if isinstance(frame, list) and frame[0] == "o"]
        self.outcomes = {ids[frame[1]]: frame[2] for frame in ended}
        self.details = {ids[frame[1]]: frame[4] for frame in ended if len(frame) > 4}
        self.durations = {ids[frame[1]]: frame[3] for frame in ended}
        self.remarks = [(ids[frame[1]], frame[2]) for frame in frames if isinstance(frame, list) and frame[0] == "m"]
        finishes = [frame for frame in frames if isinstance(frame, dict) and frame["t"] == "finish"]
        self.finish: Optional[Dict[str, Any]] = finishes[-1] if finishes else None

    def short(self) -> Dict[str, str]:
        """Outcomes by the last part of the node id."""
        return {nodeid.split("::", 1)[-1]: outcome for nodeid, outcome in self.outcomes.items()}


class Run:
    """One pytest process."""

    def __init__(
        self,
        directory: Union[str, Path],
        arguments: Sequence[str] = (),
        python: str = sys.executable,
        env: Optional[Dict[str, str]] = None,
        **config: Any,
    ) -> None:
        ours, theirs = socket.socketpair()
        self.socket = Socket(ours)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment.update(env or {})
        user = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(PACKAGE_PARENT)] + ([user] if user else []))
        environment["BREAKMYCODE_FD"] = str(theirs.fileno())
        with tempfile.TemporaryFile() as output:
            self.process = subprocess.Popen(
                [python, "-m", "pytest", "-p", "breakmycode_plugin", *arguments],
                cwd=str(directory),
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            self._output = os.dup(output.fileno())
        theirs.close()
        settings: Dict[str, Any] = {
            "t": "config",
            "v": 1,
            "mode": "run",
            "seed": 1234567890123456789,
            "hash_seed": 7,
            "start": 1,
            "run": 1,
            "select": None,
            "order": None,
            "longrepr_limit": 4000,
            "stack_signal": 0,
            "neutralise": True,
            "continue_on_collection_errors": False,
        }
        settings.update(config)
        self.socket.send(settings)
        self.hello: Dict[str, Any] = {}
        self.errors: List[Frame] = []
        self.files: List[str] = []
        self.ids: List[str] = []
        self.collected: Dict[str, Any] = {}
        self.ready: Optional[Dict[str, Any]] = None
        self.early: List[Frame] = []
        self.children: List[Child] = []

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.end.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._output)
        for child in self.children:
            child.close()

    @property
    def output(self) -> str:
        """What the process has written so far."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, size, 0).decode("utf-8", "replace")

    def collect(self) -> "Run":
        """Receives up to `ready`, or to the end if pytest stops before."""
        while self.ready is None:
            try:
                frame = self.socket.receive()
            except Ended:
                break
            kind = frame["t"] if isinstance(frame, dict) else None
            if kind == "hello":
                self.hello = frame
            elif kind == "file":
                self.files.append(frame["path"])
            elif kind == "collect_error":
                self.errors.append(frame)
            elif kind == "collected":
                self.ids += frame["ids"]
                self.collected = frame
            elif kind == "ready":
                self.ready = frame
            else:
                self.early.append(frame)
        return self

    def go(self, indices: Optional[Sequence[int]] = None) -> Results:
        """Runs in the process itself, to its end."""
        if self.ready is None:
            self.collect()
        assert self.ready is not None, self.output
        self.socket.send({"t": "go"} if indices is None else {"t": "go", "indices": list(indices)})
        results = Results(self.socket.rest(), self.ids)
        self.process.wait(PATIENCE)
        return results

    def fork(self, run: int, namespaces: Sequence["tuple[str, int]"] = (), **fields: Any) -> "Child":
        """Asks for a fork; does not wait for it."""
        ours, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as output:
            kept = os.dup(output.fileno())
            order: Dict[str, Any] = {
                "t": "fork",
                "run": run,
                "seed": 1000 + run,
                "indices": None,
                "env": {},
                "namespaces": [name for name, _ in namespaces],
                "cwd": None,
                "keep_caps": [],
                "stack_signal": 0,
            }
            order.update(fields)
            descriptors = [theirs.fileno(), output.fileno(), *(descriptor for _, descriptor in namespaces)]
            self.socket.send(order, descriptors)
        theirs.close()
        child = Child(self, run, Socket(ours), kept)
        self.children.append(child)
        return child


class Child:
    """A forked run."""

    def __init__(self, parent: Run, run: int, end: Socket, output: int) -> None:
        self.parent = parent
        self.run = run
        self.socket = end
        self._output = output

    def close(self) -> None:
        self.socket.end.close()
        os.close(self._output)

    def results(self) -> Results:
        """Receives everything the child says."""
        frames = self.socket.rest()
        self.socket.end.close()
        return Results(frames, self.parent.ids)

    @property
    def output(self) -> str:
        """What the child wrote to standard output and error."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, size, 0).decode("utf-8", "replace")


def compare(directory: str, runs: int, arguments: Sequence[str]) -> int:
    """Runs a suite once plainly and several times forked, two at a time; prints differences."""
    with Run(directory, arguments) as plain:
        truth = plain.go()
    print("plain:", dict(Counter(truth.outcomes.values())), truth.finish)
    different = 0
    with Run(directory, arguments, mode="server", run=None) as server:
        server.collect()
        print("ready:", server.ready)
        for first in range(1, runs + 1, 2):
            children = [server.fork(run) for run in range(first, min(first + 2, runs + 1))]
            for child in children:
                results = child.results()
                print("run %d:" % child.run, dict(Counter(results.outcomes.values())), results.finish)
                for nodeid in sorted(truth.outcomes.keys() | results.outcomes.keys()):
                    if truth.outcomes.get(nodeid) != results.outcomes.get(nodeid):
                        different += 1
                        print("  ", nodeid, truth.outcomes.get(nodeid), "->", results.outcomes.get(nodeid))
                        print("     ", str(results.details.get(nodeid))[:600])
        server.socket.send({"t": "quit"})
        for frame in server.socket.rest():
            print(frame)
    return different


if __name__ == "__main__":
    rest = sys.argv[1:]
    count = 2
    if rest[:1] == ["--runs"]:
        count, rest = int(rest[1]), rest[2:]
    sys.exit(1 if compare(os.getcwd(), count, rest) else 0)
