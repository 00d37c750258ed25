"""Server-side apply: ownership of fields, conflicts, and fields that are removed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.lab.api.status import StatusError
from podium.lab.patch.server_side_apply import LAST_APPLIED, track_update
from podium.lab.patch.server_side_apply import apply as server_side_apply

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def config(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", **metadata},
    }
    return made | ({} if data is None else {"data": data})


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    return {**about, "spec": {"containers": list(containers), **spec}}


def apply(
    live: dict[str, Any] | None, wanted: dict[str, Any], manager: str = "me", **more: Any
) -> Any:
    options: dict[str, Any] = {"force": False, "now": NOW} | more
    return server_side_apply(wanted["kind"], live, wanted, manager=manager, **options)


def owners(made: dict[str, Any]) -> dict[str, Any]:
    entries = made["metadata"].get("managedFields", [])
    return {f"{each['manager']}/{each['operation']}": each["fieldsV1"] for each in entries}


def conflict(live: dict[str, Any], wanted: dict[str, Any], manager: str) -> StatusError:
    with pytest.raises(StatusError) as caught:
        apply(live, wanted, manager)
    return caught.value


def test_applying_creates_the_object_and_owns_its_fields() -> None:
    made = apply(None, config({"a": "1"}))
    assert made["data"] == {"a": "1"}
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_a_field_of_another_is_a_conflict_with_the_real_words() -> None:
    live = track_update("ConfigMap", None, config({"a": "1"}), manager="kubectl-create", now=NOW)
    error = conflict(live, config({"a": "2"}), "me")
    assert error.code == 409
    text = 'Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.a'
    assert error.message == text
    assert error.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "kubectl-create" using v1',
                "field": ".data.a",
            }
        ]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = apply(apply(None, config({"a": "1"}), "one"), config({"b": "1"}), "two")
    error = conflict(live, config({"a": "2", "b": "2"}), "me")
    assert error.message == (
        "Apply failed with 2 conflicts: "
        'conflicts with "one":\n- .data.a\nconflicts with "two":\n- .data.b'
    )


def test_force_takes_fields_over() -> None:
    live = apply(None, config({"a": "1", "b": "1"}), "one")
    made = apply(live, config({"a": "2"}), "two", force=True)
    assert made["data"] == {"a": "2", "b": "1"}
    assert owners(made) == {
        "one/Apply": {"f:data": {"f:b": {}}},
        "two/Apply": {"f:data": {"f:a": {}}},
    }


def test_the_same_value_is_shared_without_conflict() -> None:
    made = apply(apply(None, config({"a": "1"}), "one"), config({"a": "1"}), "two")
    assert set(owners(made)) == {"one/Apply", "two/Apply"}


def test_a_field_that_is_no_longer_applied_goes_unless_another_manager_owns_it() -> None:
    live = apply(apply(None, config({"a": "1", "b": "1"}), "one"), config({"b": "1"}), "two")
    assert apply(live, config(), "one")["data"] == {"b": "1"}
    assert "data" not in apply(apply(None, config({"a": "1"})), config())


def test_an_item_of_a_list_goes_by_its_keys() -> None:
    first = pod({"name": "a", "image": "i", "ports": [{"containerPort": 80}]}, {"name": "b"})
    live = apply(None, first)
    made = apply(live, pod({"name": "a", "image": "i"}))
    assert made["spec"]["containers"] == [{"name": "a", "image": "i"}]


def test_a_port_is_known_by_number_and_protocol() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    made = apply(None, pod({"name": "a", "ports": ports}))
    fields = owners(made)["me/Apply"]["f:spec"]["f:containers"]['k:{"name":"a"}']["f:ports"]
    assert set(fields) == {
        'k:{"containerPort":80,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"UDP"}',
    }


def test_tolerations_and_selectors_are_owned_as_a_whole() -> None:
    made = apply(None, pod({"name": "a"}, tolerations=[{"key": "k"}], nodeSelector={"a": "b"}))
    fields = owners(made)["me/Apply"]["f:spec"]
    assert (fields["f:tolerations"], fields["f:nodeSelector"]) == ({}, {})


def test_what_cannot_be_told_apart_or_is_unknown_is_refused() -> None:
    error = conflict(pod(), pod({"name": "a"}, {"name": "a"}), "me")
    assert error.message == (
        "failed to create typed patch object (default/p; v1, Kind=Pod): "
        '.spec.containers: duplicate entries for key [name="a"]'
    )
    error = conflict(pod(), pod(color="red"), "me")
    assert error.message.endswith(".spec.color: field not declared in schema")
    error = conflict(pod(), {**pod(), "metadata": {"name": "p", "managedFields": [{}]}}, "me")
    assert error.message == "metadata.managedFields must be nil"


def test_an_update_owns_what_it_changed() -> None:
    live = track_update("ConfigMap", None, config({"a": "1", "b": "1"}), manager="one", now=NOW)
    made = track_update("ConfigMap", live, config({"a": "2", "b": "1"}), manager="two", now=LATER)
    assert owners(made) == {
        "one/Update": {"f:data": {".": {}, "f:b": {}}},
        "two/Update": {"f:data": {"f:a": {}}},
    }


def test_an_update_that_changes_nothing_changes_no_owner() -> None:
    live = track_update("ConfigMap", None, config({"a": "1"}), manager="one", now=NOW)
    assert track_update("ConfigMap", live, config({"a": "1"}), manager="two", now=LATER) == live


def test_the_status_belongs_to_who_writes_it_through_its_path() -> None:
    live = track_update("Pod", None, pod({"name": "a"}), manager="one", now=NOW)
    new = {**live, "status": {"phase": "Running"}}
    made = track_update("Pod", live, new, manager="kubelet", now=LATER, subresource="status")
    entry = next(each for each in made["metadata"]["managedFields"] if each["manager"] == "kubelet")
    assert (entry["fieldsV1"], entry["subresource"]) == ({"f:status": {"f:phase": {}}}, "status")


def test_an_empty_list_stops_the_tracking() -> None:
    live = track_update("ConfigMap", None, config({"a": "1"}), manager="one", now=NOW)
    new = config({"a": "2"}, managedFields=[])
    made = track_update("ConfigMap", live, new, manager="x", now=NOW)
    assert "managedFields" not in made["metadata"]


def test_client_side_apply_is_followed_by_server_side_apply_without_conflict() -> None:
    said = json.dumps(config({"a": "1"}))
    made = config({"a": "1"}, annotations={LAST_APPLIED: said})
    live = track_update("ConfigMap", None, made, manager="kubectl-client-side-apply", now=NOW)
    moved = apply(live, config({"a": "2"}), "kubectl")
    assert moved["data"] == {"a": "2"}
    assert json.loads(moved["metadata"]["annotations"][LAST_APPLIED]) == config({"a": "2"})
    assert conflict(live, config({"a": "2"}), "another").code == 409


def test_at_most_ten_updaters_are_remembered() -> None:
    live = track_update("ConfigMap", None, config({"x": "0"}), manager="first", now=NOW)
    for turn in range(15):
        new = {**live, "data": {**live["data"], f"k{turn}": "1"}}
        live = track_update(
            "ConfigMap", live, new, manager=f"m{turn}", now=f"2026-01-02T00:00:{turn:02}Z"
        )
    names = [each["manager"] for each in live["metadata"]["managedFields"]]
    assert len(names) == 10
    assert "ancient-changes" in names


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), DATA), max_size=6))
def test_a_forced_configuration_is_in_the_object_and_applying_again_changes_nothing(
    turns: list[tuple[str, dict[str, str]]],
) -> None:
    live: Any = None
    for manager, data in turns:
        live = apply(live, config(data or None), manager, force=True)
        assert data.items() <= live.get("data", {}).items()
        assert apply(live, config(data or None), manager, now=LATER) == live


@given(DATA, DATA)
def test_a_single_manager_gets_just_what_it_applies(
    first: dict[str, str], second: dict[str, str]
) -> None:
    live = apply(apply(None, config(first)), config(second))
    assert live.get("data", {}) == second


def test_items_that_are_there_twice_stay() -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    live = track_update("Pod", None, pod({"name": "c", "env": twice}), manager="one", now=NOW)
    wanted = [{"name": "B", "value": "3"}]
    made = apply(live, pod({"name": "c", "env": wanted}), "two")
    assert made["spec"]["containers"][0]["env"] == [*twice, *wanted]


GARBAGE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.sampled_from(["", "a", "k:{", "f:spec", "."]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "f:spec", "k:{}", "k:[", "v:", ".", "env", "ports"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(GARBAGE, GARBAGE, GARBAGE)
def test_nothing_that_is_written_breaks_the_server(one: Any, other: Any, fields: Any) -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
    live = pod({"name": "c", "env": one, "ports": other}, volumes=one)
    live["metadata"]["managedFields"] = [entry, one]
    new = pod({"name": "c", "env": other, "ports": one}, volumes=other)
    for write in (
        lambda: track_update("Pod", live, new, manager="x", now=NOW),
        lambda: apply(live, new, "x"),
        lambda: apply(live, new, "x", force=True),
    ):
        try:
            write()
        except StatusError as error:
            refused = error.code
        else:
            refused = 400
        assert refused < 500
