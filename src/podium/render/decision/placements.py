"""Placements of many pods as tables: a row per pod, and a row per evicted pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.render.columns import BOLD, YELLOW, aligned, table
from podium.render.decision import pod_group
from podium.render.decision.plain_reason import plain_reason
from podium.render.decision.sentences import criterion_text, failure_reason
from podium.render.plain import counted, listed, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from podium.cluster.simulation import Step
    from podium.engine.framework.decision import Decision, Preemption
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.render.columns import Line

NO_NODE: Final = "<none>"
#: How many pods with one plain reason are named.
_MOST_NAMED: Final = 3


@dataclass(slots=True)
class Placement:
    """A pod, its last decision, and the preemption that made room for it."""

    pod: Pod
    decision: Decision
    attempts: int = 1
    preemption: Preemption | None = None
    #: The node of each pod that was evicted for it.
    evicted_from: tuple[str, ...] = ()
    #: The cycles of its pod group in which it was tried.
    groups: list[GroupDecision] = field(default_factory=list)

    @property
    def node(self) -> str | None:
        """The node of the last decision."""
        return self.decision.node

    def evicted(self) -> tuple[str, ...]:
        """The pods that were evicted for it."""
        found = self.preemption
        return found.candidates[found.node].pods if found and found.node is not None else ()


def placements(steps: Iterable[Step]) -> list[Placement]:
    """The placement of each pod, in the order of the first attempts."""
    found: dict[str, Placement] = {}
    for step in steps:
        known = found.get(step.pod.uid)
        if known is None:
            known = found[step.pod.uid] = Placement(step.pod, step.decision)
        known.decision, known.attempts = step.decision, step.attempt
        if step.group is not None:
            known.groups.append(step.group)
        preemption = step.decision.preemption
        if preemption is not None and preemption.node is not None and known.preemption is None:
            known.preemption, known.evicted_from = preemption, step.evicted_from
    return list(found.values())


def rows(found: Sequence[Placement], *, wide: bool = False) -> Iterator[tuple[str, ...]]:
    """The table of placements: its header, then a row per pod."""
    if not wide:
        yield ("POD", "NODE", "REASON")
        for each in found:
            yield (each.pod.key, each.node or NO_NODE, _reason(each))
        return
    yield ("POD", "NODE", "PRIORITY", "FIT", "TIED", "ATTEMPTS", "REASON")
    for each in found:
        decision = each.decision
        fit = f"{decision.feasible_count}/{decision.nodes}"
        numbers = (str(each.pod.priority), fit, str(decision.tied or "-"), str(each.attempts))
        yield (each.pod.key, each.node or NO_NODE, *numbers, _reason(each))


def _reason(each: Placement) -> str:
    if each.preemption is None:
        return failure_reason(each.decision)
    nodes = ", ".join(dict.fromkeys(each.evicted_from)) or each.preemption.node
    evicted = f"preempted {counted(len(each.evicted()), 'pod')} on {nodes}"
    rest = failure_reason(each.decision)
    return f"{evicted}; {rest}" if rest else evicted


def evictions(found: Sequence[Placement]) -> list[tuple[str, ...]]:
    """The table of evicted pods: its header, then a row per pod."""
    lines: list[tuple[str, ...]] = [("EVICTED", "FROM", "FOR", "BECAUSE")]
    for each in found:
        if each.preemption is not None and each.preemption.node is not None:
            why = criterion_text(each.preemption)
            pairs = zip(each.evicted(), each.evicted_from, strict=True)
            lines += [(victim, node, each.pod.key, why) for victim, node in pairs]
    for cycle in group_cycles(found):
        preemption = cycle.preemption
        if preemption is not None:
            group = f"pod group {cycle.group}"
            pairs = zip(preemption.pods, preemption.nodes, strict=True)
            lines += [(victim, node, group, "lower priority") for victim, node in pairs]
    return lines


def group_cycles(found: Sequence[Placement]) -> list[GroupDecision]:
    """All cycles of pod groups, in the order in which they ran."""
    cycles = {id(cycle): cycle for each in found for cycle in each.groups}
    return list(cycles.values())


def _group_lines(found: Sequence[Placement]) -> Iterator[Line]:
    """The last cycle of each group, as one thing."""
    last = {cycle.group: cycle for cycle in group_cycles(found)}
    for cycle in last.values():
        yield "", {}
        yield printable(pod_group.headline(cycle)), BOLD
        for line in pod_group.sentences(cycle):
            yield f"  {printable(line)}", {}


def report(
    found: Sequence[Placement],
    profile: Profile,
    nodes: int,
    pods: int,
    *,
    notes: Sequence[tuple[str, Sequence[str]]] = (),
    others: Sequence[str] = (),
    wide: bool = False,
) -> Iterator[Line]:
    """The lines of the report with their styles on a terminal.

    *notes* are sentences beside the answers, by pod; *others* are about pods that are not tried.
    """
    cluster = f"{counted(nodes, 'node')}, {counted(pods, 'pod')}"
    yield f"{profile.name}: {cluster}, {len(found)} pending", BOLD
    if not found:
        yield f"no pod is pending for {profile.scheduler_name}", {}
        yield from ((line, {}) for line in others)
        return
    header, *lines = aligned(rows(found, wide=wide))
    yield "", {}
    yield header, BOLD
    for each, line in zip(found, lines, strict=True):
        yield line, YELLOW if each.node is None else {}
    columns, *evicted = evictions(found)
    yield from table(columns, evicted)
    yield from _group_lines(found)
    yield "", {}
    for line in plain_lines(found):
        yield line, YELLOW
    for key, told in notes:
        yield from ((f"{key}: {printable(note)}", {}) for note in told)
    yield summary(found), {}
    yield from ((line, {}) for line in others)


def plain_lines(found: Sequence[Placement]) -> Iterator[str]:
    """A plain sentence for every pod without a node, equal ones together."""
    pods: dict[str, list[str]] = {}
    for each in found:
        if each.node is None and (text := plain_reason(each.decision)):
            pods.setdefault(text, []).append(each.pod.key)
    for text, keys in pods.items():
        yield printable(f"{listed(keys, _MOST_NAMED)}: {text}")


def problem_sentences(found: Sequence[Placement]) -> Iterator[str]:
    """A sentence for every evicted pod, and for every pod that was not placed."""
    for victim, node, pod, why in evictions(found)[1:]:
        yield f"{victim} is evicted from {node} for {pod}: {why}"
    for each in found:
        if each.node is None:
            yield f"{each.pod.key} is not placed: {failure_reason(each.decision)}"


def summary(found: Sequence[Placement]) -> str:
    """The numbers of placed and evicted pods in one sentence."""
    placed = sum(each.node is not None for each in found)
    evicted = sum(len(each.evicted()) for each in found)
    evicted += sum(len(c.preemption.pods) for c in group_cycles(found) if c.preemption is not None)
    parts = [f"{placed} of {counted(len(found), 'pod')} placed"]
    if placed < len(found):
        parts.append(f"{len(found) - placed} not")
    if evicted:
        parts.append(f"{counted(evicted, 'pod')} evicted")
    return ", ".join(parts)


def manifests(found: Sequence[Placement], objects: Objects) -> Iterator[dict[str, Any]]:
    """The manifests of the pods as they were read, with the node of each."""
    for each in found:
        manifest = objects.manifest(each.pod)
        if each.node is not None:
            manifest["spec"] = (manifest.get("spec") or {}) | {"nodeName": each.node}
        yield manifest
