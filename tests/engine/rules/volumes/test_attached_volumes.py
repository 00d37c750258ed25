"""The cached volumes of nodes are those found by looking at each node.

Random histories of pods, nodes, claims, volumes, classes, limits and attachments: after each of
them, the answer for all nodes at once (from what is kept) equals that for one node after the other
(from its pods). The journals are made short, so that histories outgrow them.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    azure,
    claim,
    claim_volume,
    ebs,
    gce,
    iscsi,
    node,
    pod,
    rbd,
    storage_class,
    volume,
)
from builders_v1_36 import attachment, csi_node, current, ephemeral
from podium.cluster.cache.columns import Columns
from podium.engine.framework.rule import FilterRule
from podium.engine.rows.rows import ManyRows, OneRow, as_int
from podium.engine.rules.volumes.conflicts import NoDiskConflict, VolumeRestrictions
from podium.engine.rules.volumes.limits import (
    AZURE,
    EBS,
    GCE_PD,
    MaxCSIVolumeCount,
    MaxVolumeCount,
    NodeVolumeLimits,
)
from podium.engine.rules.volumes.volume_ledger import ledger
from podium.engine.state.accounting import WholePod
from podium.engine.state.catalog import Catalog
from podium.engine.state.pod_class import Incoming

RULES: tuple[FilterRule, ...] = (
    MaxVolumeCount("ebs", EBS, limit=2),
    MaxVolumeCount("gce", GCE_PD),
    MaxVolumeCount("azure", AZURE, limit=1),
    MaxCSIVolumeCount(),
    NodeVolumeLimits(),
    NoDiskConflict(),
    VolumeRestrictions(),
)
NODES = ("n0", "n1", "n2")
CLAIMS = ("a", "b", "c", "")
LIMITS: dict[str, Any] = {
    "attachable-volumes-csi-d.example.com": 1,
    "attachable-volumes-gce-pd": 2,
}
DRIVERS = ("d", "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com")
VOLUMES = (
    *(claim_volume(name) for name in CLAIMS),
    gce("x"),
    gce("x", read_only=True),
    ebs("y"),
    ebs("z"),
    ebs("aws://zone/nameless"),
    azure("w"),
    iscsi("i", read_only=True),
    rbd("m1", "m2", image="r"),
    rbd("m2", image="r", read_only=True),
    ephemeral("e"),
)
SOURCES: tuple[dict[str, Any], ...] = (
    {},
    {"csi": ("d.example.com", "h1")},
    {"csi": ("d.example.com", "h2")},
    {"csi": ("other.example.com", "h1")},
    {"source": ebs("y")},
    {"source": gce("x")},
    {"source": azure("w")},
)

PROVISIONERS = ("d.example.com", "e.example.com", "kubernetes.io/aws-ebs")

some_volumes = st.lists(st.sampled_from(VOLUMES), max_size=3)
steps = st.one_of(
    st.tuples(st.just("pod"), st.integers(0, 5), st.sampled_from((*NODES, "ghost")), some_volumes),
    st.tuples(st.just("pod gone"), st.integers(0, 5)),
    st.tuples(st.just("node"), st.sampled_from(NODES), st.booleans()),
    st.tuples(st.just("node gone"), st.sampled_from(NODES)),
    st.tuples(
        st.just("claim"),
        st.sampled_from(("a", "b", "c", "p0-e", "p1-e")),
        st.sampled_from(("v1", "v2", "")),
    ),
    st.tuples(st.just("claim gone"), st.sampled_from(("a", "b", "p0-e"))),
    st.tuples(st.just("volume"), st.sampled_from(("v1", "v2")), st.sampled_from(SOURCES)),
    st.tuples(st.just("volume gone"), st.sampled_from(("v1", "v2"))),
    st.tuples(st.just("class"), st.sampled_from(PROVISIONERS)),
    st.tuples(st.just("limits"), st.sampled_from(NODES), st.integers(0, 2)),
    st.tuples(st.just("limits gone"), st.sampled_from(NODES)),
    st.tuples(st.just("attached"), st.sampled_from(("t1", "t2")), st.sampled_from(NODES)),
    st.tuples(st.just("attached gone"), st.sampled_from(("t1", "t2"))),
    st.tuples(st.just("ask"), some_volumes),
)


def take(columns: Columns, step: tuple[Any, ...]) -> None:  # noqa: C901, PLR0912  a case each
    """One thing happens."""
    catalog = columns.catalog
    match step:
        case ("pod", number, where, volumes):
            made = pod(f"p{number}", uid=f"u{number}", node=where, volumes=volumes)
            if columns.pods.by_uid.get(made.uid) is None:
                columns.add_pod(made)
        case ("pod gone", number):
            if columns.pods.by_uid.get(f"u{number}") is not None:
                columns.remove_pod(f"u{number}")
        case ("node", name, limited):
            columns.put_node(node(name, resources=LIMITS if limited else None))
        case ("node gone", name):
            columns.drop_node(name)
        case ("claim", name, bound):
            catalog.claims.put(claim(name, volume=bound, storage_class="s"))
        case ("claim gone", name):
            catalog.claims.drop(claim(name))
        case ("volume", name, source):
            catalog.volumes.put(volume(name, **source))
        case ("volume gone", name):
            catalog.volumes.drop(volume(name))
        case ("class", provisioner):
            catalog.storage_classes.put(storage_class("s", provisioner=provisioner))
        case ("limits", name, count):
            catalog.csi_nodes.put(csi_node(name, **dict.fromkeys(DRIVERS, count)))
        case ("limits gone", name):
            catalog.csi_nodes.drop(csi_node(name))
        case ("attached", name, where):
            catalog.attachments.put(attachment(name, where, "d.example.com", "v1"))
        case ("attached gone", name):
            catalog.attachments.drop(attachment(name, "", "", ""))


def at_once(rule: FilterRule, wanted: Incoming, columns: Columns) -> list[int | str]:
    at = ManyRows(columns, columns.nodes.order)
    codes = [int(code) for code in at.full(0) + rule.filter(wanted, at)]
    return [at.errors.get(place, code) for place, code in enumerate(codes)]


def one_by_one(rule: FilterRule, wanted: Incoming, columns: Columns) -> list[int | str]:
    told: list[int | str] = []
    for row in columns.nodes.order.tolist():
        at = OneRow(columns, row)
        code = as_int(rule.filter(wanted, at))
        told.append(at.errors.get(0, code))
    return told


@given(history=st.lists(steps, min_size=3, max_size=30), last=some_volumes)
@settings(max_examples=300)
def test_what_is_kept_is_what_each_node_tells(
    history: list[tuple[Any, ...]], last: list[Any]
) -> None:
    columns = Columns(WholePod(), catalog=Catalog(changes_limit=6), journal_limit=6)
    for name in NODES:
        columns.put_node(node(name, resources=LIMITS))
    for step in (*history, ("ask", last)):
        take(columns, step)
        if step[0] != "ask":
            continue
        wanted = columns.pods.incoming(pod("wanted", volumes=step[1]))
        for rule in RULES:
            if rule.scope(wanted.cls):
                together = at_once(rule, wanted, columns)
                assert together == one_by_one(rule, wanted, columns), rule.name


def test_a_ledger_reads_only_rows_that_changed() -> None:
    columns = current(*(node(f"n{i}") for i in range(20))).cache.columns
    for i in range(20):
        columns.catalog.claims.put(claim(f"c{i}"))
        columns.add_pod(pod(f"p{i}", node=f"n{i}", volumes=[claim_volume(f"c{i}")]))
    rule = MaxVolumeCount("ebs", EBS)
    wanted = columns.pods.incoming(pod("wanted", volumes=[claim_volume("missing")]))
    rule.filter(wanted, ManyRows(columns, columns.nodes.order))
    read: list[str] = []
    kept = ledger(columns, rule.disk.limit_name, rule._held)
    plain = kept._read

    def noted(row: OneRow, lookups: Any) -> Any:
        read.append(row.name)
        return plain(row, lookups)

    with patch.object(kept, "_read", noted):
        rule.filter(wanted, ManyRows(columns, columns.nodes.order))
        assert read == []
        columns.catalog.claims.put(claim("c3", volume="v"))
        rule.filter(wanted, ManyRows(columns, columns.nodes.order))
        assert read == ["n3"]
        columns.catalog.volumes.put(volume("v", source=ebs("y")))
        columns.add_pod(pod("more", node="n5", volumes=[claim_volume("c3")]))
        columns.add_pod(pod("plain", node="n6"))
        rule.filter(wanted, ManyRows(columns, columns.nodes.order))
        assert sorted(read[1:]) == ["n3", "n5"]
