"""The checks of the probes of a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

#: Returns what is wrong; "" when the check passes.
Check = Callable[[], str]


def passes() -> str:
    """The check that always passes."""
    return ""


@dataclass(slots=True)
class Health:
    """The checks of the probes, by name; readiness includes those of liveness."""

    alive: dict[str, Check] = field(default_factory=lambda: {"ping": passes})
    ready: dict[str, Check] = field(default_factory=dict)
