"""The view of the cluster, written as nodes and pods are added, updated and removed.

Some facts depend on history in kube-scheduler, and are kept as it keeps them: a node remembers
how many nodes held an image when it was itself last updated; a pressure condition that is no
longer reported stays as it was last seen; a pod that leaves a node gives its place to the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.cluster.cache.node_tree import zone_key
from podium.engine.rules.nodes import seen_features
from podium.engine.state.node_columns import ImageNodes
from podium.engine.state.verdicts import Verdicts
from podium.engine.state.view import View
from podium.objects.names import is_attachable
from podium.objects.quantity import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.cluster.cache.past import ImageCounts, ImageSizes, Past, Ports, Pressures
    from podium.engine.state.pod_class import Port, Resident
    from podium.engine.state.pod_group_members import PlacedMember
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

AVOID_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
PRESSURES = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure"})


class Columns(View):
    """A view with the methods that change it. Every change ends with a note in the journal."""

    # Nodes --------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> bool:
        """Add a node, or take over what changed about it; returns whether anything did.

        Nodes report their status every few seconds, mostly without a change: that is no news.
        """
        row = self._row(node.metadata.name)
        nodes = self.nodes
        before = nodes.objects[row]
        if before is not None and _is_unchanged(before, node) and nodes.counts_images_of(row):
            nodes.objects[row], nodes.labels[row] = node, node.metadata.labels or {}
            return False
        if self.nodes.objects[row] is None:
            self.pods.unknown_nodes.discard(row)
            self.journal.start_epoch()
            self.journal.note_volumes(row)
        self._put_facts(row, node)
        moves = self.nodes.put(row, node)
        self.pods.follow_nodes()
        self.pods.move_labels(row, moves)
        self.journal.note_node(row)
        return True

    def count_images_anew(self) -> None:
        """Let every node know its images as they are counted now, as after an update of each."""
        for row in self.nodes.count_images_anew():
            self.journal.note_node(row)

    def drop_node(self, name: str) -> None:
        """Remove a node. Pods that are still on it keep its row, as that of an unknown node."""
        row = self.nodes.row_of.get(name)
        if row is None or self.nodes.objects[row] is None:
            return
        moves = self.nodes.drop(row)
        self.pods.move_labels(row, moves)
        if self.pods.residents[row]:
            self.pods.unknown_nodes.add(row)
        else:
            self.nodes.free_row(row)
        self.journal.start_epoch()
        self.journal.note_volumes(row)
        self.journal.note_node(row)

    def _row(self, name: str) -> int:
        """The row of a node of this name, taken if there is none."""
        row = self.nodes.row_of.get(name)
        if row is None:
            capacity = self.nodes.capacity
            row = self.nodes.new_row(name)
            self.pods.follow_nodes()
            if self.nodes.capacity != capacity:
                self.journal.start_epoch()
        return row

    def _put_facts(self, row: int, node: Node) -> None:
        facts = self.nodes.facts
        conditions = _condition_statuses(node)
        facts.taints.put(row, tuple(node.spec.taints or ()))
        facts.conditions.put(row, conditions)
        facts.unschedulable.put(row, node.spec.unschedulable)
        facts.zone.put(row, zone_key(node.labels))
        facts.avoid.put(row, (node.metadata.annotations or {}).get(AVOID_ANNOTATION, ""))
        facts.features.put(row, seen_features(node.status.declared_features or ()))
        allocatable = node.status.allocatable or {}
        limits = [(name, value(raw)) for name, raw in allocatable.items() if is_attachable(name)]
        facts.attach_limits.put(row, tuple(limits))
        reported = _reported_pressures(conditions)
        under = _true(reported)
        before = facts.pressures.on(row)
        facts.pressures.put(row, before.difference(reported) | under)

    # Pods ---------------------------------------------------------------------------------------

    def add_pod(self, pod: Pod, node_name: str | None = None) -> Resident:
        """Put a pod on its node; a node that does not exist gets a row, too."""
        row = self._row_for_pod(node_name or pod.spec.node_name)
        resident = self.pods.add(pod, row)
        self.note_pods(resident)
        return resident

    def add_pods(self, pods: Iterable[Pod]) -> list[Pod]:
        """Put many pods on their nodes; returns those that cannot be read or are known already."""
        row_of, objects, add = self.nodes.row_of, self.nodes.objects, self.pods.add_uncounted
        known = self.pods.by_uid
        added: list[Resident] = []
        refused: list[Pod] = []
        for pod in pods:
            if pod.uid in known:
                refused.append(pod)
                continue
            node_name = pod.spec.node_name
            try:
                row = row_of.get(node_name)
                if row is None or objects[row] is None:
                    row = self._row_for_pod(node_name)
                added.append(add(pod, row))
            except ValueError:
                refused.append(pod)
        self.pods.count_added(added)
        for resident in added:
            if resident.cls.volumes:
                self.journal.note_volumes(resident.row)
        self.journal.note_all_pods([resident.row for resident in added])
        return refused

    def _row_for_pod(self, node_name: str) -> int:
        known = self.nodes.row_of.get(node_name)
        if known is not None and self.nodes.objects[known] is not None:
            return known
        row = self._row(node_name)
        if not self.pods.residents[row]:
            self.pods.unknown_nodes.add(row)
            self.journal.start_epoch()
        return row

    def remove_pod(self, uid: str) -> None:
        """Take a pod off its node; the last pod of the node takes its place."""
        resident = self.pods.remove(uid)
        self.note_pods(resident)
        row = resident.row
        if row in self.pods.unknown_nodes and not self.pods.residents[row]:
            self.pods.unknown_nodes.discard(row)
            self.nodes.free_row(row)
            self.journal.start_epoch()

    def mark_terminating(self, uid: str) -> None:
        """Count a placed pod as one that is being deleted; it becomes the last of its node.

        kube-scheduler removes a changed pod from its node and adds it again.
        """
        resident = self.pods.by_uid[uid]
        if not resident.terminating:
            self.pods.mark_terminating(resident)
            self.note_pods(resident)

    def set_nominated(self, pods: Mapping[str, Iterable[Pod]]) -> None:
        """Replace the nominated pods: those of each node, in order of nomination."""
        self.pods.set_nominated(pods)

    def note_pods(self, resident: Resident) -> None:
        """Note in the journal that the pods of a row changed by this one."""
        if resident.cls.volumes:
            self.journal.note_volumes(resident.row)
        self.journal.note_pods(resident.row)

    # The past -----------------------------------------------------------------------------------

    def past(self) -> tuple[ImageSizes, ImageCounts, Pressures, Ports]:
        """Facts of rows that depend on earlier versions of nodes, and on pods that have left.

        Image sizes as first reported; numbers of nodes that had an image at the last update of a
        node, where that is not the present number; pressures that are no longer reported; and host
        ports in use, where these are not all that the pods name.
        """
        nodes, names = self.nodes, self.nodes.names
        sizes = {name: image.size for name, image in nodes.images.items()}
        counts: ImageCounts = {}
        for image, known in nodes.images.items():
            present = len(known.counts)
            for row, number in known.counts.items():
                if number != present:
                    counts.setdefault(names[row], {})[image] = number
        pressures: Pressures = {}
        for row in nodes.order.tolist():
            found = nodes.facts.pressures.on(row)
            reported = _reported_pressures(_condition_statuses(nodes.objects[row]))
            if found != _true(reported):
                pressures[names[row]] = sorted(found)
        ports = {
            names[row]: sorted(used)
            for row, used in enumerate(self.pods.ports)
            if used != {port for pod in self.pods.residents[row] for port in pod.cls.ports}
        }
        return sizes, counts, pressures, ports

    def restore_past(self, past: Past) -> None:
        """Replace what the present nodes and pods say by what earlier ones had said."""
        nodes, row_of = self.nodes, self.nodes.row_of
        for image, known in list(nodes.images.items()):
            present = dict.fromkeys(known.counts, len(known.counts))
            nodes.images[image] = ImageNodes(past.image_sizes[image], present)
        for name, counts in past.image_counts.items():
            for image, number in counts.items():
                nodes.images[image].counts[row_of[name]] = number
        for name, found in past.pressures.items():
            nodes.facts.pressures.put(row_of[name], frozenset(found))
        for name, used in past.ports.items():
            self.restore_ports(row_of[name], {(ip, kind, number) for ip, kind, number in used})
        self.journal.start_epoch()

    def restore_ports(self, row: int, used: set[Port]) -> None:
        """Let these host ports, which pods of the row name, be in use and no others."""
        for port in self.pods.ports[row] - used:
            rows = self.pods.port_rows[port]
            rows.discard(row)
            if not rows:
                del self.pods.port_rows[port]
        self.pods.ports[row] = used

    # Derived data -------------------------------------------------------------------------------

    def trim(self) -> None:
        """Keep only what the placed and nominated pods and the nodes need of derived data.

        The epoch changes, so that answers cached per row are computed again.
        """
        self.pods.trim()
        self.nodes.trim()
        self.verdicts = Verdicts()
        self.journal.start_epoch()


def _condition_statuses(node: Node | None) -> tuple[tuple[str, str], ...]:
    conditions = (node.status.conditions if node is not None else None) or ()
    return tuple([(each.type, each.status) for each in conditions])


def _reported_pressures(conditions: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each pressure in the conditions of a node, and its status; of several the last counts."""
    return {name: status for name, status in conditions if name in PRESSURES}


