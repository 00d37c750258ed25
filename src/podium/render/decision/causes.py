"""Causes in words, and grouped so that an explanation stays readable with thousands of nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.engine.framework import causes
from podium.render.plain import format_amount, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from podium.engine.framework.decision import Decision, ScoreColumn
    from podium.render.decision.analysis import RejectionGroup

#: How many pods or domains a sentence names.
_NAMED: Final = 3
#: An illegal value that looks like a regular expression.
_PATTERN: Final = re.compile(r'^invalid label value: "[^"]*[*^$\[\](){}|\\+?][^"]*"')
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,30}")


class GroupCause(msgspec.Struct, frozen=True):
    """A cause, and the nodes of a group of rejections that it applies to."""

    predicate: str
    cause: causes.AnyCause
    nodes: tuple[str, ...]


class CauseLine(msgspec.Struct, frozen=True):
    """One line about causes: the words, and the nodes that they are about."""

    text: str
    nodes: tuple[str, ...]


def causes_of_groups(
    decision: Decision, groups: Sequence[RejectionGroup]
) -> list[list[GroupCause]]:
    """The causes of each group of rejections, in the order of the groups."""
    group_of = {name: at for at, group in enumerate(groups) for name in group.nodes}
    found: list[list[GroupCause]] = [[] for _ in groups]
    for each in decision.causes:
        by_group: dict[int, list[str]] = {}
        for name in each.nodes:
            by_group.setdefault(group_of[name], []).append(name)
        for at, nodes in by_group.items():
            found[at].append(GroupCause(each.predicate, each.cause, tuple(nodes)))
    return found


def causes_of_node(decision: Decision, node: str) -> list[GroupCause]:
    """The causes for which one node was rejected."""
    return [
        GroupCause(each.predicate, each.cause, (node,))
        for each in decision.causes
        if node in each.nodes
    ]


def cause_lines(found: Iterable[GroupCause], most: int) -> list[CauseLine]:
    """At most *most* lines: amounts of one resource together, equal words together."""
    rooms: dict[tuple[str, bool], list[GroupCause]] = {}
    texts: dict[str, list[str]] = {}
    for each in found:
        if isinstance(each.cause, causes.Room):
            key = each.cause.resource, bool(each.cause.nominated)
            rooms.setdefault(key, []).append(each)
        else:
            texts.setdefault(cause_text(each.cause), []).extend(each.nodes)
    lines = [_room_line(group) for group in rooms.values()]
    others = [CauseLine(text, tuple(nodes)) for text, nodes in texts.items()]
    lines += sorted(others, key=lambda line: -len(line.nodes))
    return _at_most(lines, most, "causes")


def _at_most(lines: list[CauseLine], most: int, noun: str) -> list[CauseLine]:
    """The first lines; the last one stands for those that are left out."""
    if len(lines) <= most:
        return lines
    rest = tuple(dict.fromkeys(name for line in lines[most - 1 :] for name in line.nodes))
    more = f"{len(lines) - most + 1} more {noun}, all of them with -o json"
    return [*lines[: most - 1], CauseLine(more, rest)]


def _room_line(group: list[GroupCause]) -> CauseLine:
    """The amounts of one resource on many nodes: those of the node with the most room."""
    nodes = tuple(name for each in group for name in each.nodes)
    best = max(group, key=lambda each: _free(each.cause))
    text = cause_text(best.cause)
    if len(group) > 1:
        text = f"{text} on {best.nodes[0]}, which has the most"
    return CauseLine(text, nodes)


def _free(room: Any) -> int:
    free: int = room.allocatable - room.used - sum(each.amount for each in room.nominated)
    return free


def cause_text(cause: causes.Cause) -> str:
    """A cause in words, without the name of the node."""
    return _WORDS[type(cause)](cause)


def cause_data(each: GroupCause) -> dict[str, Any]:
    """A cause as plain data: its kind and fields, the words, and the nodes."""
    found: dict[str, Any] = {"predicate": each.predicate}
    found |= _plain(each.cause)
    found["text"], found["nodes"] = cause_text(each.cause), list(each.nodes)
    return found


def _plain(cause: causes.Cause) -> Any:
    """The fields as plain data; lists where the cause has tuples."""
    if isinstance(cause, causes.Room) and not cause.nominated:
        return msgspec.to_builtins(cause)  # no tuples in it, and the most frequent by far
    return msgspec.json.decode(msgspec.json.encode(cause))


def score_number_text(number: causes.ScoreNumber) -> str:
    """A number behind a score: `cpu 1500m of 4`."""
    value = format_amount(number.resource, number.value)
    of = "" if number.of is None else f" of {format_amount(number.resource, number.of)}"
    return f"{number.name} {value}{of}"


def numbers_of(decision: Decision, priority: str, node: str) -> str:
    """The numbers behind the score that a priority gave to a node; empty if there are none."""
    for each in decision.score_causes:
        if each.priority == priority:
            found = next((one.numbers for one in each.nodes if one.node == node), ())
            return ", ".join(map(score_number_text, found))
    return ""


class ScoreLine(msgspec.Struct, frozen=True):
    """How one rule is computed, and what it gave to some nodes: the node and the words."""

    priority: str
    weight: int
    formula: str
    nodes: tuple[tuple[str, str], ...]


def score_lines(decision: Decision, positions: Sequence[int]) -> list[ScoreLine]:
    """How each score came about on the feasible nodes at some positions."""
    found = []
    for column in decision.scores:
        formula = formula_of(decision, column.name)
        if formula:
            told = tuple(
                (decision.feasible[at], scored_text(decision, column, at)) for at in positions
            )
            found.append(ScoreLine(column.name, column.weight, formula, told))
    return found


def scored_text(decision: Decision, column: ScoreColumn, position: int) -> str:
    """The numbers behind a score, the raw score where it is another one, and the score."""
    numbers = numbers_of(decision, column.name, decision.feasible[position]) or "nothing counts"
    raw, final = int(column.raw[position]), int(column.score[position])
    scored = f"score {final}" if raw == final else f"raw {raw}, score {final}"
    return f"{numbers}; {scored}"


def formula_of(decision: Decision, priority: str) -> str:
    """How a priority is computed; empty if that was not asked for."""
    return next((each.formula for each in decision.score_causes if each.priority == priority), "")


def no_candidate_text(each: causes.NoCandidate) -> str:
    """Why evicting pods does not help on nodes."""
    if each.why == "noLowerPriority":
        return "no pod of lower priority is there"
    if each.why == "notTried":
        return "not tried again, there are too many; --node NAME tries one of them"
    reasons = ", ".join(each.reasons)
    if each.why == "notHelpful":
        return f"evicting pods does not change this: {reasons}"
    because = "; ".join(cause_text(one.cause) for one in each.causes)
    without = "not even without all pods of lower priority"
    return f"{without}: {because or reasons}"


def no_candidate_lines(found: Sequence[causes.NoCandidate], most: int) -> list[CauseLine]:
    """At most *most* lines about nodes without a candidate; if need be, by reasons alone."""
    if len(found) > most:
        by_reasons: dict[tuple[str, tuple[str, ...]], list[causes.NoCandidate]] = {}
        for each in found:
            by_reasons.setdefault((each.why, each.reasons), []).append(each)
        found = [_merged(group) for group in by_reasons.values()]
    lines = [CauseLine(no_candidate_text(each), each.nodes) for each in found]
    return _at_most(lines, most, "reasons")


def _merged(group: list[causes.NoCandidate]) -> causes.NoCandidate:
    """Nodes with the same reasons as one; its causes are dropped if they are not the same."""
    first = group[0]
    nodes = tuple(name for each in group for name in each.nodes)
    return causes.NoCandidate(
        first.why, first.reasons, nodes, first.causes if len(group) == 1 else ()
    )


def victim_text(victim: causes.NotReprieved) -> str:
    """Why a victim was not reprieved, and the budgets that its eviction violates."""
    what = f"{victim.workload}, " if victim.workload else ""
    return f"{victim.pod} ({what}priority {victim.priority}): {victim_cause_text(victim)}"


def victim_cause_text(victim: causes.NotReprieved) -> str:
    """The same without the name of the victim."""
    because = "; ".join(cause_text(one.cause) for one in victim.causes)
    stays = f"with it back, {because or ', '.join(victim.reasons)}"
    if not victim.budgets:
        return stays
    return f"{stays}; its eviction violates {', '.join(victim.budgets)}"


def rule_cause_data(each: causes.RuleCause) -> dict[str, Any]:
    """The cause of one rule as plain data, with its words."""
    found: dict[str, Any] = {"predicate": each.predicate}
    found |= _plain(each.cause)
    return found | {"text": cause_text(each.cause)}


def _some(names: Sequence[str], count: int | None = None) -> str:
    """The first names, and how many others there are."""
    total = len(names) if count is None else count
    shown = ", ".join(names[:_NAMED])
    more = total - min(len(names), _NAMED)
    return f"{shown} and {more} more" if more > 0 else shown


def _pod(pod: causes.PodOnNode, *, where: bool = False) -> str:
    if pod.nominated:
        return f"{pod.pod} (nominated)"
    return f"{pod.pod} on {pod.node}" if where else pod.pod


def _room(cause: causes.Room) -> str:
    resource = cause.resource
    free = format_amount(resource, _free(cause))
    wants = f"{resource}: wants {format_amount(resource, cause.wanted)}, {free} free"
    of = f"{wants} of {format_amount(resource, cause.allocatable)}"
    used = f"{format_amount(resource, cause.used)} used"
    if not cause.nominated:
        return f"{of} ({used})"
    return f"{of} ({used}, {', '.join(_promises(cause))})"


def _promises(cause: causes.Room) -> Iterator[str]:
    """What is promised to nominated pods."""

    def amount(number: int) -> str:
        return format_amount(cause.resource, number)

    for each in cause.nominated[:_NAMED]:
        yield f"{amount(each.amount)} promised to {each.pod}"
    others = cause.nominated[_NAMED:]
    if others:
        total = amount(sum(each.amount for each in others))
        yield f"{total} promised to {len(others)} more pods"


def _expression(cause: causes.Expression) -> str:
    values = f" [{', '.join(cause.values)}]" if cause.values else ""
    # nodeSelectorTerms[1] is enough of requiredDuring….nodeSelectorTerms[1].
    where = cause.where.rpartition(".")[2]
    there = _node_has(cause.value) if not cause.field else f"the node is {cause.value}"
    if cause.field and not cause.value:
        there = "the scheduler knows metadata.name only, every other field is empty"
    if cause.operator in {"Gt", "Lt"} and cause.value and not _is_integer(cause.value):
        there = f"{there}, which is no integer"
    return f"{where}: {cause.key} {cause.operator}{values}: {there}"


def _is_integer(text: str) -> bool:
    """Whether Go's strconv.ParseInt reads it as a number of 64 bits."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _no_terms(cause: causes.NoTerms) -> str:
    where = cause.where.rpartition(".")[2]
    what = "an empty term matches no node" if where.endswith("]") else "no term matches any node"
    if cause.invalid:
        why = f": {cause.why}" if cause.why else ""
        what = f"the term is not valid, and matches no node{why}"
        if _PATTERN.search(cause.why):
            what = f"{what}; values are compared as they are, they are no regular expressions"
    return f"{where}: {what}"


