"""Strategic merge patches: lists with keys, directives, and patches made from a difference."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lab.patch.patched_pod import POD, rejection
from podium.lab.api.encoding import STRATEGIC_MERGE_PATCH
from podium.lab.patch.patches import apply_patch


def strategic(patch: dict[str, Any], kind: str = "Pod", of: dict[str, Any] = POD) -> dict[str, Any]:
    return apply_patch(kind, STRATEGIC_MERGE_PATCH, of, patch)


def test_containers_merge_by_name_and_new_ones_come_first() -> None:
    found = strategic({"spec": {"containers": [{"name": "three", "image": "k"}, {"name": "two"}]}})
    assert [each["name"] for each in found["spec"]["containers"]] == ["three", "one", "two"]


def test_a_list_without_keys_is_replaced() -> None:
    found = strategic({"spec": {"tolerations": [{"key": "other"}]}})
    assert found["spec"]["tolerations"] == [{"key": "other"}]


def test_values_of_a_list_are_joined_and_taken_out_by_directive() -> None:
    assert strategic({"metadata": {"finalizers": ["x/c", "x/a"]}})["metadata"]["finalizers"] == [
        "x/c",
        "x/a",
        "x/b",
    ]
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}
    assert strategic(gone)["metadata"]["finalizers"] == ["x/b"]


def test_directives_delete_replace_and_keep() -> None:
    items = [{"name": "one", "$patch": "delete"}]
    assert len(strategic({"spec": {"containers": items}})["spec"]["containers"]) == 1
    items = [{"$patch": "replace"}, {"name": "new", "image": "n"}]
    assert strategic({"spec": {"containers": items}})["spec"]["containers"] == items[1:]
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    kept = {"name": "v", "hostPath": {"path": "/x"}}
    assert strategic({"spec": {"volumes": [volume]}})["spec"]["volumes"] == [kept]
    assert strategic({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_an_order_is_followed_and_what_it_does_not_name_stays_in_place() -> None:
    order = [{"name": "two"}, {"name": "one"}]
    found = strategic({"spec": {"$setElementOrder/containers": order}})
    assert [each["name"] for each in found["spec"]["containers"]] == ["two", "one"]


def test_fields_that_no_schema_knows_merge_as_maps() -> None:
    of = {**POD, "custom": {"a": {"b": 1}, "list": [1, 2]}}
    found = strategic({"custom": {"a": {"c": 2}, "list": [3]}}, of=of)
    assert found["custom"] == {"a": {"b": 1, "c": 2}, "list": [3]}


def test_a_patch_without_a_key_is_refused_in_kubernetes_words() -> None:
    error = rejection(STRATEGIC_MERGE_PATCH, {"spec": {"containers": [{"image": "x"}]}})
    assert str(error) == "map: map[image:x] does not contain declared merge key: name"
    assert error.code == 400


def test_arguments_stay_as_they_are() -> None:
    before = copy.deepcopy(POD)
    patch = {"spec": {"containers": [{"name": "one", "$retainKeys": ["name"]}]}}
    sent = copy.deepcopy(patch)
    strategic(patch)
    assert (POD, patch) == (before, sent)


def test_true_is_no_number() -> None:
    of = {"metadata": {"finalizers": [1, 2]}}
    found = strategic({"metadata": {"$deleteFromPrimitiveList/finalizers": [True]}}, of=of)
    assert found["metadata"]["finalizers"] == [1, 2]


NAMES: dict[str, Any] = {"name": st.sampled_from("abcd")}
VARIABLES: dict[str, Any] = {"name": st.sampled_from("XY"), "value": st.just("1")}


def name_of(item: Any) -> str:
    name: str = item["name"]
    return name


CONTAINERS = st.lists(
    st.fixed_dictionaries(
        NAMES,
        optional={
            "image": st.sampled_from("ij"),
            "env": st.lists(
                st.fixed_dictionaries(VARIABLES),
                max_size=2,
                unique_by=name_of,
            ),
            "args": st.lists(st.sampled_from("pq"), max_size=2),
        },
    ),
    max_size=4,
    unique_by=name_of,
)


def keyed_difference(old: list[Any], new: list[Any], nested: str = "") -> list[Any]:
    """Items to delete, to change and to add, by name."""
    by_name = {each["name"]: each for each in old}
    gone = [each["name"] for each in old if each["name"] not in {item["name"] for item in new}]
    patch: list[Any] = [{"name": name, "$patch": "delete"} for name in gone]
    for item in new:
        before = by_name.get(item["name"], {"name": item["name"]})
        change: dict[str, Any] = {"name": item["name"]}
        change |= {key: None for key in before if key not in item}
        for key, value in item.items():
            if key == nested and key in before:
                change[key] = keyed_difference(before[key], value)
                change[f"$setElementOrder/{key}"] = [{"name": each["name"]} for each in value]
            else:
                change[key] = value
        patch.append(change)
    return patch


@given(CONTAINERS, CONTAINERS)
def test_a_strategic_patch_made_from_a_difference_gives_the_target(
    old: list[Any], new: list[Any]
) -> None:
    patch = {
        "spec": {
            "containers": keyed_difference(old, new, "env"),
            "$setElementOrder/containers": [{"name": each["name"]} for each in new],
        }
    }
    found = strategic(patch, of={"spec": {"containers": old}})
    assert found["spec"]["containers"] == new