def _true(statuses: Mapping[str, str]) -> frozenset[str]:
    return frozenset([name for name, status in statuses.items() if status == "True"])


def _is_unchanged(before: Node, now: Node) -> bool:
    """Whether nothing differs between two versions of a node but the number of the version."""
    version = now.metadata.resource_version
    return (
        before.spec == now.spec
        and before.status == now.status
        and replace(before.metadata, resource_version=version) == now.metadata
    )


class EvictionTrial:
    """Removes placed pods and puts them back; `end` leaves every row as it was at first."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        #: The pods that are off their nodes, and what is known of them as members of groups.
        self._off: dict[str, tuple[Resident, PlacedMember | None]] = {}
        #: Row -> its pods in their order and its host ports, as they were at first.
        self._rows: dict[int, tuple[list[Resident], set[Port]]] = {}

    def remove(self, pod: Resident) -> None:
        """Take a pod off its node."""
        pods, row = self._columns.pods, pod.row
        if row not in self._rows:
            self._rows[row] = (list(pods.residents[row]), set(pods.ports[row]))
        self._off[pod.uid] = (pod, pods.take_off(pod))
        self._columns.note_pods(pod)

    def put_back(self, pod: Resident) -> None:
        """Put a pod that was removed on its node again."""
        self._columns.pods.put_on(*self._off.pop(pod.uid))
        self._columns.note_pods(pod)

    def end(self) -> None:
        """Put all pods back, in the order that they had."""
        for pod, _ in list(self._off.values()):
            self.put_back(pod)
        for row, (residents, ports) in self._rows.items():
            self._columns.pods.residents[row][:] = residents
            self._columns.restore_ports(row, ports)


#: With fewer pod classes, and fewer additions and removals of nodes, trimming is not worthwhile.
MIN_CLASSES = 2048
MIN_EPOCHS = 16384


class Trimmer:
    """Trims columns when their pod classes have doubled since the last time.

    Pod classes, label sets, tallies and vocabularies grow with every kind of pod and every label
    value that was ever seen. Trimming removes what no present pod or node needs. No decision
    depends on it.
    """

    def __init__(self, min_classes: int = MIN_CLASSES, min_epochs: int = MIN_EPOCHS) -> None:
        """Up to *min_classes* classes and *min_epochs* changes of nodes nothing is trimmed."""
        self._min_classes = self._max_classes = min_classes
        self._min_epochs = min_epochs
        self._epoch = 0

    def tidy(self, columns: Columns) -> bool:
        """Trim if it is worthwhile; returns whether it was."""
        epochs = columns.journal.epoch - self._epoch
        if len(columns.pods.classes) <= self._max_classes and epochs < self._min_epochs:
            return False
        columns.trim()
        self._max_classes = max(self._min_classes, 2 * len(columns.pods.classes))
        self._epoch = columns.journal.epoch
        return True
