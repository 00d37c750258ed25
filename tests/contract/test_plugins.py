"""The plugins of the current generation keep the same promises as the older rules.

They are asked only where the cycle would ask them: a plugin that refuses the pod beforehand, or
steps aside for the attempt, is not asked about rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from builders import Said, expression, objects, profile, selector
from generated import Cluster, Wild, clusters
from podium.cluster.columns import Columns
from podium.cluster.simulation import Simulation
from podium.engine.accounting import WholePod
from podium.engine.contracts import AttemptError
from podium.engine.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from podium.engine.plugins.base import FilterPlugin, Refused, ScorePlugin
from podium.engine.plugins.image_locality import ImageLocality
from podium.engine.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityScore
from podium.engine.plugins.node_affinity import NodeAffinity, NodeAffinityScore
from podium.engine.plugins.node_declared_features import NodeDeclaredFeatures
from podium.engine.plugins.node_name import NodeName
from podium.engine.plugins.node_ports import NodePorts
from podium.engine.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitScore
from podium.engine.plugins.node_unschedulable import NodeUnschedulable
from podium.engine.plugins.node_volume_limits import NodeVolumeLimits
from podium.engine.plugins.pod_topology_spread import PodTopologySpread
from podium.engine.plugins.taint_toleration import TaintToleration, TaintTolerationScore
from podium.engine.plugins.volume_binding import VolumeBinding
from podium.engine.plugins.volume_restrictions import VolumeRestrictions
from podium.engine.plugins.volume_zone import VolumeZone
from podium.engine.pod_class import Incoming
from podium.engine.rows import ManyRows, OneRow
from podium.engine.trial import TrialRow
from podium.objects.pod import Pod, TopologySpreadConstraint

FILTERS: tuple[FilterPlugin, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    VolumeRestrictions(),
    NodeVolumeLimits(),
    VolumeBinding(),
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
    NodeDeclaredFeatures(),
)
SCORES: tuple[ScorePlugin, ...] = (
    ImageLocality(),
    InterPodAffinityScore(),
    NodeAffinityScore(),
    NodeResourcesBalancedAllocation(),
    NodeResourcesFitScore(),
    TaintTolerationScore(),
)
SPREADS = (
    None,
    None,
    [TopologySpreadConstraint(1, "zone", "DoNotSchedule", selector({"app": "x"}))],
    [
        TopologySpreadConstraint(1, "zone", "DoNotSchedule", selector({"app": "x"})),
        TopologySpreadConstraint(2, "disk", "DoNotSchedule", selector({"tier": "t"})),
    ],
    [TopologySpreadConstraint(1, "zone", "ScheduleAnyway", selector({"app": "x"}))],
    [
        TopologySpreadConstraint(
            1,
            "zone",
            "DoNotSchedule",
            selector(None, expression("app", "Exists")),
            min_domains=3,
            node_taints_policy="Honor",
        )
    ],
)


def view(cluster: Cluster) -> Columns:
    """Columns that count as the current generation does."""
    made = Simulation(replace(profile(), accounting=WholePod()), listed_order=True)
    made.load(objects(*cluster.objects()))
    return made.cache.columns


def spreading(wanted: Pod, constraints: list[TopologySpreadConstraint] | None) -> Pod:
    spec = msgspec.structs.replace(wanted.spec, topology_spread_constraints=constraints)
    return msgspec.structs.replace(wanted, spec=spec)


def asked(plugin: FilterPlugin, wanted: Incoming, columns: Columns) -> bool:
    if isinstance(plugin.prepare(wanted, columns), Refused):
        return False
    return not plugin.skips(wanted, columns)


def many(plugin: FilterPlugin, wanted: Incoming, columns: Columns, rows: np.ndarray) -> list[Said]:
    at = ManyRows(columns, rows)
    codes = np.broadcast_to(plugin.reject(wanted, at), rows.shape)
    return [
        at.errors.get(place, columns.verdicts[code].reasons)
        for place, code in enumerate(codes.tolist())
    ]


def one(plugin: FilterPlugin, wanted: Incoming, at: OneRow) -> Said:
    at.errors.clear()
    code = int(plugin.reject(wanted, at))
    return at.errors.get(0, at.view.verdicts[code].reasons)


@given(cluster=clusters(), constraints=st.sampled_from(SPREADS))
@settings(max_examples=80)
def test_filters_say_the_same_of_many_rows_and_of_one(cluster: Cluster, constraints: Any) -> None:
    columns = view(cluster)
    wanted = columns.incoming(spreading(cluster.wanted, constraints))
    rows = columns.order

    for plugin in FILTERS:
        note(plugin.name)
        if asked(plugin, wanted, columns):
            alone = [one(plugin, wanted, OneRow(columns, row)) for row in rows.tolist()]
            assert many(plugin, wanted, columns, rows) == alone


@given(cluster=clusters(), constraints=st.sampled_from(SPREADS))
@settings(max_examples=60)
def test_scores_give_the_same_to_many_rows_and_to_one(cluster: Cluster, constraints: Any) -> None:
    columns = view(cluster)
    wanted = columns.incoming(spreading(cluster.wanted, constraints))
    rows = columns.order

    for plugin in SCORES:
        note(plugin.name)
        try:
            together = np.broadcast_to(plugin.score(wanted, ManyRows(columns, rows)), rows.shape)
        except AttemptError:
            continue
        alone = [int(plugin.score(wanted, OneRow(columns, row))) for row in rows.tolist()]
        assert together.tolist() == alone


@given(
    cluster=clusters(least_nodes=1, wild=Wild(huge=False)),
    constraints=st.sampled_from(SPREADS),
    data=st.data(),
)
@settings(max_examples=80)
def test_a_trial_is_what_would_really_be(
    cluster: Cluster, constraints: Any, data: st.DataObject
) -> None:
    columns, real = view(cluster), view(cluster)
    crowded = [row for row in columns.order.tolist() if columns.residents[row]]
    row = data.draw(st.sampled_from(crowded or columns.order.tolist()))
    there = list(columns.residents[row])
    leaving = data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []
    back = data.draw(st.lists(st.sampled_from(leaving), unique=True)) if leaving else []
    wanted = columns.incoming(spreading(cluster.wanted, constraints))
    really = real.incoming(spreading(cluster.wanted, constraints))
    # What an attempt finds out beforehand, it finds out before anybody is taken away.
    plugins = [plugin for plugin in FILTERS if asked(plugin, wanted, columns)]
    trial = TrialRow(columns, row)
    pods = {each.uid: each for each in cluster.pods}
    for resident in leaving:
        trial.remove(resident)
        real.remove_pod(resident.uid)
    for resident in back:
        trial.add(resident)
        real.add_pod(pods[resident.uid])

    for plugin in plugins:
        note(plugin.name)
        if asked(plugin, really, real):
            assert one(plugin, wanted, trial) == one(plugin, really, OneRow(real, row))


@pytest.mark.parametrize("plugin", FILTERS, ids=lambda plugin: plugin.name)
def test_a_filter_answers_for_no_rows(plugin: FilterPlugin) -> None:
    columns = view(Cluster((), (), (), Pod()))

    assert many(plugin, columns.incoming(Pod()), columns, np.zeros(0, np.int64)) == []
