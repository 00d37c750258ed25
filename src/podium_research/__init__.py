"""Research with Podium: traces, experiments, workloads to measure, an environment to learn in.

A distribution of its own; the scheduler never imports it.
"""

from podium_research.traces.reading import read_trace
from podium_research.traces.trace import Trace, TraceNode, TracePod

__all__ = ["Trace", "TraceNode", "TracePod", "read_trace"]
