"""How many more pods fit: copies are placed one after the other until one fits nowhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from dataclasses import replace as replaced
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from podium.engine.framework.profile import Profile
from podium.errors import InputError
from podium.library.absence import AbsentObjects
from podium.library.lookup import Owners, pods_named
from podium.library.notices import Notify, log_warning
from podium.library.pending_pods import pending, seen_by
from podium.library.reading import load, read
from podium.library.simulations import as_profiles, open_simulation
from podium.library.workloads import anew
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expansion import expand
from podium.objects.kinds.pod import ClaimVolume, Pod
from podium.objects.kinds.registry import PERSISTENT_VOLUME_CLAIM, STATEFUL_SET
from podium.objects.reading.validation import validate
from podium.what_if.capacity.filled_rows import can_fill, fill
from podium.what_if.capacity.node_shapes import NodeShape, add_node, drop_node, shapes_of
from podium.what_if.capacity.results import Capacity, Exhausted, ShapeGain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.cluster.simulation import Simulation
    from podium.engine.framework.decision import Decision
    from podium.engine.state.verdicts import Verdicts
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.storage import PersistentVolumeClaim
    from podium.objects.reading.collection import Objects

#: More pods than any cluster holds; a profile without a rule about resources has no other limit.
MOST_PODS: Final = 1_000_000
#: Objects of a cluster that complete a pod when it is created.
_ADMISSION: Final = ("PriorityClass", "StorageClass")
#: How many shapes of nodes are tried when none is named.
_SHAPES: Final = 3
#: How many nodes of a shape are added at most, so that all wanted pods fit.
_MOST_NODES: Final = 1000
#: Annotations of claims about their volume and the node that it was made for.
_BINDING: Final = ("pv.kubernetes.io/", "volume.kubernetes.io/selected-node")


@dataclass(frozen=True, slots=True)
class PodKind:
    """A pod of which copies are placed, and how many of them belong together."""

    name: str
    pod: Pod
    number: int = 1
    #: The claims of a StatefulSet pod, by volume; each copy gets claims of its own.
    claims: tuple[tuple[str, PersistentVolumeClaim], ...] = ()


def capacity(
    objects: Objects,
    pods: Pod | Sequence[Pod | PodKind],
    profiles: Profile | Sequence[Profile],
    *,
    shapes: Sequence[NodeShape] | None = None,
    most: int = MOST_PODS,
    want: int | None = None,
    pending_first: bool = False,
    notify: Notify = log_warning,
) -> Capacity:
    """How many more of these pods fit with all rules of the profiles, where, and what runs out.

    *pods* is one pod or several kinds of pods, placed in turn in their ratio. Pods that run stay,
    nothing is evicted for them, and pods that are pending in *objects* are placed before only with
    *pending_first*. *shapes* are nodes to be added, one at a time, to the full cluster; by default
    the most common of the cluster. The search ends after *most* pods. *want* asks for so many pods,
    or sets of pods in their ratio: whether they fit, and how many nodes of each shape the others
    need.
    """
    search = CapacitySearch(
        objects,
        pods,
        profiles,
        shapes=shapes,
        most=most,
        want=want,
        pending_first=pending_first,
        notify=notify,
    )
    for _ in search.steps():
        pass
    return search.result


def kinds_in(
    path: str, files: Sequence[str], *, namespace: str = "", workers: int = 1
) -> tuple[Objects, list[PodKind]]:
    """The cluster of the *files*, and the kinds of pods that *path* names.

    *path* is a file with pods and workloads, or what `kinds_named` takes. A workload is one kind;
    its replicas are its part of the ratio. Other objects in the file belong to the cluster. The
    files are read by so many *workers*.
    """
    if path != "-" and not Path(path).exists():
        objects = read(files, workers=workers)
        return objects, kinds_named(path, objects, namespace)
    objects = read([*files, path], workers=workers)
    where = "<stdin>" if path == "-" else path
    chosen = [objects.where("Pod", i) == where for i in range(len(objects.pods))]
    groups, owners = dict[str, list[Pod]](), Owners(objects)
    for pod, is_chosen in zip(objects.pods, chosen, strict=True):
        if is_chosen and not pod.finished:
            groups.setdefault(_workload(pod, owners), []).append(pod)
    if not groups:
        raise InputError("holds no pod", where=path, hint="name a file with a pod or a workload")
    cluster = objects.copied()
    pairs = zip(objects.pods, chosen, strict=True)
    cluster.pods = [pod for pod, is_chosen in pairs if not is_chosen]
    return cluster, _in_ratio(groups, objects)


def kinds_beside(path: str, cluster: Objects, namespace: str = "") -> tuple[Objects, list[PodKind]]:
    """The same for a cluster that was read already, for example a live one."""
    if path != "-" and not Path(path).exists():
        return cluster, kinds_named(path, cluster, namespace)
    return kinds_of(load([path]), cluster, path)


def kinds_of(written: Objects, cluster: Objects, where: str) -> tuple[Objects, list[PodKind]]:
    """The same for objects as they were written, in the file *where*."""
    validate(written)
    own = {kind: list(items) for kind, items in written.lists.items()}
    for kind in _ADMISSION:
        known = {item.key for item in written.of(kind)}
        written.of(kind).extend(item for item in cluster.of(kind) if item.key not in known)
    expanded = expand(with_defaults(written))
    groups, owners = dict[str, list[Pod]](), Owners(expanded)
    for pod in expanded.pods:
        groups.setdefault(_workload(pod, owners), []).append(pod)
    if not groups:
        raise InputError("holds no pod", where=where, hint="name a file with a pod or a workload")
    objects = cluster.copied()
    for kind in own:
        if kind not in {"Pod", "Node"}:
            names = {item.key for item in expanded.of(kind)}
            others = [item for item in objects.of(kind) if item.key not in names]
            objects.lists[kind] = [*others, *expanded.of(kind)]
    claims = {item.key for item in objects.of(PERSISTENT_VOLUME_CLAIM)}
    more = [c for c in expanded.of(PERSISTENT_VOLUME_CLAIM) if c.key not in claims]
    objects.of(PERSISTENT_VOLUME_CLAIM).extend(more)
    return objects, _in_ratio(groups, expanded)


def kinds_named(names: str, objects: Objects, namespace: str = "") -> list[PodKind]:
    """The kinds of pods that *names* stand for: pods, workloads, or a label selector.

    Several names are separated by commas; they are placed in turn. A selector may stand for several
    kinds.
    """
    parts = [names] if "=" in names or "!" in names else names.split(",")
    found, owners = dict[str, Pod](), Owners(objects)
    for part in parts:
        groups: dict[str, list[Pod]] = {}
        for pod in pods_named(objects, part.strip(), namespace):
            groups.setdefault(_workload(pod, owners), []).append(pod)
        found |= {name: pods[0] for name, pods in groups.items()}
    return [
        PodKind(name, pod, claims=tuple(_own_claims(pod, objects))) for name, pod in found.items()
    ]


def _in_ratio(groups: dict[str, list[Pod]], objects: Objects) -> list[PodKind]:
    """The kinds with their ratio in lowest terms."""
    common = gcd(*(len(pods) for pods in groups.values()))
    return [
        PodKind(name, pods[0], len(pods) // common, tuple(_own_claims(pods[0], objects)))
        for name, pods in groups.items()
    ]


def _own_claims(pod: Pod, objects: Objects) -> Iterator[tuple[str, PersistentVolumeClaim]]:
    """What the StatefulSet of a pod makes claims from for each pod alone, by volume.

    That are its templates, or the claims of this pod as they were before they were bound.
    """
    owner = pod.metadata.controller()
    if owner is None or owner.kind != "StatefulSet":
        return
    claims = {claim.key: claim for claim in objects.of(PERSISTENT_VOLUME_CLAIM)}
    templates = {
        template.name: template
        for each in objects.of(STATEFUL_SET)
        if (each.namespace, each.name) == (pod.namespace, owner.name)
        for template in each.spec.volume_claim_templates or ()
    }
    for volume in pod.spec.volumes or ():
        source = volume.persistent_volume_claim
        if source is not None and source.claim_name == f"{volume.name}-{pod.name}":
            claim = claims.get(f"{pod.namespace}/{source.claim_name}")
            template = templates.get(volume.name)
            if template is not None and claim is None:
                about = replace(template.metadata, namespace=pod.namespace)
                yield volume.name, replace(template, metadata=about)
            elif claim is not None:
                yield volume.name, _unbound(claim)


def _unbound(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The claim as it was created: without volume, node and status."""
    kept = {
        key: text
        for key, text in (claim.metadata.annotations or {}).items()
        if not key.startswith(_BINDING)
    }
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=kept or None),
        spec=replace(claim.spec, volume_name=""),
        status=type(claim.status)(),
    )


