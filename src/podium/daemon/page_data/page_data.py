"""The one object that the pages ask: plain data about a scheduler, taken while it works.

Reading happens between two decisions, in the scheduler's own thread, and is quick. What takes
longer (placing thousands of pods again) works on a copy, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from podium.cluster.simulation import Simulation
from podium.daemon.page_data.cluster_copy import Placed, Scene, take
from podium.daemon.page_data.cluster_map import ClusterPicture, totals, workload
from podium.daemon.page_data.decision_data import DRY_RUN, NOW, RECORDED, decision_data
from podium.daemon.page_data.manifest import pod_in
from podium.daemon.page_data.node_details import node_details
from podium.daemon.page_data.profile_form import form
from podium.daemon.page_data.profile_text import Rules, reweighted, rules_from, written
from podium.daemon.page_data.what_if import Comparison
from podium.engine.cycle.cycle import Attempt, decide
from podium.engine.cycle.ties import RoundRobin, ties
from podium.errors import ConfigError
from podium.profiles.policy.build import Options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from podium.cluster.cache.cache import Cache
    from podium.cluster.queue.queue import SchedulingQueue
    from podium.daemon.actions import SchedulerOptions
    from podium.daemon.decisions.decision_log import DecisionLog
    from podium.daemon.page_data.activity import Pulse
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.pod_class import Resident
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.workloads import PriorityClass

Data = dict[str, Any]

#: How many pods are placed again to compare rules, and how many lines lists have.
REPLAYED: Final = 20_000
LISTED: Final = 500
FOUND: Final = 50
_PROGRESS_SECONDS: Final = 0.2


class Watched(Protocol):
    """What is asked of a scheduler."""

    @property
    def cache(self) -> Cache:
        """What it believes about the cluster."""

    @property
    def queue(self) -> SchedulingQueue:
        """The pods that wait."""

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The rules it decides by, by the name of the scheduler."""

    @property
    def options(self) -> SchedulerOptions:
        """How it works, apart from its decisions."""

    async def reconfigure(self, profiles: Sequence[Profile], options: SchedulerOptions) -> None:
        """Decide by other rules from now on."""


