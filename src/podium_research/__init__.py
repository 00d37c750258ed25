"""Research with Podium: traces, experiments, workloads to measure, an environment to learn in.

A distribution of its own; the scheduler never imports it. A public name is imported when it is
first used, so that a command pays for no more than it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium_research.traces.reading import read_trace
    from podium_research.traces.trace import Trace, TraceNode, TracePod

__all__ = ["Trace", "TraceNode", "TracePod", "read_trace"]

_TRACE = "podium_research.traces.trace"
_MODULE_OF = {
    "Trace": _TRACE,
    "TraceNode": _TRACE,
    "TracePod": _TRACE,
    "read_trace": "podium_research.traces.reading",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
