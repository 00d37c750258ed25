"""The scheduling cycle of a pod group: all its waiting pods, one after the other, then all or none.

Each pod is decided about as a pod of its own, without post-filters, and assumed on its node so that
the next one sees it. When the cycle ends, everything assumed is undone, in reverse order; the
caller carries the decision out. The order of pods is fixed, and no other one is searched for.

Upstream: pkg/scheduler/schedule_one_podgroup.go, Kubernetes v1.37, without placements.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.cluster.cache.columns import EvictionTrial
from podium.engine.cycle.cycle import NO_NODES
from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.decision import Decision
from podium.engine.framework.group_decision import (
    ERROR,
    GROUP_UNSCHEDULABLE,
    SUCCESS,
    UNSCHEDULABLE,
    GroupAttempt,
    GroupDecision,
    MemberResult,
    Progress,
)
from podium.engine.framework.post_filter import FailedGroup, TrialPlacement
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.pod_group import INITIALLY_SCHEDULED, GroupCondition, PodGroup
from podium.objects.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from podium.cluster.decider import Decider
    from podium.engine.framework.group_decision import Code, GroupPreemption
    from podium.engine.framework.post_filter import GroupOutcome
    from podium.engine.framework.profile import Profile
    from podium.engine.state.view import View

_USUAL_POLICY: Final = "PreemptLowerPriority"


class GroupCycle:
    """Decides about pod groups with the decider of a scheduler."""

    def __init__(
        self,
        decider: Decider,
        profiles: Mapping[str, Profile],
        timer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Decide by the *profiles*; *timer* measures the search for victims."""
        self._decider, self._timer = decider, timer
        self._profiles = profiles
        #: Scheduler -> the profile by which pods of groups are decided, with and without claims.
        self._member_profiles: dict[tuple[str, bool], Profile] = {}
        #: Called with each pod and its decision, while the cluster still is as it was for it.
        self.decided: Callable[[Pod, Decision], None] | None = None

    def run(
        self, group: PodGroup, pods: Sequence[Pod], *, recording: bool = False
    ) -> Generator[Any, Any, GroupDecision]:
        """Decide about the waiting pods of a group; nothing of the cluster is changed at the end.

        The *pods* are in the order in which they are tried. Questions to extenders are yielded.
        """
        error = self.fault(group, pods)
        if error:
            return failed_before(group, pods, error, self._decider.clock())
        self._show_nominated(map(_bare, pods))
        try:
            return (yield from self._run(group, pods, recording=recording))
        finally:
            self._show_nominated(pods)

    def _show_nominated(self, pods: Iterable[Pod]) -> None:
        if self._decider.nominations is not None:
            for pod in pods:
                self._decider.nominations.show(pod)

    def _run(
        self, group: PodGroup, pods: Sequence[Pod], *, recording: bool
    ) -> Generator[Any, Any, GroupDecision]:
        profile = self._profiles[pods[0].spec.scheduler_name]
        run = _Run(self._decider, self._member_profile(profile), group, pods, self.decided)
        attempt = yield from run.schedule(recording=recording)
        found = GroupDecision(
            group.key,
            group.uid,
            profile.name,
            group.min_count,
            group.is_gang,
            attempt.code,
            attempt.message,
            (),
            queue_code=attempt.code,
            attempt=attempt,
            decided_at=self._decider.cache.columns.decided_at,
            searches=run.searches,
        )
        if attempt.code == UNSCHEDULABLE:
            yield from self._post_filter(profile, run, found, recording=recording)
        if found.code != SUCCESS:
            found.undone = tuple((each.pod, each.node or "") for each in attempt.placed)
        found.members = tuple(_members(pods, attempt, found))
        return found

    def fault(self, group: PodGroup, pods: Sequence[Pod]) -> str:
        """What the pods of a group must have in common, and have not; empty if all is well."""
        name = pods[0].spec.scheduler_name
        policy = pods[0].spec.preemption_policy or _USUAL_POLICY
        placed = self._decider.cache.columns.pods.groups.placed(group.key)
        waiting = ((p.spec.scheduler_name, p.priority, p.spec.preemption_policy) for p in pods)
        others = (
            (
                each.scheduler_name,
                each.resident.priority,
                each.resident.cls.spec.preemption_policy,
            )
            for each in placed
        )
        for scheduler, priority, own in (*waiting, *others):
            if scheduler != name:
                return (
                    "all pods in a single pod group should have the same .spec.schedulerName set, "
                    f"got: {quoted(scheduler)} and {quoted(name)}"
                )
            if priority != group.priority:
                return (
                    "all pods in a single pod group should have the same priority as the pod "
                    f"group's priority, got {priority} and {group.priority}"
                )
            if (own or _USUAL_POLICY) != policy:
                return (
                    "all pods in a single pod group should have the same preemption policy, "
                    f"got {own or _USUAL_POLICY} and {policy}"
                )
        return (
            "" if name in self._profiles else f"profile not found for scheduler name {quoted(name)}"
        )

    def _member_profile(self, profile: Profile) -> Profile:
        """The profile for pods of groups: no gates, no permits; only claims are given back."""
        catalog = self._decider.cache.columns.catalog
        has_claims = bool(len(catalog.resource_claims) or len(catalog.device_classes))
        key = (profile.scheduler_name, has_claims)
        found = self._member_profiles.get(key)
        if found is None:
            names = {step.name for step in profile.group_post_filters if not step.evicts_pods}
            releasing = tuple(each for each in profile.post_filters if each.name in names)
            found = self._member_profiles[key] = replace(
                profile, gates=(), permits=(), post_filters=releasing if has_claims else ()
            )
        return found

    def _post_filter(
        self, profile: Profile, run: _Run, found: GroupDecision, *, recording: bool
    ) -> Generator[Any, Any, None]:
        """Run the post-filters for groups in order until one helps or fails."""
        assert found.attempt is not None
        decisions = found.attempt.decisions
        released = tuple(each.released for each in decisions if each.released is not None)
        failed = FailedGroup(
            run.group,
            [self._decider.cache.columns.pods.incoming(pod) for pod in run.pods],
            self._decider.cache.columns,
            self._decider.cache.listed(),
            run.prepared,
            released,
            lambda: run.trial(recording=recording),
        )
        reasons: list[str] = []
        for step in profile.group_post_filters:
            begun = self._timer()
            outcome: GroupOutcome = yield from step.run_for_group(failed)
            if step.evicts_pods:
                found.preemption_code = outcome.code
                found.preemption_seconds = self._timer() - begun
            if outcome.trial is not None:
                found.trial = outcome.trial
            if outcome.code == SUCCESS:
                found.preemption, found.waits_for_preemption = outcome.preemption, True
                reasons = [outcome.reason]
                break
            if outcome.code == "UnschedulableAndUnresolvable":
                reasons = [outcome.reason]
                break
            if outcome.code != UNSCHEDULABLE:
                found.code = ERROR
                found.message = (
                    f"error in {quoted(step.name)} PodGroupPostFilter plugins: {outcome.reason}"
                )
                return
            if outcome.reason:
                reasons.append(outcome.reason)
        found.released = released
        found.post_message = ", ".join(reasons)
        # An empty text is appended as well.
        found.message = f"{found.message}, {found.post_message}"


