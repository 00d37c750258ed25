"""A pod group as one thing: which of its pods fit, what was undone, and when it is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.group_decision import ERROR, SUCCESS
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.group_decision import GroupDecision, MemberResult

#: Backoff of a group in seconds: at first, and at most for one pod.
FIRST_REST, LONGEST_REST = 1, 10
PLACED, UNDONE, NOT_TRIED, REJECTED = "placed", "undone", "notTried", "unschedulable"
_WORDS: Final = {
    PLACED: "gets a node",
    UNDONE: "fits, undone",
    NOT_TRIED: "not tried",
    REJECTED: "fits nowhere",
    "error": "error",
}


def outcome_of(found: GroupDecision, member: MemberResult) -> str:
    """What became of one pod of a group, in a word."""
    if member.node is not None:
        return PLACED
    if member.decision is None:
        return "error" if found.attempt is None else NOT_TRIED
    if member.decision.error:
        return "error"
    return UNDONE if member.decision.feasible_count else REJECTED


def headline(found: GroupDecision) -> str:
    """What became of the group, in one sentence."""
    name = f"pod group {found.group}"
    if found.code == ERROR:
        return f"{name} failed: {found.message}"
    if found.code == SUCCESS:
        left = len(found.members) - found.scheduled
        rest = f"; {counted(left, 'pod')} left over" if left else ""
        return f"{name} is scheduled: {counted(found.scheduled, 'pod')} get a node{rest}"
    if found.waits_for_preemption:
        return f"{name} waits until the pods evicted for it are gone"
    if found.attempt is not None and found.attempt.progress[0].is_enough:
        return f"{name} is scheduled, but no more of its pods fit"
    return f"{name} does not fit, so that none of its pods gets a node"


def sentences(found: GroupDecision) -> Iterator[str]:
    """How many pods are missing, what was undone, what preemption found, when it is tried again."""
    if found.attempt is not None:
        last = found.attempt.progress[-1]
        needed = f"{last.min_count} must have a node" if found.is_gang else "one must have a node"
        before = found.attempt.progress[0].scheduled
        running = f", {before} of them since before" if before else ""
        fit = "fits" if last.scheduled == 1 else "fit together"
        reached = f"{counted(last.scheduled, 'pod')} of the group {fit}{running}"
        missing = f": {last.missing} more needed" if last.missing else ""
        yield f"{needed}, {reached}{missing}"
    if found.undone:
        pairs = ", ".join(f"{pod} on {node}" for pod, node in found.undone)
        yield f"undone because the group does not fit: {pairs}"
    yield from _preemption(found)
    yield _retry(found)


def cycle_lines(found: GroupDecision) -> list[str]:
    """The cycle of a group: what became of it, and everything about it, a sentence each."""
    return [headline(found), *sentences(found)]


def _preemption(found: GroupDecision) -> Iterator[str]:
    if found.preemption is not None and not found.preemption.ongoing:
        evicted = counted(len(found.preemption.pods), "pod")
        nodes = ", ".join(dict.fromkeys(found.preemption.nodes)) or "no node"
        yield f"{evicted} evicted from {nodes}, so that the group fits"
    elif found.trial is not None:
        last = found.trial.progress[-1]
        yield (
            "without all pods of lower priority "
            f"{counted(last.scheduled, 'pod')} would fit, {last.missing} too few"
        )
    elif found.post_message:
        yield found.post_message


def _retry(found: GroupDecision) -> str:
    left = sum(each.node is None for each in found.members)
    if not left:
        return "all its pods have a node"
    if found.code == SUCCESS:
        return "the rest of the group is tried again at once, and may then preempt"
    most = LONGEST_REST * left**0.5
    return (
        "no event wakes a group: it is tried again when its backoff is over, after "
        f"{FIRST_REST} s at first and at most {most:.3g} s"
    )


def rows(found: GroupDecision) -> Iterator[tuple[str, ...]]:
    """The table of the pods of a group in the order in which they were tried: header, rows."""
    yield ("MEMBER", "OUTCOME", "NODE", "REASON")
    for member in found.members:
        decision = member.decision
        fitted = decision is not None and outcome_of(found, member) in {PLACED, UNDONE}
        node = (
            decision.best[0] if fitted and decision is not None and decision.best else member.node
        )
        undone = dict(found.undone).get(member.pod.key)
        reason = "" if outcome_of(found, member) == UNDONE else member.message
        word = _WORDS[outcome_of(found, member)]
        yield (member.pod.key, word, undone or node or "<none>", reason)


def as_json(found: GroupDecision) -> dict[str, Any]:
    """The cycle of a group as plain data."""
    undone = dict(found.undone)
    data: dict[str, Any] = {
        "name": found.group,
        "outcome": "scheduled" if found.code == SUCCESS else found.code.lower(),
        "message": found.message,
        "policy": "gang" if found.is_gang else "basic",
        "minCount": found.min_count,
        "members": [
            {
                "pod": member.pod.key,
                "outcome": outcome_of(found, member),
                "node": member.node,
                **({"undoneNode": undone[member.pod.key]} if member.pod.key in undone else {}),
                **({"message": member.message} if member.message else {}),
                **({"nominated": member.nomination} if member.nomination else {}),
            }
            for member in found.members
        ],
        "retry": _retry(found),
    }
    if found.attempt is not None:
        last = found.attempt.progress[-1]
        data["scheduled"], data["missing"] = last.scheduled, last.missing
    if found.preemption is not None:
        pairs = zip(found.preemption.pods, found.preemption.nodes, strict=True)
        data["evicted"] = [{"pod": pod, "node": node} for pod, node in sorted(pairs)]
    return data
