"""Recorded scenarios, run again by the rules of recordings and compared with what was recorded.

In a recording all pods look at the nodes in the order of the Node objects. In recordings of v1.36
all nodes are filtered and scored, a single feasible one too. A pod starts on its node as many
minutes into 2026 as steps came before it. What preemption evicts disappears at once.

In a recording of pod groups all objects exist first. Then the pending pods are created, one
millisecond apart, and scheduling starts. When nothing else is left to try, the backoff of all
entities is over once, and again after each cycle that bound or evicted something.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from podium.cluster.queue.entities import GroupTurn, Pool
from podium.cluster.queue.group_queue import GroupQueue
from podium.cluster.queue.queue import OF_CONFIGURATIONS
from podium.cluster.simulation import Simulation
from podium.cluster.wakeups.hints import hint_rules
from podium.cluster.wakeups.wakeups import Added, Deleted
from podium.engine.rules.pod_groups import FEATURE_GATE as GATE
from podium.errors import ConfigError, InputError
from podium.library.profiles import (
    Options,
    default_profile,
    from_config,
    from_policy,
    from_provider,
)
from podium.past.recordings.comparison import Difference, ScenarioOutcome, compare
from podium.past.recordings.scenarios import (
    RecordedOptions,
    Scenario,
    objects_of,
    pending_of,
    scenario_of,
)
from podium.render.recording import pod_groups, v1_13, v1_36

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.cluster.queue.entities import Turn
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MILLISECOND, _HOUR = 0.001, 3600.0
#: Gates are asked through the rules of the queue. Nothing waits too long; a resting pod is tried
#: when nothing else is left, as the feature gate SchedulerPopFromBackoffQ has it.
_OPTIONS: Final = replaced(OF_CONFIGURATIONS, longest_wait=float("inf"))
#: More cycles than a recording ever has.
MOST_CYCLES: Final = 30
_WAITING: Final = (
    (Pool.ACTIVE, "active"),
    (Pool.BACKOFF, "backoff"),
    (Pool.UNSCHEDULABLE, "unschedulable"),
    (Pool.GATED, "unschedulable"),
    (Pool.INCOMPLETE, "incomplete"),
    (Pool.PENDING, "pending"),
)


class GroupReplay:
    """One scenario with pod groups."""

    def __init__(
        self,
        simulation: Simulation,
        objects: Objects,
        pending: Sequence[Pod],
    ) -> None:
        self._simulation = simulation
        self._now = _START.timestamp()
        rules = hint_rules(tuple(simulation.decider.profiles.values()), self._held_by)
        self._queue = GroupQueue(lambda: self._now, rules, _OPTIONS)
        self._order = [pod.key for pod in pending]
        self._pods = {pod.key: pod for pod in (*objects.pods, *pending)}
        self._keys = {pod.uid: pod.key for pod in self._pods.values()}
        self._nodes: dict[str, str | None] = dict.fromkeys(self._order)
        self._cycles: list[JsonObject] = []
        simulation.load(objects, just_listed=True)
        for group in objects.of("PodGroup"):
            self._queue.put_group(group)
        for pod in pending:
            self._now += _MILLISECOND
            simulation.groups.expect([pod])
            simulation.nominate(pod, pod.status.nominated_node_name)
            self._queue.add(pod)
        self._groups = [group.key for group in objects.of("PodGroup")]

    def _held_by(self, pod: Pod) -> str:
        held = self._simulation.groups.hold([pod])
        return "" if held is None else held.plugin

    def run(self) -> dict[str, Any]:
        """All cycles, and what is left at the end, in the form of a recording."""
        rests_end = True
        while len(self._cycles) < MOST_CYCLES:
            self._now += _MILLISECOND
            turn = self._queue.pop_entity()
            if turn is None:
                if not rests_end or not self._queue.counts()[Pool.BACKOFF]:
                    break
                rests_end = False
                self._now += _HOUR
                continue
            cycle = self._group(turn) if isinstance(turn, GroupTurn) else self._pod(turn)
            self._cycles.append(cycle)
            bound = any("node" in each for each in cycle["pods"])
            rests_end = rests_end or bound or bool(cycle.get("evicted"))
        return {
            "cycles": self._cycles,
            "placed": self._nodes,
            "groups": {key: pod_groups.conditions(self._group_named(key)) for key in self._groups},
            "queue": self._waiting(),
        }

    def _group_named(self, key: str) -> Any:
        found = self._simulation.groups.named(key)
        assert found is not None
        return found

    def _waiting(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in sorted(self._order):
            pool = self._queue.pool_of(self._pods[key])
            for known, name in _WAITING:
                if pool is known:
                    found.setdefault(name, []).append(key)
        return found

    def _started(self) -> str:
        began = _START + timedelta(minutes=len(self._cycles))
        return began.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _group(self, turn: GroupTurn) -> JsonObject:
        pods = [self._pods[each.pod.key] for each in turn.members]
        group = self._group_named(turn.group.key)
        step = self._simulation.groups.run(group, pods, recording=True, start_time=self._started)
        for pod in step.left:
            self._pods[pod.key] = pod
        turns = {each.pod.key: each for each in turn.members}
        for each in step.steps:
            member = turns[each.pod.key]
            if each.decision.node is not None:
                self._queue.done(member)
                self._bound(each.pod, each.decision.node)
            else:
                rejectors = each.decision.rejected_by
                self._queue.requeue(member, self._pods[each.pod.key], rejected_by=rejectors)
        evicted = self._evicted(step.decision.preemption.uids if step.decision.preemption else ())
        self._queue.requeue_group(turn, step.decision.queue_code)
        for pod in pods:
            self._updated(pod)
        self._queue.put_group(self._group_named(turn.group.key))
        return pod_groups.group_cycle(step, self._order, evicted)

    def _pod(self, turn: Turn) -> JsonObject:
        pod = self._pods[turn.pod.key]
        simulation = self._simulation
        decision = simulation.attempt(pod, recording=True)
        step = simulation.step_of(pod, turn.number, decision)
        kept = simulation.settle(step, start_time=self._started)
        if decision.node is not None:
            self._queue.done(turn)
            self._bound(pod, decision.node)
            return pod_groups.pod_cycle(decision, ())
        self._pods[pod.key] = simulation.as_known(pod if kept is None else kept)
        preemption = decision.preemption
        victims = () if preemption is None or preemption.node is None else preemption.victims
        evicted = self._evicted(victims)
        self._queue.requeue(turn, self._pods[pod.key], rejected_by=decision.rejected_by)
        self._updated(pod)
        return pod_groups.pod_cycle(decision, evicted)

    def _updated(self, old: Pod) -> None:
        """The scheduler sees what it wrote into the status of a pod."""
        new = self._pods[old.key]
        if new.status != old.status and not new.spec.node_name:
            self._queue.update(old, new)

    def _bound(self, pod: Pod, node: str) -> None:
        """The pod is on its node: the scheduler sees it there."""
        self._nodes[pod.key] = node
        placed = replace(pod, spec=replace(pod.spec, node_name=node))
        self._pods[pod.key] = placed
        self._queue.delete(pod, bound=True)
        self._queue.on_event(Added(placed))

    def _evicted(self, uids: Sequence[str]) -> list[str]:
        """The victims are gone, and whom that may help is woken."""
        keys = [self._keys[uid] for uid in uids]
        for key in keys:
            self._queue.on_event(Deleted(self._pods[key]))
            if key in self._nodes:
                self._nodes[key] = None
        return sorted(keys)


_FIRST_STEP: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Replay:
    """A scenario after its replay."""

    scenario: str
    #: How many steps were compared.
    steps: int
    differences: list[Difference]


def replay(recorded: Scenario | JsonObject) -> Replay:
    """Run a scenario and compare every step whole."""
    scenario = recorded if isinstance(recorded, Scenario) else scenario_of(recorded)
    try:
        outcome = run(scenario)
    except (InputError, ValueError) as error:
        raise InputError(f"{scenario.name}: {error}") from None
    expected = scenario.expected.steps
    steps = len(outcome.steps) if expected is None else len(expected)
    steps += len(scenario.expected.cycles or ())
    return Replay(scenario.name, steps, list(compare(scenario.name, scenario.expected, outcome)))


def run(scenario: Scenario) -> ScenarioOutcome:
    """Run a scenario by the rules of its generation; a refused configuration is an outcome."""
    try:
        profiles = profiles_of(scenario)
    except ConfigError as error:
        return ScenarioOutcome(config_error=error.text)
    runs = {"Policy": _run_v1_13, "KubeSchedulerConfiguration": _run_v1_36}
    return runs[scenario.generation.configured_by](scenario, profiles)


def _run_v1_13(scenario: Scenario, profiles: Sequence[Profile]) -> ScenarioOutcome:
    [profile] = profiles
    if profile.extenders:
        raise InputError("asks extenders, whose answers a recording does not hold")
    simulation = Simulation(
        profile,
        listed_order=True,
        after_preemption=(scenario.options or RecordedOptions()).after_preemption,
    )
    simulation.load(objects_of(scenario), just_listed=True)
    attempts = simulation.run(pending_of(scenario), recording=True)
    return ScenarioOutcome(
        predicates=list(profile.configured_predicates),
        priorities=[f"{weighted.name}:{weighted.weight}" for weighted in profile.priorities],
        steps=[v1_13.step(each.decision, each.attempt) for each in attempts],
    )


def _run_v1_36(scenario: Scenario, profiles: Sequence[Profile]) -> ScenarioOutcome:
    simulation = recorded_simulation(profiles)
    if scenario.expected.has_groups:
        replayed = GroupReplay(simulation, objects_of(scenario), pending_of(scenario))
        return ScenarioOutcome(groups=replayed.run())
    simulation.load(objects_of(scenario), just_listed=True)
    attempts = simulation.run(pending_of(scenario), recording=True)
    return ScenarioOutcome(steps=[v1_36.step(each) for each in attempts])


def profiles_of(scenario: Scenario) -> tuple[Profile, ...]:
    """The profiles a scenario was recorded with."""
    given = scenario.options or RecordedOptions()
    if scenario.generation.configured_by != "Policy":
        gates = {GATE: True} if scenario.expected.has_groups else {}
        options = Options(
            percentage_of_nodes_to_score=100,
            generation=scenario.generation.name,
            feature_gates=gates,
        )
        if scenario.config is None:
            return (default_profile(options=options),)
        return from_config(scenario.config, options)
    options = Options(
        percentage_of_nodes_to_score=given.percentage_of_nodes_to_score,
        hard_pod_affinity_symmetric_weight=given.hard_pod_affinity_symmetric_weight,
        disable_preemption=given.disable_preemption,
        feature_gates=given.feature_gates,
        max_pd_volumes=given.env.get("KUBE_MAX_PD_VOLS"),
        # What kube-scheduler refuses is recorded as refused.
        accepts_other_names=False,
    )
    if scenario.policy is not None:
        return (from_policy(scenario.policy, options),)
    return (from_provider(scenario.provider or "DefaultProvider", options),)


def recorded_simulation(profiles: Sequence[Profile]) -> Simulation:
    """A simulation of v1.36 by the rules of recordings."""
    first, *others = (replaced(each, first_if_equal=False) for each in profiles)
    return Simulation(
        first,
        others=others,
        listed_order=True,
        start_time=_start_time,
        score_single=True,
        now=_FIRST_STEP.timestamp(),
    )


def _start_time(step: int) -> str:
    return (_FIRST_STEP + timedelta(minutes=step)).strftime("%Y-%m-%dT%H:%M:%SZ")
