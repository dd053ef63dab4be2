"""Finds out whether project code seeded the random generators during collection, and sets them in children.

It must not replace any function: only states are read and compared.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import random
import sys
from typing import Any, Optional, Tuple

_WORDS = 624
_BLOCKS = 2000
"""More than a million draws during collection are taken for seeding. Checking so many takes about 60 ms."""
_NUMPY_SEEDS = 1 << 32


class Watch:
    """Compares the state of the generators after collection with the state they were given before."""

    def __init__(self) -> None:
        self._before = [random.getstate()]
        self._after: Optional[Tuple[Any, ...]] = None
        self._numpy_after: Any = None
        self.random_seeded = False
        self.numpy_seeded: Optional[bool] = None

    def expect(self, seed: int) -> None:
        """Tells of a seed that a plugin sets, which is not the project's doing."""
        self._before.append(random.Random(seed).getstate())

    def collected(self) -> None:
        """Looks at the states collection left behind."""
        self._after = after = random.getstate()
        self.random_seeded = not any(drawn_from(before, after) for before in self._before)
        numpy = _numpy()
        if numpy is not None:
            self._numpy_after = numpy.get_state()
            self.numpy_seeded = seeded_with_number(self._numpy_after)

    def set_in_child(self, seed: int) -> None:
        """Restores what the project seeded, and seeds the rest.

        CPython seeds the global generator anew after a fork, which would undo a seed set at import.
        """
        if self.random_seeded and self._after is not None:
            random.setstate(self._after)
        else:
            random.seed(seed)
        numpy = _numpy()
        # When it is not known whether numpy was seeded, its state stays as collection left it.
        if numpy is not None and self.numpy_seeded is False:
            numpy.seed(seed % _NUMPY_SEEDS)


def drawn_from(before: Tuple[Any, ...], after: Tuple[Any, ...]) -> bool:
    """Says whether a state of the Mersenne Twister follows from an earlier one by drawing numbers only."""
    if before[1][:_WORDS] == after[1][:_WORDS]:
        return bool(before[1][_WORDS] <= after[1][_WORDS])
    generator = random.Random()
    generator.setstate(before)
    wanted = after[1][:_WORDS]
    for _ in range(_BLOCKS):
        generator.getrandbits(32 * _WORDS)
        if generator.getstate()[1][:_WORDS] == wanted:
            return True
    return False


def seeded_with_number(state: Any) -> Optional[bool]:
    """Says whether numpy's generator was seeded with a number; None when that cannot be known.

    numpy seeds itself from the operating system by way of an array, which sets the first word to 2**31. A number
    as seed becomes the first word, and each other word follows from the one before. After the first draw both
    patterns are gone.
    """
    kind, words, position = state[0], state[1], int(state[2])
    if kind != "MT19937":
        return None
    if int(words[0]) == 0x80000000 and position >= _WORDS - 1:
        return False
    previous = int(words[0])
    for index in (1, 2, 3):
        previous = (1812433253 * (previous ^ (previous >> 30)) + index) & 0xFFFFFFFF
        if previous != int(words[index]):
            return None
    return True


def _numpy() -> Any:
    module = sys.modules.get("numpy.random")
    return module if module is not None and hasattr(module, "get_state") else None
