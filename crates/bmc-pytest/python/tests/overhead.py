"""Measures what recording costs each test: ``python tests/overhead.py``.

Runs empty tests in one session, in blocks that take turns with and without the recorder, so that the load of the machine
meets both alike. Prints the processor time of a test in microseconds: fastest, lower quartile, median of the blocks.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from driver import Run

TESTS = 6000
CONFTEST = """
import pytest, time

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    manager, block, spent = session.config.pluginmanager, 50, {True: [], False: []}
    recorder, name = manager.get_plugin("breakmycode_plugin.recorder"), "breakmycode_plugin.recorder"
    items = session.items
    for start in range(0, len(items) - block, block):
        on = start // block % 2 == 0
        if on != manager.is_registered(recorder):
            manager.register(recorder, name) if on else manager.unregister(recorder)
        before = time.process_time()
        for index in range(start, start + block):
            session.config.hook.pytest_runtest_protocol(item=items[index], nextitem=items[index + 1])
        spent[on].append((time.process_time() - before) / block * 1e6)
    with open("spent", "w") as file:
        for on, values in spent.items():
            values.sort()
            picked = values[0], values[len(values) // 4], values[len(values) // 2]
            print("with   " if on else "without", *("%7.1f" % value for value in picked), file=file)
    return True
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place, "conftest.py").write_text(CONFTEST)
        Path(place, "test_it.py").write_text("".join("def test_%d(): pass\n" % number for number in range(TESTS)))
        with Run(place, ["-q", "-p", "no:cacheprovider"]) as run:
            run.go()
        sys.stdout.write(Path(place, "spent").read_text())


if __name__ == "__main__":
    main()
