"""Preemption of v1.13: eligibility, candidates, victims, budgets and the choice of a node."""

from __future__ import annotations

from builders import (
    BROKEN,
    budget,
    decided,
    ebs,
    expression,
    node,
    pod,
    profile,
    selector,
    service,
    simulation,
    taint,
    term,
    view,
)
from cases import cases
from podium.cluster.cache.columns import Columns
from podium.engine.framework.decision import Preemption, Victims
from podium.engine.framework.profile import Profile
from podium.engine.preemption.criteria import Choice, choose
from podium.engine.preemption.pod_priority import CRITERIA
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.rules.service_affinity import CheckServiceAffinity
from podium.objects.kinds.meta import LabelSelector
from podium.objects.kinds.pod import Pod

X = {"app": "x"}
CPU = {"cpu": 1}
RULES = profile()


def preempted(columns: Columns, wanted: Pod, rules: Profile = RULES) -> Preemption:
    decision = decided(columns, wanted, rules)
    assert decision.node is None, "the pod fits"
    assert decision.preemption is not None
    return decision.preemption


def victims(found: Preemption, name: str) -> list[str]:
    """Names of the victims on a node, in the order they were given up."""
    return [key.removeprefix("default/") for key in found.candidates[name].pods]


def low(
    name: str, where: str = "n", *, priority: int | None = 1, cpu: int = 1, **more: object
) -> Pod:
    return pod(name, node=where, priority=priority, requests={"cpu": cpu}, **more)  # type: ignore[arg-type]


def high(cpu: int = 1, **more: object) -> Pod:
    return pod("high", priority=9, requests={"cpu": cpu}, **more)  # type: ignore[arg-type]


# Eligibility --------------------------------------------------------------------------------------


@cases(
    ("leaving", "wanted", "eligible"),
    {
        "not nominated": ([], high(), True),
        "nominated, and no pod is leaving": ([], high(nominated="n"), True),
        "a lower pod is leaving": ([low("l", terminating=True)], high(nominated="n"), False),
        "an equal pod that leaves was not evicted for it": (
            [low("l", priority=9, terminating=True)],
            high(nominated="n"),
            True,
        ),
        "leaving another node": ([low("l", terminating=True)], high(nominated="m"), True),
        "nominated node is gone": ([low("l", terminating=True)], high(nominated="gone"), True),
        "a pod that never preempts": ([], high(preemption_policy="Never"), False),
        "a pod that says it does": ([], high(preemption_policy="PreemptLowerPriority"), True),
    },
)
def test_eligibility(leaving: list[Pod], wanted: Pod, eligible: bool) -> None:
    columns = view(node("n", cpu=1), node("m", cpu=0), low("k"), *leaving)

    found = preempted(columns, wanted)

    assert found.eligible == eligible
    if not eligible:
        assert found == Preemption(eligible=False)


def test_no_preemption_when_it_is_turned_off() -> None:
    decision = decided(view(node("n", cpu=1), low("l")), high(), profile(preemption=False))

    assert decision.preemption is None


def test_only_pods_of_strictly_lower_priority_can_go() -> None:
    columns = view(node("n", cpu=1), low("l", priority=9))

    found = preempted(columns, high())

    assert found.potential == ("n",)
    assert found.candidates == {}
    assert found.node is None


def test_a_pod_without_priority_has_zero() -> None:
    columns = view(node("n", cpu=1), low("l", priority=None))

    assert victims(preempted(columns, pod(priority=1, requests=CPU)), "n") == ["l"]
    assert preempted(columns, pod(requests=CPU)).candidates == {}
    assert preempted(columns, pod(priority=-1, requests=CPU)).candidates == {}


# Potential nodes ----------------------------------------------------------------------------------


def test_nodes_rejected_for_good_are_no_candidates() -> None:
    columns = view(
        node("busy", cpu=1, labels={"disk": "ssd"}),
        node("tainted", cpu=1, taints=[taint()], labels={"disk": "ssd"}),
        node("wrong", cpu=1),
        node("cordoned", cpu=1, unschedulable=True, labels={"disk": "ssd"}),
        *(low(f"l-{name}", name) for name in ("busy", "tainted", "wrong", "cordoned")),
    )

    found = preempted(columns, high(node_selector={"disk": "ssd"}))

    # The taint was not looked at: the node was turned down for its cpu first.
    assert found.potential == ("busy", "tainted")
    assert set(found.candidates) == {"busy"}


