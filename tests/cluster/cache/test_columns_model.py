"""Columns after any history equal a plain model that was fed the same history.

The model keeps dictionaries and lists and computes everything by walking; it has no indexes, no
interned words and nothing to keep in step. Capacity starts at one row, so that columns grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from builders import SOME_TIME, decided, objects, pod, profile
from builders import node as made_node
from podium.cluster.cache.columns import AVOID_ANNOTATION, Columns
from podium.cluster.cache.node_tree import zone_key
from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.catalog import selectors_of, services_of
from podium.engine.state.selector_index import anchor
from podium.engine.state.tallies import SPARSE, LabelSet, SparseLimits
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.workloads import Service
from podium.objects.quantity import milli, value
from podium.objects.selectors.selectors import from_map
from random_clusters import (
    ALL_EXTREMES,
    GPU,
    NODE_NAMES,
    OTHERS,
    PREDICATES,
    PRIORITIES,
    STORAGE,
    Extremes,
    body_kind,
    node_kind,
    pod_like,
    tie_kind,
)

HOMES = (*NODE_NAMES, "ghost")
RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU)
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
KEYS = ("zone", "disk", "none")
SERVICES = tuple(each for each in OTHERS if isinstance(each, Service))
CONTROLLERS = tuple(each for each in OTHERS if not isinstance(each, Service))
#: What tallies are asked for.
WANTED: tuple[dict[str, str], ...] = ({"app": "x"}, {"tier": "t"}, {})


def wrapped(number: int) -> int:
    """As a signed 64-bit integer holds it."""
    return (number + 2**63) % 2**64 - 2**63


class Model:
    """A plain model of a cluster, with which columns are compared."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.ports: dict[str, set[tuple[str, str, int]]] = {}
        self.pressures: dict[str, dict[str, str]] = {}
        self.images: dict[str, dict[str, tuple[int, int]]] = {}
        self.holders: dict[str, tuple[int, set[str]]] = {}
        self.promises: dict[str, tuple[Pod, str]] = {}
        self.services: list[Service] = []

    # Events
    def nominate(self, pod: Pod, name: str) -> None:
        self.promises.pop(pod.uid, None)
        if name:
            self.promises[pod.uid] = (pod, name)

    def put_service(self, service: Service) -> None:
        if service not in self.services:
            self.services.append(service)

    def drop_service(self, service: Service) -> None:
        if service in self.services:
            self.services.remove(service)

    def put_node(self, node: Node) -> None:
        before = self.nodes.get(node.name)
        if before is None:
            self.pressures[node.name] = {}
        self.nodes[node.name] = node
        self.pressures[node.name].update(
            {c.type: c.status for c in node.status.conditions or () if c.type in PRESSURES}
        )
        self._forget_images(node.name, before)
        held = self.images[node.name] = {}
        for image in node.status.images or ():
            for name in image.names or ():
                size, names = self.holders.setdefault(name, (image.size_bytes, set()))
                names.add(node.name)
                held[name] = (size, len(names))

    def drop_node(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self._forget_images(name, node)
            self.images[name] = {}

    def _forget_images(self, name: str, node: Node | None) -> None:
        for image in (node.status.images if node else None) or ():
            for held in image.names or ():
                self.holders[held][1].discard(name)
                if not self.holders[held][1]:
                    del self.holders[held]

    def add_pod(self, pod: Pod) -> None:
        where = pod.spec.node_name
        self.pods.setdefault(where, []).append(pod)
        self.ports.setdefault(where, set()).update(ports_of(pod))

    def remove_pod(self, uid: str) -> None:
        where, place = self.find(uid)
        pods = self.pods[where]
        gone = pods[place]
        pods[place] = pods[-1]
        pods.pop()
        self.ports[where] -= set(ports_of(gone))

    def mark(self, uid: str) -> None:
        where, place = self.find(uid)
        pods = self.pods[where]
        if not pods[place].terminating:
            marked = leaving(pods[place])
            pods[place] = pods[-1]
            pods[-1] = marked

    # Questions
    def find(self, uid: str) -> tuple[str, int]:
        return next(
            (where, place)
            for where, pods in self.pods.items()
            for place, pod in enumerate(pods)
            if pod.uid == uid
        )

    def everybody(self) -> list[Pod]:
        return [pod for pods in self.pods.values() for pod in pods]

    def names(self) -> set[str]:
        return set(self.nodes) | {where for where, pods in self.pods.items() if pods}

    def on(self, name: str) -> list[Pod]:
        return self.pods.get(name, [])


def leaving(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=SOME_TIME)
    return msgspec.structs.replace(pod, metadata=metadata)


def ports_of(pod: Pod) -> list[tuple[str, str, int]]:
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104
        for container in pod.spec.containers or ()
        for port in container.ports or ()
        if port.host_port > 0
    ]


