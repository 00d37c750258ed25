"""v1.13 CheckVolumeBinding: what a node must offer to claims, and which errors come first."""

from __future__ import annotations

from builders import (
    BROKEN,
    REGION,
    ZONE,
    Said,
    claim,
    claim_volume,
    decided,
    expression,
    judged,
    node,
    node_term,
    pod,
    profile,
    selector,
    simulation,
    storage_class,
    view,
    volume,
)
from cases import cases
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.rules.volumes.binding import CheckVolumeBinding
from podium.engine.rules.volumes.zones import NoVolumeZoneConflict
from podium.engine.state.reservation import VolumePlan
from podium.objects.kinds.meta import LabelSelectorRequirement, Object
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import TopologySelectorTerm

AFFINITY = "node(s) had volume node affinity conflict"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
WAIT = storage_class("wait")
MADE = storage_class("made", provisioner="example.com/disk")
HERE = [node_term(expression("disk", "In", "ssd"))]
SELECTED = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def using(*claims: str) -> Pod:
    return pod(volumes=[claim_volume(name) for name in claims])


def said(rule: CheckVolumeBinding | NoVolumeZoneConflict, wanted: Pod, *items: Object) -> Said:
    """What the rule says of a node with an ssd, in zone z of region r."""
    one = node("n", labels={"disk": "ssd", ZONE: "z", REGION: "r"})
    return judged(rule, wanted, view(one, *items))["n"]


BINDING = CheckVolumeBinding()


@cases(
    ("items", "expected"),
    {
        "a volume that is anywhere": ([volume("v"), claim("c", volume="v")], ()),
        "a volume that is here": ([volume("v", reachable=HERE), claim("c", volume="v")], ()),
        "a volume that is elsewhere": (
            [
                volume("v", reachable=[node_term(expression("disk", "In", "hdd"))]),
                claim("c", volume="v"),
            ],
            (AFFINITY,),
        ),
        "nowhere at all": ([volume("v", reachable=[]), claim("c", volume="v")], (AFFINITY,)),
        "fields of the node are not looked at: In never matches": (
            [
                volume("v", reachable=[node_term(fields=[expression("metadata.name", "In", "n")])]),
                claim("c", volume="v"),
            ],
            (AFFINITY,),
        ),
        "and NotIn always does": (
            [
                volume(
                    "v", reachable=[node_term(fields=[expression("metadata.name", "NotIn", "n")])]
                ),
                claim("c", volume="v"),
            ],
            (),
        ),
        "a volume that is lost": (
            [claim("c", volume="v")],
            'could not find v1.PersistentVolume "v"',
        ),
        "a volume name alone is not a binding": (
            [volume("v"), claim("c", volume="v", bound=False)],
            IMMEDIATE,
        ),
        "a claim that is not there": (
            [],
            'error getting PVC "default/c": could not find v1.PersistentVolumeClaim "default/c"',
        ),
    },
)
def test_bound_claims(items: list[Object], expected: Said) -> None:
    assert said(BINDING, using("c"), *items) == expected


@cases(
    ("items", "expected"),
    {
        "a volume is free": ([WAIT, volume("v", storage_class="wait")], ()),
        "none is, and none can be made": ([WAIT], (NO_VOLUME,)),
        "a volume of another class": ([WAIT, volume("v")], (NO_VOLUME,)),
        "too small": ([WAIT, volume("v", storage_class="wait", storage="1Mi")], (NO_VOLUME,)),
        "not free": ([WAIT, volume("v", storage_class="wait", phase="Released")], (NO_VOLUME,)),
        "claimed by another": (
            [WAIT, volume("v", storage_class="wait", claimed_by="other")],
            (NO_VOLUME,),
        ),
        "claimed by this one, in any phase": (
            [WAIT, volume("v", storage_class="wait", claimed_by="c", phase="Bound")],
            (),
        ),
        "its own volume is elsewhere: no other will do": (
            [
                WAIT,
                volume("v", storage_class="wait", claimed_by="c", reachable=[]),
                volume("w", storage_class="wait"),
            ],
            (NO_VOLUME,),
        ),
        "its own volume is too small: another will do": (
            [
                WAIT,
                volume("v", storage_class="wait", claimed_by="c", storage="1Mi"),
                volume("w", storage_class="wait"),
            ],
            (),
        ),
        "elsewhere": ([WAIT, volume("v", storage_class="wait", reachable=[])], (NO_VOLUME,)),
        "another access mode": (
            [WAIT, volume("v", storage_class="wait", modes=["ReadOnlyMany"])],
            (NO_VOLUME,),
        ),
        "too early": ([storage_class("wait", mode="Immediate")], IMMEDIATE),
        "an unknown class": ([], IMMEDIATE),
        "a class without a mode": (
            [storage_class("wait", mode=None)],
            'VolumeBindingMode not set for StorageClass "wait"',
        ),
    },
)
def test_waiting_claims(items: list[Object], expected: Said) -> None:
    assert said(BINDING, using("c"), claim("c", storage_class="wait"), *items) == expected


@cases(
    ("given", "expected"),
    {
        "made here": (claim("c", storage_class="made"), ()),
        "without a class": (claim("c"), IMMEDIATE),
        "already on its way": (
            claim("c", storage_class="made", annotations={SELECTED: "n"}),
            IMMEDIATE,
        ),
        "the class by the old annotation": (claim("c", annotations={BETA_CLASS: "made"}), ()),
        "which goes before the new field": (
            claim("c", storage_class="wait", annotations={BETA_CLASS: "made"}),
            (),
        ),
    },
)
def test_volumes_to_be_made(given: Object, expected: Said) -> None:
    assert said(BINDING, using("c"), MADE, WAIT, given) == expected


