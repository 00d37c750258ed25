"""Writes: defaults, resource versions, status, generation, dry runs, names, admission."""

from __future__ import annotations

from copy import deepcopy

import pytest

from lab.serving import LabServer, node, pod
from manifests import deployment
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import STORED, stored
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry
from podium.lab.registry.subresources import scale_of
from podium.objects.kinds.meta import JsonObject

PODS = "/api/v1/namespaces/default/pods"


def refused(error: pytest.ExceptionInfo[StatusError]) -> tuple[int, str]:
    return error.value.code, error.value.reason


def test_a_pod_that_was_created_is_read_back_with_its_defaults(lab_server: LabServer) -> None:
    made = lab_server.post(PODS, pod("web"))

    assert lab_server.get(f"{PODS}/web") == made
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert [each["tolerationSeconds"] for each in made["spec"]["tolerations"]] == [300, 300]


def test_unknown_fields_are_kept(registry: Registry) -> None:
    item = pod("web", somethingNew={"deep": [1, {"a": None}]})

    registry.create("pods", item)

    assert registry.get("pods", "web", "default")["spec"]["somethingNew"] == {
        "deep": [1, {"a": None}]
    }


def test_generated_names_differ(registry: Registry) -> None:
    names = set()
    for _ in range(50):
        item = pod()
        item["metadata"] = {"generateName": "web-"}
        names.add(registry.create("pods", item)["metadata"]["name"])

    assert len(names) == 50
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_an_update_must_know_the_version_it_replaces(registry: Registry) -> None:
    old = registry.create("nodes", node("a"))
    registry.modify("nodes", "a", change=lambda found: _labelled(found, "x"))

    with pytest.raises(StatusError) as error:
        registry.update("nodes", _labelled(old, "y"))

    assert refused(error) == (409, "Conflict")
    assert registry.get("nodes", "a")["metadata"]["labels"] == {"x": ""}


def _labelled(item: JsonObject, label: str) -> JsonObject:
    item["metadata"]["labels"] = {label: ""}
    return item


def test_a_write_that_changes_nothing_makes_no_new_version(registry: Registry) -> None:
    made = registry.create("nodes", node("a"))
    before = registry.store.version

    again = registry.update("nodes", registry.get("nodes", "a"))

    assert registry.store.version == before
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_status_and_spec_are_written_through_different_paths(registry: Registry) -> None:
    registry.create("deployments", deployment(replicas=None))
    item = registry.get("deployments", "web", "default")
    item["spec"]["replicas"] = 7
    item["status"] = {"replicas": 3}

    by_status = registry.update("deployments", item, subresource="status")
    assert by_status["spec"]["replicas"] == 1
    assert by_status["status"] == {"replicas": 3}

    item = registry.get("deployments", "web", "default")
    item["spec"]["replicas"] = 7
    item["status"] = {}
    by_object = registry.update("deployments", item)
    assert by_object["spec"]["replicas"] == 7
    assert by_object["status"] == {"replicas": 3}


def test_only_a_new_specification_is_counted(registry: Registry) -> None:
    registry.create("deployments", deployment(replicas=None))

    def generation() -> int:
        return int(registry.get("deployments", "web", "default")["metadata"]["generation"])

    assert generation() == 1
    registry.modify("deployments", "web", "default", change=lambda found: _labelled(found, "x"))
    registry.modify(
        "deployments", "web", "default",
        change=lambda found: found | {"status": {"replicas": 1}}, subresource="status",
    )  # fmt: skip
    assert generation() == 1
    registry.modify("deployments", "web", "default", change=_scaled)
    assert generation() == 2


def _scaled(item: JsonObject) -> JsonObject:
    item["spec"]["replicas"] = 5
    return item


def test_a_dry_run_leaves_nothing_behind(registry: Registry) -> None:
    before = registry.store.version
    made = registry.create("pods", pod("web"), options=WriteOptions(dry_run=True))

    assert made["spec"]["restartPolicy"] == "Always"
    assert registry.find("pods", "web", "default") is None
    assert registry.store.version == before


def test_pods_keep_their_specification_but_for_images_and_more_tolerations(
    registry: Registry,
) -> None:
    registry.create("pods", pod("web"))

    def image(found: JsonObject) -> JsonObject:
        found["spec"]["containers"][0]["image"] = "other"
        found["spec"]["tolerations"].append({"key": "a", "operator": "Exists"})
        return found

    changed = registry.modify("pods", "web", "default", change=image)
    assert changed["spec"]["containers"][0]["image"] == "other"

    def moved(found: JsonObject) -> JsonObject:
        found["spec"]["nodeName"] = "n"
        return found

    with pytest.raises(StatusError, match="pod updates may not change fields other than"):
        registry.modify("pods", "web", "default", change=moved)


def test_a_priority_class_gives_its_value_to_pods(registry: Registry) -> None:
    registry.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    registry.create(
        "priorityclasses",
        {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True},
    )

    high = registry.create("pods", pod("high", priorityClassName="high"))["spec"]
    usual = registry.create("pods", pod("usual"))["spec"]

    assert (high["priority"], high["preemptionPolicy"]) == (1000, "PreemptLowerPriority")
    assert (usual["priority"], usual["priorityClassName"]) == (10, "usual")
    with pytest.raises(StatusError, match="no PriorityClass with name nope was found") as error:
        registry.create("pods", pod("nope", priorityClassName="nope"))
    assert refused(error) == (403, "Forbidden")
    with pytest.raises(StatusError, match="already marked as default"):
        registry.create(
            "priorityclasses", {"metadata": {"name": "x"}, "value": 1, "globalDefault": True}
        )


def test_a_claim_gets_the_default_storage_class(registry: Registry) -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    registry.create(
        "storageclasses", {"metadata": {"name": "fast", "annotations": marked}, "provisioner": "a"}
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    made = registry.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})

    assert made["spec"]["storageClassName"] == "fast"


def test_services_have_addresses_and_ports_of_their_own(registry: Registry) -> None:
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    made = [
        registry.create("services", {"metadata": {"name": f"s{n}"}, "spec": deepcopy(spec)})
        for n in range(20)
    ]

    assert len({each["spec"]["ports"][0]["nodePort"] for each in made}) == 20
    every = registry.list("Service")
    assert len({each["spec"]["clusterIP"] for each in every}) == 21  # and that of the API server
    kept = registry.update(
        "services", {"metadata": {"name": "s1"}, "spec": {"ports": [{"port": 81}]}}
    )
    assert kept["spec"]["clusterIP"] == made[1]["spec"]["clusterIP"]


def test_subscribers_hear_of_every_write_in_order(registry: Registry) -> None:
    heard: list[str] = []

    def first(kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        heard.append(f"first {kind} {name}")
        if kind == "ADDED" and name == "a":
            registry.create("nodes", node("b"))

    def second(kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        heard.append(f"second {kind} {(new or old or {})['metadata']['name']}")

    registry.subscribe(["Node"], first)
    registry.subscribe(["nodes"], second)
    registry.create("nodes", node("a"))
    registry.delete("nodes", "a")

    assert heard == [
        "first ADDED a", "second ADDED a", "first ADDED b", "second ADDED b",
        "first DELETED a", "second DELETED a",
    ]  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_every_resource_can_be_listed_and_says_what_it_is(registry: Registry, name: str) -> None:
    assert all(each["kind"] == STORED[name].kind for each in registry.list(name))


def test_the_selector_of_a_scale_lists_its_terms_by_key() -> None:
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"},
        ],
    }
    item = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": selector}}

    scale = scale_of(item, stored("deployments"))

    assert scale["status"]["selector"] == "!a,b=1,c in (x,y)"
