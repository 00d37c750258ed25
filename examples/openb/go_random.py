"""The random numbers of Go's `math/rand` for a seed, made from their definition.

The published runs drew the order of pods and nodes from this generator; with it their seeds give
the same sequences here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableSequence

_SIZE, _TAP = 607, 334
_MODULUS = (1 << 31) - 1
_MASK = (1 << 64) - 1
#: How often the generator was stepped to make the numbers that every seed is mixed with.
_STEPS = 7_800_000_000_000


def _filled(seed: int, first: int, second: int) -> list[int]:
    """The state that a seed fills: three values of a linear generator in each number."""

    def values() -> Iterator[int]:
        x = seed % _MODULUS or 89482311
        while True:
            x = 48271 * x % _MODULUS
            yield x

    following = values()
    for _ in range(20):
        next(following)
    return [
        (next(following) << first ^ next(following) << second ^ next(following)) & _MASK
        for _ in range(_SIZE)
    ]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two polynomials modulo x^607 - x^334 - 1, numbers modulo 2^64."""
    found = np.zeros(2 * _SIZE, np.uint64)
    found[: 2 * _SIZE - 1] = np.convolve(a, b)
    for _ in range(3):  # what is carried over is carried again, by 273 places less each time
        high = found[_SIZE:].copy()
        found[_SIZE:] = 0
        found[: len(high)] += high
        found[_TAP : _TAP + len(high)] += high
    return found[:_SIZE]


@lru_cache(maxsize=1)
def _mixed() -> tuple[int, ...]:
    """The state after all these steps, by squaring instead of stepping."""
    start = _filled(1, 20, 10)
    # z[k] is the number made at step k - 606; position i holds the step that is 334 - i mod 607.
    z = [start[(_TAP - (k - _SIZE + 1)) % _SIZE] for k in range(_SIZE)]
    for k in range(_SIZE):
        z.append((z[k] + z[k + _TAP]) & _MASK)
    power, square, left = None, np.zeros(_SIZE, np.uint64), _STEPS
    square[1] = 1
    while left:
        if left & 1:
            power = square if power is None else _product(power, square)
        square, left = _product(square, square), left >> 1
    assert power is not None
    known = np.array(z, np.uint64)
    state = [0] * _SIZE
    for j in range(_SIZE):
        step = _STEPS - _SIZE + 1 + j
        state[(_TAP - step) % _SIZE] = int((power * known[j : j + _SIZE]).sum())
    return tuple(state)


class GoRandom:
    """`rand.New(rand.NewSource(seed))` of Go."""

    def __init__(self, seed: int) -> None:
        self._state = [a ^ b for a, b in zip(_filled(seed, 40, 20), _mixed(), strict=True)]
        self._tap, self._feed = 0, _TAP

    def int63(self) -> int:
        """A number of 63 bits."""
        self._tap = (self._tap - 1) % _SIZE
        self._feed = (self._feed - 1) % _SIZE
        state = self._state
        made = state[self._feed] = (state[self._feed] + state[self._tap]) & _MASK
        return made & (_MASK >> 1)

    def below(self, n: int) -> int:
        """A number from 0 to n - 1 (`Intn`)."""
        if n & (n - 1) == 0:
            return (self.int63() >> 32) & (n - 1)
        most = (1 << 31) - 1 - (1 << 31) % n
        while (r := self.int63() >> 32) > most:
            pass
        return r % n

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put the items into a random order (`Shuffle`)."""
        for i in range(len(items) - 1, 0, -1):
            w = (self.int63() >> 31) * (i + 1)
            while w & 0xFFFFFFFF < (1 << 32) % (i + 1):
                w = (self.int63() >> 31) * (i + 1)
            j = w >> 32
            items[i], items[j] = items[j], items[i]

    def permutation(self, n: int) -> list[int]:
        """A random order of the numbers from 0 to n - 1 (`Perm`)."""
        found = [0] * n
        for i in range(n):
            j = self.below(i + 1)
            found[i] = found[j]
            found[j] = i
        return found