def _node_has(value: str | None) -> str:
    if value is None:
        return "the node does not have it"
    return f"the node has {value}" if value else "the node has an empty value"


def _taint(cause: causes.UntoleratedTaint) -> str:
    value = f"={cause.value}" if cause.value else ""
    return f"taint {cause.key}{value}:{cause.effect} is not tolerated"


def _label(cause: causes.LabelPresence) -> str:
    if cause.required:
        return f"label {cause.key} must be there: the node does not have it"
    return f"label {cause.key} must not be there: {_node_has(cause.value)}"


def _port(cause: causes.PortInUse) -> str:
    address = "" if cause.ip == "0.0.0.0" else f"{cause.ip}:"  # noqa: S104 - a literal of the API
    return f"port {address}{cause.port}/{cause.protocol} is held by {_pod(cause.holder)}"


def _zone(cause: causes.VolumeElsewhere) -> str:
    zones = ", ".join(cause.zones)
    where = f"claim {cause.claim}, volume {cause.volume}: {cause.key} is {zones}"
    return f"{where}; {_node_has(cause.value)}"


def _limit(cause: causes.VolumeLimit) -> str:
    return (
        f"{cause.limit_of}: {cause.attached} attached and {cause.new} new exceed the limit of "
        f"{cause.limit}"
    )


