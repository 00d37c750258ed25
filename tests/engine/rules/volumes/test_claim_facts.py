"""What is kept about the claims of a pod class is what a view without a past finds.

Random histories of pods, claims, volumes, storage classes, limits and attachments: whenever a pod
is asked about, the volume rules answer as in a view that was made of the same objects a moment ago.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    claim,
    claim_volume,
    ebs,
    expression,
    gce,
    node,
    node_term,
    pod,
    storage_class,
    volume,
)
from builders_v1_36 import attachment, csi_node, ephemeral, exclusive
from cases import cases
from podium.cluster.cache.columns import Columns
from podium.engine.framework.rule import AttemptError, FilterRule
from podium.engine.rows.rows import ManyRows
from podium.engine.rules.volumes.binding import VolumeBinding
from podium.engine.rules.volumes.conflicts import VolumeRestrictions
from podium.engine.rules.volumes.limits import NodeVolumeLimits
from podium.engine.rules.volumes.zones import VolumeZone
from podium.engine.state.accounting import WholePod
from podium.engine.state.catalog import Catalog
from podium.objects.kinds.pod import Pod

RULES: tuple[FilterRule, ...] = (
    VolumeBinding(),
    VolumeZone(),
    VolumeRestrictions(),
    NodeVolumeLimits(),
)
ZONE = "topology.kubernetes.io/zone"
NODES = ("n0", "n1", "n2")
WANTED = (
    *([claim_volume(name)] for name in ("a", "b", "c")),
    [claim_volume("a"), claim_volume("b")],
    [ephemeral("e"), claim_volume("a")],
    [gce("x")],
    [ebs("y"), claim_volume("c")],
)
SOURCES: tuple[dict[str, Any], ...] = (
    {},
    {"csi": ("d.example.com", "h1")},
    {"csi": ("d.example.com", "h2")},
    {"source": ebs("y")},
    {"source": ebs("y"), "labels": {ZONE: "z1"}},
    {"labels": {ZONE: "z0__z1"}},
    {"reachable": [node_term(expression("kubernetes.io/hostname", "In", "n1"))]},
)
asks = st.tuples(st.just("ask"), st.sampled_from(("wanted", "other")), st.sampled_from(WANTED))
#: Rules are only asked whether they have anything to say: then little has to be counted.
looks = st.tuples(st.just("look"), st.just("wanted"), st.sampled_from(WANTED))
moves = st.one_of(
    st.tuples(
        st.just("pod"),
        st.integers(0, 5),
        st.sampled_from((*NODES, "ghost")),
        st.sampled_from(WANTED),
    ),
    st.tuples(st.just("pod gone"), st.integers(0, 5)),
)
steps = st.one_of(
    moves,
    st.tuples(st.just("node"), st.sampled_from(NODES)),
    st.tuples(st.just("node gone"), st.sampled_from(NODES)),
    st.tuples(
        st.just("claim"),
        st.sampled_from(("a", "b", "c", "p0-e", "wanted-e", "other-e")),
        st.sampled_from(("v1", "v2", "")),
        st.booleans(),
    ),
    st.tuples(st.just("claim gone"), st.sampled_from(("a", "b", "wanted-e"))),
    st.tuples(st.just("volume"), st.sampled_from(("v1", "v2")), st.sampled_from(SOURCES)),
    st.tuples(st.just("volume gone"), st.sampled_from(("v1", "v2"))),
    st.tuples(st.just("class"), st.sampled_from(("Immediate", "WaitForFirstConsumer", None))),
    st.tuples(st.just("limits"), st.sampled_from(NODES), st.integers(0, 3)),
    st.tuples(st.just("limits gone"), st.sampled_from(NODES)),
    st.tuples(st.just("attached"), st.sampled_from(("t1", "t2")), st.sampled_from(NODES)),
    st.tuples(st.just("attached gone"), st.sampled_from(("t1", "t2"))),
    asks,
    looks,
)


def made_node(name: str) -> Any:
    return node(name, labels={"kubernetes.io/hostname": name, ZONE: f"z{name[1:]}"})


class World:
    """A view with a past, and the pods and nodes that are in it now."""

    def __init__(self) -> None:
        self.catalog = Catalog(changes_limit=6)
        self.columns = Columns(WholePod(), catalog=self.catalog, journal_limit=6)
        self.pods: dict[str, Pod] = {}
        for name in NODES:
            self.columns.put_node(made_node(name))

    def take(self, step: tuple[Any, ...]) -> None:  # noqa: C901, PLR0912  a case each
        """One thing happens."""
        catalog, columns = self.catalog, self.columns
        match step:
            case ("pod", number, where, volumes):
                made = pod(f"p{number}", uid=f"u{number}", node=where, volumes=volumes)
                if made.uid not in self.pods:
                    self.pods[made.uid] = made
                    columns.add_pod(made)
            case ("pod gone", number):
                if self.pods.pop(f"u{number}", None) is not None:
                    columns.remove_pod(f"u{number}")
            case ("node", name):
                columns.put_node(made_node(name))
            case ("node gone", name):
                columns.drop_node(name)
            case ("claim", name, bound, alone):
                claimed = claim(name, volume=bound, storage_class="s")
                catalog.claims.put(exclusive(claimed) if alone else claimed)
            case ("claim gone", name):
                catalog.claims.drop(claim(name))
            case ("volume", name, source):
                catalog.volumes.put(volume(name, **source))
            case ("volume gone", name):
                catalog.volumes.drop(volume(name))
            case ("class", mode):
                catalog.storage_classes.put(
                    storage_class("s", mode=mode, provisioner="d.example.com")
                )
            case ("limits", name, count):
                drivers = {"d": count, "ebs.csi.aws.com": count}
                catalog.csi_nodes.put(csi_node(name, **drivers))
            case ("limits gone", name):
                catalog.csi_nodes.drop(csi_node(name))
            case ("attached", name, where):
                catalog.attachments.put(attachment(name, where, "d.example.com", "v1"))
            case ("attached gone", name):
                catalog.attachments.drop(attachment(name, "", "", ""))

    def without_past(self) -> Columns:
        """The same objects in a view that keeps nothing yet."""
        fresh = Columns(WholePod(), catalog=self.catalog)
        for row in self.columns.nodes.order.tolist():
            found = self.columns.nodes.objects[row]
            assert found is not None
            fresh.put_node(found)
        for each in self.pods.values():
            fresh.add_pod(each)
        return fresh


def answers(rule: FilterRule, wanted: Pod, columns: Columns) -> object:
    """What a rule says before and about the nodes."""
    incoming = columns.pods.incoming(wanted)
    if not rule.scope(incoming.cls):
        return None
    activity = rule.activity(incoming, columns)
    at = ManyRows(columns, columns.nodes.order)
    try:
        refused = rule.pre_filter(incoming, columns)
        if refused is not None:
            return refused
        codes = at.full(0) + rule.filter(incoming, at)
    except AttemptError as error:
        return str(error)
    names = [columns.nodes.names[row] for row in columns.nodes.order.tolist()]
    reasons = [
        columns.verdicts[int(code)].reasons if code > 0 else int(code) for code in codes.tolist()
    ]
    # Asked once more: now everything is kept.
    assert rule.activity(incoming, columns) == activity
    assert rule.pre_filter(incoming, columns) is None
    return activity, dict(zip(names, reasons, strict=True)), at.errors


def activity(rule: FilterRule, wanted: Pod, columns: Columns) -> object:
    """Whether a rule has anything to say."""
    return rule.activity(columns.pods.incoming(wanted), columns)


def check(history: Sequence[tuple[Any, ...]]) -> None:
    """Compare the answers at every question of a history."""
    world = World()
    for step in history:
        world.take(step)
        if step[0] not in {"ask", "look"}:
            continue
        how, name, volumes = step
        wanted = pod(name, uid=name, volumes=volumes)
        fresh = world.without_past()
        for rule in RULES:
            asked = answers if how == "ask" else activity
            assert asked(rule, wanted, world.columns) == asked(rule, wanted, fresh), rule.name


@given(history=st.lists(steps, min_size=3, max_size=30), last=asks)
@settings(max_examples=300)
def test_what_is_kept_of_claims_is_what_a_view_without_a_past_finds(
    history: list[tuple[Any, ...]], last: tuple[Any, ...]
) -> None:
    check((*history, last))


A, B, BOTH = [claim_volume("a")], [claim_volume("b")], [claim_volume("a"), claim_volume("b")]
BOUND: list[tuple[Any, ...]] = [
    ("volume", "v1", {"csi": ("d.example.com", "h1")}),
    ("volume", "v2", {"csi": ("d.example.com", "h2")}),
    ("claim", "a", "v1", False),
    ("claim", "b", "v2", False),
]


@given(
    limits=st.tuples(*[st.integers(1, 5)] * len(NODES)),
    history=st.lists(st.one_of(moves, looks, looks, asks), min_size=5, max_size=40),
    last=asks,
)
@settings(max_examples=200)
def test_room_for_volumes_is_told_without_counting_all_of_them(
    limits: tuple[int, ...], history: list[tuple[Any, ...]], last: tuple[Any, ...]
) -> None:
    given_limits = (("limits", *each) for each in zip(NODES, limits, strict=True))
    check((*BOUND, ("claim", "p0-e", "v1", False), *given_limits, *history, last))


@cases(
    "history",
    {
        "a volume changes that the pod and a placed pod use": (
            [
                *BOUND,
                ("limits", "n0", 1),
                ("ask", "wanted", A),
                ("pod", 0, "n0", A),
                ("ask", "wanted", A),
                ("ask", "wanted", B),
                ("volume", "v2", {"csi": ("d.example.com", "h1")}),
                ("ask", "wanted", B),
                ("volume", "v1", {"labels": {ZONE: "z1"}}),
                ("ask", "wanted", A),
            ]
        ),
        "two pods with ephemeral volumes have claims of their own": (
            [
                *BOUND,
                ("claim", "wanted-e", "v1", False),
                ("claim", "other-e", "v2", False),
                ("limits", "n0", 1),
                ("pod", 0, "n0", B),
                ("ask", "wanted", [ephemeral("e")]),
                ("ask", "other", [ephemeral("e")]),
            ]
        ),
        "the node with the least room gets more": (
            [
                *BOUND,
                ("limits", "n0", 1),
                ("ask", "wanted", BOTH),
                ("limits", "n0", 3),
                ("ask", "wanted", BOTH),
            ]
        ),
        "a pod leaves and another comes": (
            [
                *BOUND,
                ("limits", "n0", 2),
                ("pod", 0, "n0", A),
                ("ask", "wanted", B),
                ("pod gone", 0),
                ("pod", 1, "n0", B),
                ("ask", "wanted", A),
                ("pod", 2, "n0", [ebs("y")]),
                ("ask", "wanted", BOTH),
            ]
        ),
        "a node takes the row of another": (
            [
                *BOUND,
                ("limits", "n0", 0),
                ("limits", "n1", 3),
                ("ask", "wanted", A),
                ("node gone", "n0"),
                ("node gone", "n1"),
                ("node", "n0"),
                ("ask", "wanted", A),
            ]
        ),
        "a volume is attached and used by two pods": (
            [
                *BOUND,
                ("limits", "n0", 2),
                ("attached", "t1", "n0"),
                ("ask", "wanted", A),
                ("pod", 0, "n0", A),
                ("pod", 1, "n0", A),
                ("ask", "wanted", B),
                ("attached gone", "t1"),
                ("ask", "wanted", BOTH),
            ]
        ),
    },
)
def test_after(history: list[tuple[Any, ...]]) -> None:
    check(history)