def test_without_potential_nodes_the_own_nomination_is_cleared() -> None:
    columns = view(node("n", unschedulable=True))

    found = preempted(columns, high(nominated="elsewhere"))

    assert found.potential == ()
    assert found.cleared == (("default/high", "default/high"),)


def test_no_candidate_among_potential_nodes_clears_nothing() -> None:
    found = preempted(view(node("n", cpu=0)), high(nominated="elsewhere"))

    assert found.potential == ("n",)
    assert (found.node, found.cleared) == (None, ())


# Victims ------------------------------------------------------------------------------------------


def test_no_more_than_needed_go_and_the_important_stay() -> None:
    columns = view(
        node("n", cpu=4),
        low("a", priority=1),
        low("b", priority=3),
        low("c", priority=2),
        low("d", priority=2),
    )

    assert victims(preempted(columns, high(cpu=2)), "n") == ["d", "a"]


def test_equals_keep_the_order_they_have_on_the_node() -> None:
    columns = view(node("n", cpu=3), *(low(name) for name in "abc"))

    assert victims(preempted(columns, high(cpu=1)), "n") == ["c"]

    columns.remove_pod("default/a")  # c takes its place
    columns.add_pod(low("e"))

    assert victims(preempted(columns, high(cpu=1)), "n") == ["e"]
    assert victims(preempted(columns, high(cpu=2)), "n") == ["b", "e"]


def test_a_small_pod_may_stay_though_a_more_important_large_one_goes() -> None:
    columns = view(node("n", cpu=4), low("large", priority=5, cpu=3), low("small", priority=1))

    assert victims(preempted(columns, high(cpu=2)), "n") == ["large"]


def test_terminating_pods_may_be_victims() -> None:
    columns = view(node("n", cpu=1), low("l", terminating=True))

    assert victims(preempted(columns, high()), "n") == ["l"]


def test_the_pods_needed_places_are_freed() -> None:
    columns = view(node("n", pods=2), low("a", priority=2), low("b", priority=1))

    assert victims(preempted(columns, pod("high", priority=9)), "n") == ["b"]


def test_a_shared_host_port_is_free_as_soon_as_one_holder_goes() -> None:
    # Used ports are a set: taking the lower pod away frees what the higher one still uses.
    columns = view(
        node("n"),
        pod("keeper", node="n", priority=10, ports=[80]),
        pod("l", node="n", priority=1, ports=[80]),
    )

    assert victims(preempted(columns, pod("high", priority=9, ports=[80])), "n") == ["l"]


def test_disks_are_freed() -> None:
    columns = view(node("n"), pod("l", node="n", priority=1, volumes=[ebs("d")]), low("k"))

    assert victims(preempted(columns, pod("h", priority=9, volumes=[ebs("d")])), "n") == ["l"]


def test_affinity_may_cost_a_victim_its_candidacy() -> None:
    # The only pod that the new one wants to be near is in its way.
    columns = view(node("n", cpu=1, labels={"zone": "1"}), low("l", labels=X))

    found = preempted(columns, high(affinity=[term(X)]))

    assert found.potential == ("n",)
    assert found.candidates == {}


def test_a_pod_that_the_preemptor_must_be_near_is_spared() -> None:
    columns = view(
        node("n", cpu=2, labels={"zone": "1"}),
        low("near", priority=1, labels=X),
        low("other", priority=5),
    )

    # Without both of them no pod matches: the pod matches its own term, so it could start there.
    found = preempted(columns, high(labels=X, affinity=[term(X)]))

    assert victims(found, "n") == ["near"]


def test_anti_affinity_of_a_placed_pod_makes_it_a_victim() -> None:
    columns = view(
        node("n", labels={"zone": "1"}),
        pod("hates", node="n", priority=1, anti=[term(X)]),
        pod("other", node="n", priority=1),
    )

    assert victims(preempted(columns, pod("h", priority=9, labels=X)), "n") == ["hates"]


def test_anti_affinity_across_nodes_of_a_zone_cannot_be_cured_on_one() -> None:
    columns = view(
        node("n", labels={"zone": "1"}),
        node("m", labels={"zone": "1"}),
        pod("one", node="n", priority=1, labels=X),
        pod("two", node="m", priority=1, labels=X),
    )

    found = preempted(columns, pod("h", priority=9, anti=[term(X)]))

    assert found.potential == ("n", "m")
    assert found.candidates == {}