class Observatory:
    """Looks at a scheduler, whose observers are the *pulse* and, if there is one, the *log*."""

    def __init__(
        self,
        scheduler: Watched,
        pulse: Pulse,
        *,
        log: DecisionLog | None = None,
        options: Options | None = None,
        text: str | None = None,
        priority_classes: Callable[[], Iterable[PriorityClass]] = tuple,
    ) -> None:
        """*text* is the Policy or configuration that the scheduler was started with, if any."""
        self._scheduler = scheduler
        self._log = log
        self._options = options or Options()
        self._priority_classes = priority_classes
        self._pulse = pulse
        pulse.schedulers = self._schedulers
        self._picture = ClusterPicture()
        self._rules = self._first_rules(text)
        #: One at a time: each holds a copy of the cluster.
        self._comparing, self._deciding_again = asyncio.Lock(), asyncio.Lock()

    def _first_rules(self, text: str | None) -> Rules:
        profiles = tuple(self._scheduler.profiles.values())
        text = text if text is not None else written(profiles, self._options)
        return replace(rules_from(text, self._options), profiles=profiles)

    def _schedulers(self) -> set[str]:
        return set(self._scheduler.profiles)

    # The cluster --------------------------------------------------------------------------------

    def cluster(self, cursor: str = "") -> Data:
        """Zones, nodes, loads and pods, or what changed of them since a cursor."""
        return self._picture.since(self._scheduler.cache.columns, cursor)

    def node(self, name: str) -> Data | None:
        """One node with its pods."""
        return node_details(self._scheduler.cache.columns, name)

    def find_pods(self, query: str) -> list[Data]:
        """Pods whose `namespace/name` contains the text, waiting ones first."""
        found: list[Data] = [
            {"pod": key, "node": None} for key in self._pulse.waiting if query in key
        ][:FOUND]
        columns = self._scheduler.cache.columns
        for row in columns.order.tolist():
            for resident in columns.residents[row]:
                if len(found) >= FOUND:
                    return found
                if query in resident.key:
                    _, kind, name = workload(resident.cls)
                    node = columns.names[row]
                    found.append(
                        {"pod": resident.key, "node": node, "kind": kind, "workload": name}
                    )
        return found

    def pulse(self) -> Data:
        """The numbers that change all the time."""
        self._pulse.tick()
        columns = self._scheduler.cache.columns
        return {
            **self._pulse.counts(),
            **totals(columns),
            "version": f"{columns.epoch}-{columns.changes}",
            "pools": {str(pool): n for pool, n in self._scheduler.queue.counts().items()},
            "profile": self._rules.profiles[0].name,
        }

    def beats(self) -> tuple[int, int, int]:
        """Differs whenever anything worth telling happened."""
        columns = self._scheduler.cache.columns
        return self._pulse.beats, columns.epoch, columns.changes

    def history(self) -> list[list[int]]:
        """Second, decisions in it, pods waiting at its end."""
        return self._pulse.history()

    # Waiting pods -------------------------------------------------------------------------------

    def pending(self, query: str = "") -> Data:
        """The pods that wait, those that fit nowhere first, with the reason of each."""
        matching = [
            waiting
            for key, waiting in self._pulse.waiting.items()
            if query in key or query in waiting.reason
        ]
        first = heapq.nsmallest(
            LISTED, matching, key=lambda each: (not each.reason, -each.pod.priority, each.since)
        )
        queue = self._scheduler.queue
        rows = []
        for waiting in first:
            pool = queue.pool_of(waiting.pod)
            rows.append(
                {
                    "pod": waiting.pod.key,
                    "reason": waiting.reason,
                    "pool": str(pool) if pool else "in flight",
                    "attempts": waiting.attempts,
                    "since": waiting.since,
                    "triedAt": waiting.tried_at,
                    "priority": waiting.pod.priority,
                    "nominated": waiting.pod.status.nominated_node_name
                    or queue.nominated_node(waiting.pod),
                }
            )
        counts = {str(pool): number for pool, number in queue.counts().items()}
        return {
            "total": len(self._pulse.waiting),
            "matching": len(matching),
            "pods": rows,
            "pools": counts,
        }

    # Decisions ----------------------------------------------------------------------------------

    async def decision(self, namespace: str, name: str, attempt: int = 0) -> Data | None:
        """How a pod was decided: as it was, or made again; None when nobody knows the pod.

        *attempt* is the `id` of one of the attempts that are kept; 0 is the last.
        """
        key = f"{namespace}/{name}"
        waiting = self._pulse.waiting.get(key)
        resident = self._resident(key)
        attempts = self._log.of(namespace, name) if self._log is not None else []
        if waiting is None and resident is None and not attempts:
            return None
        actual = self._scheduler.cache.columns.names[resident.row] if resident else None
        told = {
            "attempts": [
                {
                    "id": each.sequence,
                    "number": each.number,
                    "at": each.began,
                    "outcome": each.outcome,
                }
                for each in attempts[:LISTED]
            ]
        }
        if attempts:
            kept = next((each for each in attempts if each.sequence == attempt), attempts[0])
            decision = kept.decision()
            settled = attempt == kept.sequence or (waiting is None and resident is None)
            if len(decision.examined) or decision.error or decision.held or settled:
                never = waiting is not None and _never(waiting.pod)
                found = decision_data(
                    decision,
                    source=RECORDED,
                    ties=kept.ties,
                    max_score=self._max_score(decision.profile),
                    never=never,
                    actual=actual,
                )
                at = {"attempt": kept.number, "at": kept.began, "id": kept.sequence}
                return found | told | at
        if waiting is not None:
            return self._explained(waiting.pod, NOW) | told
        again = await self._again(key)
        return None if again is None else again | told

    def _max_score(self, profile: str) -> int:
        known = {each.name: each.max_score for each in self._scheduler.profiles.values()}
        return known.get(profile) or self._rules.profiles[0].max_score

    def _explained(self, pod: Pod, source: str) -> Data:
        decision, profile = self._decided(pod)
        return decision_data(
            decision,
            source=source,
            ties=profile.ties,
            max_score=profile.max_score,
            never=_never(pod),
        )

    def _resident(self, key: str) -> Resident | None:
        residents = self._scheduler.cache.columns.residents
        return next((each for row in residents for each in row if each.key == key), None)

    async def _again(self, key: str) -> Data | None:
        """A placed pod, decided once more on a copy of the cluster without it."""
        async with self._deciding_again:
            scene = take(self._scheduler.cache.columns, {}, (), most=0, foreign=set())
            placed = next((each for each in scene.fixed if each.key == key), None)
            if placed is None:
                return None  # it went while others were decided about
            scene.fixed.remove(placed)
            profiles = rules_from(self._rules.text, self._options).profiles
            bare = [replace(profile, extenders=()) for profile in profiles]
            return await asyncio.to_thread(_decided_again, scene, placed, bare, self._pulse.cursor)

    def explain(self, manifest: bytes) -> Data:
        """What would be decided about the pod of a manifest, just now; nothing is created."""
        columns = self._scheduler.cache.columns
        nodes = (columns.nodes[row] for row in columns.order.tolist())
        tried = pod_in(manifest, (n for n in nodes if n is not None), self._priority_classes())
        notes = list(tried.notes)
        if tried.pod.spec.scheduler_name not in self._schedulers():
            wanted = tried.pod.spec.scheduler_name
            notes.append(f"the pod asks for the scheduler {wanted}, which is not this one")
        if self._profile_of(tried.pod).extenders:
            notes.append("extenders were not asked")
        return self._explained(tried.pod, DRY_RUN) | {"notes": notes}

    def _profile_of(self, pod: Pod) -> Profile:
        profiles = self._scheduler.profiles
        return profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))

    def _decided(self, pod: Pod) -> tuple[Decision, Profile]:
        """The decision about a pod that is not placed, made on the columns as they are."""
        cache, profile = self._scheduler.cache, self._profile_of(pod)
        round_robin = profile.ties == "round-robin"
        attempt = Attempt(
            cache.columns.incoming(pod),
            replace(profile, extenders=()),
            cache.order(),
            RoundRobin(self._pulse.cursor) if round_robin else ties(profile.ties),
            recording=True,
        )
        return decide(cache.columns, attempt), profile

    # The rules ----------------------------------------------------------------------------------

    def profile(self) -> Data:
        """What it decides by, and the text of it."""
        return form(self._rules, self._options)

    def _wished(self, wish: Mapping[str, Any]) -> Rules:
        """The rules of a form: a text, or other weights for the ones there are."""
        text, weights = wish.get("text"), wish.get("weights")
        if isinstance(text, str):
            return rules_from(text, self._options)
        if not isinstance(weights, dict) or not all(
            isinstance(weight, int) and not isinstance(weight, bool) for weight in weights.values()
        ):
            raise ConfigError(
                "expected new rules", hint='give {"text": "…"} or {"weights": {"name": number}}'
            )
        scheduler = str(wish.get("scheduler") or self._rules.profiles[0].scheduler_name)
        return rules_from(reweighted(self._rules, weights, scheduler, self._options), self._options)

    async def what_if(self, wish: Mapping[str, Any]) -> AsyncIterator[Data]:
        """How far the comparison is, again and again, and in the end what would change."""
        after = self._wished(wish)
        if self._comparing.locked():
            raise ConfigError("another comparison is running", hint="try again in a moment")
        async with self._comparing:
            before = rules_from(self._rules.text, self._options).profiles
            scene = take(
                self._scheduler.cache.columns,
                self._pulse.bound_order,
                [each.pod for each in self._pulse.waiting.values()],
                most=REPLAYED,
                foreign=self._pulse.foreign,
            )
            comparison = Comparison(scene, before, after.profiles)
            running = asyncio.ensure_future(asyncio.to_thread(comparison.run))
            try:
                while not running.done():
                    yield {"done": comparison.done, "total": comparison.total}
                    await asyncio.wait([running], timeout=_PROGRESS_SECONDS)
                found = running.result()
            finally:
                comparison.stop()
                if not running.done():
                    await asyncio.wait([running])
        yield {"result": found, "text": after.text, "profile": form(after, self._options)}

    async def apply(self, wish: Mapping[str, Any]) -> Data:
        """Decide by other rules from now on."""
        rules = self._wished(wish)
        if any(profile.extenders for profile in (*self._rules.profiles, *rules.profiles)):
            raise ConfigError(
                "rules that ask extenders are not changed while the scheduler runs",
                hint="start it again with this text",
            )
        options = replace(self._scheduler.options, manners=rules.manners)
        await self._scheduler.reconfigure(rules.profiles, options)
        self._rules = rules
        return self.profile()


def _never(pod: Pod) -> bool:
    return pod.spec.preemption_policy == "Never"


def _decided_again(scene: Scene, placed: Placed, profiles: Sequence[Profile], cursor: int) -> Data:
    pod = placed.pod()
    simulation = Simulation(profiles[0], others=profiles[1:])
    simulation.load(scene.objects())
    simulation.ties.cursor = cursor
    decision = simulation.attempt(pod, recording=True)
    profile = simulation.profile_of(pod)
    return decision_data(
        decision,
        source=NOW,
        ties=profile.ties,
        max_score=profile.max_score,
        never=_never(pod),
        actual=placed.node,
    )