def _unreachable(cause: causes.VolumeUnreachable) -> str:
    failed = "; ".join(_expression(each) for each in cause.failed)
    which = f"claim {cause.claim}: volume {cause.volume} cannot be reached from the node"
    return f"{which} ({failed})" if failed else which


def _devices(cause: causes.DevicesLacking) -> str:
    """The request, and its devices by what turned them down."""
    which = f"claim {cause.claim}, request {cause.request}"
    amount = "all devices" if cause.wanted is None else str(cause.wanted)
    needs = f"{amount} and gets {cause.found}"
    if not cause.devices:
        return f"{which} needs {needs}: the node sees no device"
    by_why: dict[str, list[str]] = {}
    for each in cause.devices:
        by_why.setdefault(each.why, []).append(each.device)
    parts = []
    for why, names in by_why.items():
        parts.append(f"{listed(names)}: {why}")
    if cause.others:
        parts.append(f"{cause.others} others")
    return f"{which} needs {needs}; {'; '.join(parts)}"


def _claim_elsewhere(cause: causes.ClaimElsewhere) -> str:
    match cause.why:
        case "notReady":
            return f"claim {cause.claim}: its devices could not be prepared"
        case "stale":
            return f"claim {cause.claim} is left from an earlier attempt"
    return f"claim {cause.claim} is allocated for other nodes"


