"""Arguments of plugins: what is filled in, what is refused, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.preemption.plugin import DefaultPreemptionArgs
from podium.engine.rules.devices.plugin import DynamicResourcesArgs
from podium.engine.rules.node_affinity import NodeAffinityArgs
from podium.engine.rules.plugins import ShapePoint
from podium.engine.rules.pod_affinity import InterPodAffinityArgs
from podium.engine.rules.resources.balanced_allocation import NodeResourcesBalancedAllocationArgs
from podium.engine.rules.resources.fit import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
)
from podium.engine.rules.spreading import PodTopologySpreadArgs
from podium.engine.rules.volumes.binding import VolumeBindingArgs
from podium.objects.kinds.pod import NodeAffinity
from profiles.config.documents import (
    BUILDING,
    Document,
    config,
    disabled,
    loaded,
    profile_of,
    refused,
    with_args,
)

ARGS = "profiles[0].pluginConfig[0].args"
CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
SECOND = 1_000_000_000


def args_of(plugin: str, **args: Any) -> Any:
    return profile_of(with_args(plugin, **args)).args[plugin]


def test_defaults_of_every_plugin() -> None:
    assert profile_of(config()).args == {
        "DefaultPreemption": DefaultPreemptionArgs(10, 100),
        "DynamicResources": DynamicResourcesArgs(10 * SECOND, 600 * SECOND),
        "InterPodAffinity": InterPodAffinityArgs(1),
        "NodeAffinity": NodeAffinityArgs(None),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(CPU_AND_MEMORY),
        "NodeResourcesFit": NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy("LeastAllocated", CPU_AND_MEMORY)
        ),
        "PodTopologySpread": PodTopologySpreadArgs((), "System"),
        "VolumeBinding": VolumeBindingArgs(600, None),
    }


def test_a_plugin_that_is_off_gets_no_arguments() -> None:
    document = config(profiles=[{"plugins": {"multiPoint": disabled("NodeAffinity")}}])

    assert "NodeAffinity" not in profile_of(document).args


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": 0},
            DefaultPreemptionArgs(10, 0),
            id="a field left out",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated"}},
            NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("MostAllocated", CPU_AND_MEMORY)),
            id="a strategy without resources",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "x.y/z"}]}},
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy("MostAllocated", (ResourceSpec("x.y/z", 1),))
            ),
            id="a weight of 0 is 1",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "ignoredResources": ["a.b/c"],
                "ignoredResourceGroups": ["a.b"],
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "cpu", "weight": 100}, {"name": "cpu", "weight": 1}],
                    "requestedToCapacityRatio": {"shape": [{"utilization": 5, "score": 10}]},
                },
            },
            NodeResourcesFitArgs(
                ("a.b/c",),
                ("a.b",),
                ScoringStrategy(
                    "RequestedToCapacityRatio",
                    (ResourceSpec("cpu", 100), ResourceSpec("cpu", 1)),
                    RequestedToCapacityRatioParam((ShapePoint(5, 10),)),
                ),
            ),
            id="all of it, and a resource twice",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}]},
            NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 1),)),
            id="one resource",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "0s", "bindingTimeout": "1s"},
            DynamicResourcesArgs(0, SECOND),
            id="no timeout",
        ),
        pytest.param(
            "NodeAffinity",
            {"addedAffinity": {}},
            NodeAffinityArgs(NodeAffinity()),
            id="an empty affinity",
        ),
    ],
)
def test_what_is_filled_in(plugin: str, args: Any, expected: Any) -> None:
    assert args_of(plugin, **args) == expected


def spread(**constraint: Any) -> Document:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return with_args(
        "PodTopologySpread", defaultingType="List", defaultConstraints=[{**whole, **constraint}]
    )


def affinity(**requirement: Any) -> Document:
    return with_args(
        "NodeAffinity",
        addedAffinity={
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [requirement]}]
            }
        },
    )


def field(**requirement: Any) -> Document:
    return with_args(
        "NodeAffinity",
        addedAffinity={
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 0, "preference": {"matchFields": [{"operator": "ignored"}]}},
                {"weight": 1, "preference": {"matchFields": [requirement]}},
            ]
        },
    )


CONSTRAINT = f"{ARGS}.defaultConstraints[0]"
TERM = (
    f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    ".matchExpressions[0]"
)
FIELD = f"{ARGS}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].matchFields[0]"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param(
            with_args("DefaultPreemption", minCandidateNodesPercentage=101),
            f"{ARGS}.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
            id="percentage of candidates",
        ),
        pytest.param(
            with_args("DefaultPreemption", minCandidateNodesAbsolute=-1),
            f"{ARGS}.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            id="number of candidates",
        ),
        pytest.param(
            with_args(
                "DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0
            ),
            f"[{ARGS}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same "
            f"time as minCandidateNodesAbsolute, {ARGS}.minCandidateNodesAbsolute: Invalid value: "
            "0: cannot be zero at the same time as minCandidateNodesPercentage]",
            id="no candidates",
        ),
        pytest.param(
            with_args("InterPodAffinity", hardPodAffinityWeight=101),
            f"{ARGS}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
            id="hard weight",
        ),
        pytest.param(
            affinity(key="a", operator="In", values=[]),
            f"{TERM}.values: Invalid value: []: for 'in', 'notin' operators, values set can't be "
            "empty",
            id="In nothing",
        ),
        pytest.param(
            affinity(key="a", operator="NotIn"),
            f"{TERM}.values: Invalid value: null: for 'in', 'notin' operators, values set can't be "
            "empty",
            id="NotIn what is not there",
        ),
        pytest.param(
            affinity(key="a", operator="Exists", values=["x"]),
            f'{TERM}.values: Invalid value: ["x"]: values set must be empty for exists and does '
            "not exist",
            id="Exists with a value",
        ),
        pytest.param(
            affinity(key="a", operator="Gt", values=["1", "b"]),
            f"[{TERM}.values: Invalid value: [\"1\",\"b\"]: for 'Gt', 'Lt' operators, exactly one "
            f"value is required, {TERM}.values[1]: Invalid value: \"b\": for 'Gt', 'Lt' operators, "
            "the value must be an integer]",
            id="Gt of two",
        ),
        pytest.param(
            affinity(key="a", operator="is", values=["x"]),
            f'{TERM}.operator: Unsupported value: "is": supported values: "In", "NotIn", "Exists", '
            '"DoesNotExist", "Gt", "Lt"',
            id="an unknown operator",
        ),
        pytest.param(
            affinity(key="", operator="Exists"),
            f'{TERM}.key: Invalid value: "": name part must be non-empty; name part must consist '
            "of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            id="no key",
        ),
        pytest.param(
            affinity(key="a", operator="In", values=["x", "-"]),
            f'{TERM}.values[1][a]: Invalid value: "-": a valid label must be an empty string or '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            id="no label value",
        ),
        pytest.param(
            field(key="metadata.name", operator="In", values=["a", "b"]),
            f'{FIELD}.values: Invalid value: ["a","b"]: must have one element',
            id="a field with two values",
        ),
        pytest.param(
            field(key="metadata.name", operator="Exists"),
            f'{FIELD}.operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
            id="a field that exists",
        ),
        pytest.param(
            with_args("NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 2}]),
            f"{ARGS}.resources[0].weight: Invalid value: 2: must be 1",
            id="balance has no weights",
        ),
        pytest.param(
            with_args(
                "NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "cpu"}]
            ),
            f'{ARGS}.resources[1].name: Duplicate value: "cpu"',
            id="balance of a resource with itself",
        ),
        pytest.param(
            with_args("PodTopologySpread", defaultingType="Own"),
            f'{ARGS}.defaultingType: Unsupported value: "Own": supported values: "System", "List"',
            id="an unknown kind of defaults",
        ),
        pytest.param(
            with_args(
                "PodTopologySpread",
                defaultConstraints=[
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                ],
            ),
            f'{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not '
            "empty",
            id="constraints need the kind List",
        ),
        pytest.param(
            spread(maxSkew=0),
            f"{CONSTRAINT}.maxSkew: Invalid value: 0: not in valid range (0, inf)",
            id="no skew",
        ),
        pytest.param(
            spread(topologyKey=""),
            f"{CONSTRAINT}.topologyKey: Required value: can not be empty",
            id="no topology",
        ),
        pytest.param(
            spread(topologyKey="a/"),
            f'[{CONSTRAINT}.topologyKey: Invalid value: "a/": name part must be non-empty, '
            f'{CONSTRAINT}.topologyKey: Invalid value: "a/": name part must consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]",
            id="no label",
        ),
        pytest.param(
            spread(whenUnsatisfiable=""),
            f"{CONSTRAINT}.whenUnsatisfiable: Required value: can not be empty",
            id="no action",
        ),
        pytest.param(
            spread(whenUnsatisfiable="Panic"),
            f'{CONSTRAINT}.whenUnsatisfiable: Unsupported value: "Panic": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"',
            id="an unknown action",
        ),
        pytest.param(
            spread(labelSelector={}),
            f"{CONSTRAINT}.labelSelector: Forbidden: constraint must not define a selector, as "
            "they deduced for each pod",
            id="a selector",
        ),
        pytest.param(
            with_args(
                "PodTopologySpread",
                defaultingType="List",
                defaultConstraints=[
                    {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                    for skew in (1, 2)
                ],
            ),
            f'{ARGS}.defaultConstraints[1]: Duplicate value: "{{zone, DoNotSchedule}}"',
            id="the same constraint twice",
        ),
        pytest.param(
            with_args("VolumeBinding", bindTimeoutSeconds=-1),
            f"{ARGS}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not "
            "be a negative value",
            id="a time that has passed",
        ),
        pytest.param(
            with_args("VolumeBinding", shape=[{"utilization": 0, "score": 1}]),
            f'{ARGS}.shape: Invalid value: [{{"Utilization":0,"Score":1}}]: unexpected field '
            "`shape`, remove it or turn on the feature gate StorageCapacityScoring",
            id="a shape without its gate",
        ),
        pytest.param(
            with_args("VolumeBinding", shape=[]),
            f"{ARGS}.shape: Invalid value: []: unexpected field `shape`, remove it or turn on the "
            "feature gate StorageCapacityScoring",
            id="an empty shape is one",
        ),
        pytest.param(
            with_args("DynamicResources", filterTimeout="-1s"),
            f'{ARGS}.filterTimeout: Invalid value: "-1s": must be zero or positive',
            id="a filter timeout that has passed",
        ),
        pytest.param(
            with_args("DynamicResources", bindingTimeout="999ms"),
            f'{ARGS}.bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            id="a binding timeout too short",
        ),
    ],
)
def test_refused_with_the_file(document: Document, text: str) -> None:
    assert refused(document).text == text


SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


def ratio(*points: tuple[int, int]) -> Document:
    shape = [{"utilization": x, "score": y} for x, y in points]
    return {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": shape},
        }
    }


@pytest.mark.parametrize(
    ("args", "text"),
    [
        pytest.param(
            {"scoringStrategy": {"type": "X"}},
            'scoringStrategy.type: Unsupported value: "X": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"',
            id="an unknown strategy",
        ),
        pytest.param(
            {"scoringStrategy": {}},
            'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"',
            id="a strategy must say its type",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 101}],
                }
            },
            "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not "
            "in valid range (0, 100]",
            id="a heavy resource",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type "
            "is RequestedToCapacityRatio",
            id="a ratio without a line",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {}}},
            "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not "
            "RequestedToCapacityRatio",
            id="a line without a ratio",
        ),
        pytest.param(
            ratio(),
            f"{SHAPE}: Required value: at least one point must be specified",
            id="no points",
        ),
        pytest.param(
            ratio((0, 1), (0, 2), (0, 3)),
            f"{SHAPE}[1].utilization: Invalid value: 0: values must be sorted in increasing order",
            id="the first that does not rise",
        ),
        pytest.param(
            ratio((-1, 11)),
            f"[{SHAPE}[0].utilization: Invalid value: -1: not in valid range [0, 100], "
            f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]]",
            id="out of range",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["a/b"]},
            'ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can\'t contain '
            "'/'",
            id="a group with a slash",
        ),
        pytest.param(
            {"ignoredResources": [""]},
            '[ignoredResources[0]: Invalid value: "": name part must be non-empty, '
            'ignoredResources[0]: Invalid value: "": name part must consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]",
            id="a resource without a name",
        ),
    ],
)
def test_refused_by_the_plugin_itself(args: Document, text: str) -> None:
    found = refused(with_args("NodeResourcesFit", **args)).text

    assert found == f'{BUILDING}initializing plugin "NodeResourcesFit": {text}'


def test_a_plugin_that_is_off_refuses_nothing() -> None:
    document = config(
        profiles=[
            {
                "plugins": {"multiPoint": disabled("NodeResourcesFit")},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {}}}],
            }
        ]
    )

    assert loaded(document).profiles


def test_capacity_is_scored_with_its_gate() -> None:
    document = with_args("VolumeBinding")
    found = profile_of(document, StorageCapacityScoring=True).args["VolumeBinding"]

    assert found == VolumeBindingArgs(600, (ShapePoint(0, 10), ShapePoint(100, 0)))


@pytest.mark.parametrize(
    ("args", "gates", "text"),
    [
        pytest.param(
            {"filterTimeout": "1s"},
            {"DRASchedulerFilterTimeout": False},
            f"{ARGS}.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
            id="no filter timeout",
        ),
        pytest.param(
            {"bindingTimeout": "1s"},
            {"DRADeviceBindingConditions": False},
            f"{ARGS}.bindingTimeout: Forbidden: DRADeviceBindingConditions or "
            "DRAResourceClaimDeviceStatus feature gate is disabled",
            id="no binding timeout",
        ),
    ],
)
def test_times_of_gates_that_are_off(args: Document, gates: dict[str, bool], text: str) -> None:
    assert refused(with_args("DynamicResources", **args), **gates).text == text
    assert loaded(config(), **gates).profiles