def failed_before(
    group: PodGroup, pods: Sequence[Pod], error: str, now: float = 0.0
) -> GroupDecision:
    """All pods of a group get an error, before any of them is tried."""
    return GroupDecision(
        group.key,
        group.uid,
        "",
        group.min_count,
        group.is_gang,
        ERROR,
        error,
        tuple(MemberResult(pod, ERROR, error, nomination="") for pod in pods),
        queue_code=ERROR,
        decided_at=now,
    )


def not_found(key: str, pods: Sequence[Pod]) -> GroupDecision:
    """All pods of a group get an error, because the group is not there any more."""
    namespace, _, name = key.partition("/")
    group = PodGroup(metadata=ObjectMeta(name=name, namespace=namespace))
    return failed_before(group, pods, f"podgroup.scheduling.k8s.io {quoted(name)} not found")


def own_decision(member: MemberResult, profile: str, view: View) -> Decision:
    """The decision about one pod of a group; one that gets no node after all says why."""
    decision = member.decision
    if decision is None:
        pod, nodes = member.pod, len(view.nodes.order)
        decision = Decision(pod.key, pod.uid, profile, nodes=nodes, verdicts=view.verdicts)
    elif member.node is None and decision.node is not None:
        decision = decision.without_node()
    if member.node is None:
        decision.group_message = member.message
    if member.code == ERROR and not decision.error:
        decision.error = member.message
    return decision


def _bare(pod: Pod) -> Pod:
    """A pod as nominations know it while its group is tried: no priority, requests or labels.

    The queue does not hold a group that is tried, so kube-scheduler finds only the names of its
    nominated pods: beside pods of a positive priority they do not count, and beside others they
    take up a place and nothing else.
    """
    known = pod.metadata
    return Pod(metadata=ObjectMeta(name=known.name, namespace=known.namespace, uid=known.uid))


