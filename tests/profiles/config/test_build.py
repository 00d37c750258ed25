"""Engine profiles made from configurations."""

from __future__ import annotations

from typing import Any

import pytest

from builders import claim_volume, gce, node, pod, simulation
from cases import cases
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.engine.preemption.plugin import DefaultPreemption
from podium.engine.rules.pod_affinity import InterPodAffinityScore
from podium.engine.rules.resources.fit import NodeResourcesFit, NodeResourcesFitScore
from podium.engine.rules.spreading import PodTopologySpread
from podium.errors import ConfigError
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options
from profiles.config.documents import (
    Document,
    built,
    config,
    disabled,
    enabled,
    loaded,
    refused,
    with_args,
    with_plugins,
)

DISK_CONFLICT = "node(s) had no available disk"


def names(rules: Any) -> list[str]:
    return [rule.name for rule in rules]


def rule(profile: Profile, kind: type) -> Any:
    rules = [*profile.predicates, *(w.priority for w in profile.priorities), *profile.post_filters]
    [found] = [each for each in rules if isinstance(each, kind)]
    return found


def decision(profile: Profile, wanted: Pod, *items: Object) -> Decision:
    return simulation(*items, profile=profile, listed_order=True).attempt(wanted, recording=True)


def test_the_default_profile() -> None:
    [profile] = from_config(default_config(), Options())

    assert profile.name == "v1.37 default-scheduler"
    assert names(profile.predicates)[:4] == [
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
    ]
    assert names(profile.pre_filters)[:2] == ["NodeName", "NodeUnschedulable"]
    assert names(profile.post_filters) == ["DynamicResources", "DefaultPreemption"]
    assert names(profile.gates) == ["SchedulingGates", "DynamicResources"]
    assert [(w.name, w.weight) for w in profile.priorities][:2] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
    ]
    assert (profile.max_score, profile.ties, profile.adaptive_sampling) == (100, "first", True)
    assert profile.notes == ()


def test_a_plugin_filters_and_looks_first_with_the_same_rule() -> None:
    profile = built(config())
    first = {rule.name: rule for rule in profile.pre_filters}

    assert all(first.get(rule.name, rule) is rule for rule in profile.predicates)