def test_a_pod_put_back_counts_for_all_anti_affinity_terms_if_it_meets_any() -> None:
    # `l` meets the first term only, whose key its node lacks, so it did not reject the node. Put
    # back, it counts for the second term as well: it is a victim, though it kept no pod away.
    n = node("n", cpu=2, labels={"zone": "1"})
    wanted = high(anti=[term(X, "rack"), term({"app": "y"}, "zone")])
    columns = view(n, low("l", priority=5, labels=X), low("k", priority=1))

    found = preempted(columns, wanted)

    assert victims(found, "n") == ["l"]


def test_the_quirk_needs_a_key_that_the_node_has() -> None:
    n = node("n", cpu=2)
    wanted = high(anti=[term(X, "rack"), term({"app": "y"}, "zone")])
    columns = view(n, low("l", priority=5, labels=X), low("k", priority=1))

    assert victims(preempted(columns, wanted), "n") == ["k"]


def test_nominated_pods_count_when_victims_are_chosen() -> None:
    columns = view(
        node("n", cpu=2),
        low("a"),
        low("b"),
        pod("nominated", nominated="n", priority=9, requests=CPU),
    )

    assert victims(preempted(columns, high(cpu=1)), "n") == ["a", "b"]


def test_lower_nominations_are_cleared_on_the_chosen_node() -> None:
    columns = view(
        node("n", cpu=1),
        low("a"),
        pod("lower", nominated="n", priority=5, requests=CPU),
        pod("equal", nominated="n", priority=9),
        pod("elsewhere", nominated="m", priority=5),
        node("m", cpu=0),
    )

    assert preempted(columns, high()).cleared == (("default/lower", "default/lower"),)


def test_a_service_follows_its_next_pod_when_the_first_is_taken_away() -> None:
    # The first pod of the service is on n itself: without it the one on m leads, and n is the
    # wrong place.
    columns = view(
        node("n", cpu=2, labels={"zone": "1"}),
        node("m", cpu=0, labels={"zone": "2"}),
        service("s", X),
        low("first", labels=X),
        low("k", priority=2),
        pod("second", node="m", labels=X),
    )
    rules = profile(GeneralPredicates(), CheckServiceAffinity(["zone"]))

    found = preempted(columns, high(labels=X), rules)

    assert set(found.potential) == {"n", "m"}
    assert found.candidates == {}


# Budgets ------------------------------------------------------------------------------------------


@cases(
    ("chosen", "allowed", "namespace", "spared"),
    {
        "a budget that is used up": (selector(X), 0, "default", True),
        "or overdrawn": (selector(X), -1, "default", True),
        "a budget with room": (selector(X), 1, "default", False),
        "a budget of others": (selector({"app": "y"}), 0, "default", False),
        "a budget of another namespace": (selector(X), 0, "other", False),
        "a budget without a selector": (None, 0, "default", False),
        "an empty selector protects no pod": (selector(), 0, "default", False),
        "an invalid one neither": (BROKEN, 0, "default", False),
    },
)
def test_budgets(chosen: LabelSelector | None, allowed: int, namespace: str, spared: bool) -> None:
    columns = view(
        node("n", cpu=2),
        budget("b", chosen, allowed=allowed, namespace=namespace),
        low("plain", priority=3),
        low("protected", priority=1, labels=X),
    )

    found = preempted(columns, high())

    assert victims(found, "n") == (["plain"] if spared else ["protected"])
    assert found.candidates["n"].violations == 0


def test_violations_are_counted_and_not_used_up() -> None:
    # A budget that allows one disruption protects no pod, however many are evicted.
    allowed = view(
        node("n", cpu=2), budget("b", selector(X), allowed=1), *(low(n, labels=X) for n in "ab")
    )
    used_up = view(
        node("n", cpu=2), budget("b", selector(X), allowed=0), *(low(n, labels=X) for n in "ab")
    )

    assert preempted(allowed, high(cpu=2)).candidates["n"].violations == 0
    assert preempted(used_up, high(cpu=2)).candidates["n"].violations == 2


def test_pods_without_labels_are_never_protected() -> None:
    everybody = selector(None, expression("none", "DoesNotExist"))
    columns = view(node("n", cpu=2), budget("b", everybody), low("bare"), low("labelled", labels=X))

    assert preempted(columns, high(cpu=2)).candidates["n"].violations == 1


# Criteria -----------------------------------------------------------------------------------------


def cost(*priorities: int, violations: int = 0) -> Victims:
    names = tuple(f"p{i}" for i in range(len(priorities)))
    return Victims(names, names, priorities, violations)


