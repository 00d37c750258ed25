"""What runs where: the defaults, what changes them, and what cannot be built."""

from __future__ import annotations

from typing import Any

import pytest

from cases import cases
from podium.errors import ConfigError
from podium.profiles.config.build import EnabledPlugin, ProfileConfig
from podium.profiles.config.loading import check_together
from profiles.config.documents import (
    BUILDING,
    Document,
    at,
    config,
    disabled,
    enabled,
    names_at,
    profile_of,
    refused,
    with_plugins,
)

FILTERS = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
]
SCORES = [
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("VolumeBinding", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
]


def without(found: list[Any], *gone: Any) -> list[Any]:
    return [each for each in found if each not in gone]


def both(on: Document, off: Document) -> Document:
    return {**on, **off}


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("preEnqueue", ["SchedulingGates", "DynamicResources", "DefaultPreemption"]),
        ("queueSort", ["PrioritySort"]),
        ("preFilter", without(FILTERS, "NodeUnschedulable", "NodeName", "TaintToleration")),
        ("filter", FILTERS),
        ("postFilter", ["DynamicResources", "DefaultPreemption"]),
        (
            "preScore",
            [
                "TaintToleration",
                "NodeAffinity",
                "NodeResourcesFit",
                "VolumeBinding",
                "PodTopologySpread",
                "InterPodAffinity",
                "NodeResourcesBalancedAllocation",
            ],
        ),
        ("score", [name for name, _ in SCORES]),
        ("reserve", ["VolumeBinding", "DynamicResources"]),
        ("preBind", ["VolumeBinding", "DynamicResources"]),
        ("bind", ["DefaultBinder"]),
        ("permit", []),
        ("postBind", []),
        ("placementGenerate", []),
        ("placementScore", ["NodeResourcesFit"]),
    ],
)
def test_the_defaults(point: str, expected: list[str]) -> None:
    assert names_at(config(), point) == expected


def test_the_default_weights() -> None:
    assert at(config(), "score") == SCORES


@cases(
    ("plugins", "expected"),
    {
        "a default named again without a weight counts 1": (
            {"multiPoint": enabled("TaintToleration")},
            [("TaintToleration", 1), *SCORES[1:]],
        ),
        "a default named again keeps its place": (
            {"multiPoint": enabled(("NodeAffinity", 7))},
            [SCORES[0], ("NodeAffinity", 7), *SCORES[2:]],
        ),
        "disabled and enabled: at the end": (
            {"multiPoint": both(enabled(("NodeAffinity", 7)), disabled("NodeAffinity"))},
            [*without(SCORES, SCORES[1]), ("NodeAffinity", 7)],
        ),
        "disabled everywhere": (
            {"multiPoint": disabled("ImageLocality", "NodeAffinity")},
            without(SCORES, SCORES[1], SCORES[-1]),
        ),
        "disabled at one point": ({"score": disabled("ImageLocality")}, SCORES[:-1]),
        "enabled at one point: at the front": (
            {"score": enabled(("ImageLocality", 9))},
            [("ImageLocality", 9), *SCORES[:-1]],
        ),
        "several at the front, in their own order": (
            {"score": enabled(("ImageLocality", 9), "TaintToleration")},
            [("ImageLocality", 9), ("TaintToleration", 1), *SCORES[1:-1]],
        ),
        "disabled and enabled at one point: behind all others": (
            {"score": both(enabled(("TaintToleration", 9)), disabled("TaintToleration"))},
            [*SCORES[1:], ("TaintToleration", 9)],
        ),
        "the star leaves what the point lists": (
            {"score": both(enabled(("ImageLocality", 5)), disabled("*"))},
            [("ImageLocality", 5)],
        ),
        "disabled everywhere, enabled here: behind the others": (
            {"multiPoint": disabled("ImageLocality"), "score": enabled("ImageLocality")},
            SCORES,
        ),
        "the point's own weight goes before the shared one": (
            {
                "multiPoint": enabled(("ImageLocality", 5)),
                "score": enabled(("ImageLocality", 6)),
            },
            [("ImageLocality", 6), *SCORES[:-1]],
        ),
        "weights elsewhere are ignored": ({"filter": enabled(("NodeName", 5))}, SCORES),
        "a negative weight that comes last is taken": (
            {"multiPoint": enabled(("ImageLocality", -2))},
            [*SCORES[:-1], ("ImageLocality", -2)],
        ),
        "no scores at all": ({"score": disabled("*")}, []),
        "a stranger disabled": ({"score": disabled("Nobody")}, SCORES),
    },
)
def test_scores(plugins: Document, expected: list[tuple[str, int]]) -> None:
    assert at(with_plugins(**plugins), "score") == expected


