"""Compares what Podium decides with what another scheduler does.

`Shadow` is an observer. In shadow mode the loop decides about each pod when it appears, with
recording on, and reports it (`attempted`); then it writes nothing: no binding, no status, no event,
no eviction, no lease. Its choice stays assumed until the watch shows the pod with a node
(`pod_seen`), which is compared and counts from then on, or until the assumption expires.

Pods that had a node when they were first seen are not compared.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

from podium.daemon.decisions.decision_packing import NodeNames, pack, unpack
from podium.daemon.metric_types import Counters, gauges
from podium.daemon.observers import Observer
from podium.render.decision.comparison import SAME, Agreement, agreement_text, compare_placement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from podium.daemon.observers import AttemptResult
    from podium.engine.state.verdicts import Verdicts
    from podium.objects.kinds.pod import Pod
    from podium.render.decision.comparison import PlacementComparison

#: The most decisions that wait for the other scheduler; beyond that the oldest is dropped.
MOST_WAITING: Final = 20_000
#: The most differences that are kept with their explanation.
MOST_DIFFERENCES: Final = 1_000
_STALE_NAMES: Final = 65_536


class _Waiting:
    """A decision of Podium, packed until the other scheduler has placed the pod."""

    __slots__ = ("_packed", "_pod", "_profile", "_uid", "_vocabularies")

    def __init__(self, result: AttemptResult, names: NodeNames) -> None:
        decision = result.decision
        self._pod, self._uid, self._profile = decision.pod, decision.uid, decision.profile
        self._packed = pack(decision, names)
        self._vocabularies: tuple[Verdicts | None, NodeNames] = (decision.verdicts, names)

    def against(self, node: str, now: float) -> PlacementComparison:
        """Compare the decision with the node that the pod was placed on."""
        decision = unpack(self._packed, self._pod, self._uid, self._profile, self._vocabularies)
        return compare_placement(decision, node, now)


class Shadow(Observer):
    """Keeps the decisions about pending pods, and compares them when the pods are placed."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        on_difference: Callable[[PlacementComparison], None] | None = None,
    ) -> None:
        """*on_difference* is called with every difference."""
        self._clock = clock
        self._on_difference = on_difference
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._schedulers: set[str] = set()
        self._names = NodeNames()
        self._undecided = 0
        self._counts = Agreement().counts
        self._differences: deque[PlacementComparison] = deque(maxlen=MOST_DIFFERENCES)

    # Reports of the scheduler ---------------------------------------------------------------

    def attempted(self, result: AttemptResult) -> None:
        """Keep the decision; the newest one about a pod counts."""
        decision = result.decision
        self._schedulers.add(result.profile.scheduler_name)
        if decision.held is not None:
            return
        if len(self._names.names) > 2 * decision.nodes + _STALE_NAMES:
            self._names = NodeNames()
        self._waiting[decision.uid] = _Waiting(result, self._names)
        self._waiting.move_to_end(decision.uid)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Compare a pod that was placed; drop one that was deleted."""
        if new is None:
            if old is not None:
                self._waiting.pop(old.uid, None)
            return
        if old is None or old.spec.node_name or not new.spec.node_name:
            return
        waiting = self._waiting.pop(new.uid, None)
        if waiting is None:
            self._undecided += new.spec.scheduler_name in self._schedulers
            return
        found = waiting.against(new.spec.node_name, self._clock())
        self._counts[found.kind] += 1
        if found.kind != SAME:
            self._differences.appendleft(found)
            if self._on_difference is not None:
                self._on_difference(found)

    # Reading --------------------------------------------------------------------------------

    def agreement(self) -> Agreement:
        """The comparison so far."""
        return Agreement(
            dict(self._counts), self._undecided, len(self._waiting), tuple(self._differences)
        )

    def as_json(self) -> dict[str, Any]:
        """The comparison so far, as JSON data."""
        return self.agreement().as_json()

    def table(self) -> str:
        """The comparison so far, as text."""
        return agreement_text(self.agreement())

    def families(self) -> Iterator[Metric]:
        """The comparison so far, as metrics for `Metrics.more`."""
        found = self.agreement()
        counters = Counters(
            "podium_shadow_placements",
            "Placements of the other scheduler, by how they compare with what Podium decided.",
            ("result",),
        )
        for kind, count in {**found.counts, "undecided": found.undecided}.items():
            counters.add(kind, count=count)
        yield counters.family()
        yield gauges(
            "podium_shadow_agreement_ratio",
            "Share of the placements that are on Podium's node or on one that it finds as good.",
            (),
            {(): found.ratio},
        )
