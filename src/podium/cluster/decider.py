"""Deciding about one pod after the other: the only place that builds an `Attempt`.

Everything that a decision depends on besides the cluster is a field of the `Decider`: the pods
nominated to nodes, the time, the order of nodes, the rule that breaks ties, and the answers kept
between decisions. The scheduler of a cluster, simulations, replays, the judge, the extender and the
pages decide through it, so that equal fields give equal decisions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from podium.cluster.verification import Discrepancy, Sides, Verification, differences
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import cycle, run
from podium.engine.cycle.evidence import Evidence
from podium.engine.cycle.ties import ties
from podium.engine.fast.class_answers import AnswerCache
from podium.engine.rules.pod_groups import GangGate, GangPermit

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    import numpy as np

    from podium.cluster.cache.cache import Cache
    from podium.cluster.queue.nominations import Nominations
    from podium.engine.cycle.ties import Ties
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

    #: Called with the name of each finished step of a decision.
    Mark = Callable[[str], None]
    #: A decision under way: it yields questions to extenders, and is sent the replies.
    Steps = Generator[Any, Any, Decision]

#: Memory for the answers that are kept per pod class, for all profiles together.
KEPT_BYTES: Final = 1 << 28


def always(seconds: float) -> Callable[[], float]:
    """A clock that stands still."""
    return lambda: seconds


def ignore_step(step: str) -> None:
    """Take no note of a step."""


class Decider:
    """Decides about pods, one at a time."""

    #: What new deciders verify unless the caller says it.
    usual_verification: Callable[[], Verification | None] = staticmethod(lambda: None)

    def __init__(
        self,
        cache: Cache,
        profiles: Mapping[str, Profile],
        *,
        clock: Callable[[], float],
        nominations: Nominations | None = None,
        keeps_answers: bool = True,
        kept_bytes: int = KEPT_BYTES,
        score_single: bool = False,
        verification: Verification | None = None,
    ) -> None:
        """Decide about pods of the *cache* by the *profiles*, which are named by their schedulers.

        *clock* gives the time of a decision in seconds since 1970. The pods of *nominations* count
        on their nodes; without, the caller says so to the cache. Unless it *keeps_answers*, every
        rule is asked about every node, and nothing is kept between decisions. *score_single*:
        decisions that keep everything have the scores of a single feasible node too. *verification*
        says which attempts are decided twice.
        """
        self.cache = cache
        self.profiles = profiles
        self.clock = clock
        self.nominations = nominations
        self.score_single = score_single
        #: The rule that breaks ties, for all profiles.
        self.ties: Ties = ties(next(iter(profiles.values())).ties)
        self.verification = verification or self.usual_verification()
        #: How many attempts were begun.
        self.attempts = 0
        self._keeps_answers = keeps_answers
        self._kept_bytes = kept_bytes
        self._answers: dict[str, AnswerCache] = {}
        #: The nominations that the columns hold.
        self._counted: tuple[Nominations, int] | None = None
        #: While it is set, the nominated pods stay as they are: a decision waits for an extender.
        self.holds_nominations = False
        self._until_verified = 0
        self._count_down()
        self.drop_answers()

    def _count_down(self) -> None:
        """Begin to count the attempts up to the next one that is verified."""
        self._until_verified = 0 if self.verification is None else self.verification.every

    def drop_answers(self) -> None:
        """Drop the answers kept per pod class, for instance because the columns were trimmed."""
        if self._keeps_answers:
            columns, share = self.cache.columns, self._kept_bytes // len(self.profiles)
            self._answers = {
                name: AnswerCache(columns, profile, share)
                for name, profile in self.profiles.items()
            }
        self._counted = None

    def drop_everything_kept(self) -> None:
        """Drop all that was derived from the cluster and kept: answers, ledgers, memos."""
        columns = self.cache.columns
        columns.ledgers.clear()
        for cls in columns.pods.classes.values():
            cls.memo.clear()
            cls.form.memo.clear()
            cls.requests.memo.clear()
        self.drop_answers()

    # Deciding -----------------------------------------------------------------------------------

    def begin(
        self,
        pod: Pod,
        profile: Profile,
        *,
        recording: bool = False,
        mark: Mark = ignore_step,
        order: np.ndarray | None = None,
    ) -> Steps:
        """Begin a decision; `finish` is called with it. With *recording* it keeps everything.

        *mark* is called with the name of each step when it is done. *order* are the rows to look
        at, in place of all rows in their order.
        """
        self.attempts += 1
        cache = self.cache
        columns = cache.columns
        columns.decided_at = self.clock()
        self.count_nominated()
        attempt = Attempt(
            columns.pods.incoming(pod),
            profile,
            cache.order() if order is None else order,
            self.ties,
            mark,
            recording,
            self.score_single,
            self._answers.get(profile.scheduler_name) if order is None else None,
        )
        if self._until_verified:
            self._until_verified -= 1
            if not self._until_verified:
                self._count_down()
                return self._verified(attempt)
        return cycle(columns, attempt) if self._keeps_answers else _plain(columns, attempt)

    def finish(self, decision: Decision) -> Decision:
        """Note the time of a decision, and move on in the order of nodes by what it looked at."""
        cache = self.cache
        decision.decided_at = cache.columns.decided_at
        cache.advance(decision.consumed, dropped=decision.dropped)
        return decision

    def decide(self, pod: Pod, profile: Profile, *, recording: bool = False) -> Decision:
        """Decide where a pod goes, or why nowhere, by a profile without extenders."""
        return self.finish(run(self.begin(pod, profile, recording=recording)))

    def look(
        self,
        pod: Pod,
        profile: Profile,
        *,
        recording: bool = True,
        order: np.ndarray | None = None,
    ) -> Decision:
        """Decide about a pod, and leave the time and all cursors as they are.

        Extenders of the profile are not asked. *order* are the rows to look at, in place of all.
        """
        columns, position = self.cache.columns, self.ties.position()
        before = columns.decided_at
        profile = without_extenders(profile)
        decision = run(self.begin(pod, profile, recording=recording, order=order))
        decision.decided_at, columns.decided_at = columns.decided_at, before
        self.ties.restore(position)
        return decision

    def count_nominated(self) -> None:
        """Let the nominated pods count on their nodes, if they are others than before."""
        nominations = self.nominations
        if nominations is None or self.holds_nominations:
            return
        counted = (nominations, nominations.version)
        if counted != self._counted:
            self._counted = counted
            self.cache.columns.set_nominated(
                {node: nominations.on(node) for node in nominations.nodes()}
            )

    # Verifying ----------------------------------------------------------------------------------

    def _verified(self, attempt: Attempt) -> Steps:
        """Decide from kept answers, then without any, and compare; the second decision is used.

        Extenders are asked once: the second decision gets the replies of the first, unless it asks
        something else. What reserve rules set aside for the first decision is over before they are
        asked again.
        """
        assert self.verification is not None
        view, position = self.cache.columns, attempt.ties.position()
        asked: list[tuple[Any, Any]] = []
        attempt.evidence = Evidence()
        kept = Sides((yield from _noting(cycle(view, attempt), asked)), attempt.evidence)
        _give_back(kept.decision)
        attempt.ties.restore(position)
        again = Attempt(
            attempt.pod,
            attempt.profile,
            attempt.order,
            attempt.ties,
            ignore_step,  # the time it takes is not the decision's
            recording=attempt.recording,
            score_single=attempt.score_single,
            evidence=Evidence(),
        )
        assert again.evidence is not None
        decision = yield from _reusing(_plain(view, again), asked)
        plain = Sides(decision, again.evidence)
        found = differences(view, attempt.order, kept, plain)
        difference = None
        if found:
            journal = view.journal
            difference = Discrepancy(
                attempt.pod.pod,
                attempt.profile.name,
                attempt.profile.scheduler_name,
                view.decided_at,
                self.attempts - 1,
                (journal.epoch, journal.rows.end),
                found,
                kept.decision,
                decision,
            )
            decision.differences = tuple(map(str, found))
            self.drop_everything_kept()
        self.verification.note(difference)
        return decision


def _plain(view: View, attempt: Attempt) -> Steps:
    """Decide as if nothing had been kept of earlier decisions, and keep nothing of this one."""
    cls = attempt.pod.cls
    form, requests = cls.form, cls.requests
    kept = view.ledgers, cls.memo, form.memo, requests.memo
    view.ledgers, cls.memo, form.memo, requests.memo = {}, {}, {}, {}
    try:
        return (yield from cycle(view, attempt))
    finally:
        view.ledgers, cls.memo, form.memo, requests.memo = kept


def without_extenders(profile: Profile) -> Profile:
    """A profile that asks no extender."""
    return replace(profile, extenders=()) if profile.extenders else profile


def without_groups(profile: Profile) -> Profile:
    """A profile that decides about each pod alone, also about those of pod groups."""
    if not profile.schedules_groups:
        return profile
    return replace(
        profile,
        schedules_groups=False,
        gates=tuple(each for each in profile.gates if not isinstance(each, GangGate)),
        permits=tuple(each for each in profile.permits if not isinstance(each, GangPermit)),
    )


def _noting(steps: Steps, asked: list[tuple[Any, Any]]) -> Steps:
    """Run a decision, and note each question with its reply."""
    reply = None
    while True:
        try:
            question = steps.send(reply)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        reply = yield question
        asked.append((question, reply))


def _reusing(steps: Steps, asked: list[tuple[Any, Any]]) -> Steps:
    """Run a decision with the replies that were given before; only other questions are asked."""
    reply, earlier = None, iter(asked)
    while True:
        try:
            question = steps.send(reply)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        before = next(earlier, None)
        reply = before[1] if before is not None and before[0] == question else (yield question)


def _give_back(decision: Decision) -> None:
    """Tell reserve rules that what they set aside for a decision is over."""
    if decision.node is not None:
        for reserved in decision.reservations.values():
            reserved.undo(decision.pod, decision.node)
