"""The plugins that rejected a pod: they decide which event makes the pod worth another attempt."""

from __future__ import annotations

from dataclasses import replace

from builders import expression, node, node_term, pod
from builders_v1_36 import DEFAULT, Naming, decision
from cases import cases
from podium.engine.framework.decision import Decision
from podium.objects.kinds.pod import Pod
from podium.past.decisions.packed_decision import NodeNames, pack, unpack
from scheduler.attempts import attempted


def rejected_by(found: Decision, wanted: Pod) -> set[str]:
    return set(attempted(wanted, found, DEFAULT).rejected_by)


def test_each_filter_that_rejected_a_node_is_one() -> None:
    wanted = pod(requests={"cpu": "4"})

    found = decision(wanted, node("full", cpu="1"), node("cordoned", unschedulable=True))

    assert rejected_by(found, wanted) == {"NodeResourcesFit", "NodeUnschedulable"}


def test_a_plugin_that_excluded_nodes_is_one_beside_the_filters() -> None:
    first = expression("metadata.name", "In", "full")
    wanted = pod(node_affinity=[node_term(fields=[first])], requests={"cpu": "4"})

    found = decision(wanted, node("full", cpu="1"), node("excluded"))

    assert rejected_by(found, wanted) == {"NodeAffinity", "NodeResourcesFit"}


@cases(
    ("plugins", "expected"),
    {
        "one that names no node": ([Naming("Zebra")], {"Zebra"}),
        "two that exclude each other": (
            [Naming("Zebra", "a"), Naming("Ant", "b")],
            {"Ant", "Zebra"},
        ),
    },
)
def test_plugins_that_leave_no_node_are_named_together(
    plugins: list[Naming], expected: set[str]
) -> None:
    profile = replace(DEFAULT, pre_filters=(*plugins, *DEFAULT.pre_filters))
    wanted = pod()

    found = decision(wanted, node("a"), node("b"), profile=profile)

    assert rejected_by(found, wanted) == expected
    packed = pack(found, names := NodeNames())
    kept = unpack(packed, found.pod, found.uid, found.profile, (found.verdicts, names))
    assert kept.refused == found.refused


def test_nodes_that_an_extender_dropped_count_for_all_extenders() -> None:
    wanted = pod()
    found = decision(wanted)
    found.error, found.extender_failed = "", {"a": ["too far"]}

    assert rejected_by(found, wanted) == {"Extender"}


def test_an_error_is_no_rejection() -> None:
    wanted = pod()
    found = decision(wanted)

    assert found.error == "no nodes available to schedule pods"
    assert rejected_by(found, wanted) == set()