@cases(
    ("candidates", "node_name", "tie", "criterion"),
    {
        "none": ({}, None, (), ""),
        "one": ({"a": cost(1)}, "a", (), "only candidate"),
        "a node that costs nothing": ({"a": cost(1), "b": cost()}, "b", (), "no victims"),
        "several that cost nothing": (
            {"a": cost(1), "b": cost(), "c": cost()},
            "b",
            ("b", "c"),
            "no victims",
        ),
        "budgets weigh more than priorities": (
            {"a": cost(1, violations=1), "b": cost(9, 9, 9)},
            "b",
            (),
            "fewest budget violations",
        ),
        "the most important victim decides before their number": (
            {"a": cost(5), "b": cost(4, 4, 4, 4)},
            "b",
            (),
            "lowest highest priority",
        ),
        "the first victim counts as the most important, and protected ones come first": (
            {"a": cost(1, 9, violations=1), "b": cost(2, 1, violations=1)},
            "a",
            (),
            "lowest highest priority",
        ),
        "then the sum": ({"a": cost(5, 3), "b": cost(5, 2)}, "b", (), "lowest sum of priorities"),
        "a negative priority still makes the sum larger": (
            {"a": cost(5, -5), "b": cost(5)},
            "b",
            (),
            "lowest sum of priorities",
        ),
        "except the very lowest; then the number decides": (
            {"a": cost(5, -(1 << 31)), "b": cost(5)},
            "b",
            (),
            "fewest victims",
        ),
        "equals: the first in node order": (
            {"a": cost(5), "b": cost(5), "c": cost(6)},
            "a",
            ("a", "b"),
            "first in node order",
        ),
    },
)
def test_the_choice(
    candidates: dict[str, Victims], node_name: str | None, tie: tuple[str, ...], criterion: str
) -> None:
    assert choose(candidates, CRITERIA) == Choice(node_name, tie, criterion)


def test_a_protected_victim_of_low_priority_hides_an_important_one() -> None:
    # On a, the protected pod comes first (1) though a pod of priority 8 goes as well.
    columns = view(
        node("a", cpu=2),
        node("b", cpu=2),
        budget("b", selector(X)),
        low("a1", "a", priority=1, labels=X),
        low("a2", "a", priority=8),
        low("b1", "b", priority=2, labels=X),
        low("b2", "b", priority=1),
    )

    found = preempted(columns, high(cpu=2))

    assert victims(found, "a") == ["a1", "a2"]
    assert victims(found, "b") == ["b1", "b2"]
    assert found.node == "a"
    assert found.criterion == "lowest highest priority"


# Simulation ---------------------------------------------------------------------------------------


def test_victims_go_and_the_pod_is_tried_again_at_once() -> None:
    made = simulation(node("n", cpu=1), low("l"))

    steps = list(made.run([high(), pod("late", requests=CPU, priority=10)]))

    assert [(s.pod.name, s.attempt, s.decision.node) for s in steps] == [
        ("high", 1, None),
        ("high", 2, "n"),
        ("late", 1, None),
        ("late", 2, "n"),
    ]
    assert [r.key for r in made.cache.columns.pods.residents[0]] == ["default/late"]


def test_deferred_pods_are_tried_again_after_all_others() -> None:
    made = simulation(node("n", cpu=1), low("l"), after_preemption="defer")

    steps = list(
        made.run([high(), pod("small", priority=1), pod("late", priority=1, requests=CPU)])
    )

    assert [(s.pod.name, s.attempt, s.decision.node) for s in steps] == [
        ("high", 1, None),
        ("small", 1, "n"),
        ("late", 1, None),
        ("high", 2, "n"),
    ]
    # The nomination kept the place free.
    assert steps[2].decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_terminating_victims_stay_and_make_the_pod_wait() -> None:
    made = simulation(node("n", cpu=1), low("l"), after_preemption="terminate")

    first, second = made.run([high()])

    assert first.decision.preemption is not None
    assert first.decision.preemption.node == "n"
    assert second.decision.node is None
    assert second.decision.preemption == Preemption(eligible=False)
    assert [r.key for r in made.cache.columns.pods.residents[0]] == ["default/l"]


def test_a_lower_nomination_is_cleared_in_the_simulation() -> None:
    lower = pod("lower", nominated="n", priority=5, requests=CPU)
    made = simulation(node("n", cpu=1), low("l"), lower, after_preemption="defer")

    first, second = made.run([high()])

    assert first.decision.preemption is not None
    assert first.decision.preemption.cleared == (("default/lower", "default/lower"),)
    assert second.decision.node == "n"