def requests(pod: Pod) -> Iterator[dict[str, Any]]:
    for container in pod.spec.containers or ():
        yield (container.resources and container.resources.requests) or {}


def amount(name: str, raw: Any) -> int:
    return milli(raw) if name == "cpu" else value(raw)


def requested(pods: list[Pod], name: str) -> int:
    return wrapped(sum(amount(name, r[name]) for p in pods for r in requests(p) if name in r))


def assumed(pods: list[Pod], name: str, floor: float) -> int:
    return wrapped(sum(amount(name, r.get(name, floor)) for p in pods for r in requests(p)))


def selects(service: Service, labels: dict[str, str]) -> bool:
    wanted = service.spec.selector
    return wanted is not None and wanted.items() <= labels.items()


def counted(pods: list[Pod], labels: dict[str, str]) -> int:
    return sum(p.namespace == "default" and labels.items() <= p.labels.items() for p in pods)


# The two together ---------------------------------------------------------------------------------


class Twins:
    """Columns and model, told the same things."""

    def __init__(self, extremes: Extremes = ALL_EXTREMES, sparse: SparseLimits = SPARSE) -> None:
        self.extremes = extremes
        self.simulation = Simulation(profile(), fast=False)
        self.columns = self.simulation.cache.columns = Columns(
            ContainerSums(), capacity=1, sparse=sparse
        )
        self.model = Model()
        self.born = 0

    def put_node(self, name: str, kind: int) -> None:
        node = made_node(name, **node_kind(kind, self.extremes))
        self.simulation.cache.put_node(node)
        self.model.put_node(node)

    def drop_node(self, name: str) -> None:
        self.simulation.cache.drop_node(made_node(name))
        self.model.drop_node(name)

    def nominate(self, number: int, name: str, kinds: tuple[int, int]) -> None:
        kind = body_kind(kinds[0], self.extremes) | tie_kind(kinds[1], self.extremes)
        waiting = pod(f"q{number % 3}", uid=f"q{number % 3}", **kind)
        self.simulation.nominate(waiting, name)
        self.model.nominate(waiting, name)

    def put_service(self, number: int) -> None:
        self.columns.catalog.services.put(SERVICES[number % len(SERVICES)])
        self.model.put_service(SERVICES[number % len(SERVICES)])

    def drop_service(self, number: int) -> None:
        self.columns.catalog.services.drop(SERVICES[number % len(SERVICES)])
        self.model.drop_service(SERVICES[number % len(SERVICES)])

    def add_pod(self, home: str, kinds: tuple[int, int], *, terminating: bool = False) -> None:
        self.born += 1
        kind = body_kind(kinds[0], self.extremes) | tie_kind(kinds[1], self.extremes)
        made = pod(f"p{self.born}", node=home, terminating=terminating, **kind)
        self.columns.add_pod(made)
        self.model.add_pod(made)

    def add_leaving(self, home: str, kinds: tuple[int, int]) -> None:
        self.add_pod(home, kinds, terminating=True)

    def remove_pod(self, number: int) -> None:
        if uid := self._someone(number):
            self.columns.remove_pod(uid)
            self.model.remove_pod(uid)

    def mark(self, number: int) -> None:
        if uid := self._someone(number):
            self.columns.mark_terminating(uid)
            self.model.mark(uid)

    def _someone(self, number: int) -> str:
        pods = sorted(one.uid for one in self.model.everybody())
        return pods[number % len(pods)] if pods else ""

    def ask(self, number: int) -> None:
        """Make a tally, and its sums per domain, at some point of the history."""
        labels, key = WANTED[number % len(WANTED)], KEYS[number // len(WANTED) % len(KEYS)]
        self.tally(labels).by_domain(key)
        carried = list(self.columns.pods.carried)
        if carried:
            carried[number % len(carried)].tally.total(key)

    def tally(self, labels: dict[str, str]) -> Any:
        selector = from_map(labels)

        def matches(found: LabelSet) -> bool:
            return found.namespace == "default" and selector.matches(found.labels)

        return self.columns.pods.tally(("test", selector), matches, lambda: anchor(selector))

    # What must be the same
    def compare(self) -> None:
        columns, model = self.columns, self.model
        assert set(columns.nodes.row_of) == model.names()
        assert [columns.nodes.names[row] for row in columns.nodes.order] == list(model.nodes)
        ghosts = {columns.nodes.names[row] for row in columns.pods.unknown_nodes}
        assert ghosts == model.names() - set(model.nodes)
        assert columns.pods.total == len(model.everybody())
        assert np.flatnonzero(columns.nodes.known).tolist() == sorted(columns.nodes.order.tolist())
        for name, row in columns.nodes.row_of.items():
            note(name)
            self.compare_pods(name, row)
            self.compare_node(name, row)
        self.compare_ports()
        self.compare_images()
        self.compare_tallies()
        self.compare_unused_rows()
        self.compare_promises()
        self.compare_services()

    def compare_pods(self, name: str, row: int) -> None:
        columns, pods = self.columns, self.model.on(name)
        residents = columns.pods.residents[row]
        assert [(r.key, r.uid) for r in residents] == [(p.key, p.uid) for p in pods]
        assert [r.terminating for r in residents] == [p.terminating for p in pods]
        assert [r.labels.terminating for r in residents] == [p.terminating for p in pods]
        assert [dict(r.labels.labels) for r in residents] == [p.labels for p in pods]
        assert all(r.row == row for r in residents)
        assert all(
            columns.pods.by_uid.get(p.uid) is r for p, r in zip(pods, residents, strict=True)
        )
        assert columns.pods.counts[row] == len(pods)
        for resource in RESOURCES:
            found = columns.pods.requested[columns.pods.resource(resource)][row]
            assert found == requested(pods, resource), resource
        assert columns.pods.nonzero_requested[0][row] == assumed(pods, "cpu", 100 / 1000)
        assert columns.pods.nonzero_requested[1][row] == assumed(pods, "memory", 200 << 20)
        with_volumes = sum(bool(p.spec.volumes) for p in pods)
        assert columns.pods.volume_rows.get(row, 0) == with_volumes
        assert columns.pods.ports[row] == self.model.ports.get(name, set())

    def compare_node(self, name: str, row: int) -> None:
        columns, node = self.columns, self.model.nodes.get(name)
        facts = columns.nodes.facts
        given = (node.status.allocatable or {}) if node else {}
        for resource in RESOURCES:
            expected = amount(resource, given.get(resource, 0))
            assert columns.nodes.allocatable[columns.pods.resource(resource)][row] == expected, (
                resource
            )
        assert columns.nodes.allowed_pods[row] == value(given.get("pods", 0))
        for key in (*KEYS, "size"):
            column = columns.nodes.label_column(key)
            assert column.values[column.ids[row]] == (node.labels.get(key) if node else None), key
        if node is None:
            assert columns.nodes.objects[row] is None
            return

        def fact(column: Any) -> Any:
            return column.values[column.ids[row]]

        conditions = tuple((c.type, c.status) for c in node.status.conditions or ())
        assert columns.nodes.objects[row] == node
        assert fact(facts.taints) == tuple(node.spec.taints or ())
        assert fact(facts.conditions) == conditions
        assert fact(facts.unschedulable) == node.spec.unschedulable
        assert fact(facts.zone) == zone_key(node.labels)
        annotations = node.metadata.annotations or {}
        assert fact(facts.avoid) == annotations.get(AVOID_ANNOTATION, "")
        limits = {k: v for k, v in given.items() if k.startswith("attachable-volumes-")}
        assert dict(fact(facts.attach_limits)) == limits
        sticky = {k for k, status in self.model.pressures[name].items() if status == "True"}
        assert fact(facts.pressures) == sticky

    def compare_ports(self) -> None:
        used: dict[Any, set[int]] = {}
        for name, row in self.columns.nodes.row_of.items():
            for port in self.model.ports.get(name, ()):
                used.setdefault(port, set()).add(row)
        assert self.columns.pods.port_rows == used

    def compare_images(self) -> None:
        columns, model = self.columns, self.model
        expected: dict[str, dict[int, tuple[int, int]]] = {}
        for name in model.nodes:
            for image, state in model.images[name].items():
                expected.setdefault(image, {})[columns.nodes.row_of[name]] = state
        images = columns.nodes.images
        assert expected == {
            name: {row: (image.size, nodes) for row, nodes in image.counts.items()}
            for name, image in images.items()
        }
        holders = {
            image: (size, {columns.nodes.row_of[name] for name in names})
            for image, (size, names) in model.holders.items()
        }
        assert {name: (image.size, set(image.counts)) for name, image in images.items()} == holders

    def compare_tallies(self) -> None:
        columns, model = self.columns, self.model
        for labels in WANTED:
            tally = self.tally(labels)
            assert tally.carriers == counted(model.everybody(), labels)
            for name, row in columns.nodes.row_of.items():
                assert tally.rows[row] == counted(model.on(name), labels)
            for key in KEYS:
                self.compare_domains(tally, key, lambda name, w=labels: counted(model.on(name), w))
        for carried in columns.pods.carried:

            def bearers(name: str, carried: Any = carried) -> int:
                return sum(columns.pods.class_of(p).carried.count(carried) for p in model.on(name))

            assert carried.tally.carriers == sum(map(bearers, columns.nodes.row_of))
            self.compare_domains(carried.tally, carried.term.topology_key, bearers)

    def compare_domains(self, tally: Any, key: str, count: Any) -> None:
        sums: Counter[str] = Counter()
        for name, node in self.model.nodes.items():
            if key in node.labels:
                sums[node.labels[key]] += count(name)
        column = self.columns.nodes.label_column(key)
        by_domain = tally.by_domain(key)
        found = {v: int(by_domain[i]) for i, v in enumerate(column.values) if v is not None}
        assert {v: n for v, n in found.items() if n} == {v: n for v, n in sums.items() if n}
        assert by_domain[0] == 0
        assert tally.total(key) == sum(sums.values())

    def compare_promises(self) -> None:
        expected: dict[str, list[str]] = {}
        for waiting, name in self.model.promises.values():
            expected.setdefault(name, []).append(waiting.key)
        found = {name: [r.key for r in pods] for name, pods in self.columns.pods.nominated.items()}
        assert {name: keys for name, keys in found.items() if keys} == expected

    def compare_services(self) -> None:
        for namespace in ("default", "other"):
            expected = [each for each in self.model.services if each.namespace == namespace]
            assert list(self.columns.catalog.services.within(namespace)) == expected
            for labels in (*WANTED, {"app": "x", "tier": "t"}):
                cls = self.columns.pods.class_of(pod(namespace=namespace, labels=labels))
                selecting = [s for s in expected if selects(s, labels)]
                assert services_of(cls, self.columns.catalog) == selecting
                selectors = tuple(from_map(s.spec.selector) for s in selecting)
                assert selectors_of(cls, self.columns.catalog) == selectors

    def compare_unused_rows(self) -> None:
        columns = self.columns
        unused = sorted(set(range(columns.nodes.capacity)) - set(columns.nodes.row_of.values()))
        for column in (
            *columns.pods.requested,
            *columns.nodes.allocatable,
            *columns.pods.nonzero_requested,
        ):
            assert not column[unused].any()
        assert not columns.pods.counts[unused].any()
        for tally in columns.pods.tallies.values():
            assert not tally.rows[unused].any()


# Histories ----------------------------------------------------------------------------------------

NAMES = st.sampled_from(NODE_NAMES)
NUMBERS = st.integers(0, 250)
FEW = st.integers(0, 20)
#: The same few kinds of nodes come again and again, so that labels are shared and images meet.
NODE_KINDS = st.integers(0, 25)
EVENTS = st.one_of(
    st.tuples(st.just("put_node"), NAMES, NODE_KINDS),
    st.tuples(st.just("put_node"), NAMES, NODE_KINDS),
    st.tuples(st.just("drop_node"), NAMES),
    st.tuples(
        st.just("add_pod"), st.sampled_from([*NODE_NAMES * 2, "ghost"]), st.tuples(NUMBERS, NUMBERS)
    ),
    st.tuples(
        st.just("add_pod"), st.sampled_from([*NODE_NAMES * 2, "ghost"]), st.tuples(NUMBERS, NUMBERS)
    ),
    st.tuples(st.just("add_leaving"), NAMES, st.tuples(NUMBERS, NUMBERS)),
    st.tuples(st.just("remove_pod"), FEW),
    st.tuples(st.just("mark"), FEW),
    st.tuples(st.just("ask"), FEW),
    st.tuples(st.just("nominate"), FEW, st.sampled_from(["", *HOMES]), st.tuples(NUMBERS, NUMBERS)),
    st.tuples(st.just("put_service"), FEW),
    st.tuples(st.just("drop_service"), FEW),
)

#: Short ones for what goes wrong early, long ones for what needs many things to meet.
HISTORIES = st.one_of(st.lists(EVENTS, max_size=10), st.lists(EVENTS, min_size=25, max_size=60))


def tell(twins: Twins, event: tuple[Any, ...]) -> None:
    """An event is the name of what to do, and its arguments."""
    getattr(twins, event[0])(*event[1:])


#: On how many rows a tally may count before it gets a column; None: it has one from the start.
FEW_ROWS = st.sampled_from([None, 0, 1, 3, 64])


def limits(most: int | None) -> SparseLimits:
    return SparseLimits() if most is None else SparseLimits(min_capacity=0, most_rows=most)


def live(
    events: list[tuple[Any, ...]], most: int | None, *, compared_on_the_way: bool = False
) -> None:
    twins = Twins(sparse=limits(most))
    for event in events:
        tell(twins, event)
        note(repr(event))
        if compared_on_the_way:
            twins.compare()
    twins.compare()


@given(events=HISTORIES, most=FEW_ROWS)
@settings(max_examples=200)
def test_columns_equal_the_model_after_any_history(
    events: list[tuple[Any, ...]], most: int | None
) -> None:
    live(events, most)


@given(events=HISTORIES, most=FEW_ROWS)
@settings(max_examples=40)
def test_columns_equal_the_model_at_every_step(
    events: list[tuple[Any, ...]], most: int | None
) -> None:
    # Comparing asks for tallies and columns of labels, which must then be kept up.
    live(events, most, compared_on_the_way=True)


def seen(columns: Columns) -> dict[int, Any]:
    """What rules may read of each row."""
    return {
        row: (
            home,
            columns.nodes.objects[row],
            [(r.key, r.terminating) for r in columns.pods.residents[row]],
            sorted(columns.pods.ports[row]),
            {
                name: n
                for name, i in columns.nodes.resources.items()
                if (n := columns.pods.requested[i].item(row))
            },
        )
        for home, row in columns.nodes.row_of.items()
    }


@given(events=HISTORIES)
@settings(max_examples=100)
def test_every_change_of_a_row_is_in_the_journal(events: list[tuple[Any, ...]]) -> None:
    twins = Twins()
    columns = twins.columns
    for event in events:
        before, epoch = seen(columns), columns.journal.epoch
        read = columns.journal.rows.end

        tell(twins, event)

        after = seen(columns)
        if columns.journal.epoch != epoch:
            continue  # nothing that was known before holds
        assert after.keys() == before.keys(), "rows came or went unnoticed"
        news = columns.journal.rows.entries[read - columns.journal.rows.start :]
        changed = {row for row in after if after[row] != before[row]}
        assert changed <= {entry if entry >= 0 else ~entry for entry in news}
        nodes = {row for row in after if after[row][1] != before[row][1]}
        assert nodes <= {~entry for entry in news if entry < 0}


# Decisions ----------------------------------------------------------------------------------------


def loaded_afresh(model: Model) -> Columns:
    """New columns that come to the same state by the shortest way."""
    simulation = Simulation(profile(), fast=False)
    columns = simulation.cache.columns
    for each in model.services:
        columns.catalog.services.put(each)
    for name, node in model.nodes.items():
        sticky = {k: v for k, v in model.pressures[name].items() if v == "True"}
        columns.put_node(made_node(name, conditions=sticky))
        columns.put_node(node)
    for name, pods in model.pods.items():
        for one in pods:
            columns.add_pod(one)
        # A port is free although somebody holds it, when another holder has left.
        freed = {port for one in pods for port in ports_of(one)} - model.ports[name]
        if freed:
            columns.add_pod(pod("passing", node=name, ports=sorted(freed)))
            columns.remove_pod("default/passing")
    for waiting, name in model.promises.values():
        simulation.nominate(waiting, name)
    return columns


def told(decision: Decision) -> dict[str, Any]:
    return {
        "node": decision.node,
        "error": decision.error,
        "failed": decision.failed(),
        "feasible": list(decision.feasible),
        "scores": {c.name: c.score.tolist() for c in decision.scores},
        "best": list(decision.best),
        "preemption": decision.preemption,
    }


@given(
    events=HISTORIES,
    others=st.lists(st.sampled_from(CONTROLLERS), max_size=3, unique_by=repr),
    wanted=pod_like("wanted", Extremes(images=False)),
    numbers=st.lists(st.integers(0, len(PREDICATES) - 1), max_size=8, unique=True),
    most=FEW_ROWS,
)
@settings(max_examples=180)
def test_decisions_after_a_history_equal_those_on_fresh_columns(
    events: list[tuple[Any, ...]],
    others: list[Any],
    wanted: Pod,
    numbers: list[int],
    most: int | None,
) -> None:
    # Image counts are history that no fresh start can repeat; there are no images here.
    twins = Twins(Extremes(images=False), limits(most))
    for event in events:
        tell(twins, event)
    fresh = loaded_afresh(twins.model)
    for columns in (twins.columns, fresh):
        found = objects(*STORAGE, *others)
        for kind, shelf in columns.catalog.shelves():
            for item in found.of(kind):
                shelf.put(item)
    rules = profile(*(PREDICATES[number] for number in sorted(numbers)), priorities=PRIORITIES)
    names = list(twins.model.nodes)

    lived = told(decided(twins.columns, wanted, rules, order=names))
    started = told(decided(fresh, wanted, rules, order=names))

    assert lived == started