class _Run:
    """The pods of one group, tried one after the other."""

    def __init__(
        self,
        decider: Decider,
        profile: Profile,
        group: PodGroup,
        pods: Sequence[Pod],
        decided: Callable[[Pod, Decision], None] | None,
    ) -> None:
        self.group, self.pods = group, pods
        self._decider, self._profile, self._decided = decider, profile, decided
        self._columns = decider.cache.columns
        #: Every search for a node, in order.
        self.searches: list[Decision] = []
        #: Uid of each pod that was tried -> the plugins whose pre-filter saw it.
        self.prepared: dict[str, frozenset[str]] = {}

    def schedule(self, *, recording: bool) -> Generator[Any, Any, GroupAttempt]:
        """Try the pods in order; everything that was assumed is undone."""
        attempt, _ = yield from self._tried(recording=recording, with_rules=False)
        return attempt

    def _tried(
        self, *, recording: bool, with_rules: bool
    ) -> Generator[Any, Any, tuple[GroupAttempt, list[TrialPlacement]]]:
        scheduled = self._columns.pods.groups.placed_count(self.group.key)
        progress = [Progress(self.group.min_count, scheduled, len(self.pods))]
        if progress[0].is_hopeless:
            text = f"{GROUP_UNSCHEDULABLE}, {progress[0].text}"
            return GroupAttempt(UNSCHEDULABLE, text, (), tuple(progress)), []
        decisions: list[Decision] = []
        placements: list[TrialPlacement] = []
        assumed: list[Pod] = []
        error = ""
        try:
            for pod in self.pods:
                incoming = self._columns.pods.incoming(pod)
                # Victims that come back later count for the rules that take part now.
                rules = (
                    PreFilter(incoming, self._columns, self._profile).taking_part()
                    if with_rules
                    else ()
                )
                decision = yield from self._decide(pod, recording=recording)
                decisions.append(decision)
                if decision.error and decision.error != NO_NODES:
                    error = f"failed to schedule other pod from a pod group: {decision.error}"
                    break
                before = progress[-1]
                fits = decision.node is not None
                if decision.node is not None:
                    row = self._columns.nodes.row_of[decision.node]
                    placements.append(TrialPlacement(incoming, row, decision, rules))
                    self._assume(pod, decision)
                    assumed.append(pod)
                left = before.remaining - 1
                progress.append(Progress(before.min_count, before.scheduled + fits, left))
                if progress[-1].is_hopeless:
                    break
        finally:
            for pod in reversed(assumed):
                self._undo(pod)
            self._decider.count_nominated()
        code, message = self._status(progress[-1], error, found=bool(assumed))
        return GroupAttempt(code, message, tuple(decisions), tuple(progress)), placements

    @staticmethod
    def _status(progress: Progress, error: str, *, found: bool) -> tuple[Code, str]:
        if error:
            return ERROR, error
        if progress.is_hopeless:
            return UNSCHEDULABLE, progress.text
        if not progress.is_enough:
            return UNSCHEDULABLE, f"{GROUP_UNSCHEDULABLE}, {progress.text}"
        # At least one pod must have got a node in this cycle.
        return (SUCCESS, "") if found else (UNSCHEDULABLE, GROUP_UNSCHEDULABLE)

    def _decide(self, pod: Pod, *, recording: bool) -> Generator[Any, Any, Decision]:
        steps = self._decider.begin(pod, self._profile, recording=recording)
        decision = self._decider.finish((yield from steps))
        self.searches.append(decision)
        self.prepared[pod.uid] = self._seen_by(pod, decision)
        decision.post_message = decision.post_code = ""
        if self._decided is not None:
            self._decided(pod, decision)
        return decision

    def _seen_by(self, pod: Pod, decision: Decision) -> frozenset[str]:
        """The plugins whose pre-filter saw the pod: all, unless one of them refused it."""
        if decision.refused is None:
            return frozenset(rule.name for rule in self._profile.pre_filters)
        incoming = self._columns.pods.incoming(pod)
        return PreFilter(incoming, self._columns, self._profile).asked

    def _assume(self, pod: Pod, decision: Decision) -> None:
        """Count the pod on its node; its nomination is over."""
        assert decision.node is not None
        self._decider.cache.assume(pod, decision.node, decision.reservations)
        if self._decider.nominations is not None:
            self._decider.nominations.remove(pod)

    def _undo(self, pod: Pod) -> None:
        self._decider.cache.forget(pod)
        nominated = pod.status.nominated_node_name
        if nominated and self._decider.nominations is not None:
            self._decider.nominations.set(_bare(pod), nominated)

    @contextmanager
    def trial(self, *, recording: bool) -> Iterator[_Trial]:
        """Begin a trial: pods may be removed, and are back when it ends."""
        evictions = EvictionTrial(self._columns)
        try:
            yield _Trial(self, evictions, recording=recording)
        finally:
            evictions.end()

    def placements(
        self, *, recording: bool
    ) -> Generator[Any, Any, tuple[GroupAttempt, list[TrialPlacement]]]:
        """Try the pods in order, and keep what is needed to filter their nodes again."""
        return (yield from self._tried(recording=recording, with_rules=True))

    @property
    def decider(self) -> Decider:
        """Decides about each pod."""
        return self._decider