def topology(key: str, *values: str) -> TopologySelectorTerm:
    return TopologySelectorTerm([LabelSelectorRequirement(key, "", list(values))])


@cases(
    ("topologies", "fits"),
    {
        "anywhere": ([], True),
        "here": ([topology("disk", "ssd")], True),
        "elsewhere": ([topology("disk", "hdd")], False),
        "one of several": ([topology("disk", "hdd"), topology(ZONE, "z")], True),
        "an empty term matches nothing": ([TopologySelectorTerm()], False),
        "an invalid one neither": ([topology("disk", "-bad")], False),
    },
)
def test_where_volumes_can_be_made(topologies: list[TopologySelectorTerm], fits: bool) -> None:
    made = storage_class("made", provisioner="example.com/disk", topologies=topologies)

    found = said(BINDING, using("c"), made, claim("c", storage_class="made"))

    assert found == (() if fits else (NO_VOLUME,))


def test_a_volume_serves_one_claim_only() -> None:
    items = [WAIT, claim("c", storage_class="wait"), claim("d", storage_class="wait")]
    one, two = volume("v", storage_class="wait"), volume("w", storage_class="wait")

    assert said(BINDING, using("c", "d"), *items, one) == (NO_VOLUME,)
    assert said(BINDING, using("c", "d"), *items, one, two) == ()


def test_small_claims_choose_first_and_take_the_smallest_that_fits() -> None:
    made = simulation(
        node("n"),
        WAIT,
        claim("large", storage_class="wait", storage="5Gi"),
        claim("small", storage_class="wait", storage="1Gi"),
        volume("ten", storage_class="wait", storage="10Gi"),
        volume("six", storage_class="wait", storage="6Gi"),
        volume("two", storage_class="wait", storage="2Gi"),
        profile=profile(GeneralPredicates(), BINDING),
    )

    decision = made.attempt(using("large", "small"))

    assert decision.volumes == VolumePlan({"small": "two", "large": "six"}, ())


def test_a_selector_of_a_claim() -> None:
    chosen = claim("c", storage_class="wait", chosen=selector({"tier": "fast"}))
    plain = volume("v", storage_class="wait")
    fast = volume("w", storage_class="wait", labels={"tier": "fast"})

    assert said(BINDING, using("c"), WAIT, chosen, plain) == (NO_VOLUME,)
    assert said(BINDING, using("c"), WAIT, chosen, plain, fast) == ()


MISSING = (
    'error getting PVC "default/missing": could not find v1.PersistentVolumeClaim "default/missing"'
)
PICKY = (
    "error creating internal label selector for claim: default/picky: "
    '"Near" is not a valid pod selector operator'
)
ELSEWHERE = [volume("far", reachable=[]), claim("far", volume="far")]
NONE = [WAIT, claim("none", storage_class="wait")]


def test_both_reasons_bound_ones_first() -> None:
    assert said(BINDING, using("none", "far"), *ELSEWHERE, *NONE) == (AFFINITY, NO_VOLUME)


@cases(
    ("claims", "expected"),
    {
        "once a volume is elsewhere no other is looked up": (["far", "lost"], (AFFINITY,)),
        "in the pod's order": (["lost", "far"], 'could not find v1.PersistentVolume "lost"'),
        "a claim that came too early goes first": (["none", "early"], IMMEDIATE),
        "one that is missing before it": (["early", "missing"], MISSING),
        "errors of bound claims before those of waiting ones": (
            ["lost", "picky"],
            'could not find v1.PersistentVolume "lost"',
        ),
        "an error of a waiting claim fails the node all the same": (["far", "picky"], PICKY),
    },
)
def test_which_error_comes_first(claims: list[str], expected: Said) -> None:
    found = said(
        BINDING,
        using(*claims),
        *ELSEWHERE,
        *NONE,
        claim("lost", volume="lost"),
        claim("early"),
        claim("picky", storage_class="wait", chosen=BROKEN),
        volume("free", storage_class="wait"),
    )

    assert found == expected


def test_a_promised_volume_is_not_given_to_another() -> None:
    made = simulation(
        node("n"),
        WAIT,
        volume("v", storage_class="wait"),
        claim("c", storage_class="wait"),
        claim("d", storage_class="wait"),
        profile=profile(GeneralPredicates(), BINDING),
    )
    first, second, again = (
        pod(name, volumes=[claim_volume(of)]) for name, of in (("p", "c"), ("q", "d"), ("r", "c"))
    )

    steps = list(made.run([first, second, again]))

    assert [step.decision.node for step in steps] == ["n", None, "n"]
    assert steps[1].decision.message == f"0/1 nodes are available: 1 {NO_VOLUME}."


def test_a_claim_whose_volume_is_being_made_is_too_early_for_others() -> None:
    made = simulation(
        node("n"),
        MADE,
        claim("c", storage_class="made"),
        profile=profile(GeneralPredicates(), BINDING),
    )

    first, second = made.run([pod(name, volumes=[claim_volume("c")]) for name in "pq"])

    assert first.decision.node == "n"
    assert first.decision.volumes == VolumePlan({}, ("c",))
    assert second.decision.error == IMMEDIATE


def test_without_the_rule_about_binding_nothing_is_planned() -> None:
    columns = view(
        node("n"),
        WAIT,
        volume("v", storage_class="wait"),
        claim("c", storage_class="wait"),
        claim("picky", storage_class="wait", chosen=BROKEN),
    )

    for name in ("c", "picky"):
        decision = decided(columns, using(name), profile(GeneralPredicates()))
        assert (decision.node, decision.error, decision.volumes) == ("n", "", None)