def test_arguments_reach_the_rules() -> None:
    profile = built(
        config(
            profiles=[
                {
                    "pluginConfig": [
                        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
                        {
                            "name": "NodeResourcesFit",
                            "args": {
                                "ignoredResources": ["a.b/c"],
                                "ignoredResourceGroups": ["x.y"],
                                "scoringStrategy": {
                                    "type": "RequestedToCapacityRatio",
                                    "resources": [{"name": "cpu", "weight": 5}],
                                    "requestedToCapacityRatio": {
                                        "shape": [{"utilization": 0, "score": 10}]
                                    },
                                },
                            },
                        },
                        {"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 3}},
                        {
                            "name": "PodTopologySpread",
                            "args": {
                                "defaultingType": "List",
                                "defaultConstraints": [
                                    {
                                        "maxSkew": 4,
                                        "topologyKey": "rack",
                                        "whenUnsatisfiable": "DoNotSchedule",
                                    }
                                ],
                            },
                        },
                    ]
                }
            ]
        )
    )

    assert rule(profile, InterPodAffinityScore).hard_weight == 7
    assert rule(profile, NodeResourcesFit).ignored == {"a.b/c"}
    assert rule(profile, NodeResourcesFit).ignored_groups == {"x.y"}
    scores = rule(profile, NodeResourcesFitScore)
    assert scores.strategy == "RequestedToCapacityRatio"
    assert scores.resources == (("cpu", 5),)
    assert rule(profile, DefaultPreemption).absolute == 3
    [constraint] = rule(profile, PodTopologySpread).defaults.constraints
    assert (constraint.max_skew, constraint.topology_key) == (4, "rack")


def test_several_profiles_in_their_order() -> None:
    document = config(profiles=[{"schedulerName": "b"}, {"schedulerName": "a"}])
    profiles = from_config(loaded(document), Options())

    assert [(p.name, p.scheduler_name) for p in profiles] == [("v1.36 b", "b"), ("v1.36 a", "a")]


@cases(
    ("document", "options", "expected"),
    {
        "all nodes, unless told otherwise": (config(), {}, 100),
        "adaptive": (config(percentageOfNodesToScore=0), {}, 0),
        "the file": (config(percentageOfNodesToScore=30), {}, 30),
        "an option goes before the file": (
            config(percentageOfNodesToScore=30),
            {"percentage_of_nodes_to_score": 0},
            0,
        ),
    },
)
def test_how_many_nodes_are_enough(document: Document, options: Any, expected: int) -> None:
    assert built(document, **options).percentage_of_nodes_to_score == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"percentage_of_nodes_to_score": 101},
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            {"feature_gates": {"GenericWorkload": True}},
            "feature gate GenericWorkload=true is not supported",
        ),
    ],
)
def test_options_that_are_refused(options: Any, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(config(), **options)

    assert caught.value.text == text


def test_an_unknown_rule_for_ties_is_refused() -> None:
    with pytest.raises(ConfigError):
        built(config(), ties="dice")


def test_preemption_can_be_left_out() -> None:
    by_option = built(config(), disable_preemption=True)
    by_file = built(with_plugins(postFilter=disabled("DefaultPreemption")))

    assert names(by_option.post_filters) == names(by_file.post_filters) == ["DynamicResources"]
    assert not by_option.preemption
    assert not by_file.preemption


# Extenders ----------------------------------------------------------------------------------


def test_extenders_that_may_fail_come_last() -> None:
    profile = built(
        config(
            extenders=[
                {"urlPrefix": "http://a", "ignorable": True},
                {"urlPrefix": "http://b", "httpTimeout": "1500ms"},
                {"urlPrefix": "http://c", "ignorable": True, "enableHTTPS": True},
            ]
        )
    )

    assert [extender.url_prefix for extender in profile.extenders] == [
        "http://b",
        "http://a",
        "http://c",
    ]
    assert [extender.timeout_seconds for extender in profile.extenders] == [1.5, 5.0, 5.0]


MANAGING = [
    {"managedResources": [{"name": "e.x/gpu", "ignoredByScheduler": True}, {"name": "e.x/tpu"}]}
]


def test_what_an_extender_takes_over_replaces_what_is_ignored() -> None:
    document = with_args("NodeResourcesFit", ignoredResources=["a.b/c"])
    profile = built({**document, "extenders": MANAGING})

    assert rule(profile, NodeResourcesFit).ignored == {"e.x/gpu"}
    assert profile.extenders[0].managed_resources == {"e.x/gpu", "e.x/tpu"}


@cases(
    ("document", "text"),
    {
        "nobody to tell what is ignored": (
            {
                **with_plugins(multiPoint=disabled("NodeResourcesFit")),
                "extenders": MANAGING,
            },
            "can't find NodeResourcesFitArgs in plugin config",
        ),
        "insecure with a certificate authority": (
            config(extenders=[{"tlsConfig": {"insecure": True, "caFile": "ca.crt"}}]),
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
    },
)
def test_extenders_that_cannot_be_built(document: Document, text: str) -> None:
    assert refused(document).text == f"couldn't build extenders: {text}"


def test_extenders_are_built_before_profiles() -> None:
    document = {
        **with_plugins(multiPoint=disabled("NodeResourcesFit"), filter=enabled("Foo")),
        "extenders": MANAGING,
    }

    assert refused(document).text.startswith("couldn't build extenders: ")


# Plugins without their preparation ------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        ("NodePorts", 'reading "PreFilterNodePorts" from cycleState: not found'),
        (
            "NodeResourcesFit",
            'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
        ),
        ("VolumeRestrictions", 'cannot read "PreFilterVolumeRestrictions" from cycleState'),
        ("VolumeBinding", "not found"),
        ("PodTopologySpread", 'reading "PreFilterPodTopologySpread" from cycleState: not found'),
        (
            "InterPodAffinity",
            'error reading "PreFilterInterPodAffinity" from cycleState: not found',
        ),
        ("DynamicResources", "not found"),
        (
            "NodeDeclaredFeatures",
            'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
        ),
    ],
)
def test_filters_that_fail_without_a_first_look(plugin: str, text: str) -> None:
    profile = built(with_plugins(preFilter=disabled(plugin)))

    made = decision(profile, pod(), node("a"))

    assert made.error == f'running "{plugin}" filter plugin: {text}'


