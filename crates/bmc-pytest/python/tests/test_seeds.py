from __future__ import annotations

import random

import pytest
from conftest import Start, write

from breakmycode_plugin import seeds


def state(*steps: str) -> "tuple[object, ...]":
    generator = random.Random(7)
    for step in steps:
        eval("generator." + step, {"generator": generator, "range": range})
    return generator.getstate()


@pytest.mark.parametrize(
    "steps",
    [
        (),
        ("random()",),
        ("gauss(0, 1)",),
        ("getrandbits(32 * 624)",),
        ("getrandbits(32 * 623)",),
        ("getrandbits(32 * 625)",),
        ("getrandbits(32 * 624 * 1999)", "random()"),
        ("shuffle([1, 2, 3])", "sample(range(1000), 500)"),
    ],
)
def test_drawing_is_no_seeding(steps: "tuple[str, ...]") -> None:
    assert seeds.drawn_from(state(), state(*steps))


@pytest.mark.parametrize(
    "steps", [("seed(1)",), ("seed(1)", "random()"), ("random()", "seed()"), ("seed('x')", "getrandbits(99999)")]
)
def test_seeding_is_seen(steps: "tuple[str, ...]") -> None:
    assert not seeds.drawn_from(state(), state(*steps))


def test_going_back_is_seeding() -> None:
    assert not seeds.drawn_from(state("random()", "random()"), state("random()"))


def test_the_states_of_numpy_are_told_apart() -> None:
    numpy = pytest.importorskip("numpy.random")
    assert seeds.seeded_with_number(numpy.RandomState().get_state()) is False
    for seed in (0, 1, 42, 2**32 - 1):
        assert seeds.seeded_with_number(numpy.RandomState(seed).get_state()) is True
    drawn = numpy.RandomState(0)
    drawn.random_sample(5)
    assert seeds.seeded_with_number(drawn.get_state()) is None


@pytest.mark.parametrize(("seeding", "known", "same"), [("", False, False), ("numpy.random.seed(3)", True, True)])
def test_numpy_in_children(pytester: pytest.Pytester, start: Start, seeding: str, known: bool, same: bool) -> None:
    pytest.importorskip("numpy")
    write(
        pytester.path / "test_it.py",
        "import numpy.random\n%s\ndef test(): assert 0, numpy.random.random_sample()\n" % seeding,
    )
    run = start("-p", "no:randomly", mode="server", run=None).collect()
    assert run.ready is not None
    assert run.ready["numpy_seeded"] is known
    assert run.ready["hazards"] == []
    said = [
        run.fork(number, seed=seed).results().details["test_it.py::test"]["message"].splitlines()[0]
        for number, seed in enumerate([5, 6, 5])
    ]
    assert said[0] == said[2]
    assert (said[0] == said[1]) is same
