"""Pauses between questions that got no answer: each twice as long as the last, with jitter."""

from __future__ import annotations

import random
from collections.abc import Iterator


def growing_pauses(
    rng: random.Random, first_seconds: float = 1.0, longest_seconds: float = 60.0
) -> Iterator[float]:
    """Seconds to wait, without end; each is between half of the doubled pause and the whole."""
    pause = first_seconds
    while True:
        yield pause * (0.5 + 0.5 * rng.random())
        pause = min(2.0 * pause, longest_seconds)
