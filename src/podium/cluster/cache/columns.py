"""The columns, as nodes and pods come, change and go.

Some facts depend on history in kube-scheduler, and are kept as it keeps them: a node remembers
how many nodes held an image when it was itself last updated; a pressure condition that is no
longer reported stays as it was last seen; a pod that leaves a node gives its place to the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.cluster.cache.node_tree import zone_key
from podium.engine.rules.nodes.v1_36 import seen_features
from podium.engine.state.accounting import NATIVE, Amounts
from podium.engine.state.int64 import wrap
from podium.engine.state.view import ImageState, View
from podium.objects.quantity import value
from podium.objects.resource_names import is_attachable

if TYPE_CHECKING:
    from podium.engine.state.accounting import Accounting
    from podium.engine.state.pod_class import Resident
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

AVOID_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
PRESSURES = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure"})
#: Beyond this many entries the older half of the journal is dropped; older readers start over.
JOURNAL_LIMIT = 1 << 16


class Columns(View):
    """A view that can be changed. Rows are reused once neither node nor pods are left on them."""

    def __init__(self, accounting: Accounting, capacity: int = 64) -> None:
        super().__init__(accounting, capacity)
        self._free: list[int] = []
        self._by_uid: dict[str, Resident] = {}
        #: The order with room for nodes to come, so that many of them are added in linear time.
        self._order_room = self.order

    # Nodes --------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> int:
        """Add a node, or take over what changed about it."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self._new_row(node.name)
        before = self.nodes[row]
        if before is None:
            self._append_to_order(row)
            self.known[row] = True
            self.ghosts.discard(row)
            self.epoch += 1
            self._note_volumes(row)
        self.nodes[row] = node
        self.node_labels[row] = node.labels
        self._put_labels(row, before, node)
        self._put_allocatable(row, node)
        self._put_facts(row, before, node)
        self._drop_images(row, before)
        self._put_images(row, node)
        self._note(~row)
        return row

    def _append_to_order(self, row: int) -> None:
        """Append without changing arrays that were handed out: only spare room is written."""
        count = len(self.order)
        if count == len(self._order_room):
            spare = np.zeros(max(count, 64), np.int64)
            self._order_room = np.concatenate([self.order, spare])
        self._order_room[count] = row
        self.order = self._order_room[: count + 1]

    def drop_node(self, name: str) -> None:
        """Remove a node. Pods that are still on it keep its row, as that of an unknown node."""
        row = self.row_of.get(name)
        before = self.nodes[row] if row is not None else None
        if row is None or before is None:
            return
        self._put_labels(row, before, None)
        self._drop_images(row, before)
        for column in (*self.allocatable, self.allowed_pods):
            column[row] = 0
        for fact in self.facts.columns():
            fact.ids[row] = 0
        self.nodes[row] = None
        self.node_labels[row] = {}
        self._note_volumes(row)
        self.known[row] = False
        self.order = self._order_room = self.order[self.order != row]
        self.epoch += 1
        self._note(~row)
        if self.residents[row]:
            self.ghosts.add(row)
        else:
            self._free_row(row)

    def _new_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row == self.capacity:
                self._grow()
            self.names.append(name)
            self.nodes.append(None)
            self.node_labels.append({})
            self.residents.append([])
            self.ports.append(set())
        self.row_of[name] = row
        return row

    def _free_row(self, row: int) -> None:
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self._free.append(row)

    def _grow(self) -> None:
        extra = self.capacity
        self.capacity += extra

        def longer(column: np.ndarray) -> np.ndarray:
            return np.concatenate([column, np.zeros(extra, column.dtype)])

        self.known = longer(self.known)
        self.pod_count, self.allowed_pods = longer(self.pod_count), longer(self.allowed_pods)
        for columns in (self.allocatable, self.requested, self.assumed):
            columns[:] = map(longer, columns)
        for fact in self.facts.columns():
            fact.ids = longer(fact.ids)
        for label in self.label_columns.values():
            label.ids = longer(label.ids)
        for tally in (
            *self.tallies.values(),
            *(c.tally for c in self.carried),
        ):
            tally.grow(self.capacity)
        self.epoch += 1

    def _put_labels(self, row: int, before: Node | None, node: Node | None) -> None:
        old, new = before.labels if before else {}, node.labels if node else {}
        if old == new:
            return
        tallies = [*self.tallies.values(), *(c.tally for c in self.carried)]
        for key, column in self.label_columns.items():
            was, now = column.ids.item(row), column.intern(new.get(key))
            if was != now:
                for tally in tallies:
                    tally.move(row, key, was, now)
                column.put(row, new.get(key))

    def _put_allocatable(self, row: int, node: Node) -> None:
        amounts = Amounts()
        amounts.add(node.status.allocatable)
        wanted = {**dict(zip(NATIVE, amounts.native, strict=True)), **amounts.scalars}
        for name, number in wanted.items():
            self.allocatable[self.resource(name)][row] = number
        for name, column in self.resources.items():
            if name not in wanted:
                self.allocatable[column][row] = 0
        self.allowed_pods[row] = value((node.status.allocatable or {}).get("pods", 0))

    def _put_facts(self, row: int, before: Node | None, node: Node) -> None:
        facts = self.facts
        conditions = node.status.conditions or ()
        facts.taints.put(row, tuple(node.spec.taints or ()))
        facts.conditions.put(row, tuple((c.type, c.status) for c in conditions))
        facts.unschedulable.put(row, node.spec.unschedulable)
        facts.zone.put(row, zone_key(node.labels))
        facts.avoid.put(row, (node.metadata.annotations or {}).get(AVOID_ANNOTATION, ""))
        facts.features.put(row, seen_features(node.status.declared_features or ()))
        allocatable = node.status.allocatable or {}
        limits = tuple(
            (name, value(raw)) for name, raw in allocatable.items() if is_attachable(name)
        )
        facts.attach_limits.put(row, limits)
        sticky = facts.pressures.values[facts.pressures.ids.item(row)] if before else frozenset()
        reported = {c.type: c.status for c in conditions if c.type in PRESSURES}
        under = {name for name, status in reported.items() if status == "True"}
        facts.pressures.put(row, frozenset(sticky - reported.keys() | under))

    def _put_images(self, row: int, node: Node) -> None:
        for image in node.status.images or ():
            for name in image.names or ():
                size, rows = self.image_registry.setdefault(name, (image.size_bytes, set()))
                rows.add(row)
                self.images.setdefault(name, {})[row] = ImageState(size, len(rows))

    def _drop_images(self, row: int, node: Node | None) -> None:
        for image in (node.status.images if node else None) or ():
            for name in image.names or ():
                states = self.images.get(name)
                if states is not None and states.pop(row, None) is not None:
                    self.image_registry[name][1].discard(row)
                    if not states:
                        del self.images[name], self.image_registry[name]

    # Pods ---------------------------------------------------------------------------------------

    def add_pod(self, pod: Pod, node_name: str | None = None) -> Resident:
        """Put a pod on its node; an unknown node gets a row, too."""
        name = node_name or pod.spec.node_name
        row = self.row_of.get(name)
        if row is None:
            row = self._new_row(name)
        if self.nodes[row] is None and not self.residents[row]:
            self.ghosts.add(row)
            self.epoch += 1
        resident = self.resident(pod, row)
        self.residents[row].append(resident)
        self._by_uid[resident.uid] = resident
        for port in resident.cls.ports:
            self.ports[row].add(port)
            self.port_rows.setdefault(port, set()).add(row)
            self.port_users[port[1], port[2]][port] += 1
        self._count(resident, 1)
        return resident

    def remove_pod(self, uid: str) -> None:
        """Take a pod off its node; the last pod of the node takes its place."""
        resident = self._by_uid.pop(uid)
        row = resident.row
        pods = self.residents[row]
        position = next(i for i, other in enumerate(pods) if other is resident)
        pods[position] = pods[-1]
        pods.pop()
        for port in resident.cls.ports:
            users = self.port_users[port[1], port[2]]
            users[port] -= 1
            if not users[port]:
                del users[port]
            if not users:
                del self.port_users[port[1], port[2]]
            # A set, as in kube-scheduler: a port that two pods share is free when one leaves.
            self.ports[row].discard(port)
            rows = self.port_rows.get(port)
            if rows is not None:
                rows.discard(row)
                if not rows:
                    del self.port_rows[port]
        self._count(resident, -1)
        if row in self.ghosts and not pods:
            self.ghosts.discard(row)
            self.epoch += 1
            self._free_row(row)

    def mark_terminating(self, uid: str) -> None:
        """A placed pod is being deleted: it counts as leaving, and goes last on its node.

        kube-scheduler removes a changed pod from its node and adds it again.
        """
        resident = self._by_uid[uid]
        if resident.terminating:
            return
        pods = self.residents[resident.row]
        position = next(i for i, other in enumerate(pods) if other is resident)
        pods[position] = pods[-1]
        pods[-1] = resident
        self._count(resident, -1)
        self.mark(resident)
        self._count(resident, 1)

    def pod(self, uid: str) -> Resident | None:
        """The record of a placed pod."""
        return self._by_uid.get(uid)

    def _count(self, resident: Resident, sign: int) -> None:
        row, cls = resident.row, resident.cls
        for resource, number in cls.taken:
            column = self.requested[resource]
            column[row] = wrap(column.item(row) + sign * number)
        for resource, number in enumerate(cls.assumed):
            column = self.assumed[resource]
            column[row] = wrap(column.item(row) + sign * number)
        self.pod_count[row] += sign
        self.pod_total += sign
        if cls.volumes:
            self._note_volumes(row)
            self.disk_users.add(cls, row, sign)
            left = self.volume_rows.get(row, 0) + sign
            self.volume_rows[row] = left
            if not left:
                del self.volume_rows[row]
            for claim in cls.claims:
                users = self.claim_users.setdefault((cls.namespace, claim), {})
                users[row] = users.get(row, 0) + sign
                if not users[row]:
                    del users[row]
                if not users:
                    del self.claim_users[cls.namespace, claim]
        for carried in cls.carried:
            carried.tally.add(row, sign)
        resident.labels.add(row, sign)
        self._note(row)

    def _note_volumes(self, row: int) -> None:
        self.volume_journal.append(row)
        if len(self.volume_journal) > JOURNAL_LIMIT:
            half = JOURNAL_LIMIT // 2
            del self.volume_journal[:half]
            self.volume_journal_start += half

    def _note(self, entry: int) -> None:
        self.node_changes += entry < 0
        self.journal.append(entry)
        if len(self.journal) > JOURNAL_LIMIT:
            half = JOURNAL_LIMIT // 2
            del self.journal[:half]
            self.journal_start += half