class _Trial:
    """The cluster without some pods (`engine.framework.post_filter.GroupTrial`)."""

    def __init__(self, run: _Run, evictions: EvictionTrial, *, recording: bool) -> None:
        self._run, self._recording = run, recording
        self._cache = run.decider.cache
        self.remove, self.put_back = evictions.remove, evictions.put_back

    def schedule(self) -> Generator[Any, Any, tuple[GroupAttempt, Sequence[TrialPlacement]]]:
        """Try the pods of the group."""
        return (yield from self._run.placements(recording=self._recording))

    def assume(self, placement: TrialPlacement) -> None:
        """Count a pod of the group on its node; nominations stay as they are."""
        decision = placement.decision
        assert decision.node is not None
        self._cache.assume(placement.pod.pod, decision.node, decision.reservations)

    def forget(self, placement: TrialPlacement) -> None:
        """Count it no more."""
        self._cache.forget(placement.pod.pod)


def _members(
    pods: Sequence[Pod], attempt: GroupAttempt, found: GroupDecision
) -> Iterator[MemberResult]:
    """What becomes of each pod, and which text it gets."""
    preemption = found.preemption
    tried = [*attempt.decisions, *[None] * (len(pods) - len(attempt.decisions))]
    for pod, decision in zip(pods, tried, strict=True):
        if found.code == ERROR:
            own = decision is not None and decision.error and decision.error != NO_NODES
            text = decision.error if decision is not None and own else found.message
            yield MemberResult(pod, ERROR, text, decision=decision, nomination="")
            continue
        nomination = _nominated(pod, preemption) if found.waits_for_preemption else None
        if decision is None:
            # The text of the group as it was before the post-filters.
            yield MemberResult(pod, UNSCHEDULABLE, attempt.message, nomination=nomination)
        elif decision.node is None:
            cleared = "" if decision.error else None
            kept = cleared if nomination is None else nomination
            yield MemberResult(pod, UNSCHEDULABLE, decision.message, None, decision, kept)
        elif found.code == SUCCESS:
            yield MemberResult(pod, SUCCESS, "", decision.node, decision)
        elif found.waits_for_preemption:
            yield MemberResult(pod, UNSCHEDULABLE, found.message, None, decision, nomination)
        else:
            text = f"{GROUP_UNSCHEDULABLE}, {found.message}"
            yield MemberResult(pod, UNSCHEDULABLE, text, None, decision, "")


def _nominated(pod: Pod, preemption: GroupPreemption | None) -> str | None:
    return None if preemption is None else preemption.nominated.get(pod.uid)


_REASONS = {SUCCESS: "Scheduled", ERROR: "SchedulerError"}


def condition_after(group: PodGroup, decision: GroupDecision) -> GroupCondition | None:
    """The condition to write after a cycle; None if nothing changes.

    Once a group was scheduled, that is never taken back.
    """
    succeeded = decision.code == SUCCESS
    known = group.condition()
    if known is not None and known.status == "True" and not succeeded:
        return None
    found = GroupCondition(
        INITIALLY_SCHEDULED,
        "True" if succeeded else "False",
        _REASONS.get(decision.code, "Unschedulable"),
        decision.message,
        observed_generation=group.metadata.generation or 0,
    )
    if known is not None and msgspec.structs.replace(known, last_transition_time=None) == found:
        return None
    return found


def with_condition(group: PodGroup, condition: GroupCondition) -> PodGroup:
    """The group with a condition in place of the one of its type."""
    others = [each for each in group.status.conditions or () if each.type != condition.type]
    status = msgspec.structs.replace(group.status, conditions=[*others, condition])
    return msgspec.structs.replace(group, status=status)
