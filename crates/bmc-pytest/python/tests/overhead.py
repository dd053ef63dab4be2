"""Measures what the plugin costs each test: ``python tests/overhead.py [TESTS]``.

Alternates plain and watched runs of a suite of empty tests and compares the processor time of the whole process, less that
of the same suite with nothing selected. Prints microseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Dict, List

from driver import Run

ROUNDS = 5


def seconds(action: Callable[[], None]) -> float:
    before = os.times()
    action()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "test_it.py").write_text("".join("def test_%d(): pass\n" % number for number in range(count)))

        def plain(*arguments: str) -> None:
            command = [sys.executable, "-m", "pytest", "-q", *arguments]
            subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=False)

        def watched(indices: "list[int] | None") -> None:
            with Run(place, ["-q"]) as run:
                run.go(indices)

        def forked(indices: "list[int] | None") -> None:
            with Run(place, ["-q"], mode="server", run=None) as run:
                run.collect()
                run.fork(1, indices=indices).results()
                # Only what ended is counted.
                run.socket.send({"t": "quit"})
                run.socket.rest()
                run.process.wait()

        found: Dict[str, List[float]] = {"plain": [], "watched": [], "child": []}
        for _ in range(ROUNDS):
            found["plain"].append(seconds(plain) - seconds(lambda: plain("--deselect", "test_it.py::test_")))
            found["watched"].append(seconds(lambda: watched(None)) - seconds(lambda: watched([])))
            found["child"].append(seconds(lambda: forked(None)) - seconds(lambda: forked([])))
        for name, values in found.items():
            each = sorted(value / count * 1e6 for value in values)
            print("%-8s %6.1f µs a test (best of %d; median %.1f)" % (name, each[0], ROUNDS, each[ROUNDS // 2]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