def test_disabling_one_point_leaves_the_others() -> None:
    document = with_plugins(filter=disabled("NodeAffinity"))

    assert names_at(document, "filter") == without(FILTERS, "NodeAffinity")
    assert "NodeAffinity" in names_at(document, "preFilter")


def test_a_plugin_only_at_one_point() -> None:
    document = with_plugins(
        multiPoint=disabled("NodeAffinity"), filter=enabled("NodeAffinity", "NodePorts")
    )

    assert names_at(document, "filter") == [
        "NodePorts",
        *without(FILTERS, "NodePorts", "NodeAffinity"),
        "NodeAffinity",
    ]
    assert "NodeAffinity" not in names_at(document, "preFilter")


def test_a_list_of_ones_own() -> None:
    document = with_plugins(
        multiPoint=both(
            disabled("*"), enabled("PrioritySort", "DefaultBinder", ("ImageLocality", 4))
        )
    )

    assert at(document, "score") == [("ImageLocality", 4)]
    assert names_at(document, "filter") == []


def test_gates_bring_plugins() -> None:
    gates = {
        "GenericWorkload": True,
        "GangScheduling": True,
        "TopologyAwareWorkloadScheduling": True,
    }
    points = profile_of(config(), **gates).points

    assert points["preEnqueue"][-1].name == points["permit"][0].name == "GangScheduling"
    assert points["placementGenerate"] == (EnabledPlugin("TopologyPlacementGenerator"),)
    assert points["placementScore"] == (
        EnabledPlugin("NodeResourcesFit", 1),
        EnabledPlugin("PodGroupPodsCount", 1),
    )


ONE_SORT = 'only one queue sort plugin required for profile with scheduler name "default-scheduler"'
OVERFLOW = "score plugins: total score of Score plugins could overflow"


