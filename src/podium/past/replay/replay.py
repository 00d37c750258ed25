"""Goes through a history again, with the same cache and the same engine.

`HistoryReplay` applies entries in order. A decision that is passed by is applied as it was written:
its pod counts on its recorded node, and the cursors move as they did. A decision that is derived is
made again from the state at that moment; `compare` holds it against what was written. What was
decided, and when, is in the history: no pod waits in the queue, and no event wakes one. Without
that work a replay reaches a moment in two thirds of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from podium.cluster.decider import Decider, without_groups
from podium.cluster.pod_groups.cycle import GroupCycle, not_found, own_decision
from podium.cluster.queue.nominations import Nominations
from podium.engine.cycle.cycle import run
from podium.engine.rules.devices.extended_resources import special_uid
from podium.errors import InputError
from podium.library.explained_causes import add_causes, add_trace
from podium.objects.kinds.registry import KINDS
from podium.past.format.reading import ObjectChange, SegmentStart, decided_pod
from podium.past.format.records import (
    Checkpoint,
    ClaimMade,
    ClaimWritten,
    Decided,
    Evicting,
    Forgotten,
    GroupDecided,
    Kept,
    Nominated,
)
from podium.past.recorder.checkpoint import restore
from podium.past.recorder.digest import digest, group_digest, matrix
from podium.scheduler.placing.failure_handler import as_victim
from podium.scheduler.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from podium.cluster.wakeups.wakeups import ClusterEvent
    from podium.engine.cycle.ties import Ties
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import Entry
    from podium.scheduler.state.behaviour import Behaviour


class FollowedState(ClusterState):
    """The cache; the queue is empty until other profiles decide, which queues all pending pods."""

    def __init__(
        self, profiles: Mapping[str, Profile], behaviour: Behaviour, clock: Callable[[], float]
    ) -> None:
        """An empty cluster."""
        self._decides = False
        super().__init__(profiles, behaviour, clock)

    def change_profiles(self, profiles: Mapping[str, Profile], behaviour: Behaviour) -> None:
        """Queue all pending pods, so that these profiles can decide about them."""
        self._decides = True
        super().change_profiles(profiles, behaviour)

    def wake_pods(self, event: ClusterEvent) -> None:
        """Wake pods, once the queue has any."""
        if self._decides:
            super().wake_pods(event)

    def _pending_pod_changed(self, old: Pod | None, new: Pod) -> None:
        if self._decides:
            super()._pending_pod_changed(old, new)
        elif old is not None and new.terminating and self.cache.is_assumed(new.uid):
            self.forget(new)


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides in a replay: profiles by the name of their scheduler, and their behaviour."""

    profiles: Mapping[str, Profile]
    behaviour: Behaviour

    def __post_init__(self) -> None:
        """A pod of a group is decided about as one that comes after the pods before it."""
        if any(each.schedules_groups for each in self.profiles.values()):
            alone = {name: without_groups(each) for name, each in self.profiles.items()}
            object.__setattr__(self, "profiles", alone)


#: The rules by which a segment was decided, from its header.
RulesOf = Callable[[Mapping[str, Any]], Rules]


def is_read(kind: str) -> bool:
    """Whether a scheduler reads objects of this kind; histories have some more."""
    return kind in {"Pod", "Node"} or KINDS[kind].looked_up


