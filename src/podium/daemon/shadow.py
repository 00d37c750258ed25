"""Beside a scheduler that does the work: what Podium would have done, against what was done.

`Shadow` is an observer. In shadow mode the loop reads and queues as always, decides about a pod
when it appears, with recording on, and tells of it (`attempted`); then it writes nothing: no
binding, no status, no event, no eviction, no lease. It may assume its own choice until the watch
shows the pod with a node (`pod_seen`), and the real node counts from then on; an assumption that
is not confirmed must be forgotten after a while. Nothing else is needed from the loop.

Pods that had a node when they were first seen were placed before our time and are not compared.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

from podium.daemon.decisions.decision_packing import NodeNames, pack, unpack
from podium.daemon.metric_types import Counters, gauges
from podium.daemon.observers import Observer
from podium.render.decision.comparison import SAME, Agreement, agreement_text, compared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from podium.daemon.observers import Attempted
    from podium.engine.state.verdicts import Verdicts
    from podium.objects.kinds.pod import Pod
    from podium.render.decision.comparison import Compared

#: Decisions that wait for the real one; the oldest is given up beyond that.
MOST_WAITING: Final = 20_000
#: Differences that are kept with their explanation.
MOST_DIFFERENCES: Final = 1_000
_STALE_NAMES: Final = 65_536


class _Ours:
    """Our decision about a pod, packed until the real one is seen."""

    __slots__ = ("_packed", "_pod", "_profile", "_told", "_uid")

    def __init__(self, attempted: Attempted, names: NodeNames) -> None:
        decision = attempted.decision
        self._pod, self._uid, self._profile = decision.pod, decision.uid, decision.profile
        self._packed = pack(decision, names)
        self._told: tuple[Verdicts | None, NodeNames] = (decision.verdicts, names)

    def against(self, node: str, now: float) -> Compared:
        """What it says about the node that the pod went to."""
        decision = unpack(self._packed, self._pod, self._uid, self._profile, self._told)
        return compared(decision, node, now)


class Shadow(Observer):
    """Remembers what was decided about waiting pods, and compares when they get a node."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        tell: Callable[[Compared], None] | None = None,
    ) -> None:
        """*tell* hears of every difference."""
        self._clock = clock
        self._tell = tell
        self._ours: OrderedDict[str, _Ours] = OrderedDict()
        self._schedulers: set[str] = set()
        self._names = NodeNames()
        self._undecided = 0
        self._counts = Agreement().counts
        self._differences: deque[Compared] = deque(maxlen=MOST_DIFFERENCES)

    # What happens ---------------------------------------------------------------------------

    def attempted(self, attempted: Attempted) -> None:
        """Remember what we would do; the newest decision about a pod counts."""
        decision = attempted.decision
        self._schedulers.add(attempted.profile.scheduler_name)
        if decision.held is not None:
            return
        if len(self._names.names) > 2 * decision.nodes + _STALE_NAMES:
            self._names = NodeNames()
        self._ours[decision.uid] = _Ours(attempted, self._names)
        self._ours.move_to_end(decision.uid)
        if len(self._ours) > MOST_WAITING:
            self._ours.popitem(last=False)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """The pod got its node, or is gone."""
        if new is None:
            if old is not None:
                self._ours.pop(old.uid, None)
            return
        if old is None or old.spec.node_name or not new.spec.node_name:
            return
        ours = self._ours.pop(new.uid, None)
        if ours is None:
            self._undecided += new.spec.scheduler_name in self._schedulers
            return
        found = ours.against(new.spec.node_name, self._clock())
        self._counts[found.kind] += 1
        if found.kind != SAME:
            self._differences.appendleft(found)
            if self._tell is not None:
                self._tell(found)

    # What is known --------------------------------------------------------------------------

    def agreement(self) -> Agreement:
        """How it stands."""
        return Agreement(
            dict(self._counts), self._undecided, len(self._ours), tuple(self._differences)
        )

    def as_json(self) -> dict[str, Any]:
        """As data."""
        return self.agreement().as_json()

    def table(self) -> str:
        """As text."""
        return agreement_text(self.agreement())

    def families(self) -> Iterator[Metric]:
        """As metrics; to be given to `Metrics.more`."""
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
