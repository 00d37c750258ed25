"""What follows when workloads get other requests.

A lower request saves nothing until a node is empty. The requests are set workload by workload on a
copy of the cluster, those that free most first, and the controllers replace the pods. Nodes that
can be emptied before and after are found as `--consolidate` finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.engine.state.accounting import amount
from podium.errors import InputError
from podium.lab.contents.documents import Document
from podium.library.files import text_from
from podium.what_if.consolidate.consolidation import Consolidation, consolidate, copies
from podium.what_if.plan.changes import ObjectName, SetRequests
from podium.what_if.plan.cluster_copy import CopyOptions, open_copy
from podium.what_if.plan.plan import answer_of
from podium.what_if.plan.results import API_VERSION, Plan, PlanValue

if TYPE_CHECKING:
    from podium.library.profile_choice import ChosenProfiles
    from podium.what_if.consolidate.recommendations import Recommendation, Recommendations

#: Workloads whose pods are replaced when their template changes.
_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
#: Resources whose requests are compared.
_COMPARED: Final = ("cpu", "memory")
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


class ResizedWorkload(PlanValue):
    """A workload with other requests, in the order in which it is rolled out."""

    workload: str
    pods: int
    #: Resource -> the sum over its pods before and after; cpu in thousandths, memory in bytes.
    before: dict[str, int]
    after: dict[str, int]


class Stranded(PlanValue):
    """What stays free of one resource on the nodes that are needed, because another runs out."""

    resource: str
    free: int
    allocatable: int


class RightSizing(PlanValue):
    """What other requests lead to."""

    api_version: str = API_VERSION
    kind: str = "RightSizing"
    profile: str = ""
    resized: list[ResizedWorkload] = msgspec.field(default_factory=list)
    #: What follows while the pods are replaced.
    plan: Plan = msgspec.field(default_factory=Plan)
    before: Consolidation = msgspec.field(default_factory=Consolidation)
    after: Consolidation = msgspec.field(default_factory=Consolidation)
    stranded: list[Stranded] = msgspec.field(default_factory=list)
    #: Price of all nodes that are needed, per unit of the price list; None without one.
    price_before: float | None = None
    price_after: float | None = None
    notes: list[str] = msgspec.field(default_factory=list)

    @property
    def freed(self) -> int:
        """How many nodes come free by the new requests."""
        return self.before.needed - self.after.needed


@dataclass(frozen=True, slots=True)
class _Workload:
    kind: str
    namespace: str
    name: str
    item: Mapping[str, Any]

    @property
    def label(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


def right_size(
    items: Iterable[Document],
    recommendations: Recommendations,
    chosen: ChosenProfiles,
    options: CopyOptions | None = None,
    *,
    share: float = 1.0,
    prices: Mapping[str, float] | None = None,
) -> RightSizing:
    """Set the recommended requests on a copy of the cluster of *items*, and say what follows.

    With a *share* below 1, workloads are resized until that share of the concerned pods has new
    requests. *prices* are those of node types, by the label `node.kubernetes.io/instance-type`.
    """
    options = options or CopyOptions()
    items = list(items)
    found = RightSizing(profile=chosen.profile.name, notes=list(recommendations.notes))
    changes = list(_in_order(_changes(items, recommendations.found, found.notes)))
    if not changes:
        hint = "names are NAMESPACE, KIND and NAME of workloads in the input"
        raise InputError("no recommendation is for a workload of the cluster", hint=hint)
    wanted = _shared(changes, share)
    found.before = consolidate(copies(items), chosen, options)
    with open_copy(copies(items), chosen, options) as copy:
        for workload, change in wanted:
            copy.make(change)
            found.resized.append(workload)
        found.plan = answer_of(copy)
        after = copy.documents()
    found.after = consolidate(after, chosen, options)
    found.stranded = list(_stranded(found))
    if prices is not None:
        types = _instance_types(items)
        found.price_before = _price(found.before, types, prices)
        found.price_after = _price(found.after, types, prices)
    found.notes += [each for each in found.plan.notes if each not in found.notes]
    return found


# Changes --------------------------------------------------------------------------------------


def _changes(
    items: Sequence[Document], recommended: Sequence[Recommendation], notes: list[str]
) -> Iterator[tuple[ResizedWorkload, SetRequests]]:
    workloads = [_workload(each.item) for each in items if each.kind in _KINDS]
    owned = {each.label for each in workloads if _is_owned(each.item)}
    grouped: dict[str, tuple[_Workload, list[Recommendation]]] = {}
    for each in recommended:
        matching = [
            workload
            for workload in workloads
            if workload.namespace == each.namespace
            and workload.name == each.name
            and each.kind in {"", workload.kind}
            and workload.label not in owned
        ]
        if not matching:
            name = "/".join(part for part in (each.kind, each.namespace, each.name) if part)
            notes.append(f"{name} is not in the input; its recommendation is left out")
            continue
        grouped.setdefault(matching[0].label, (matching[0], []))[1].append(each)
    pods = _pod_counts(items)
    for label, (workload, listed) in grouped.items():
        requests = _requests(workload, listed, notes)
        if requests:
            yield (
                _resized(workload, requests, pods.get(label, 0)),
                SetRequests(
                    ObjectName(workload.kind, workload.name, workload.namespace),
                    tuple((name, tuple(sorted(each.items()))) for name, each in requests.items()),
                ),
            )


def _workload(item: Mapping[str, Any]) -> _Workload:
    about = item["metadata"]
    return _Workload(
        str(item["kind"]), str(about.get("namespace") or "default"), str(about["name"]), item
    )


def _is_owned(item: Mapping[str, Any]) -> bool:
    owners = item["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") for each in owners)


def _requests(
    workload: _Workload, listed: Sequence[Recommendation], notes: list[str]
) -> dict[str, dict[str, str]]:
    """Container -> its new requests, for those that differ."""
    containers = _containers(workload)
    found: dict[str, dict[str, str]] = {}
    for each in listed:
        names = [each.container] if each.container else list(containers)
        for name in names:
            if name not in containers:
                notes.append(f"{workload.label} has no container {name}; left out")
                continue
            old = containers[name]
            new = {
                resource: text
                for resource, text in each.requests.items()
                if amount(resource, old.get(resource, "0")) != amount(resource, text)
            }
            if new:
                found.setdefault(name, {}).update(new)
    return found


def _containers(workload: _Workload) -> dict[str, dict[str, str]]:
    spec = ((workload.item.get("spec") or {}).get("template") or {}).get("spec") or {}
    return {
        str(each.get("name")): {
            name: str(text)
            for name, text in ((each.get("resources") or {}).get("requests") or {}).items()
        }
        for each in spec.get("containers") or ()
    }


def _pod_counts(items: Sequence[Document]) -> dict[str, int]:
    """Workload -> how many pods it wants."""
    nodes = sum(each.kind == "Node" for each in items)
    found = {}
    for each in items:
        if each.kind in _KINDS:
            workload = _workload(each.item)
            replicas = (each.item.get("spec") or {}).get("replicas", 1)
            found[workload.label] = nodes if each.kind == "DaemonSet" else int(replicas)
    return found


def _resized(
    workload: _Workload, requests: Mapping[str, Mapping[str, str]], pods: int
) -> ResizedWorkload:
    containers = _containers(workload)
    sums: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for resource in _COMPARED:
        old = sum(amount(resource, each.get(resource, "0")) for each in containers.values())
        new = sum(
            amount(resource, requests.get(name, {}).get(resource, each.get(resource, "0")))
            for name, each in containers.items()
        )
        sums[0][resource], sums[1][resource] = old * pods, new * pods
    return ResizedWorkload(workload=workload.label, pods=pods, before=sums[0], after=sums[1])


def _in_order(
    changes: Iterable[tuple[ResizedWorkload, SetRequests]],
) -> list[tuple[ResizedWorkload, SetRequests]]:
    """Those that free most come first: they make room for those that need more."""

    def freed(pair: tuple[ResizedWorkload, SetRequests]) -> tuple[int, int]:
        resized = pair[0]
        cpu, memory = (resized.before[each] - resized.after[each] for each in _COMPARED)
        return -cpu, -memory

    return sorted(changes, key=freed)


def _shared(
    changes: list[tuple[ResizedWorkload, SetRequests]], share: float
) -> list[tuple[ResizedWorkload, SetRequests]]:
    wanted = share * sum(resized.pods for resized, _ in changes)
    taken = 0
    found: list[tuple[ResizedWorkload, SetRequests]] = []
    for pair in changes:
        if found and taken >= wanted:
            break
        taken += pair[0].pods
        found.append(pair)
    return found


# What is left and what it costs ---------------------------------------------------------------


def _stranded(found: RightSizing) -> Iterator[Stranded]:
    """What stays free on the nodes that stay in use."""
    gone = {*found.after.empty, *(each.node for each in found.after.emptied)}
    usages = [each for each in found.plan.after.nodes if each.name not in gone]
    moved = [each for each in found.plan.after.nodes if each.name in gone]
    for resource in _COMPARED:
        allocatable = sum(each.allocatable.get(resource, 0) for each in usages)
        requested = sum(each.requested.get(resource, 0) for each in (*usages, *moved))
        yield Stranded(
            resource=resource, free=max(allocatable - requested, 0), allocatable=allocatable
        )


def _instance_types(items: Sequence[Document]) -> dict[str, str]:
    return {
        str(each.item["metadata"]["name"]): str(
            (each.item["metadata"].get("labels") or {}).get(INSTANCE_TYPE, "")
        )
        for each in items
        if each.kind == "Node"
    }


def _price(
    found: Consolidation, types: Mapping[str, str], prices: Mapping[str, float]
) -> float | None:
    """The price of the nodes that are needed; an error names a type without a price."""
    gone = {*found.empty, *(each.node for each in found.emptied)}
    total = 0.0
    for node, kind in types.items():
        if node in gone:
            continue
        if kind not in prices:
            hint = f"add a line {kind or 'TYPE'},PRICE"
            raise InputError(f"there is no price for nodes of type {kind!r}", hint=hint)
        total += prices[kind]
    return round(total, 6)


def read_prices(path: str) -> dict[str, float]:
    """Node type -> price, from lines `TYPE,PRICE`; lines that begin with # are left out."""
    found = {}
    for number, line in enumerate(text_from(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, comma, text = line.partition(",")
        try:
            price = float(text)
        except ValueError:
            price = -1.0
        if not comma or price < 0:
            hint = "a line is TYPE,PRICE such as m5.large,0.096"
            raise InputError(f"line {number} is no price", where=path, hint=hint)
        found[name.strip()] = price
    return found
