"""v1.13 affinity between pods, counted per topology domain or by walking pods.

A pod on a node that does not exist (or a selector that cannot be compiled) makes the counts per
topology domain unavailable: MatchInterPodAffinity then walks pods, by rules of its own.
"""

from __future__ import annotations

from builders import (
    BROKEN,
    Said,
    decided,
    judged,
    node,
    on,
    pod,
    profile,
    scored,
    term,
    view,
)
from cases import cases
from podium.engine.rules.pod_affinity import (
    InterPodAffinityPriority,
    MatchInterPodAffinity,
)
from podium.objects.kinds.pod import Pod

OWN = ("node(s) didn't match pod affinity/anti-affinity", "node(s) didn't match pod affinity rules")
OWN_ANTI = (OWN[0], "node(s) didn't match pod anti-affinity rules")
EXISTING = (OWN[0], "node(s) didn't satisfy existing pods anti-affinity rules")
FITS = ()
A = node("a", labels={"zone": "1", "rack": "r1", "disk": "ssd"})
B = node("b", labels={"zone": "2", "rack": "r1", "disk": "ssd"})
C = node("c")
D = node("d", labels={"zone": "1"})
STRANGER = pod("stranger", node="ghost")
X = {"app": "x"}
Y = {"app": "y"}


@cases(
    ("others", "wanted", "fast", "slow"),
    {
        "affinity to one term is the same rule": (
            [pod("x", node="a", labels=X)],
            pod(affinity=[term(X)]),
            {"a": FITS, "b": OWN, "c": OWN},
            {"a": FITS, "b": OWN, "c": OWN},
        ),
        "a pod that meets all terms in all topologies is enough": (
            [
                pod("x", node="a", labels={**X, "tier": "t"}),
                pod("z", node="b", labels={**X, "tier": "t"}),
            ],
            pod(affinity=[term(X, "zone"), term({"tier": "t"}, "rack")]),
            {"a": FITS, "b": FITS, "c": OWN},
            {"a": FITS, "b": FITS, "c": OWN},
        ),
        "one pod must share every topology, not one pod for each": (
            [pod("x", node="d", labels=X), pod("z", node="b", labels=X)],
            pod(affinity=[term(X, "zone"), term(X, "disk")]),
            {"a": FITS, "b": FITS, "c": OWN},
            {"a": OWN, "b": FITS, "c": OWN},
        ),
        "the first of a group may start anywhere, also where the key is missing": (
            [],
            pod(labels=X, affinity=[term(X)]),
            {"a": FITS, "b": FITS, "c": FITS},
            {"a": FITS, "b": FITS, "c": FITS},
        ),
        "but not one that means others": (
            [],
            pod(labels=Y, affinity=[term(X)]),
            {"a": OWN, "b": OWN, "c": OWN},
            {"a": OWN, "b": OWN, "c": OWN},
        ),
        "a pod where no key is counts as one that exists only for the slow rule": (
            [pod("x", node="c", labels=X)],
            pod(labels=X, affinity=[term(X)]),
            {"a": FITS, "b": FITS, "c": FITS},
            {"a": OWN, "b": OWN, "c": OWN},
        ),
        "anti-affinity is broken by a pod that meets all terms": (
            [pod("x", node="a", labels={**X, "tier": "t"})],
            pod(anti=[term(X), term({"tier": "t"})]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
        ),
        "a pod that meets one of two anti-affinity terms breaks the fast rule only": (
            [pod("x", node="a", labels=X)],
            pod(anti=[term(X), term(Y)]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": FITS, "b": FITS, "c": FITS},
        ),
        "and it must share all topologies, not one": (
            [pod("x", node="a", labels=X)],
            pod(anti=[term(X, "zone"), term(X, "rack")]),
            {"a": OWN_ANTI, "b": OWN_ANTI, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
        ),
        "the anti-affinity of placed pods is the same rule": (
            [pod("x", node="a", anti=[term(Y)])],
            pod(labels=Y),
            {"a": EXISTING, "b": FITS, "c": FITS},
            {"a": EXISTING, "b": FITS, "c": FITS},
        ),
        "each of their terms counts by itself in both rules": (
            [pod("x", node="a", anti=[term(Y), term({"none": "such"})])],
            pod(labels=Y),
            {"a": EXISTING, "b": FITS, "c": FITS},
            {"a": EXISTING, "b": FITS, "c": FITS},
        ),
        "a pod that is being deleted counts fully": (
            [pod("x", node="a", labels=X, terminating=True)],
            pod(anti=[term(X)]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
        ),
        "pods of another namespace are not meant": (
            [pod("x", namespace="other", node="a", labels=X)],
            pod(anti=[term(X)]),
            {"a": FITS, "b": FITS, "c": FITS},
            {"a": FITS, "b": FITS, "c": FITS},
        ),
        "unless it is named": (
            [pod("x", namespace="other", node="a", labels=X)],
            pod(anti=[term(X, namespaces=["other"])]),
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
            {"a": OWN_ANTI, "b": FITS, "c": FITS},
        ),
    },
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


@cases(
    ("others", "wanted", "expected"),
    {
        "an invalid anti-affinity selector of a placed pod is an error for every pod": (
            [pod("x", node="a", anti=[term(BROKEN)])],
            pod("web"),
            (
                "Failed to get all terms that pod default/web matches, err: "
                '"Near" is not a valid pod selector operator'
            ),
        ),
        "an invalid affinity selector is an error as soon as there is a pod": (
            [pod("x", node="a")],
            pod("web", affinity=[term(BROKEN)]),
            (
                "Cannot schedule pod default/web onto node a, because of PodAffinity, err: "
                '"Near" is not a valid pod selector operator'
            ),
        ),
        "without any pod it is affinity that is not met": (
            [],
            pod("web", affinity=[term(BROKEN)]),
            OWN,
        ),
        "an invalid anti-affinity selector counts as broken": (
            [pod("x", node="a")],
            pod("web", anti=[term(BROKEN)]),
            OWN_ANTI,
        ),
        "unless there is no other pod": ([], pod("web", anti=[term(BROKEN)]), FITS),
    },
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


def test_preferences_do_not_see_pods_on_unknown_nodes() -> None:
    liked = pod("x", node="ghost", labels=X)
    liking = pod("y", node="ghost", prefers=[(5, term(Y, "zone"))])
    columns = view(A, B, liked, liking)

    found = scored(InterPodAffinityPriority(), pod(labels=Y, prefers=[(1, term(X))]), columns)

    assert found == {"a": 0, "b": 0}


@cases(
    "stranger",
    {
        "preferred affinity": pod("x", node="ghost", prefers=[(1, term(BROKEN))]),
        "preferred distance": pod("x", node="ghost", avoids=[(1, term(BROKEN))]),
        "required affinity": pod("x", node="ghost", affinity=[term(BROKEN)]),
    },
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


PLAIN = node("plain")


Z1 = node("z1", labels={"zone": "1"})
Z2 = node("z2", labels={"zone": "2"})


@cases(
    ("others", "wanted", "expected"),
    {
        "no matching pod": ([], pod(prefers=[(5, term(X))]), [0, 0, 0]),
        "a matching pod": (on("z1", 1), pod(prefers=[(5, term(X))]), [10, 0, 0]),
        "one that it dislikes": (on("z1", 1), pod(avoids=[(5, term(X))]), [0, 10, 10]),
        "more is better": ([*on("z1", 1), *on("z2", 2)], pod(prefers=[(5, term(X))]), [5, 10, 0]),
        "zero lies in between": (
            [*on("z1", 1), *on("z2", 1, labels={"app": "y"})],
            pod(prefers=[(4, term(X))], avoids=[(1, term({"app": "y"}))]),
            [10, 0, 2],
        ),
        "being liked": (on("z1", 1, labels={}, prefers=[(3, term(X))]), pod(labels=X), [10, 0, 0]),
        "being disliked": (
            on("z1", 1, labels={}, avoids=[(3, term(X))]),
            pod(labels=X),
            [0, 10, 10],
        ),
        "being required, at the weight of the profile": (
            on("z1", 1, labels={}, affinity=[term(X)]),
            pod(labels=X),
            [10, 0, 0],
        ),
        "required distance is the predicate's matter": (
            on("z1", 1, labels={}, anti=[term(X)]),
            pod(labels=X),
            [0, 0, 0],
        ),
        "an empty key never matches": (on("z1", 1), pod(prefers=[(5, term(X, ""))]), [0, 0, 0]),
        "nor does a missing one": (on("plain", 1), pod(prefers=[(5, term(X))]), [0, 0, 0]),
        "pods that are being deleted count": (
            on("z1", 1, terminating=True),
            pod(prefers=[(5, term(X))]),
            [10, 0, 0],
        ),
        "no selector, no pods": (on("z1", 1), pod(prefers=[(5, term(None))]), [0, 0, 0]),
        "an empty one, all pods": (on("z1", 1), pod(prefers=[(5, term({}))]), [10, 0, 0]),
    },
)
def test_preferred_pod_affinity(others: list[Pod], wanted: Pod, expected: list[int]) -> None:
    found = scored(InterPodAffinityPriority(), wanted, view(Z1, Z2, PLAIN, *others))

    assert list(found.values()) == expected


def test_equal_positive_counts_are_all_best() -> None:
    columns = view(Z1, Z2, *on("z1", 1), *on("z2", 1))

    assert scored(InterPodAffinityPriority(), pod(prefers=[(5, term(X))]), columns) == {
        "z1": 10,
        "z2": 10,
    }


def test_required_affinity_weighs_against_preferences() -> None:
    liking = on("z1", 1, labels={}, affinity=[term(X)])
    preferring = on("z2", 1, labels={}, prefers=[(4, term(X))])
    columns = view(Z1, Z2, *liking, *preferring)

    assert scored(InterPodAffinityPriority(1), pod(labels=X), columns) == {"z1": 2, "z2": 10}
    assert scored(InterPodAffinityPriority(8), pod(labels=X), columns) == {"z1": 10, "z2": 5}
    assert scored(InterPodAffinityPriority(0), pod(labels=X), columns) == {"z1": 0, "z2": 10}


def test_counts_come_from_all_nodes_but_scores_go_to_feasible_ones() -> None:
    far = node("far", labels={"zone": "1"})
    columns = view(Z1, Z2, far, *on("far", 1))

    found = scored(
        InterPodAffinityPriority(), pod(prefers=[(5, term(X))]), columns, among=["z1", "z2"]
    )

    assert found == {"z1": 10, "z2": 0}