class HistoryReplay:
    """The state of a scheduler at some moment of a history."""

    def __init__(self, rules_of: RulesOf, *, plain: bool = False) -> None:
        """Begin before the first entry; *plain* derives decisions without any kept answer."""
        self._rules_of = rules_of
        self._plain = plain
        self.now = 0.0
        #: The time of the decision that is derived.
        self._decided_at = 0.0
        #: Objects before a checkpoint, until it comes; None outside of one.
        self._listed: list[tuple[str, Object]] | None = None
        self._nominated: dict[str, list[tuple[str, str]]] = {}
        #: The last cycle of a pod group that was made again, and its decisions by uid of the pod.
        self.group: GroupDecision | None = None
        self._members: dict[str, Decision] = {}
        self._begin(None)

    def _begin(self, header: Mapping[str, Any] | None) -> None:
        self._rules = None if header is None else self._rules_of(header)
        self._nominated = {}
        if self._rules is None:
            return
        profiles = self._rules.profiles
        self.state = FollowedState(profiles, self._rules.behaviour, lambda: self.now)
        self._decider = Decider(
            self.state.cache,
            profiles,
            clock=lambda: self._decided_at,
            keeps_answers=not self._plain,
        )

    @property
    def ties(self) -> Ties:
        """The rule that breaks ties."""
        return self._decider.ties

    # Entries ----------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Follow an entry; a decision is applied as it was written."""
        if isinstance(entry, SegmentStart):
            self._begin(entry.header)
            self._listed = None if entry.empty else []
            return
        if isinstance(entry, ObjectChange):
            self.now = entry.time
            self._follow_object(entry)
        elif isinstance(entry, Decided):
            self.now = entry.time
            self._follow_decision(entry, None)
        elif isinstance(entry, GroupDecided):
            self.now = entry.time
            self._follow_group(entry, None)
        elif isinstance(entry, Nominated):
            self._follow_nominations(entry)
        elif isinstance(entry, Checkpoint):
            self._follow_checkpoint(entry)
        elif isinstance(entry, Forgotten):
            self.now = entry.time
            self._follow_forgotten(entry)
        elif isinstance(entry, ClaimMade | ClaimWritten):
            self._follow_claim(entry)
        elif isinstance(entry, Evicting | Kept):
            self.now = entry.time
            self._follow_victims(entry)

    def _follow_object(self, entry: ObjectChange) -> None:
        if not is_read(entry.kind):
            return
        if self._listed is not None:
            assert entry.new is not None
            self._listed.append((entry.kind, entry.new))
        elif entry.new is not None:
            self.state.index(entry.kind).put(entry.new)
        elif entry.old is not None:
            self.state.index(entry.kind).drop(entry.old)

    def _follow_checkpoint(self, entry: Checkpoint) -> None:
        restore(self.state, self.ties, entry, self._listed or ())
        self._listed = None
        self._nominated = {node: list(pods) for node, pods in entry.nominated}
        self._set_nominated()

    def _follow_nominations(self, entry: Nominated) -> None:
        for node, pods in entry.pods.items():
            if pods:
                self._nominated[node] = pods
            else:
                self._nominated.pop(node, None)
        if entry.order is not None:
            self._nominated = {node: self._nominated[node] for node in entry.order}
        self._set_nominated()

    def _set_nominated(self) -> None:
        self.state.cache.columns.set_nominated(
            {
                node: [pod for key, uid in pods if (pod := self._pod(key, uid)) is not None]
                for node, pods in self._nominated.items()
            }
        )

    def _pod(self, key: str, uid: str) -> Pod | None:
        found = self.state.pod_named(key)
        return found if found is not None and found.uid == uid else None

    def _follow_forgotten(self, entry: Forgotten) -> None:
        pod = self._pod(entry.pod, entry.uid)
        if pod is not None:
            self.state.forget(pod)

    def _follow_claim(self, entry: ClaimMade | ClaimWritten) -> None:
        """Count devices as the scheduler did before a watch reported their claim."""
        claims = self.state.cache.columns.catalog.resource_claims
        if isinstance(entry, ClaimMade):
            claims.rename_in_flight(special_uid(entry.pod_uid), entry.uid)
        else:
            claims.note_written(entry.claim, entry.uid, entry.version)

    def _follow_victims(self, entry: Evicting | Kept) -> None:
        keys = entry.victims if isinstance(entry, Evicting) else entry.pods
        pods = [pod for key in keys if (pod := self.state.pod_named(key)) is not None]
        if isinstance(entry, Kept):
            self.state.keep_victims(pods)
            return
        assert self._rules is not None
        for pod in pods:
            self.state.mark_victim(pod, as_victim(pod, self._rules.behaviour, entry.time))

    def _follow_decision(self, entry: Decided, decision: Decision | None) -> None:
        """Move the cursors as they were moved, and put the pod where it went.

        Where a decision is part of the cycle of a group, that was followed already.
        """
        if entry.group:
            return
        if decision is None and entry.reserves and not entry.extenders:
            decision = self._decision(entry, recording=False)
        elif decision is None and entry.tied:
            self.ties.skip(entry.tied)
        cache = self.state.cache
        cache.advance(entry.consumed, dropped=entry.dropped)
        pod = self._pod(entry.pod, entry.uid)
        if entry.node is not None and pod is not None:
            reservations = decision.reservations if decision is not None else {}
            cache.assume(self._decided_pod(entry), entry.node, reservations)

    def _follow_group(self, entry: GroupDecided, found: GroupDecision | None) -> None:
        """Move the cursors as they were moved, and put the pods of the group where they went."""
        self.group = found
        reserves = any(each.reserves for each in entry.members) and not entry.extenders
        if found is None and reserves:
            self._group_decision(entry, recording=False)
        elif found is None:
            self._members = {}
            for tied, consumed, dropped in entry.searches:
                if tied:
                    self.ties.skip(tied)
                self.state.cache.advance(consumed, dropped=dropped)
        for member in entry.members:
            if member.node is not None and self._pod(member.pod, member.uid) is not None:
                decision = self._members.get(member.uid)
                reservations = decision.reservations if decision is not None else {}
                self.state.cache.assume(self._decided_pod(member), member.node, reservations)

    # Decisions --------------------------------------------------------------------------------

    def derive(self, entry: Decided, *, recording: bool = False, causes: bool = False) -> Decision:
        """Make the decision of an entry again, then follow the entry as it was written.

        With *recording*, the decision has every verdict and every score; with *causes*, also what
        led to them.
        """
        if entry.group:  # the cycle was made again before
            return self._members[entry.uid]
        self.now = entry.time
        decision = self._decision(entry, recording=recording or causes)
        if causes:
            self._add_causes(self._decided_pod(entry), self.profile_of(entry), decision)
        self._follow_decision(entry, decision)
        return decision

    def _add_causes(self, pod: Pod, profile: Profile, decision: Decision) -> None:
        columns = self.state.cache.columns
        add_causes(columns, pod, profile, decision)
        add_trace(columns, pod, profile, decision)

    def derive_group(
        self, entry: GroupDecided, *, recording: bool = False, causes: bool = False
    ) -> GroupDecision:
        """Make the cycle of a group again, then follow it as it was written.

        `derive` then has the decision about each of its pods.
        """
        self.now = entry.time
        found = self._group_decision(entry, recording=recording or causes, causes=causes)
        self._follow_group(entry, found)
        return found

    def _group_decision(
        self, entry: GroupDecided, *, recording: bool, causes: bool = False
    ) -> GroupDecision:
        """Make the cycle again; the cursors move, and nominations are as they were before it."""
        assert self._rules is not None
        self._decided_at = entry.decided_at
        decider, columns = self._decider, self.state.cache.columns
        pods = [self._decided_pod(each) for each in entry.members]
        profile = self.profile_of(entry.members[0])
        namespace, _, name = entry.group.partition("/")
        group = columns.catalog.pod_groups.get(name, namespace)
        decider.nominations = self._nominations()
        try:
            if group is None:
                found = not_found(entry.group, pods)
            else:
                cycle = GroupCycle(decider, self._rules.profiles)
                if causes:
                    cycle.decided = lambda pod, made: self._add_causes(pod, profile, made)
                found = run(cycle.run(group, pods, recording=recording))
        finally:
            decider.nominations = None
            self._set_nominated()
        self._members = {
            each.pod.uid: own_decision(each, profile.name, columns) for each in found.members
        }
        return found

    def _nominations(self) -> Nominations:
        found = Nominations()
        for node, pods in self._nominated.items():
            for key, uid in pods:
                pod = self._pod(key, uid)
                if pod is not None:
                    found.set(pod, node)
        return found

    def _decision(self, entry: Decided, *, recording: bool) -> Decision:
        """Make the decision again, at the time for which it was made; the rule for ties moves."""
        self._decided_at = entry.made_at
        steps = self._decider.begin(
            self._decided_pod(entry), self.profile_of(entry), recording=recording
        )
        return run(steps)

    def profile_of(self, entry: Decided) -> Profile:
        """The profile that decided; the first one if none has the name of its scheduler."""
        assert self._rules is not None
        profiles = self._rules.profiles
        return profiles.get(entry.scheduler) or next(iter(profiles.values()))

    def _decided_pod(self, entry: Decided) -> Pod:
        """The pod as it was when it was decided about."""
        if entry.object is not None:
            return decided_pod(entry.object)
        pod = self._pod(entry.pod, entry.uid)
        if pod is None:
            raise InputError(f"pod {entry.pod} is decided about before it is there")
        if entry.nominated is not None:
            pod = replace(pod, status=replace(pod.status, nominated_node_name=entry.nominated))
        return pod


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A decision that was made otherwise in a replay."""

    entry: Decided
    decision: Decision
    #: What differs: the node, the digest, or single verdicts and scores.
    what: str


def compare(entry: Decided, decision: Decision) -> ReplayDifference | None:
    """Compare a decision that was made again with what was written; None if they are equal."""
    if decision.node != entry.node:
        ours, theirs = decision.node or "no node", entry.node or "no node"
        return ReplayDifference(entry, decision, f"{ours} instead of {theirs}")
    if digest(decision) != entry.digest:
        return ReplayDifference(entry, decision, "another outcome on the way to the same node")
    if entry.matrix is not None and decision.examined and matrix(decision) != entry.matrix:
        return ReplayDifference(entry, decision, "other verdicts or scores")
    return None


def compare_group(entry: GroupDecided, found: GroupDecision) -> str:
    """What differs in a cycle that was made again; empty if nothing does."""
    if found.code != entry.code:
        return f"{found.code} instead of {entry.code}"
    if group_digest(found) != entry.digest:
        return "another outcome on the way to the same one"
    return ""
