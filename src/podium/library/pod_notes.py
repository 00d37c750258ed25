"""What a reader has to know beside the answer about a pod.

The pod may belong to another scheduler, or the cluster's own scheduler may have said otherwise. The
answer may depend on objects that the input does not have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from podium.library.absence import AbsentObjects, adding_command
from podium.library.pending_pods import is_pending
from podium.objects.kinds.registry import POD_DISRUPTION_BUDGET
from podium.objects.times import NEVER, seconds
from podium.render.plain import counted, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.pod import Pod, PodCondition
    from podium.objects.reading.collection import Objects

_SCHEDULED: Final = "PodScheduled"
#: What follows the reasons in a message of kube-scheduler.
_AFTER_REASONS: Final = re.compile(r"\.?\s*(no new claims to deallocate|preemption:|not found$).*")


class PodNotes:
    """Sentences about pods of an input, for the place where the answer about each is given."""

    def __init__(self, objects: Objects, schedulers: Collection[str]) -> None:
        """*schedulers* are those that decide here."""
        self._objects, self._schedulers = objects, schedulers
        self._absent = AbsentObjects(objects)

    def of(self, pod: Pod, decision: Decision | None = None) -> list[str]:
        """The sentences about one pod; *decision* is what was decided about it here."""
        found = list(self._oddities(pod))
        found += self._missing(pod)
        if decision is not None and pod.spec.scheduler_name in self._schedulers:
            found += self._contradiction(pod, decision)
        return found

    def of_evictions(self) -> list[str]:
        """A sentence on disruption budgets, for an answer by which pods are evicted."""
        if not self._absent.lacks_budgets:
            return []
        kind = POD_DISRUPTION_BUDGET.name
        return [_depending(f"which pods may go depends on any {kind}", [kind])]

    def elsewhere(self) -> list[str]:
        """A sentence per other scheduler on its pods that wait."""
        found: dict[str, list[str]] = {}
        for pod in self._objects.pods:
            name = pod.spec.scheduler_name
            if name not in self._schedulers and is_pending(pod, {name}):
                found.setdefault(name, []).append(pod.key)
        return [
            f"{counted(len(keys), 'pending pod')} {'belongs' if len(keys) == 1 else 'belong'} to "
            f"the scheduler {name} and {'is' if len(keys) == 1 else 'are'} left to it: "
            f"{listed(keys)}"
            for name, keys in found.items()
        ]

    def _oddities(self, pod: Pod) -> Iterator[str]:
        """Why no scheduler would decide about the pod, or another one."""
        if pod.finished:
            yield f"it has finished ({pod.status.phase}); decided as if it were new"
        elif pod.terminating:
            yield "it is being deleted; decided as if it were not"
        yield from owner_notes(pod, self._schedulers)

    def _missing(self, pod: Pod) -> Iterator[str]:
        absent = self._absent.all_of(pod)
        if not absent:
            return
        named = [f"{kind} {name}" if name else f"any {kind}" for kind, name in absent]
        yield _depending(f"it depends on {', '.join(named)}", [kind for kind, _ in absent])

    def _contradiction(self, pod: Pod, decision: Decision) -> Iterator[str]:
        """The pod's own condition, where it says something else, and what happened since."""
        condition = _contradicting(pod, decision)
        if condition is None:
            return
        yield _says_otherwise(condition)
        changes = self._changes_since(pod, condition)
        told = "; ".join(changes) or (
            "the input shows no change; the cluster may have another release or configuration, "
            "or objects that the input does not have"
        )
        yield f"since then: {told}"

    def _changes_since(self, pod: Pod, condition: PodCondition) -> list[str]:
        """What the times in the input say of changes after the condition was written."""
        try:
            since = seconds(condition.last_transition_time)
        except ValueError:
            return []
        counted_then = re.match(r"0/(\d+) nodes are available", condition.message)
        found = []
        nodes = len(self._objects.nodes)
        if counted_then is not None and int(counted_then[1]) != nodes:
            found.append(f"the number of nodes went from {counted_then[1]} to {nodes}")
        if since == NEVER:
            return found
        added = [
            node.name
            for node in self._objects.nodes
            if _is_after(node.metadata.creation_timestamp, since)
        ]
        bound, going = [], []
        for other in self._objects.pods:
            if other.uid == pod.uid:
                continue
            if _is_after(other.metadata.deletion_timestamp, since):
                going.append(other.key)
            elif any(
                c.type == _SCHEDULED
                and c.status == "True"
                and _is_after(c.last_transition_time, since)
                for c in other.status.conditions or ()
            ):
                bound.append(other.key)
        for names, noun, verb in (
            (added, "node", "added"),
            (going, "pod", "deleted"),
            (bound, "pod", "bound"),
        ):
            if names:
                were = "was" if len(names) == 1 else "were"
                found.append(f"{counted(len(names), noun)} {were} {verb} ({listed(names)})")
        return found


def _depending(what: str, kinds: Iterable[str]) -> str:
    return (
        f"{what}, not in the input: that is unknown, not absent; "
        f"`{adding_command(dict.fromkeys(kinds))}` adds it"
    )


def owner_notes(pod: Pod, schedulers: Collection[str]) -> Iterator[str]:
    """A sentence if another scheduler than these decides about the pod."""
    if pod.spec.scheduler_name not in schedulers:
        yield (
            f"it belongs to the scheduler {pod.spec.scheduler_name}, not to "
            f"{', '.join(schedulers)}: that one decides, by rules of its own"
        )


def condition_notes(pod: Pod, decision: Decision) -> Iterator[str]:
    """A sentence if the pod's own condition says something else than the decision."""
    condition = _contradicting(pod, decision)
    if condition is not None:
        yield _says_otherwise(condition)


def _contradicting(pod: Pod, decision: Decision) -> PodCondition | None:
    condition = next((c for c in pod.status.conditions or () if c.type == _SCHEDULED), None)
    if condition is None or condition.status != "False" or pod.spec.node_name:
        return None
    return condition if condition.message and _differs(condition, decision) else None


def _says_otherwise(condition: PodCondition) -> str:
    since = f" (since {condition.last_transition_time})" * bool(condition.last_transition_time)
    return f"its condition in the cluster{since} says otherwise: {condition.message}"


def _differs(condition: PodCondition, decision: Decision) -> bool:
    """Whether the condition and the decision disagree: on a place, or on the reasons."""
    if decision.error:
        return False
    if decision.node is not None:
        return True
    return _reasons(condition.message) != _reasons(decision.message)


def _reasons(message: str) -> list[str]:
    """The reasons in a message, in one order, without what was said of preemption."""
    return sorted(_AFTER_REASONS.sub("", message).rstrip(". ").split(", "))


def _is_after(text: str | None, since: float) -> bool:
    try:
        return seconds(text) > since
    except ValueError:
        return False
