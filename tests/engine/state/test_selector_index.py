"""Whoever means a pod is found by its labels, as if everybody had been asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.engine.state.selector_index import (
    NOBODY,
    ByAnchor,
    ByLabel,
    anchor,
    anchor_of_all,
    anchor_of_any,
)
from podium.objects.selectors.requirements import NOTHING, Selector, conjunction, requirement

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
MANY = st.lists(VALUES, min_size=1, max_size=3)
REQUIREMENTS = st.one_of(
    st.builds(requirement, KEYS, st.sampled_from(["In", "NotIn"]), MANY),
    st.builds(requirement, KEYS, st.just("="), st.lists(VALUES, min_size=1, max_size=1)),
    st.builds(requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
)


SELECTORS = st.lists(REQUIREMENTS, max_size=3).map(conjunction) | st.just(NOTHING)
LABELS = st.dictionaries(KEYS, VALUES)


@given(st.lists(SELECTORS, max_size=8), st.lists(LABELS, max_size=8), st.integers(0, 8))
def test_everybody_who_means_pods_is_found(
    selectors: list[Selector], pods: list[dict[str, str]], since: int
) -> None:
    things: ByAnchor[int] = ByAnchor()
    for number, selector in enumerate(selectors):
        things.add(number, anchor(selector))
    assert list(things) == list(range(len(things)))

    for labels in pods:
        meaning = [n for n, s in enumerate(selectors) if s.matches(labels) and n >= since]
        likely = things.likely(labels, since)
        assert [number for number in likely if selectors[number].matches(labels)] == meaning
        assert all(number >= since for number in likely)


@given(st.lists(LABELS, max_size=8), st.lists(SELECTORS, max_size=3))
def test_everybody_who_is_meant_is_found_once(
    pods: list[dict[str, str]], selectors: list[Selector]
) -> None:
    things: ByLabel[tuple[int, dict[str, str]]] = ByLabel()
    for number, labels in enumerate(pods):
        things.add((number, labels), labels)

    found = [n for n, ls in things.likely(anchor_of_any(selectors)) if any_of(selectors, ls)]
    assert sorted(found) == [n for n, labels in enumerate(pods) if any_of(selectors, labels)]
    found = [n for n, ls in things.likely(anchor_of_all(selectors)) if all_of(selectors, ls)]
    assert sorted(found) == [n for n, labels in enumerate(pods) if all_of(selectors, labels)]


def any_of(selectors: list[Selector], labels: dict[str, str]) -> bool:
    return any(selector.matches(labels) for selector in selectors)


def all_of(selectors: list[Selector], labels: dict[str, str]) -> bool:
    return all(selector.matches(labels) for selector in selectors)


def test_the_requirement_with_the_fewest_values_is_the_anchor() -> None:
    wanted = [requirement("a", "In", ["x", "y"]), requirement("b", "In", ["z"])]
    assert anchor(conjunction(wanted)) == (("b", "z"),)
    assert anchor(conjunction([requirement("a", "Exists", ())])) is None
    assert anchor(NOTHING) == NOBODY
    assert anchor_of_any(()) == NOBODY


def test_strangers_are_not_looked_at() -> None:
    things: ByAnchor[int] = ByAnchor()
    for number in range(100):
        things.add(number, anchor(conjunction([requirement("app", "=", [f"app-{number}"])])))

    assert things.likely({"app": "app-7", "tier": "web"}) == [7]
    assert things.likely({"tier": "web"}) == []
