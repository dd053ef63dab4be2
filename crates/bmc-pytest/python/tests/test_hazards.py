from __future__ import annotations

from typing import Dict, List

import pytest
from conftest import Start, write


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("import json, tempfile, logging", []),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()", ["threads"]),
        ("import _thread, time\n_thread.start_new_thread(time.sleep, (60,))", ["threads"]),
        ("import subprocess\nCHILD = subprocess.Popen(['sleep', '2'])", ["child_processes"]),
        ("import socket\nS = socket.socket()", ["sockets"]),
        ("import asyncio\nLOOP = asyncio.new_event_loop()", ["event_loop", "sockets"]),
        ("LOG = open('log.txt', 'w')", ["writable_file"]),
        ("LOG = open(__file__)", []),
        ("import tempfile\nLOG = tempfile.TemporaryFile()", []),
        ("import sqlite3\nDB = sqlite3.connect('x.db')\nDB.execute('create table t (x)')", ["sqlite"]),
        ("import sqlite3\nDB = sqlite3.connect('x.db')", ["sqlite"]),
        ("import sqlite3\nDB = sqlite3.connect(':memory:')", []),
        ("import sys\nsys.modules['pytest_twisted'] = sys", ["plugin"]),
    ],
)
def test_hazard(pytester: pytest.Pytester, start: Start, source: str, kinds: List[str]) -> None:
    write(pytester.path / "test_a.py", source + "\ndef test(): pass\n")
    run = start(mode="server", run=None).collect()
    assert run.ready is not None
    hazards = run.ready["hazards"]
    assert sorted(kind for kind, _ in hazards) == kinds
    assert all(text for _, text in hazards)
    # They are said, but a child is still made when asked for.
    assert run.fork(1).results().short() == {"test": "passed"}


def test_hazards_name_what_they_are(pytester: pytest.Pytester, start: Start) -> None:
    write(
        pytester.path / "test_a.py",
        """
        import sqlite3, threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True, name="poller").start()
        LOG = open("log.txt", "w")
        DB = sqlite3.connect("shop.db")
        def test(): pass
        """,
    )
    run = start(mode="server", run=None).collect()
    assert run.ready is not None
    texts: Dict[str, str] = dict(run.ready["hazards"])
    assert "poller" in texts["threads"]
    assert "log.txt" in texts["writable_file"]
    assert "shop.db" in texts["sqlite"]
