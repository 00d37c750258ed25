"""What changes when facts about all pods are not to be had.

A pod on a node that nobody knows (or a selector that cannot be compiled) makes the counts per
topology domain unavailable: inter-pod affinity walks pods, by rules of its own, and the list of
resources left to extenders is lost.
"""

from __future__ import annotations

import pytest

from builders import (
    BROKEN,
    Said,
    decided,
    judged,
    node,
    pod,
    profile,
    scored,
    service,
    term,
    view,
)
from podium.engine.rules.images.v1_13 import ImageLocalityPriority
from podium.engine.rules.pod_affinity.v1_13 import InterPodAffinityPriority, MatchInterPodAffinity
from podium.engine.rules.resources.v1_13 import PodFitsResources
from podium.engine.rules.service_affinity.v1_13 import CheckServiceAffinity
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

OWN = ("node(s) didn't match pod affinity/anti-affinity", "node(s) didn't match pod affinity rules")
OWN_ANTI = (OWN[0], "node(s) didn't match pod anti-affinity rules")
EXISTING = (OWN[0], "node(s) didn't satisfy existing pods anti-affinity rules")
FITS = ()
SERVICE = ("node(s) didn't match service affinity",)

A = node("a", labels={"zone": "1", "rack": "r1", "disk": "ssd"})
B = node("b", labels={"zone": "2", "rack": "r1", "disk": "ssd"})
C = node("c")
D = node("d", labels={"zone": "1"})
STRANGER = pod("stranger", node="ghost")
X = {"app": "x"}
Y = {"app": "y"}


