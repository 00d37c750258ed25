"""A plan says which rules concern pods of a form, what is kept of them and when they are asked."""

from __future__ import annotations

from builders import claim_volume, pod, term
from builders_v1_36 import HOST, default_profile, view
from podium.engine.framework.plan import plan_of
from podium.engine.framework.rule import Scope
from podium.objects.kinds.pod import Pod

PROFILE = default_profile()


def kept(wanted: Pod) -> dict[tuple[str, str], tuple[Scope, str]]:
    lines = plan_of(view().pods.incoming(wanted).cls, PROFILE).lines
    return {(each.stage, each.rule): (each.scope, each.kept) for each in lines}


def test_a_plain_pod_is_decided_by_answers_per_node() -> None:
    found = kept(pod("p", requests={"cpu": "1"}))
    assert found["filter", "NodeResourcesFit"] == (Scope.RESOURCES, "an answer per node")
    assert found["score", "TaintToleration"] == (Scope.NODE, "whether it is the same")
    assert ("filter", "VolumeBinding") not in found


def test_rules_beyond_the_node_are_asked_unless_they_are_silent() -> None:
    found = kept(pod("p", anti=[term({"app": "a"}, HOST)], volumes=[claim_volume("c")]))
    assert found["filter", "InterPodAffinity"] == (Scope.CLUSTER, "whether it is silent")
    assert found["filter", "VolumeBinding"][1] == "whether it is silent"


def test_pods_of_one_form_have_one_plan() -> None:
    columns = view()
    one, other, third = (
        columns.pods.incoming(each).cls
        for each in (
            pod("p", labels={"app": "a"}),
            pod("q", labels={"app": "b"}),
            pod("r", node_selector={"disk": "ssd"}),
        )
    )
    assert plan_of(one, PROFILE) is plan_of(other, PROFILE)
    assert plan_of(one, PROFILE) is not plan_of(third, PROFILE)
