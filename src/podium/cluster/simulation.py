"""Scheduling without an API server: objects in, decisions out, one pod after the other.

What an API server and kubelets would do happens at once: a placed pod is on its node for the next
decision, victims of preemption are gone (or terminating) before the pod is tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from podium.cluster.cache.cache import Cache
from podium.cluster.cache.reservations import Reservations
from podium.cluster.claim_writes import ClaimWriter, ClaimWrites
from podium.cluster.queue.nominations import Nominations
from podium.engine.cycle.attempt import Attempt, ignore_step
from podium.engine.cycle.cycle import cycle
from podium.engine.cycle.ties import ties
from podium.engine.fast.class_answers import AnswerCache
from podium.engine.framework.rule import Refused
from podium.engine.rules.devices.v1_36 import NAME as DEVICES
from podium.engine.state.device_plan import DevicePlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

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
    *fast* every rule is asked about every node. `run` calls *decided* with each decision while the
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
        answer: Callable[[Any], Any] = no_extenders,
        decided: Callable[[Pod, Decision], None] | None = None,
    ) -> None:
        self.profile = profile
        self._profiles = {each.scheduler_name: each for each in (*reversed(others), profile)}
        self._has_extenders = any(each.extenders for each in self._profiles.values())
        self._start_time = start_time
        self._score_single = score_single
        self._attempts = 0
        self.cache = Cache(
            profile.accounting,
            listed_order=listed_order,
            node_order=profile.node_order,
            journal_limit=profile.tuning.journal_limit,
        )
        Reservations(self._profiles.values()).attach(self.cache)
        self.cache.columns.decided_at = now
        self._claim_writer = ClaimWriter(self.cache.columns.catalog.resource_claims)
        self.ties = ties(profile.ties)
        self.after_preemption = after_preemption
        self._answer = answer
        self.decided = decided
        self._answers = {
            name: AnswerCache(self.cache.columns, each) if fast else None
            for name, each in self._profiles.items()
        }
        self._nominations = Nominations()
        self._pods: dict[str, Pod] = {}

    def load(self, objects: Objects) -> None:
        """Add objects: nodes, pods with a node, nominated pods, and what rules look up."""
        for kind, shelf in self.cache.columns.catalog.shelves():
            for item in objects.of(kind):
                shelf.put(item)
        for node in objects.nodes:
            self.cache.put_node(node)
        placed = [pod for pod in objects.pods if pod.spec.node_name and not pod.finished]
        for pod in self.cache.add_pods(placed):
            self.cache.add_pod(pod)
        for pod in placed:
            self._keep(pod)
        for pod in objects.pods:
            if not pod.spec.node_name and not pod.finished:
                self.nominate(pod, pod.status.nominated_node_name)

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a node for a pod; with no node, clear the nomination."""
        if not self.profile.by_priority:
            return  # without priorities there is no preemption, and nothing is nominated
        self._nominations.set(pod, node)
        self.cache.columns.set_nominated(
            {name: self._nominations.on(name) for name in self._nominations.nodes()}
        )

    def run(self, pending: Iterable[Pod], *, recording: bool = False) -> Iterator[Step]:
        """Try each pod in turn, and once more after a successful preemption, and carry it out."""
        waiting = list(pending)
        if not self.profile.nominated_first:
            for pod in waiting:
                self._renominate(pod)
        deferred = []
        for pod in waiting:
            if pod.status.nominated_node_name:
                if self.profile.nominated_first:
                    self._renominate(pod)  # counts from the pod's own first attempt on
                pod = self._as_known(pod)  # noqa: PLW2901 - the same pod, as it is now
            step = self._tried(pod, 1, recording=recording)
            yield step
            again = self._settle(step)
            if again is not None and self.after_preemption == DEFER:
                deferred.append(again)
            elif again is not None:
                yield from self._retry(again, recording=recording)
        for pod in deferred:
            yield from self._retry(pod, recording=recording)

    def _as_known(self, pod: Pod) -> Pod:
        """A nominated pod as the API server has it: without a nomination cleared since."""
        if self._nominations.node_of(pod) or self._is_held(pod):
            return pod
        return _with_nomination(pod, "")

    def _is_held(self, pod: Pod) -> bool:
        incoming = self.cache.columns.pods.incoming(pod)
        return any(gate.hold(incoming, self.cache.columns) for gate in self.profile_of(pod).gates)

    def _renominate(self, pod: Pod) -> None:
        if pod.status.nominated_node_name and not self._is_held(pod):
            self.nominate(pod, pod.status.nominated_node_name)

    def _retry(self, pod: Pod, *, recording: bool) -> Iterator[Step]:
        """Try a pod once more, and again for as long as claims of it are given back."""
        attempt, released = 2, True
        while released:
            if pod.status.nominated_node_name:
                pod = self._as_known(pod)
            step = self._tried(pod, attempt, recording=recording)
            yield step
            self._settle(step)
            attempt, released = attempt + 1, step.decision.released is not None

    def _tried(self, pod: Pod, attempt: int, *, recording: bool) -> Step:
        """Decide about a pod, and write what the decision says of its claims."""
        decision = self.attempt(pod, recording=recording)
        if self.decided is not None:
            self.decided(pod, decision)
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
        return Step(pod, attempt, decision, writes)

    def attempt(
        self, pod: Pod, *, recording: bool = False, mark: Callable[[str], None] = ignore_step
    ) -> Decision:
        """Decide about one pod. Only the cursors of node order and ties move; see `place`.

        *mark* is called with the name of each step when it is done.
        """
        columns = self.cache.columns
        profile = self.profile_of(pod)
        attempt = Attempt(
            columns.pods.incoming(pod),
            profile,
            self.cache.order(),
            self.ties,
            recording=recording,
            score_single=self._score_single,
            answers=self._answers[profile.scheduler_name],
            mark=mark,
        )
        self._attempts += 1
        steps = cycle(columns, attempt)
        reply = None
        while True:
            try:
                reply = self._answer(steps.send(reply))
            except StopIteration as done:
                decision: Decision = done.value
                break
        self.cache.advance(decision.consumed, dropped=decision.dropped)
        if decision.waits:
            _reject_waiting(decision)
        return decision

    def profile_of(self, pod: Pod) -> Profile:
        """The profile of the pod's scheduler, or the first profile."""
        return self._profiles.get(pod.spec.scheduler_name, self.profile)

    def _settle(self, step: Step) -> Pod | None:
        """Carry the decision out; the pod, if it is to be tried again."""
        pod, decision = step.pod, step.decision
        if decision.node is not None:
            if self._nominations.nodes():
                self.nominate(pod, "")
            self.place(pod, decision)
            return None
        preemption = decision.preemption
        released = pod if decision.released is not None else None
        if preemption is None:
            without_post_filter = decision.error or not self.profile_of(pod).post_filters
            if self.profile.nominated_first and without_post_filter and decision.held is None:
                self.nominate(pod, "")
            return released
        if preemption.nomination == "":
            self.nominate(pod, "")
        for uid, _ in preemption.cleared:
            self._clear(uid, pod)
        if preemption.node is None:
            return released
        for uid in preemption.candidates[preemption.node].uids:
            self._evict(uid)
        nominated = _with_nomination(pod, preemption.node)
        self.nominate(nominated, preemption.node)
        return nominated

    def place(self, pod: Pod, decision: Decision) -> None:
        """Put the pod on the node of the decision; it counts there from now on."""
        assert decision.node is not None
        if self._start_time is not None:
            started = self._start_time(self._attempts - 1)
            status = msgspec.structs.replace(pod.status, start_time=started)
            pod = msgspec.structs.replace(pod, status=status)
        reservations = decision.reservations
        if reservations:
            # Claims are written already, devices count as in use because of them.
            plans = reservations.items()
            reservations = {name: plan for name, plan in plans if not isinstance(plan, DevicePlan)}
        self.cache.assume(pod, decision.node, reservations)
        self._keep(pod)

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

    def _evict(self, uid: str) -> None:
        if self.after_preemption == TERMINATE:
            self.cache.columns.mark_terminating(uid)
        else:
            self.remove(uid)

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


def _with_nomination(pod: Pod, node: str) -> Pod:
    status = msgspec.structs.replace(pod.status, nominated_node_name=node)
    return msgspec.structs.replace(pod, status=status)
