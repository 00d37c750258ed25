"""PreFilter and PostFilter: verdicts before any node is looked at, and after none fits."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders import (
    BROKEN,
    claim,
    claim_volume,
    expression,
    node,
    node_term,
    nodes,
    pod,
    storage_class,
    taint,
    term,
    volume,
)
from builders_v1_36 import DEFAULT, Naming, configured, decision, ephemeral, owned, spec_with
from cases import cases
from podium.engine.framework.post_filter import FailedSearch, Outcome
from podium.objects.kinds.meta import LabelSelectorRequirement, Object
from podium.objects.kinds.pod import NodeSelectorTerm, Pod, PodResourceClaim, SchedulingGate

NONE_HELPS = "no new claims to deallocate, preemption: 0/2 nodes are available: "
NOT_HELPFUL = "2 Preemption is not helpful for scheduling."

NO_OPERATOR = '"Near" is not a valid label selector operator'


def named(*names: str, operator: str = "In") -> LabelSelectorRequirement:
    return expression("metadata.name", operator, *names)


# Nodes in question --------------------------------------------------------------------------------


@cases(
    ("terms", "feasible"),
    {
        "one name": ([node_term(fields=[named("b")])], ["b"]),
        "terms are united": (
            [node_term(fields=[named("b")]), node_term(fields=[named("a")])],
            ["a", "b"],
        ),
        "a term without a name restricts nothing": (
            [node_term(fields=[named("b")]), node_term(expression("disk", "Exists"))],
            ["b", "c"],
        ),
        "names of no node": (
            [node_term(fields=[named("b")]), node_term(fields=[named("nowhere")])],
            ["b"],
        ),
        "what else a term asks for must hold too": (
            [node_term(expression("disk", "Exists"), fields=[named("b")])],
            [],
        ),
        "only In names nodes": ([node_term(fields=[named("b", operator="NotIn")])], ["a", "c"]),
    },
)
def test_nodes_in_question(terms: list[NodeSelectorTerm], feasible: list[str]) -> None:
    made = [node("a"), node("b"), node("c", labels={"disk": "ssd"})]

    assert list(decision(pod(node_affinity=terms), *made).feasible) == feasible


def test_other_nodes_are_rejected_without_a_plugin_and_for_good() -> None:
    wanted = pod(node_affinity=[node_term(fields=[named("n000")])], requests={"cpu": "2000"})

    found = decision(wanted, *nodes(3))

    told = {
        name: found.verdict(code)
        for name, code in zip(found.examined, found.codes.tolist(), strict=True)
    }
    outside = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    assert (told["n001"].predicate, told["n001"].reasons) == ("", (outside,))
    assert not told["n001"].curable
    assert told["n000"].predicate == "NodeResourcesFit"
    assert found.message == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )


def test_names_of_no_node_leave_no_node() -> None:
    wanted = pod(node_affinity=[node_term(fields=[named("nowhere")])])

    found = decision(wanted, *nodes(2))

    assert found.refused is None
    assert found.message == (
        f"0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        f"{NONE_HELPS}{NOT_HELPFUL}"
    )


def test_a_promised_node_is_tried_whatever_nodes_are_named() -> None:
    # The first look does not restrict it; the filter still does.
    elsewhere = pod(node_affinity=[node_term(fields=[named("a")])], nominated="b")

    found = decision(elsewhere, node("a"), node("b"))

    assert (found.node, found.nominated) == ("a", None)


@pytest.mark.parametrize("promised", ["full", "other"])
def test_the_plugin_that_rejects_the_nominated_node_is_named_on_the_others(promised: str) -> None:
    elsewhere = pod(node_affinity=[node_term(fields=[named("full")])], nominated=promised)
    taints = [taint("k", effect="NoSchedule")]

    found = decision(elsewhere, node("full", pods=0), node("other", taints=taints), node("b"))

    turned_down = {"full": "NodeResourcesFit", "other": "TaintToleration"}[promised]
    assert found.failed()["b"] == [
        f"node(s) didn't satisfy plugin(s) [NodeAffinity {turned_down}]",
    ]


@cases(
    ("plugins", "reason"),
    {
        "one that names none": ([Naming("Zebra")], "node(s) didn't satisfy plugin Zebra"),
        "two that do not agree": (
            [Naming("Zebra", "n000"), Naming("Ant", "n001")],
            "node(s) didn't satisfy plugin(s) [Ant Zebra] simultaneously",
        ),
    },
)
def test_nodes_that_exclude_each_other_refuse_the_pod(plugins: list[Naming], reason: str) -> None:
    profile = replace(DEFAULT, pre_filters=(*plugins, *DEFAULT.pre_filters))

    found = decision(pod(), *nodes(2), profile=profile)

    assert found.refused is not None
    assert (found.refused.plugin, found.refused.reason) == ("", reason)
    assert found.message == f"0/2 nodes are available: {reason}. not found"


def test_nodes_that_two_plugins_name_are_those_that_both_name() -> None:
    both = (Naming("Ant", "n000", "n001"), Naming("Zebra", "n001", "n002"))
    profile = replace(DEFAULT, pre_filters=(*both, *DEFAULT.pre_filters))

    found = decision(pod(), *nodes(3), profile=profile)

    assert found.node == "n001"
    assert found.reasons == {"node(s) didn't satisfy plugin(s) [Ant Zebra]": 2}


# Refusals -----------------------------------------------------------------------------------------


def using(*names: str) -> Pod:
    return pod("p", volumes=[claim_volume(name) for name in names])


LOST = claim("c", volume="v")
STORED = storage_class("late")


def lost(made: Any) -> Any:

    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, phase="Lost"))


def leaving(made: Any) -> Any:

    meta = msgspec.structs.replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(made, metadata=meta)


@cases(
    ("wanted", "others", "plugin", "reason"),
    {
        "a term that names two different nodes": (
            pod(
                node_affinity=[
                    node_term(fields=[named("n000"), named("n001")]),
                ]
            ),
            [],
            "NodeAffinity",
            "pod affinity terms conflict",
        ),
        "a claim that is missing": (
            using("c"),
            [],
            "VolumeRestrictions",
            'persistentvolumeclaim "c" not found',
        ),
        "the claim of an ephemeral volume that is still missing": (
            pod("p", volumes=[ephemeral("scratch")]),
            [],
            "VolumeBinding",
            (
                "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                '"p-scratch"'
            ),
        ),
        "a claim that only has the name of an ephemeral volume's": (
            pod("p", volumes=[ephemeral("scratch")]),
            [claim("p-scratch", volume="v"), volume("v")],
            "VolumeBinding",
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
        ),
        "a claim that lost its volume": (
            using("c"),
            [lost(claim("c", volume="v"))],
            "VolumeBinding",
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        "a claim that is leaving": (
            using("c"),
            [leaving(claim("c", volume="v")), volume("v")],
            "VolumeBinding",
            'persistentvolumeclaim "c" is being deleted',
        ),
        "a claim without a class that should be bound by now": (
            using("c"),
            [claim("c")],
            "VolumeBinding",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        "a claim of a class that does not wait": (
            using("c"),
            [claim("c", storage_class="now"), storage_class("now", mode="Immediate")],
            "VolumeBinding",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        "a claim that is about to be bound": (
            using("c"),
            [claim("c", volume="v", bound=False), volume("v")],
            "VolumeBinding",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        "a bound claim whose volume is missing": (
            using("c"),
            [claim("c", volume="v")],
            "VolumeZone",
            'persistentvolume "v" not found',
        ),
        "required affinity that cannot be read": (
            pod(affinity=[term(BROKEN)]),
            [],
            "InterPodAffinity",
            f"parsing pod: requiredAffinityTerms: {NO_OPERATOR}",
        ),
        "preferred anti-affinity that cannot be read": (
            pod(avoids=[(1, term(BROKEN))]),
            [],
            "InterPodAffinity",
            f"parsing pod: preferredAntiAffinityTerms: {NO_OPERATOR}",
        ),
    },
)
def test_refusals(wanted: Pod, others: list[Object], plugin: str, reason: str) -> None:
    found = decision(wanted, *nodes(2), *others)

    assert found.refused is not None
    assert (found.refused.plugin, found.refused.reason) == (plugin, reason)
    assert not found.refused.curable
    # No later plugin sees the pod after that.
    assert found.message == f"0/2 nodes are available: {reason}. not found"
    assert found.post_code == "Error"
    assert found.preemption is None


def test_an_ephemeral_volume_of_the_pod_itself_is_fine() -> None:
    made = owned(claim("p-scratch", volume="v"), "Pod", "default/p")  # type: ignore[arg-type]

    found = decision(pod("p", volumes=[ephemeral("scratch")]), *nodes(2), made, volume("v"))

    assert found.node == "n000"


def test_the_first_refusal_is_the_one_that_counts() -> None:
    wanted = pod(affinity=[term(BROKEN)], volumes=[claim_volume("c")])

    found = decision(wanted, *nodes(2))

    assert found.refused is not None
    assert found.refused.plugin == "VolumeRestrictions"


# Gates and claims ---------------------------------------------------------------------------------


def test_a_pod_with_gates_is_not_tried() -> None:
    gated = spec_with(pod(), scheduling_gates=[SchedulingGate("b.io/x"), SchedulingGate("a")])

    found = decision(gated, *nodes(2))

    assert found.held is not None
    assert found.held.plugin == "SchedulingGates"
    assert found.message == "waiting for scheduling gates: [b.io/x a]"
    assert (found.node, found.post_code, found.consumed) == (None, "", 0)


def test_without_the_gates_plugin_nothing_is_held() -> None:
    gated = spec_with(pod(), scheduling_gates=[SchedulingGate("x")])
    [open_gates] = configured({"plugins": {"preEnqueue": {"disabled": [{"name": "*"}]}}})

    assert decision(gated, *nodes(2), profile=open_gates).node == "n000"


def test_a_pod_whose_claim_is_missing_waits_outside_the_queue() -> None:
    entry = PodResourceClaim("gpu", resource_claim_name="mine")

    found = decision(spec_with(pod("p"), resource_claims=[entry]), *nodes(2))

    assert found.node is None
    assert found.held is not None
    assert (found.held.plugin, found.message) == (
        "DynamicResources",
        'could not find ResourceClaim "default/mine"',
    )
    assert found.post_code == ""


def test_no_nodes_at_all_is_an_error_that_nothing_follows() -> None:
    found = decision(pod())

    assert found.message == "no nodes available to schedule pods"
    assert (found.post_code, found.preemption) == ("", None)


# When no node fits --------------------------------------------------------------------------------


class Says:
    """Tries nothing, and says what it is told to."""

    kinds: tuple[str, ...] = ()
    evicts_pods = False

    def __init__(self, name: str, code: str, reason: str = "") -> None:
        self.name = name
        self.outcome = Outcome(code, reason)
        self.asked = 0

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        self.asked += 1
        return self.outcome
        yield


U, UU = "Unschedulable", "UnschedulableAndUnresolvable"


@pytest.mark.unverified
@cases(
    ("codes", "asked", "code", "message"),
    {
        "words are collected": ([(U, "a"), (U, "b")], 2, U, "a, b"),
        "success says nothing": ([(U, "a"), ("Success", "")], 2, "Success", ""),
        "success ends it": ([("Success", ""), (U, "b")], 1, "Success", ""),
        "hopeless ends it": ([(UU, "a"), (U, "b")], 1, UU, "a"),
        "so does an error": ([(U, "a"), ("Error", "b"), (U, "c")], 2, "Error", "b"),
    },
)
def test_what_follows_when_no_node_fits(
    codes: list[tuple[str, str]], asked: int, code: str, message: str
) -> None:
    said = [Says(f"s{i}", *each) for i, each in enumerate(codes)]
    profile = replace(DEFAULT, post_filters=tuple(said))

    found = decision(pod(requests={"cpu": "2000"}), *nodes(2), profile=profile)

    assert sum(each.asked for each in said) == asked
    assert (found.post_code, found.post_message) == (code, message)
    tail = f" {message}" if message else ""
    assert found.message == f"0/2 nodes are available: 2 Insufficient cpu.{tail}"


def test_without_anything_to_try_the_nodes_have_the_last_word() -> None:
    [alone] = configured({"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}})

    found = decision(pod(requests={"cpu": "2000"}), *nodes(2), profile=alone)

    assert found.message == "0/2 nodes are available: 2 Insufficient cpu."


def test_counts_sort_as_text() -> None:
    made = [
        *(node(f"a{i}", unschedulable=True) for i in range(10)),
        *(node(f"b{i}", cpu="1") for i in range(2)),
        *(node(f"c{i}", pods=0) for i in range(9)),
    ]

    found = decision(pod(requests={"cpu": "2"}), *made)

    assert found.message.startswith(
        "0/21 nodes are available: 10 node(s) were unschedulable, 2 Insufficient cpu, "
        "9 Too many pods. no new claims"
    )
