"""Services and controllers are found by the labels of pods, whatever happened to them before."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from builders import expression, replica_set, selector, service
from podium.engine.state.catalog import Catalog
from podium.objects.selectors.selectors import SelectorError, from_label_selector, from_map_literal

KEYS, VALUES, NAMES = st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("pqr")
MAPS = st.dictionaries(KEYS, VALUES, max_size=2)
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Near"])
EXPRESSIONS = st.builds(
    lambda key, operator, value: expression(key, operator, *([value] if "In" in operator else [])),
    KEYS,
    OPERATORS,
    VALUES,
)
SERVICES = st.builds(service, NAMES, MAPS | st.none())
SETS = st.builds(
    lambda name, wanted, more: replica_set(name, selector(wanted, *more)),
    NAMES,
    MAPS,
    st.lists(EXPRESSIONS, max_size=1),
)
HISTORIES = st.lists(st.tuples(st.sampled_from(["put", "put", "drop"]), SERVICES | SETS))


def shelf_of(catalog: Catalog, item: Any) -> Any:
    return catalog.services if type(item).__name__ == "Service" else catalog.replica_sets


@given(HISTORIES, MAPS)
def test_whoever_selects_pods_is_found_in_order(
    history: list[tuple[str, Any]], labels: dict[str, str]
) -> None:
    catalog = Catalog()
    for what, item in history:
        getattr(shelf_of(catalog, item), what)(item)

        services = [
            each
            for each in catalog.services
            if each.spec.selector is not None
            and from_map_literal(each.spec.selector).matches(labels)
        ]
        assert [each for each, _ in catalog.services.selecting("default", labels)] == services
        try:
            compiled = [from_label_selector(each.spec.selector) for each in catalog.replica_sets]
        except SelectorError:
            compiled = []  # one of them is invalid
        found = [wanted for _, wanted in catalog.replica_sets.selecting("default", labels)]
        assert found == [wanted for wanted in compiled if wanted.matches(labels)]


def test_only_a_change_of_what_is_selected_counts() -> None:
    shelf = Catalog().services
    first = service("s", {"app": "a"})
    shelf.put(first)
    version = shelf.version
    relabelled = msgspec.structs.replace(
        first, metadata=msgspec.structs.replace(first.metadata, labels={"seen": "yes"})
    )

    shelf.put(relabelled)
    assert shelf.version == version
    assert [each for each, _ in shelf.selecting("default", {"app": "a"})] == [relabelled]

    shelf.put(service("s", {"app": "b"}))
    assert shelf.version > version
    assert shelf.selecting("default", {"app": "a"}) == []
