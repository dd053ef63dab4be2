from __future__ import annotations

import fcntl
import json
import os
import resource
import socket
from pathlib import Path
from typing import Iterator, Tuple

import pytest
from golden_frames import GOLDEN, values

from breakmycode_plugin import wire


@pytest.fixture
def pair() -> Iterator[Tuple[wire.Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = wire.Channel(theirs.detach())
    yield channel, ours
    ours.close()
    os.close(channel.descriptor)


@pytest.mark.parametrize("name", values())
def test_golden_frames_are_written_byte_by_byte(name: str) -> None:
    value = values()[name]
    assert wire.frame(wire.payload(value)) == (GOLDEN / (name + ".bin")).read_bytes()


@pytest.mark.parametrize("name", [name for name in values() if name.startswith("to_plugin")])
def test_golden_frames_to_the_plugin_are_read(name: str, pair: Tuple[wire.Channel, socket.socket]) -> None:
    channel, runner = pair
    runner.sendall((GOLDEN / (name + ".bin")).read_bytes())
    assert channel.receive() == values()[name]


@pytest.mark.parametrize("path", sorted((GOLDEN / "refused").glob("*.bin")), ids=lambda path: str(path.stem))
def test_bad_frames_are_refused(path: Path, pair: Tuple[wire.Channel, socket.socket]) -> None:
    channel, runner = pair
    runner.sendall(path.read_bytes())
    with pytest.raises(wire.ProtocolError):
        channel.receive()


def test_a_frame_that_is_cut_off_is_the_end(pair: Tuple[wire.Channel, socket.socket]) -> None:
    channel, runner = pair
    runner.sendall(b"\x05\x00\x00\x00{")
    runner.shutdown(socket.SHUT_WR)
    with pytest.raises(wire.Closed):
        channel.receive()


def test_settings_are_read_from_the_golden_configs() -> None:
    settings = wire.Settings(values()["to_plugin_config_server"])
    assert settings.select == [("tests/test_a.py::test_x", 0), ("tests/test_a.py::test_x", 1)]
    assert settings.order == [("tests/test_a.py::test_x", 1), ("tests/test_a.py::test_x", 0)]
    assert settings.argv == ["-k", "x and not y"]
    assert wire.Settings(values()["to_plugin_config"]).seed == (1 << 64) - 1


@pytest.mark.parametrize(
    "change", [{"v": 2}, {"t": "go"}, {"mode": "other"}, {"select": [["x"]]}, {"order": 7}, {"seed": None}, {"argv": 3}]
)
def test_settings_of_another_protocol_are_refused(change: "dict[str, object]") -> None:
    with pytest.raises(wire.ProtocolError):
        wire.Settings({**values()["to_plugin_config"], **change})


@pytest.mark.parametrize("size", [1 << 20, 5 << 20])
@pytest.mark.parametrize("letter", ["x", "\u3044", '"', "\udc80"])
def test_a_frame_is_never_too_long(size: int, letter: str) -> None:
    data = wire.payload(["o", 1, "failed", 3, {"longrepr": letter * size, "extra": [{"message": letter * 100}] * 50}])
    assert 10_000 < len(data) <= wire.MAX_FRAME
    assert json.loads(data.decode("utf-8"))[:4] == ["o", 1, "failed", 3]


def test_a_long_list_is_cut_to_fit() -> None:
    assert len(wire.payload({"t": "x", "chain": [["path", 1, "y" * 200]] * 100_000})) <= wire.MAX_FRAME


def test_lone_surrogates_become_backslashes() -> None:
    assert json.loads(wire.payload({"caf\udce9": ["\ud800x"]}).decode("utf-8")) == {"caf\\udce9": ["\\ud800x"]}


@pytest.mark.parametrize("limit", [0, 1, 10, 50, 99, 100, 101])
def test_cut_keeps_head_and_tail(limit: int) -> None:
    text = "".join(chr(33 + index) for index in range(90)) + "0123456789"
    short = wire.cut(text, limit)
    if limit >= len(text):
        assert short == text
    else:
        assert "characters left out" in short
        assert len(short) <= max(limit, 40)
    if limit == 50:
        assert short.startswith(text[:8])
        assert short.endswith("789")


def test_the_descriptor_is_high_and_closed_on_exec(pair: Tuple[wire.Channel, socket.socket]) -> None:
    channel, _ = pair
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert channel.descriptor >= min(soft, 4008) - 8
    assert fcntl.fcntl(channel.descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_another_process_never_writes(pair: Tuple[wire.Channel, socket.socket]) -> None:
    channel, runner = pair
    pid = os.fork()
    if pid == 0:
        channel.send({"t": "intruder"})
        os._exit(0)
    os.waitpid(pid, 0)
    channel.hold(wire.frame(b'["s",1]'))
    channel.send({"t": "owner"})
    assert runner.recv(1000) == wire.frame(b'["s",1]') + wire.frame(b'{"t":"owner"}')


def test_a_closed_descriptor_is_no_error() -> None:
    ours, theirs = socket.socketpair()
    channel = wire.Channel(theirs.detach())
    os.close(channel.descriptor)
    channel.send({"t": "lost"})
    channel.send({"t": "lost"})
    ours.close()