def _workload(pod: Pod, owners: Owners) -> str:
    """The workload of a pod as `kind/name`, that of a Deployment by its name; else the pod."""
    kind, _, name = owners.workload(pod)
    return pod.key if kind == "Pod" else f"{kind.lower()}/{name}"


class CapacitySearch:
    """A search that can be interrupted: `result` holds what is known so far.

    The parameters are those of `capacity`. Without *fast* pods are placed one after the other even
    where all nodes could be filled at once.
    """

    def __init__(
        self,
        objects: Objects,
        pods: Pod | Sequence[Pod | PodKind],
        profiles: Profile | Sequence[Profile],
        *,
        shapes: Sequence[NodeShape] | None = None,
        most: int = MOST_PODS,
        want: int | None = None,
        pending_first: bool = False,
        fast: bool = True,
        notify: Notify = log_warning,
    ) -> None:
        self._profiles = [replaced(each, post_filters=()) for each in as_profiles(profiles)]
        given = [pods] if isinstance(pods, Pod) else pods
        self._kinds = [_kind(each) for each in given]
        if not self._kinds:
            raise InputError("there is no pod to place", hint="give at least one")
        self._cycle = [kind for kind in self._kinds for _ in range(kind.number)]
        self._objects = objects
        self._shapes = shapes_of(objects)[:_SHAPES] if shapes is None else list(shapes)
        self._wanted = None if want is None else want * len(self._cycle)
        self._most = most if self._wanted is None else min(most, self._wanted)
        self._notify = notify
        self._pending_first, self._fast = pending_first, fast
        self._taken = {pod.key for pod in objects.pods}
        self._number = 0
        self._on = Counter[str]()
        self.result = Capacity(self._profiles[0].name, len(objects.nodes), at_least=True)
        self.result.want = want
        self.result.ratio = {kind.name: kind.number for kind in self._kinds}
        self.result.placed = dict.fromkeys(self.result.ratio, 0)

    def estimate(self) -> int:
        """About how many pods may fit, for a progress bar: what the pod limits of nodes allow."""
        running = sum(bool(pod.spec.node_name) for pod in self._objects.pods)
        limits = (_pod_limit((n.status.allocatable or {}).get("pods")) for n in self._objects.nodes)
        return max(1, min(sum(limits) - running, self._most))

    def steps(self) -> Iterator[int]:
        """Place one pod after the other; the number of pods placed so far after each."""
        schedulers = {each.scheduler_name for each in self._profiles}
        schedulers |= {kind.pod.spec.scheduler_name for kind in self._kinds}
        with open_simulation(self._profiles, notify=self._notify) as simulation:
            self._load(simulation, schedulers)
            if self._fill(simulation):
                yield self.result.pods
                return
            failed = None
            for kind, pod, decision in self._placed(simulation, self._most):
                if decision.node is None:
                    failed = self._stop(simulation, kind, pod)
                    break
                self._on[decision.node] += 1
                self.result.per_node = self._on
                self.result.placed[kind.name] += 1
                yield self.result.pods
            if failed is None:
                self.result.at_least = self._wanted is None or self.result.pods < self._wanted
                return
            if failed.verdicts is not None:
                self._note_exhausted(failed.codes, failed.examined, failed.verdicts)
            for shape in () if self.result.unknown else self._shapes:
                self.result.gains.append(self._gain(simulation, shape))
                yield self.result.pods
            self.result.at_least = False

    @property
    def _missing(self) -> int:
        """How many of the wanted pods do not fit."""
        return 0 if self._wanted is None else self._wanted - self.result.pods

    def _load(self, simulation: Simulation, schedulers: set[str]) -> None:
        """Load the pods that run, and place those that are pending if that is asked for."""
        seen = seen_by(self._objects, schedulers)
        seen.pods = [pod for pod in seen.pods if pod.spec.node_name]
        simulation.load(seen)
        if self._pending_first:
            by_priority = self._profiles[0].by_priority
            for _ in simulation.run(pending(self._objects, schedulers, by_priority=by_priority)):
                pass

    def _placed(
        self, simulation: Simulation, most: int, start: int = 0
    ) -> Iterator[tuple[PodKind, Pod, Decision]]:
        """Place pods in the ratio from *start* in the cycle, up to and including one that fails."""
        for number in range(start, start + most):
            kind = self._cycle[number % len(self._cycle)]
            pod = self._copy(kind, simulation)
            decision = simulation.attempt(pod)
            if decision.node is not None:
                simulation.place(pod, decision)
            yield kind, pod, decision
            if decision.node is None:
                return

    def _copy(self, kind: PodKind, simulation: Simulation) -> Pod:
        """The next copy of a kind under a name of its own, with claims of its own."""
        pod = kind.pod
        while True:
            self._number += 1
            name = f"{pod.name}-{self._number}"
            if f"{pod.namespace}/{name}" not in self._taken:
                break
        metadata = replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}")
        if not kind.claims:
            return replace(pod, metadata=metadata)
        names = {volume: f"{volume}-{name}" for volume, _ in kind.claims}
        shelf = simulation.cache.columns.catalog.claims
        for volume, claim in kind.claims:
            renamed = replace(claim.metadata, name=names[volume], uid="")
            shelf.put(replace(claim, metadata=renamed))
        volumes = [
            replace(v, persistent_volume_claim=ClaimVolume(names[v.name])) if v.name in names else v
            for v in pod.spec.volumes or ()
        ]
        return replace(pod, metadata=metadata, spec=replace(pod.spec, volumes=volumes))

    def _stop(self, simulation: Simulation, kind: PodKind, pod: Pod) -> Decision:
        """Decide about the pod that fits nowhere once more, keeping the verdict of every node."""
        decision = simulation.attempt(pod, recording=True)
        self.result.stopped_by, self.result.message = kind.name, decision.message
        lacking = "" if self.result.pods else AbsentObjects(self._objects).of(kind.pod)
        self.result.unknown = lacking and f"{kind.name} depends on {lacking}"
        return decision

    def _fill(self, simulation: Simulation) -> bool:
        """Fill all nodes at once if each can be looked at by itself; whether that was so."""
        pod = self._kinds[0].pod
        if not self._fast or len(self._kinds) > 1 or not can_fill(simulation, pod):
            return False
        filled = fill(simulation, pod)
        if filled is None or filled.copies.sum() > self._most:
            return False  # only some of them are wanted
        if filled.copies.any() and simulation.attempt(pod).node is None:
            return False  # nodes are left, and comparing them fails
        kind, columns = self._kinds[0].name, simulation.cache.columns
        counts = zip(filled.nodes, filled.copies.tolist(), strict=True)
        self._on.update({name: number for name, number in counts if number})
        self.result.per_node = self._on
        self.result.placed[kind] = int(filled.copies.sum())
        self.result.stopped_by, self.result.message = kind, filled.message
        self._note_exhausted(filled.codes, filled.nodes, columns.verdicts)
        for shape in self._shapes:
            node, daemons = add_node(simulation, shape)
            row = np.array([columns.nodes.row_of[node.name]])
            more = fill(simulation, pod, row)
            drop_node(simulation, node, daemons)
            number = int(more.copies[0]) if more is not None else self._most
            nodes = -(-self._missing // number) if number else 0
            gain = ShapeGain(shape.name, number, shape.count, len(daemons), nodes)
            self.result.gains.append(gain)
        self.result.at_least = False
        return True

    def _note_exhausted(
        self, codes: np.ndarray, examined: Sequence[str], verdicts: Verdicts
    ) -> None:
        """Group the nodes by the verdict that the pod got which fits nowhere."""
        names = np.array(examined, dtype=object)
        groups = []
        for code in np.bincount(codes[codes > 0]).nonzero()[0].tolist():
            verdict = verdicts[code]
            nodes = tuple(dict.fromkeys(names[codes == code].tolist()))
            pods = sum(self._on[name] for name in nodes)
            groups.append(Exhausted(verdict.predicate, verdict.reasons, nodes, pods))
        groups.sort(key=lambda group: (-len(group.nodes), group.reasons))
        self.result.exhausted = groups

    def _gain(self, simulation: Simulation, shape: NodeShape) -> ShapeGain:
        """How many more pods fit once a node of this shape is added; it is removed again.

        Where more pods are wanted, further nodes are added until all fit or another one is no help.
        """
        added: list[tuple[Node, list[Pod]]] = []
        placed: list[Pod] = []
        gain = 0
        while not added or (len(placed) < self._missing and len(added) < _MOST_NODES):
            before = len(placed)
            added.append(add_node(simulation, shape))
            # The gain of one node is asked for as it is, whatever the number of wanted pods.
            most = MOST_PODS if not before else self._missing - before
            start = (self.result.pods + before) % len(self._cycle)
            placed += [
                pod
                for _, pod, decision in self._placed(simulation, most, start)
                if decision.node is not None
            ]
            gain = gain or len(placed)
            if len(placed) == before:
                break
        is_enough = self._missing and len(placed) >= self._missing
        for pod in placed:
            simulation.remove(pod.uid)
        for node, daemons in reversed(added):
            drop_node(simulation, node, daemons)
        nodes = len(added) if is_enough else 0
        return ShapeGain(shape.name, gain, shape.count, len(added[0][1]), nodes)


def _kind(given: Pod | PodKind) -> PodKind:
    kind = given if isinstance(given, PodKind) else PodKind(given.key, given)
    metadata = replace(kind.pod.metadata, deletion_timestamp=None)
    return replaced(kind, pod=replace(anew(kind.pod), metadata=metadata))


def _pod_limit(written: object) -> int:
    text = str(written)
    return int(text) if text.isdigit() else 110
