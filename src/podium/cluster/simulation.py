"""Scheduling without an API server: objects in, decisions out, one pod after the other.

What an API server and kubelets would do happens at once: a placed pod is on its node for the next
decision, victims of preemption are gone (or terminating) before the pod is tried again.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from podium.cluster.cache.cache import Cache, restoring
from podium.cluster.claims import ClaimWriter, ClaimWrites
from podium.cluster.decider import Decider, always, ignore_step
from podium.cluster.pod_groups.simulated import SimulatedGroups
from podium.cluster.queue.nominations import Nominations
from podium.engine.framework.group_decision import SUCCESS
from podium.engine.framework.rule import Refused
from podium.engine.rules.devices.plugin import NAME as DEVICES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from typing import Any

    from podium.cluster.verification import Verification
    from podium.engine.cycle.ties import Ties
    from podium.engine.framework.decision import ClaimRelease, Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

T = TypeVar("T")

#: What follows a preemption: victims go and the pod is tried again at once, or after all other
#: pods; or victims stay as terminating and the pod is tried again at once.
RETRY, DEFER, TERMINATE = "retry", "defer", "terminate"


class Step(NamedTuple):
    """One attempt at one pod; the second follows a successful preemption.

    It also follows when a claim of the pod was given back, so that the pod can get other devices.
    """

    pod: Pod
    attempt: int
    decision: Decision
    #: What was written into resource claims; None for a pod without claims.
    claims: ClaimWrites | None = None
    #: The cycle of its pod group that the pod was tried in.
    group: GroupDecision | None = None
    #: The node of each pod that is evicted for it: pods of a group may be on other nodes.
    evicted_from: tuple[str, ...] = ()


def no_extenders(question: Any) -> Any:
    """Refuse a question to an extender: this simulation has no connection to any."""
    raise RuntimeError(f"open_simulation connects to extenders, Simulation does not: {question!r}")


class Simulation:
    """A cluster in memory and the scheduler that places its pods.

    *profile* decides, and *others* decide about pods of their schedulers. *answer* is called with
    each question to an extender. The rest is for recordings and tests: *start_time* gives the start
    time of a pod placed at some attempt, *score_single* scores a single feasible node too,
    *listed_order* looks at nodes in the order they were loaded, *after_preemption* is one of the
    three constants above, *now* is the time of all decisions in seconds since 1970, and without
    *fast* every rule is asked about every node. *verification* says which attempts are decided
    twice, from kept answers and without any. `run` calls *decided* with each decision while the
    cluster still is as it was for it.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        others: Sequence[Profile] = (),
        start_time: Callable[[int], str] | None = None,
        score_single: bool = False,
        listed_order: bool = False,
        after_preemption: str = RETRY,
        now: float = 0.0,
        fast: bool = True,
        verification: Verification | None = None,
        answer: Callable[[Any], Any] = no_extenders,
        decided: Callable[[Pod, Decision], None] | None = None,
    ) -> None:
        self.profile = profile
        self._profiles = {each.scheduler_name: each for each in (*reversed(others), profile)}
        self._has_extenders = any(each.extenders for each in self._profiles.values())
        self._schedules_groups = any(each.schedules_groups for each in self._profiles.values())
        self._start_time = start_time
        self.cache = Cache(
            profile.accounting,
            listed_order=listed_order,
            node_order=profile.node_order,
            journal_limit=profile.tuning.journal_limit,
        )
        self.cache.restored = restoring(self._profiles.values())
        self._claim_writer = ClaimWriter(self.cache.columns.catalog.resource_claims)
        self.after_preemption = after_preemption
        self._answer = answer
        self.decided = decided
        self._nominations = Nominations()
        #: Decides about each pod.
        self.decider = Decider(
            self.cache,
            {profile.scheduler_name: profile, **self._profiles},
            clock=always(now),
            nominations=self._nominations,
            keeps_answers=fast,
            score_single=score_single,
            verification=verification,
        )
        self.cache.columns.decided_at = now
        #: Runs the cycles of pod groups.
        self.groups = SimulatedGroups(self)
        self._pods: dict[str, Pod] = {}

    @property
    def ties(self) -> Ties:
        """The rule that breaks ties."""
        return self.decider.ties

    def load(self, objects: Objects, *, just_listed: bool = False) -> None:
        """Add objects: nodes, pods with a node, nominated pods, and what rules look up.

        Nodes know how many nodes hold their images, as after their last status update. With
        *just_listed*, each knows of those before it only, as after the scheduler's first list.
        """
        for kind, shelf in self.cache.columns.catalog.shelves():
            for item in objects.of(kind):
                shelf.put(item)
        for node in objects.nodes:
            self.cache.put_node(node)
        if not just_listed:
            self.cache.columns.count_images_anew()
        placed = [pod for pod in objects.pods if pod.spec.node_name and not pod.finished]
        for pod in self.cache.add_pods(placed):
            self.cache.add_pod(pod)
        for pod in placed:
            self._keep(pod)
        for pod in objects.pods:
            if not pod.spec.node_name and not pod.finished:
                self.groups.expect([pod])
                self.nominate(pod, pod.status.nominated_node_name)

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a node for a pod; with no node, clear the nomination."""
        if not self.profile.by_priority:
            return  # without priorities there is no preemption, and nothing is nominated
        self._nominations.set(pod, node)
        self.decider.count_nominated()

    def run(self, pending: Iterable[Pod], *, recording: bool = False) -> Iterator[Step]:
        """Try each pod in turn, and once more after a successful preemption, and carry it out."""
        run = self._run_entities if self._schedules_groups else self._run_pods
        return run(list(pending), recording=recording)

    def _run_entities(self, waiting: Sequence[Pod], *, recording: bool) -> Iterator[Step]:
        """Try pods and pod groups in turn; the pods of a group when its first one is due.

        What is left of a group that was scheduled is tried again at once, and so is a group for
        which pods were evicted.
        """
        self.groups.expect(waiting)
        members: dict[str, list[Pod]] = {}
        entities: list[tuple[int, Pod]] = []
        for pod in waiting:
            group = self.groups.named(pod.group) if pod.group else None
            if not pod.group or not members.setdefault(pod.group, []):
                priority = pod.priority if group is None else group.priority
                entities.append((-priority, pod))
            if pod.group:
                members[pod.group].append(pod)
        for _, pod in sorted(entities, key=itemgetter(0)):
            if pod.group:
                yield from self._run_group(pod.group, members[pod.group], recording=recording)
            else:
                yield from self._run_pods([pod], recording=recording)

    def _run_group(self, key: str, pods: Sequence[Pod], *, recording: bool) -> Iterator[Step]:
        held = self.groups.hold(pods)
        if held is not None:
            yield from self.groups.held(pods, held)
            return
        for pod in pods:
            self._renominate(pod)
        # Victims that stay, being deleted, are named again by each further cycle.
        victims_stay = False
        while pods:
            group = self.groups.named(key)
            assert group is not None, key  # a missing group holds its pods
            found = self.groups.run(group, sorted(pods, key=_place), recording=recording)
            yield from found.steps
            pods = found.left
            decision = found.decision
            evicts = decision.preemption is not None and bool(decision.preemption.uids)
            if decision.code != SUCCESS and not evicts and not decision.released:
                return
            if evicts and victims_stay:
                return
            victims_stay |= evicts and self.after_preemption == TERMINATE

    def _run_pods(self, waiting: Sequence[Pod], *, recording: bool) -> Iterator[Step]:
        if not self.profile.nominated_first:
            for pod in waiting:
                self._renominate(pod)
        deferred = []
        for pod in waiting:
            if pod.status.nominated_node_name:
                if self.profile.nominated_first:
                    self._renominate(pod)  # counts from the pod's own first attempt on
                pod = self.as_known(pod)  # noqa: PLW2901 - the same pod, as it is now
            step = self._tried(pod, 1, recording=recording)
            yield step
            again = self.settle(step)
            if again is not None and self.after_preemption == DEFER:
                deferred.append(again)
            elif again is not None:
                yield from self._retry(again, recording=recording)
        for pod in deferred:
            yield from self._retry(pod, recording=recording)

    def as_known(self, pod: Pod) -> Pod:
        """A nominated pod as the API server has it: without a nomination cleared since."""
        if self._nominations.node_of(pod) or self._is_held(pod):
            return pod
        return _with_nomination(pod, "")

    def _is_held(self, pod: Pod) -> bool:
        incoming = self.cache.columns.pods.incoming(pod)
        return any(gate.hold(incoming, self.cache.columns) for gate in self.profile_of(pod).gates)

    def _renominate(self, pod: Pod) -> None:
        node = pod.status.nominated_node_name
        if not node:
            return
        generation = self.profile.generation
        counts_held = generation is not None and generation.conduct.queues_entities
        if counts_held or not self._is_held(pod):
            self.nominate(pod, node)

    def _retry(self, pod: Pod, *, recording: bool) -> Iterator[Step]:
        """Try a pod once more, and again for as long as claims of it are given back."""
        attempt, released = 2, True
        while released:
            if pod.status.nominated_node_name:
                pod = self.as_known(pod)
            step = self._tried(pod, attempt, recording=recording)
            yield step
            self.settle(step)
            attempt, released = attempt + 1, step.decision.released is not None

    def _tried(self, pod: Pod, attempt: int, *, recording: bool) -> Step:
        """Decide about a pod, and write what the decision says of its claims."""
        decision = self.attempt(pod, recording=recording)
        if self.decided is not None:
            self.decided(pod, decision)
        return self.step_of(pod, attempt, decision)

    def step_of(
        self, pod: Pod, attempt: int, decision: Decision, group: GroupDecision | None = None
    ) -> Step:
        """Write what a decision says of the claims of its pod."""
        plan = decision.devices if decision.reservations else None
        writes = None
        if decision.released is not None:
            writes = self._claim_writer.release(decision.released)
        elif decision.node is not None and plan is not None:
            writes = self._claim_writer.bind(pod, plan, self.cache.columns.decided_at)
            if writes.error:
                decision.error = f'running PreBind plugin "{DEVICES}": {writes.error}'
                decision.failed_plugin = DEVICES
                decision.node, decision.reservations = None, {}
        if decision.preemption is None:
            return Step(pod, attempt, decision, writes, group)
        names, placed = self.cache.columns.nodes.names, self.cache.columns.pods.by_uid
        nodes = tuple(names[placed[uid].row] for uid in decision.preemption.victims)
        return Step(pod, attempt, decision, writes, group, nodes)

    def attempt(
        self, pod: Pod, *, recording: bool = False, mark: Callable[[str], None] = ignore_step
    ) -> Decision:
        """Decide about one pod. Only the cursors of node order and ties move; see `place`.

        *mark* is called with the name of each step when it is done.
        """
        steps = self.decider.begin(pod, self.profile_of(pod), recording=recording, mark=mark)
        decision = self.decider.finish(self.answered(steps))
        if decision.waits:
            _reject_waiting(decision)
        return decision

    def answered(self, steps: Generator[Any, Any, T]) -> T:
        """What comes of steps that may ask extenders."""
        reply = None
        while True:
            try:
                reply = self._answer(steps.send(reply))
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]

    def profile_of(self, pod: Pod) -> Profile:
        """The profile of the pod's scheduler, or the first profile."""
        return self._profiles.get(pod.spec.scheduler_name, self.profile)

    def settle(self, step: Step, start_time: Callable[[], str] | None = None) -> Pod | None:
        """Carry the decision out; the pod, if it is to be tried again.

        *start_time* gives the start time of a pod that is placed.
        """
        pod, decision = step.pod, step.decision
        if decision.node is not None:
            if self._nominations.nodes():
                self.nominate(pod, "")
            self.place(pod, decision, start_time)
            return None
        preemption = decision.preemption
        released = pod if decision.released is not None else None
        if preemption is None:
            ends = decision.error or self.profile_of(pod).clears_nominations
            if self.profile.nominated_first and ends and decision.held is None:
                self.nominate(pod, "")
            return released
        if preemption.nomination == "":
            self.nominate(pod, "")
        for uid, _ in preemption.cleared:
            self._clear(uid, pod)
        if preemption.node is None:
            return released
        for uid in preemption.candidates[preemption.node].uids:
            self.evict(uid)
        nominated = _with_nomination(pod, preemption.node)
        self.nominate(nominated, preemption.node)
        return nominated

    def place(
        self, pod: Pod, decision: Decision, start_time: Callable[[], str] | None = None
    ) -> None:
        """Put the pod on the node of the decision; it counts there from now on.

        *start_time* gives its start time in place of that by the number of attempts.
        """
        assert decision.node is not None
        if start_time is not None or self._start_time is not None:
            started = self._started() if start_time is None else start_time()
            status = msgspec.structs.replace(pod.status, start_time=started)
            pod = msgspec.structs.replace(pod, status=status)
        reservations = decision.reservations
        if reservations:
            # Claims are written already, devices count as in use because of them.
            kept = reservations.items()
            reservations = {name: each for name, each in kept if each.devices is None}
        self.cache.assume(pod, decision.node, reservations)
        self._keep(pod)

    def _started(self) -> str:
        assert self._start_time is not None
        return self._start_time(self.decider.attempts - 1)

    def placed(self, uid: str) -> Pod | None:
        """The placed pod with this uid, kept only where extenders are sent whole pods."""
        return self._pods.get(uid)

    def _keep(self, pod: Pod) -> None:
        """Keep the whole pod if extenders may be sent it; rules need less."""
        if self._has_extenders:
            self._pods[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Take the placed pod with this uid off its node."""
        self._pods.pop(uid, None)
        self.cache.remove(uid)

    def evict(self, uid: str) -> None:
        """Carry out an eviction: the pod is gone, or terminating."""
        if self.after_preemption == TERMINATE:
            self.cache.columns.mark_terminating(uid)
        else:
            self.remove(uid)

    def renominated(self, pod: Pod, node: str | None) -> Pod:
        """A pod of a group that was not placed, with its nomination: kept if *node* is None."""
        if node is None:
            return pod
        pod = _with_nomination(pod, node)
        self.nominate(pod, node)
        return pod

    def release(self, release: ClaimRelease) -> None:
        """Give a claim back that does not fit where its pod could run."""
        self._claim_writer.release(release)

    def _clear(self, uid: str, pod: Pod) -> None:
        if uid == pod.uid:
            self._nominations.set(pod, "")
        for node in self._nominations.nodes():
            for other in self._nominations.on(node):
                if other.uid == uid:
                    self._nominations.remove(other)
        self.nominate(pod, self._nominations.node_of(pod))


def _reject_waiting(decision: Decision) -> None:
    """Reject a pod that a permit rule lets wait: in a simulation no time passes."""
    for rule, permission in decision.waits:
        decision.refused = Refused(rule, permission.reason)
        decision.node, decision.reservations = None, {}
        return


def _place(pod: Pod) -> int:
    """Pods of a group go by priority; those with the same keep their order."""
    return -pod.priority


def _with_nomination(pod: Pod, node: str) -> Pod:
    status = msgspec.structs.replace(pod.status, nominated_node_name=node)
    return msgspec.structs.replace(pod, status=status)
