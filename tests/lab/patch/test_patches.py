"""Patches of any type: JSON patches, merge patches, and errors of patches that are malformed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.patch.patched_pod import POD, rejection
from podium.lab.api.encoding import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from podium.lab.api.status import StatusError
from podium.lab.patch.patches import apply_patch, merge_patch


@pytest.mark.parametrize(
    ("operations", "labels"),
    [
        ([{"op": "add", "path": "/metadata/labels/x~1y", "value": "1"}], {"a": "b", "x/y": "1"}),
        ([{"op": "remove", "path": "/metadata/labels/a"}], {}),
        ([{"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/c"}], {"c": "b"}),
        (
            [{"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/c"}],
            {"a": "b", "c": "b"},
        ),
        ([{"op": "add", "path": "/metadata/labels/n", "value": None}], {"a": "b", "n": ""}),
    ],
)
def test_operations_of_a_json_patch(operations: list[Any], labels: dict[str, str]) -> None:
    assert apply_patch("Pod", JSON_PATCH, POD, operations)["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nothing"},
        {"op": "replace", "path": "/metadata/nothing", "value": 1},
        {"op": "add", "path": "/metadata/no/where", "value": 1},
        {"op": "add", "path": "/spec/containers/3", "value": {}},
        {"op": "test", "path": "/metadata/name", "value": "q"},
        {"op": "dance", "path": "/metadata"},
        {"op": "add", "path": "metadata", "value": 1},
        {"op": "add", "path": "", "value": 1},
        {},
    ],
)
def test_an_operation_that_does_not_fit_is_refused(operation: dict[str, Any]) -> None:
    error = rejection(JSON_PATCH, [operation])
    assert (error.code, error.reason) == (422, "Invalid")


def test_too_many_operations_are_refused() -> None:
    operations = [{"op": "test", "path": "/kind", "value": "Pod"}] * 10_001
    assert rejection(JSON_PATCH, operations).code == 413


def test_true_is_no_number() -> None:
    of = {"metadata": {"generation": 1}}
    test = [{"op": "test", "path": "/metadata/generation", "value": True}]

    with pytest.raises(StatusError) as error:
        apply_patch("Pod", JSON_PATCH, of, test)

    assert error.value.code == 422


@pytest.mark.parametrize("form", [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, "text/plain"])
@pytest.mark.parametrize("patch", ["x", 1, None, True, [[]], [1]])
def test_a_patch_that_is_none_is_refused(form: str, patch: object) -> None:
    assert 400 <= rejection(form, patch).code < 500


VALUES = st.recursive(
    st.booleans() | st.integers(0, 3) | st.sampled_from("abc"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=8,
)


OBJECTS = st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3)


def difference(old: Any, new: Any) -> Any:
    """The merge patch from one to the other."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    found = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            found[key] = value
        elif not (type(old[key]) is type(value) and old[key] == value):
            found[key] = difference(old[key], value)
    return found


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_made_from_a_difference_gives_the_target(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert merge_patch(copy.deepcopy(old), difference(old, new)) == new


def answer(form: str, of: dict[str, Any], patch: dict[str, Any]) -> int:
    try:
        apply_patch("Pod", form, of, patch)
    except StatusError as error:
        return error.code
    return 200


@given(OBJECTS, OBJECTS)
def test_no_patch_breaks_the_server(old: dict[str, Any], patch: dict[str, Any]) -> None:
    holder = {"metadata": old, "spec": {"containers": [old], "volumes": [old]}}
    sent = {"metadata": patch, "spec": {"containers": [patch], "volumes": [patch], "$patch": "x"}}
    for form in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        for each in (sent, {"spec": {"containers": [patch, patch]}}):
            assert answer(form, holder, each) < 500