def _claim(cause: causes.ClaimUnserved) -> str:
    which = f"claim {cause.claim}"
    kind = f"class {cause.storage_class}"
    match cause.why:
        case "otherNode":
            return f"{which}: its volume is being provisioned for {cause.node}"
        case "capacity":
            return f"{which} wants {cause.requested}: {kind} has less free for the node"
        case "topology":
            no_volume = "no volume suits, and"
            return f"{which}: {no_volume} {kind} does not provision for the node's topology"
        case _:
            wants = f" wants {cause.requested}" if cause.requested else ""
            return f"{which}{wants}: no volume of {kind} suits, and nothing provisions one"


def _blocking(cause: causes.BlockingPods) -> str:
    pods = _some([_pod(pod, where=True) for pod in cause.pods], cause.count)
    domain = f"{cause.topology_key}={cause.value}"
    if cause.carried:
        return f"{pods} in {domain}: anti-affinity to {cause.term}"
    return f"{domain} has {pods}: the pod's anti-affinity to {cause.term}"


def _missing(cause: causes.MissingPods) -> str:
    if not cause.topology_key:
        return f"affinity to {cause.term}: the term has no topologyKey, which no node meets"
    if cause.value is None:
        return f"affinity to {cause.term}: the node has no label {cause.topology_key}"
    nowhere = "there are none anywhere"
    if cause.matching:
        domains = _some([f"{each.value} ({each.count})" for each in cause.domains])
        nowhere = f"they are in {domains}" if domains else "those there are have no such domain"
    domain = f"{cause.topology_key}={cause.value}"
    return f"affinity to {cause.term}: none in {domain}; {nowhere}"


def _skew(cause: causes.Skew) -> str:
    skew = cause.count + cause.self_match - cause.minimum
    if cause.domain_count < cause.min_domains:
        lowest = f"the minimum is 0 while there are fewer than {cause.min_domains} domains"
    else:
        fewest = [each.value for each in cause.domains if each.count == cause.minimum]
        where = f" ({_some(fewest)})" if fewest else ""
        lowest = f"the fewest are {cause.minimum}{where}"
    return (
        f"{cause.topology_key}={cause.value} has {cause.count} of {cause.selector or 'no pods'}, "
        f"{lowest}: the skew would be {skew}, at most {cause.max_skew}"
    )


def _service(cause: causes.ServiceLabel) -> str:
    by = f"{cause.pod} on {cause.node}" if cause.pod else "the pod's nodeSelector"
    return f"{cause.label} must be {cause.wanted}, set by {by}: {_node_has(cause.value)}"


_WORDS: Final[dict[type[causes.Cause], Callable[[Any], str]]] = {
    causes.Room: _room,
    causes.Expression: _expression,
    causes.NoTerms: _no_terms,
    causes.UntoleratedTaint: _taint,
    causes.Cordoned: lambda _: "the node is cordoned (spec.unschedulable)",
    causes.Condition: lambda cause: f"condition {cause.type} is {cause.status}",
    causes.OtherNode: lambda cause: f"the pod names node {cause.wanted}",
    causes.LabelPresence: _label,
    causes.MissingFeatures: lambda cause: f"the node lacks {', '.join(cause.features)}",
    causes.PortInUse: _port,
    causes.DiskInUse: lambda cause: f"{cause.disk} is used by {_pod(cause.holder)}",
    causes.ClaimInUse: lambda cause: (
        f"claim {cause.claim} is used by {_some([_pod(p, where=True) for p in cause.holders])}"
    ),
    causes.VolumeElsewhere: _zone,
    causes.VolumeLimit: _limit,
    causes.VolumeUnreachable: _unreachable,
    causes.VolumeLost: lambda cause: (
        f"claim {cause.claim}: its volume {cause.volume} does not exist"
    ),
    causes.ClaimUnserved: _claim,
    causes.BlockingPods: _blocking,
    causes.MissingPods: _missing,
    causes.Skew: _skew,
    causes.MissingTopologyLabel: lambda cause: f"the node has no label {cause.topology_key}",
    causes.ServiceLabel: _service,
    causes.DevicesLacking: _devices,
    causes.PoolInvalid: lambda cause: f"pool {cause.pool} contradicts itself: {cause.why}",
    causes.ClaimElsewhere: _claim_elsewhere,
    causes.ResourceUnknown: lambda cause: (
        f"neither the node nor a class of devices offers {cause.resource}"
    ),
    causes.RefusedEverywhere: lambda _: "it is the pod that is refused, on every node alike",
    causes.RuleAnswer: lambda cause: f"rule {cause.rule} answered so",
}