def test_an_earlier_filter_still_rejects() -> None:
    profile = built(with_plugins(preFilter=disabled("NodePorts")))

    made = decision(profile, pod(node_selector={"x": "y"}), node("a"))

    assert made.error == ""
    assert made.node is None


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeVolumeLimits", "VolumeZone"])
def test_filters_that_do_without_a_first_look(plugin: str) -> None:
    profile = built(with_plugins(preFilter=disabled(plugin)))

    assert decision(profile, pod(), node("a")).node == "a"


def test_volume_zone_refuses_node_by_node() -> None:
    others = disabled("VolumeZone", "VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits")
    off = disabled("VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits")
    profile = built(with_plugins(preFilter=others, filter=off))

    made = decision(profile, pod(volumes=[claim_volume("gone")]), node("a"), node("b"))

    assert made.error == ""
    assert dict(made.reasons) == {'persistentvolumeclaim "gone" not found': 2}


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        ("TaintToleration", 'failed to read "PreScoreTaintToleration" from cycleState: not found'),
        (
            "PodTopologySpread",
            'error reading "PreScorePodTopologySpread" from cycleState: not found',
        ),
        (
            "InterPodAffinity",
            'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
        ),
    ],
)
def test_scores_that_fail_without_preparation(plugin: str, text: str) -> None:
    profile = built(with_plugins(preScore=disabled(plugin)))

    made = decision(profile, pod(), node("a"), node("b"))

    assert made.error == f'running Score plugins: plugin "{plugin}" failed with: {text}'
    assert decision(profile, pod(), node("a")).node == "a", "a single node needs no scores"


def test_of_several_scores_that_fail_the_first_does() -> None:
    profile = built(with_plugins(preScore=disabled("*")))

    made = decision(profile, pod(), node("a"), node("b"))

    assert made.error.startswith('running Score plugins: plugin "TaintToleration" failed with: ')


def test_devices_are_scored_only_after_a_first_look() -> None:
    off = disabled("DynamicResources")
    profile = built(with_plugins(preFilter=off, filter=off))

    made = decision(profile, pod(), node("a"), node("b"))

    assert made.error == ('running Score plugins: plugin "DynamicResources" failed with: not found')


@pytest.mark.parametrize(
    "plugin", ["NodeAffinity", "NodeResourcesBalancedAllocation", "VolumeBinding"]
)
def test_scores_that_nobody_told_to_leave_themselves_out(plugin: str) -> None:
    usual = decision(built(config()), pod(), node("a"), node("b"))
    profile = built(with_plugins(preScore=disabled(plugin)))

    made = decision(profile, pod(), node("a"), node("b"))

    assert plugin not in names(usual.scores)
    [column] = [column for column in made.scores if column.name == plugin]
    assert column.score.tolist() == [0, 0]
    assert made.totals is not None
    assert usual.totals is not None
    assert made.totals.tolist() == usual.totals.tolist()


def test_disks_are_compared_even_without_a_first_look() -> None:
    profile = built(with_plugins(preFilter=disabled("VolumeRestrictions")))
    running = pod("running", node="a", volumes=[gce("d")])
    wanted = pod(volumes=[gce("d")])

    alone = decision(profile, wanted, node("a"), running)
    with_another = decision(profile, wanted, node("a"), node("b"), running)

    assert (alone.error, dict(alone.reasons)) == ("", {DISK_CONFLICT: 1})
    assert with_another.error.endswith('cannot read "PreFilterVolumeRestrictions" from cycleState')