@cases(
    ("plugins", "text"),
    {
        "an unknown plugin at a point": (
            {"filter": enabled("Foo")},
            'FilterPlugin "Foo" does not exist',
        ),
        "an unknown plugin everywhere": (
            {"multiPoint": enabled("Foo")},
            'PreFilterPlugin "Foo" does not exist',
        ),
        "a removed plugin everywhere is only unknown": (
            {"multiPoint": enabled("EBSLimits")},
            'PreFilterPlugin "EBSLimits" does not exist',
        ),
        "a plugin at the wrong point": (
            {"score": enabled("NodeName")},
            'plugin "NodeName" does not extend ScorePlugin plugin',
        ),
        "a plugin at another wrong point": (
            {"preEnqueue": enabled("NodeName")},
            'plugin "NodeName" does not extend PreEnqueuePlugin plugin',
        ),
        "twice at a point": (
            {"filter": enabled("NodeName", "NodeName")},
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        "twice everywhere": (
            {"multiPoint": enabled("NodeName", "NodeName")},
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        "no order of the queue": ({"queueSort": disabled("*")}, f"{ONE_SORT}, but got 0"),
        "nothing at all": ({"multiPoint": disabled("*")}, f"{ONE_SORT}, but got 0"),
        "nobody binds": (
            {"bind": disabled("DefaultBinder")},
            (
                "at least one bind plugin is needed for profile with scheduler name "
                '"default-scheduler"'
            ),
        ),
        "a negative weight and others after it": (
            {"multiPoint": enabled(("TaintToleration", -1))},
            OVERFLOW,
        ),
        "a negative weight at the front": ({"score": enabled(("ImageLocality", -1))}, OVERFLOW),
        "a negative weight among placements": (
            {"placementScore": enabled(("NodeResourcesFit", -1), "PodGroupPodsCount")},
            f"placement {OVERFLOW}",
        ),
    },
)
def test_what_cannot_be_built(plugins: Document, text: str) -> None:
    assert refused(with_plugins(**plugins)).text == f"{BUILDING}{text}"


def test_two_generators_of_placements() -> None:
    # The real program knows one only, and so does the registry; a second is a repetition.
    document = with_plugins(
        placementGenerate=enabled("TopologyPlacementGenerator", "TopologyPlacementGenerator")
    )

    assert refused(document).text == (
        f'{BUILDING}plugin "TopologyPlacementGenerator" already registered as '
        '"PlacementGeneratePlugin"'
    )


@pytest.mark.parametrize(
    ("plugins", "hint"),
    [
        ({"filter": enabled("NodePort")}, "did you mean NodePorts?"),
        (
            {"score": enabled("NodePorts")},
            "it takes part in: preFilter, filter",
        ),
    ],
)
def test_hints(plugins: Document, hint: str) -> None:
    assert refused(with_plugins(**plugins)).hint == hint


def profile(name: str, sort: str = "PrioritySort", args: Any = None) -> ProfileConfig:
    unread = {} if args is None else {sort: args}
    return ProfileConfig(name, None, {"queueSort": (EnabledPlugin(sort),)}, {}, unread)


@cases(
    ("profiles", "text"),
    {
        "no profile": ((), "at least one profile is required"),
        "the same name": (
            (profile("x"), profile("x")),
            'initializing profiles: duplicate profile with scheduler name "x"',
        ),
        "another order of the queue": (
            (profile("a", "Q1"), profile("b", "Q2")),
            (
                'initializing profiles: different queue sort plugins for profile "b": "Q2", '
                'first: "Q1"'
            ),
        ),
        "another argument for it": (
            (profile("a"), profile("b", args={"x": 1})),
            'initializing profiles: different queue sort plugin args for profile "b"',
        ),
    },
)
def test_profiles_that_cannot_share_a_queue(profiles: tuple[ProfileConfig, ...], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_together(profiles)

    assert caught.value.text == text


def test_arguments_of_the_order_that_comes_by_default() -> None:
    document = config(
        profiles=[
            {"schedulerName": "a"},
            {"schedulerName": "b", "pluginConfig": [{"name": "PrioritySort", "args": {"x": 1}}]},
        ]
    )

    assert refused(document).text == (
        'initializing profiles: different queue sort plugin args for profile "b"'
    )


@pytest.mark.parametrize(
    ("plugins", "notes"),
    [
        ({}, []),
        (
            {"multiPoint": enabled("TaintToleration")},
            ["TaintToleration is listed under multiPoint without a weight: it is 1, not 3"],
        ),
        (
            {"score": enabled("NodeAffinity")},
            ["NodeAffinity is listed under score without a weight: it is 1, not 2"],
        ),
        (
            {"filter": enabled(("NodeName", 5))},
            ["the weight of NodeName at filter is ignored"],
        ),
        ({"filter": disabled("X")}, ["filter.disabled: there is no plugin X"]),
        (
            {"preFilter": disabled("NodePorts")},
            ["NodePorts fails every pod: it is at filter and not at preFilter"],
        ),
        (
            {"preFilter": disabled("VolumeBinding"), "filter": disabled("VolumeBinding")},
            ["VolumeBinding fails every pod: it is at reserve and not at preFilter"],
        ),
        (
            {"preScore": disabled("InterPodAffinity")},
            ["InterPodAffinity fails every pod: it is at score and not at preScore"],
        ),
        (
            {"filter": disabled("NodeResourcesFit")},
            ["NodeResourcesFit is not at filter: nothing keeps pods off full nodes"],
        ),
    ],
)
def test_what_is_good_to_know(plugins: Document, notes: list[str]) -> None:
    assert list(profile_of(with_plugins(**plugins)).notes) == notes


def test_arguments_of_a_stranger_are_noted() -> None:
    document = config(profiles=[{"pluginConfig": [{"name": "Own", "args": {"x": [1, 2.5]}}]}])
    found = profile_of(document)

    assert found.unread_args == {"Own": {"x": [1, 2.5]}}
    assert found.notes == ("the arguments of Own are not read: there is no such plugin",)
