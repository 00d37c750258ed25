"""JSON patches: each operation, and the errors of those that do not apply."""

from __future__ import annotations

from typing import Any

import pytest

from lab.patch.patched_pod import POD, rejection
from podium.lab.api.encoding import JSON_PATCH
from podium.lab.api.status import StatusError
from podium.lab.patch.patches import apply_patch


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