# Inter-pod affinity -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "wanted", "fast", "slow"),
    [
        pytest.param(
            [pod("x", node="a", labels=X)],
            pod(affinity=[term(X)]),
            {"a": FITS, "b": OWN, "c": OWN},
            {"a": FITS, "b": OWN, "c": OWN},
            id="affinity to one term is the same rule",
        ),
        pytest.param(
            [
                pod("x", node="a", labels={**X, "tier": "t"}),
                pod("z", node="b", labels={**X, "tier": "t"}),
            ],
            pod(affinity=[term(X, "zone"), term({"tier": "t"}, "rack")]),
            {"a": FITS, "b": FITS, "c": OWN},
            {"a": FITS, "b": FITS, "c": OWN},
            id="a pod that meets all terms in all topologies is enough",
        ),
        pytest.param(
            [pod("x", node="d", labels=X), pod("z", node="b", labels=X)],
            pod(affinity=[term(X, "zone"), term(X, "disk")]),
            {"a": FITS, "b": FITS, "c": OWN},
            {"a": OWN, "b": FITS, "c": OWN},
            id="one pod must share every topology, not one pod for each",
        ),
        pytest.param(
            [],
            pod(labels=X, affinity=[term(X)]),
            {"a": FITS, "b": FITS, "c": FITS},
            {"a": FITS, "b": FITS, "c": FITS},
            id="the first of a group may start anywhere, also where the key is missing",
        ),
        pytest.param(
            [],
            pod(labels=Y, affinity=[term(X)]),
            {"a": OWN, "b": OWN, "c": OWN},
            {"a": OWN, "b": OWN, "c": OWN},
            id="but not one that means others",
        ),
        pytest.param(
            [pod("x", node="c", labels=X)],
            pod(labels=X, affinity=[term(X)]),
            {"a": FITS, "b": FITS, "c": FITS},
            {"a": OWN, "b": OWN, "c": OWN},
            id="a pod where no key is counts as one that exists only for the slow rule",
        ),
        pytest.param(
            [pod("x", node="a", labels={**X, "tier": "t"})],
            pod(anti=[term(X), term({"tier": "t"})]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            id="anti-affinity is broken by a pod that meets all terms",
        ),
        pytest.param(
            [pod("x", node="a", labels=X)],
            pod(anti=[term(X), term(Y)]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": FITS, "b": FITS, "c": FITS},
            id="a pod that meets one of two anti-affinity terms breaks the fast rule only",
        ),
        pytest.param(
            [pod("x", node="a", labels=X)],
            pod(anti=[term(X, "zone"), term(X, "rack")]),
            {"a": OWN_ANTI, "b": OWN_ANTI, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            id="and it must share all topologies, not one",
        ),
        pytest.param(
            [pod("x", node="a", anti=[term(Y)])],
            pod(labels=Y),
            {"a": EXISTING, "b": FITS, "c": FITS},
            {"a": EXISTING, "b": FITS, "c": FITS},
            id="the anti-affinity of placed pods is the same rule",
        ),
        pytest.param(
            [pod("x", node="a", anti=[term(Y), term({"none": "such"})])],
            pod(labels=Y),
            {"a": EXISTING, "b": FITS, "c": FITS},
            {"a": EXISTING, "b": FITS, "c": FITS},
            id="each of their terms counts by itself in both rules",
        ),
        pytest.param(
            [pod("x", node="a", labels=X, terminating=True)],
            pod(anti=[term(X)]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            id="a pod that is being deleted counts fully",
        ),
        pytest.param(
            [pod("x", namespace="other", node="a", labels=X)],
            pod(anti=[term(X)]),
            {"a": FITS, "b": FITS, "c": FITS},
            {"a": FITS, "b": FITS, "c": FITS},
            id="pods of another namespace are not meant",
        ),
        pytest.param(
            [pod("x", namespace="other", node="a", labels=X)],
            pod(anti=[term(X, namespaces=["other"])]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            id="unless it is named",
        ),
    ],
)
def test_inter_pod_affinity_by_counts_and_by_walking(
    others: list[Pod], wanted: Pod, fast: dict[str, Said], slow: dict[str, Said]
) -> None:
    known = judged(MatchInterPodAffinity(), wanted, view(A, B, C, D, *others))
    unknown = judged(MatchInterPodAffinity(), wanted, view(A, B, C, D, *others, STRANGER))

    assert {name: known[name] for name in "abc"} == fast
    assert {name: unknown[name] for name in "abc"} == slow


def test_a_matching_pod_on_an_unknown_node_is_an_error_of_affinity() -> None:
    found = judged(
        MatchInterPodAffinity(),
        pod("web", namespace="shop", affinity=[term(X, namespaces=["shop"])]),
        view(A, B, pod("x", namespace="shop", node="ghost", labels=X)),
    )

    because = 'because of PodAffinity, err: node "ghost" not found'
    assert found == {
        "a": f"Cannot schedule pod shop/web onto node a, {because}",
        "b": f"Cannot schedule pod shop/web onto node b, {because}",
    }


def test_a_matching_pod_on_an_unknown_node_breaks_anti_affinity_everywhere() -> None:
    found = judged(
        MatchInterPodAffinity(),
        pod(anti=[term(X)]),
        view(A, B, C, pod("x", node="ghost", labels=X)),
    )

    assert found == dict.fromkeys("abc", OWN_ANTI)


def test_anti_affinity_of_a_pod_on_an_unknown_node_is_skipped() -> None:
    found = judged(
        MatchInterPodAffinity(), pod(labels=X), view(A, B, pod("x", node="ghost", anti=[term(X)]))
    )

    assert found == dict.fromkeys("ab", FITS)


def test_affinity_already_met_is_not_looked_for_on_unknown_nodes() -> None:
    # Pods are walked by node, unknown nodes last: node a finds its pod before the stranger.
    found = judged(
        MatchInterPodAffinity(),
        pod("web", affinity=[term(X)]),
        view(A, B, pod("x", node="a", labels=X), pod("y", node="ghost", labels=X)),
    )

    assert found["a"] == FITS
    assert 'node "ghost" not found' in str(found["b"])


@pytest.mark.parametrize(
    ("others", "wanted", "expected"),
    [
        pytest.param(
            [pod("x", node="a", anti=[term(BROKEN)])],
            pod("web"),
            "Failed to get all terms that pod default/web matches, err: "
            '"Near" is not a valid pod selector operator',
            id="an invalid anti-affinity selector of a placed pod is an error for everybody",
        ),
        pytest.param(
            [pod("x", node="a")],
            pod("web", affinity=[term(BROKEN)]),
            "Cannot schedule pod default/web onto node a, because of PodAffinity, err: "
            '"Near" is not a valid pod selector operator',
            id="an invalid affinity selector is an error as soon as there is a pod",
        ),
        pytest.param(
            [],
            pod("web", affinity=[term(BROKEN)]),
            OWN,
            id="without any pod it is affinity that is not met",
        ),
        pytest.param(
            [pod("x", node="a")],
            pod("web", anti=[term(BROKEN)]),
            OWN_ANTI,
            id="an invalid anti-affinity selector counts as broken",
        ),
        pytest.param(
            [],
            pod("web", anti=[term(BROKEN)]),
            FITS,
            id="unless there is nobody to be away from",
        ),
    ],
)
def test_selectors_that_cannot_be_compiled(others: list[Pod], wanted: Pod, expected: Said) -> None:
    assert judged(MatchInterPodAffinity(), wanted, view(A, *others))["a"] == expected


def test_an_invalid_selector_on_an_unknown_node_is_never_compiled() -> None:
    broken = pod("x", node="ghost", anti=[term(BROKEN)])

    assert judged(MatchInterPodAffinity(), pod(), view(A, broken)) == {"a": FITS}


def test_the_slow_rule_sees_a_pod_taken_away_on_trial() -> None:
    # Only node a could be freed; a rule that walks must not meet the victim there any more.
    low = pod("low", node="a", labels=X, priority=1)
    columns = view(A, low, STRANGER)

    decision = decided(columns, pod(anti=[term(X)], priority=9), profile(MatchInterPodAffinity()))

    assert decision.preemption is not None
    assert decision.preemption.node == "a"
    assert decision.preemption.candidates["a"].pods == ("default/low",)


# Priorities ---------------------------------------------------------------------------------------


def test_preferences_do_not_see_pods_on_unknown_nodes() -> None:
    liked = pod("x", node="ghost", labels=X)
    liking = pod("y", node="ghost", prefers=[(5, term(Y, "zone"))])
    columns = view(A, B, liked, liking)

    found = scored(InterPodAffinityPriority(), pod(labels=Y, prefers=[(1, term(X))]), columns)

    assert found == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(pod("x", node="ghost", prefers=[(1, term(BROKEN))]), id="preferred affinity"),
        pytest.param(pod("x", node="ghost", avoids=[(1, term(BROKEN))]), id="preferred distance"),
        pytest.param(pod("x", node="ghost", affinity=[term(BROKEN)]), id="required affinity"),
    ],
)
def test_an_invalid_preference_on_an_unknown_node_is_never_compiled(stranger: Pod) -> None:
    assert scored(InterPodAffinityPriority(), pod(), view(A, B, stranger)) == {"a": 0, "b": 0}


def test_own_invalid_preference_matters_only_next_to_a_pod_on_a_known_node() -> None:
    wanted = pod(prefers=[(1, term(BROKEN))])
    rules = profile(priorities=[InterPodAffinityPriority()])

    alone = decided(view(A, B, STRANGER), wanted, rules)
    together = decided(view(A, B, STRANGER, pod("x", node="a")), wanted, rules)

    assert (alone.error, alone.node) == ("", "a")
    assert together.error == '"Near" is not a valid pod selector operator'
    assert together.node is None
    assert together.preemption is None


def test_an_unknown_node_dilutes_the_spread_of_images() -> None:
    mebibyte = 1 << 20
    wide = [node("a", images={"i:1": 500 * mebibyte}), node("b")]

    two = scored(ImageLocalityPriority(), pod(image="i:1"), view(*wide))
    three = scored(ImageLocalityPriority(), pod(image="i:1"), view(*wide, STRANGER))

    assert two["a"] == 10 * (250 - 23) // 977
    assert three["a"] == 10 * (166 - 23) // 977


# Resources left to extenders ----------------------------------------------------------------------

IGNORING = PodFitsResources(ignored=frozenset({"example.com/gpu", "hugepages-2Mi"}))
GPU = ("Insufficient example.com/gpu",)


@pytest.mark.parametrize(
    ("others", "wanted", "expected"),
    [
        pytest.param([], pod(requests={"example.com/gpu": 1}), FITS, id="left to the extender"),
        pytest.param(
            [],
            pod(requests={"hugepages-2Mi": "2Mi"}),
            ("Insufficient hugepages-2Mi",),
            id="only extended resources can be left to it",
        ),
        pytest.param(
            [STRANGER],
            pod(requests={"example.com/gpu": 1}),
            GPU,
            id="checked after all next to a pod on an unknown node",
        ),
        pytest.param(
            [pod("x", node="a")],
            pod(requests={"example.com/gpu": 1}, anti=[term(BROKEN)]),
            GPU,
            id="checked after all when the pod's own selector is invalid",
        ),
        pytest.param(
            [pod("x", node="a", anti=[term(BROKEN)])],
            pod(requests={"example.com/gpu": 1}),
            GPU,
            id="checked after all when the selector of a placed pod is invalid",
        ),
    ],
)
def test_resources_left_to_an_extender(others: list[Pod], wanted: Pod, expected: Said) -> None:
    assert judged(IGNORING, wanted, view(A, *others))["a"] == expected


# Service affinity ---------------------------------------------------------------------------------

TOGETHER = CheckServiceAffinity(["zone"])
WEB = service("web", X)


@pytest.mark.parametrize(
    ("others", "wanted", "expected"),
    [
        pytest.param([WEB], pod(labels=X), {"a": (), "b": (), "c": ()}, id="the first pod is free"),
        pytest.param(
            [WEB, pod("x", node="b", labels=X)],
            pod(labels=X),
            {"a": SERVICE, "b": (), "c": SERVICE},
            id="later pods go where the first one is",
        ),
        pytest.param(
            [WEB, pod("late", node="b", labels=X), pod("early", node="a", labels=X)],
            pod(labels=X),
            {"a": (), "b": SERVICE, "c": SERVICE},
            id="the first pod is the one on the first node, not the oldest",
        ),
        pytest.param(
            [pod("x", node="b", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
            id="without a service there is nothing to stay together for",
        ),
        pytest.param(
            [service("web", Y), pod("x", node="b", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
            id="the service must select the pod",
        ),
        pytest.param(
            [WEB, pod("x", node="b", labels={**X, "more": "labels"})],
            pod(labels=X),
            {"a": SERVICE, "b": (), "c": SERVICE},
            id="pods with all labels of the pod are alike, others may have more",
        ),
        pytest.param(
            [WEB, pod("x", node="b", labels=X)],
            pod(labels={**X, "more": "labels"}),
            {"a": (), "b": (), "c": ()},
            id="pods that lack one of its labels are not",
        ),
        pytest.param(
            [WEB, pod("x", namespace="other", node="b", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
            id="nor are those of another namespace",
        ),
        pytest.param(
            [WEB, pod("x", node="b", labels=X)],
            pod(labels=X, node_selector={"zone": "1"}),
            {"a": (), "b": SERVICE, "c": SERVICE},
            id="a label that the pod selects itself is not looked up",
        ),
        pytest.param(
            [WEB, pod("x", node="c", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
            id="a first pod on a node without the label binds nobody",
        ),
        pytest.param(
            [WEB, pod("x", node="b", labels=X, terminating=True)],
            pod(labels=X),
            {"a": SERVICE, "b": (), "c": SERVICE},
            id="a pod that is being deleted still leads",
        ),
    ],
)
def test_service_affinity(
    others: list[Object], wanted: Pod, expected: dict[str, tuple[str, ...]]
) -> None:
    assert judged(TOGETHER, wanted, view(A, B, C, *others)) == expected


def test_the_first_pod_of_a_service_follows_positions_on_the_node() -> None:
    # Two pods on one node are the same choice; after the first leaves, the last takes its place.
    columns = view(A, B, WEB, *(pod(n, node="a", labels=X) for n in "uvw"), pod("z", node="b"))
    columns.remove_pod("default/u")

    assert [resident.key for resident in columns.residents[0]] == ["default/w", "default/v"]
    assert judged(TOGETHER, pod(labels=X), columns) == {"a": (), "b": SERVICE}


def test_a_first_pod_on_an_unknown_node_is_an_error() -> None:
    columns = view(A, B, WEB, pod("x", node="ghost", labels=X))

    decision = decided(columns, pod(labels=X), profile(TOGETHER))

    assert decision.error == 'node "ghost" not found (repeated 2 times)'
    assert decision.preemption is None


def test_pods_on_known_nodes_come_before_those_on_unknown_ones() -> None:
    columns = view(A, B, WEB, pod("x", node="ghost", labels=X), pod("y", node="b", labels=X))

    assert judged(TOGETHER, pod(labels=X), columns) == {"a": SERVICE, "b": ()}


def test_no_label_to_look_up_means_no_first_pod() -> None:
    columns = view(A, B, WEB, pod("x", node="ghost", labels=X))

    found = judged(TOGETHER, pod(labels=X, node_selector={"zone": "2"}), columns)

    assert found == {"a": SERVICE, "b": ()}
