"""Claims, templates, classes and slices: defaults, validation, status, tables, selectors."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from lab.serving import LabServer
from manifests import device_claim, device_slice
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
POD = {"resource": "pods", "name": "web", "uid": "u1"}


def slice_(**spec: Any) -> JsonObject:
    made = device_slice("n1", [{"name": "gpu-0"}])
    made["spec"] |= spec
    return made


def problems(registry: Registry, kind: str, item: JsonObject) -> str:
    with pytest.raises(StatusError) as error:
        registry.create(kind, item, namespace="default" if "Slice" not in kind else "")
    assert error.value.code == 422, error.value.message
    return error.value.message


def test_requests_get_their_defaults(registry: Registry) -> None:
    item = device_claim("c")
    item["spec"]["devices"]["requests"] += [
        {"name": "all", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
    ]
    made = registry.create("ResourceClaim", item, namespace="default")

    first, second, third = made["spec"]["devices"]["requests"]
    assert first["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    assert "count" not in second["exactly"]
    assert third["firstAvailable"][0]["count"] == 1
    assert made["status"] == {}


def test_quantities_of_devices_are_canonical(lab_server: LabServer) -> None:
    device = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {
            "memory": {
                "value": "81920Mi",
                "requestPolicy": {"default": "1024Mi", "validValues": ["1024Mi", "2Gi"]},
            }
        },
    }
    made = lab_server.post(f"{GROUP}/resourceslices", slice_(devices=[device]))

    memory = made["spec"]["devices"][0]["capacity"]["memory"]
    assert memory["value"] == "80Gi"
    assert memory["requestPolicy"] == {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"deviceClassName": ""},
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ),
        (
            {"count": -1},
            "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
        ),
        (
            {"allocationMode": "All", "count": 2},
            "must not be specified when allocationMode is 'All'",
        ),
        (
            {"allocationMode": "Some"},
            (
                'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": '
                'supported values: "All", "ExactCount"'
            ),
        ),
        (
            {"selectors": [{}]},
            "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
        ),
        (
            {"selectors": [{"cel": {"expression": "device.driver ="}}]},
            (
                "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "
                '"device.driver =": compilation failed'
            ),
        ),
        (
            {"selectors": [{"cel": {"expression": "device.driver"}}]},
            "must evaluate to bool or the unknown type, not string",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            'tolerations[0].value: Invalid value: "b": must be empty for operator `Exists`',
        ),
        (
            {"adminAccess": True},
            (
                "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires "
                "the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
            ),
        ),
    ],
)
def test_claims_that_are_refused(registry: Registry, change: JsonObject, message: str) -> None:
    assert message in problems(registry, "ResourceClaim", device_claim("c", **change))


def test_references_to_requests_are_checked(registry: Registry) -> None:
    item = device_claim("c")
    item["spec"]["devices"]["constraints"] = [
        {"requests": ["gpu", "nic"], "matchAttribute": "numa"},
        {"requests": ["gpu"]},
    ]
    text = problems(registry, "ResourceClaim", item)

    assert 'constraints[0].requests[1]: Invalid value: "nic": must be the name of a request' in text
    assert "a fully qualified name must be a domain and a name separated by a slash" in text
    assert 'exactly one of "matchAttribute" or "distinctAttribute" is required' in text


def test_the_spec_of_a_claim_cannot_change(registry: Registry) -> None:
    registry.create("ResourceClaim", device_claim("c"), namespace="default")

    def more(item: JsonObject) -> JsonObject:
        item["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
        return item

    with pytest.raises(StatusError, match="field is immutable"):
        registry.modify("ResourceClaim", "c", "default", change=more)


def status(registry: Registry, **status: Any) -> JsonObject:
    """Replace the status of the claim."""

    def change(item: JsonObject) -> JsonObject:
        item["status"] = status
        return item

    return registry.modify("ResourceClaim", "c", "default", change=change, subresource="status")


def test_the_status_of_a_claim_keeps_its_promises(registry: Registry) -> None:
    registry.create("ResourceClaim", device_claim("c"), namespace="default")
    allocation = {"devices": {"results": [RESULT]}}
    with pytest.raises(StatusError, match="may not be specified when `allocated` is not set"):
        status(registry, reservedFor=[POD])
    with pytest.raises(StatusError, match="must be the name of a request in the claim"):
        status(registry, allocation={"devices": {"results": [{**RESULT, "request": "x"}]}})
    reported = {part: RESULT[part] for part in ("driver", "pool", "device")}
    with pytest.raises(StatusError, match="must be an allocated device in the claim"):
        status(registry, devices=[reported])

    made = status(registry, allocation=allocation, reservedFor=[POD])
    assert made["status"]["reservedFor"] == [POD]
    other = deepcopy(allocation)
    other["devices"]["results"][0]["device"] = "gpu-1"
    with pytest.raises(StatusError, match=r"status.allocation: .*field is immutable"):
        status(registry, allocation=other)
    with pytest.raises(StatusError, match="Duplicate value"):
        status(registry, allocation=allocation, reservedFor=[POD, POD])


def test_what_drivers_reported_goes_with_the_allocation(registry: Registry) -> None:
    registry.create("ResourceClaim", device_claim("c"), namespace="default")
    reported = {part: RESULT[part] for part in ("driver", "pool", "device")}
    status(registry, allocation={"devices": {"results": [RESULT]}}, devices=[reported])

    assert status(registry, devices=[reported])["status"] == {}


def test_nothing_is_added_to_a_claim_that_is_deleted(registry: Registry) -> None:
    item = device_claim("c")
    item["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    registry.create("ResourceClaim", item, namespace="default")
    allocation = {"devices": {"results": [RESULT]}}
    status(registry, allocation=allocation, reservedFor=[POD])
    registry.delete("ResourceClaim", "c", "default")

    with pytest.raises(StatusError, match="new entries may not be added"):
        status(registry, allocation=allocation, reservedFor=[POD, {**POD, "uid": "u2"}])
    assert status(registry, allocation=allocation)["status"] == {"allocation": allocation}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"driver": "No_Name"}, 'spec.driver: Invalid value: "No_Name"'),
        (
            {"pool": {"name": "n1"}},
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
        ),
        ({"nodeName": None}, "spec: Required value: exactly one of `nodeName`, `nodeSelector`"),
        (
            {"allNodes": True},
            'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of',
        ),
        (
            {"devices": [{"name": "a"}, {"name": "a"}]},
            'spec.devices[1]: Duplicate value: "a"',
        ),
        (
            {"devices": [{"name": f"d{number}"} for number in range(129)]},
            "spec.devices: Too many: 129: must have at most 128 items",
        ),
        (
            {"devices": [{"name": "a", "attributes": {"x": {"int": 1, "bool": True}}}]},
            "spec.devices[0].attributes[x]: Invalid value",
        ),
        (
            {"devices": [{"name": "a", "attributes": {"x": {"version": "1.0"}}}]},
            "must be a string compatible with semver.org spec 2.0.0",
        ),
        (
            {"devices": [{"name": "a", "attributes": {"a-b": {"int": 1}}}]},
            "a valid C identifier must start with alphabetic character",
        ),
        (
            {"devices": [{"name": "a", "taints": [{"key": "k", "effect": "Never"}]}]},
            (
                'taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", '
                '"NoSchedule", "None"'
            ),
        ),
        (
            {"devices": [{"name": "a", "bindingConditions": ["ready"]}]},
            "bindingFailureConditions are required to use bindingConditions",
        ),
        (
            {"devices": [{"name": "a", "nodeName": "n2"}]},
            "can only be set if `perDeviceNodeSelection` is set to true",
        ),
        (
            {"devices": [{"name": "a", "capacity": {"m": {"value": "1", "requestPolicy": {}}}}]},
            "requestPolicy: Forbidden: allowMultipleAllocations must be true",
        ),
        (
            {"sharedCounters": [{"name": "set"}], "devices": None},
            "spec.sharedCounters[0].counters: Required value",
        ),
    ],
)
def test_slices_that_are_refused(registry: Registry, change: JsonObject, message: str) -> None:
    item = slice_(**change)
    item["spec"] = {name: value for name, value in item["spec"].items() if value is not None}

    assert message in problems(registry, "ResourceSlice", item)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"validValues": ["1Gi"]}, "default: Required value: required when validValues is defined"),
        (
            {"default": "2Gi", "validValues": ["1Gi"]},
            "default value is not valid according to the requestPolicy",
        ),
        (
            {"default": "1Gi", "validValues": ["4Gi", "1Gi", "16Gi"]},
            "values must be sorted in ascending order",
        ),
        (
            {"default": "1Gi", "validRange": {"min": "1Gi", "step": "3Gi", "max": "5Gi"}},
            "value is not a multiple of a given step (3Gi) from (1Gi)",
        ),
        (
            {"default": "1Gi", "validRange": {"min": "2Gi", "max": "16Gi"}},
            "max is larger than capacity value: 8Gi",
        ),
    ],
)
def test_request_policies_that_are_refused(
    registry: Registry, policy: JsonObject, message: str
) -> None:
    capacity = {"memory": {"value": "8Gi", "requestPolicy": policy}}
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": capacity}

    assert message in problems(registry, "ResourceSlice", slice_(devices=[device]))


def test_driver_pool_and_node_of_a_slice_cannot_change(registry: Registry) -> None:
    registry.create("ResourceSlice", slice_())

    def move(item: JsonObject) -> JsonObject:
        item["spec"]["nodeName"] = "n2"
        return item

    with pytest.raises(StatusError, match=r"spec.nodeName: .*field is immutable"):
        registry.modify("ResourceSlice", "n1-devices", change=move)


def test_an_admin_namespace_may_ask_for_access(registry: Registry) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    registry.create("Namespace", {"metadata": {"name": "admin", "labels": labels}})

    admin = device_claim("c", adminAccess=True)
    del admin["metadata"]["namespace"]
    made = registry.create("ResourceClaim", admin, namespace="admin")
    assert made["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] is True


def test_an_extended_resource_needs_a_domain(registry: Registry) -> None:
    item = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "gpu"}}

    assert "must be a valid extended resource name" in problems(registry, "DeviceClass", item)


@pytest.mark.parametrize(
    ("claims", "used", "message"),
    [
        ([{"name": "a"}], [], "must specify one of: `resourceClaimName`"),
        (
            [{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}],
            [],
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
        (
            [{"name": "a", "resourceClaimName": "x"}] * 2,
            [],
            'spec.resourceClaims[1].name: Duplicate value: "a"',
        ),
        (
            [{"name": "a", "resourceClaimName": "x"}],
            [{"name": "b"}],
            (
                'spec.containers[0].resources.claims[0]: Not found: "b": must be one of the names '
                "in pod.spec.resourceClaims: a"
            ),
        ),
    ],
)
def test_claims_of_pods_are_checked(
    registry: Registry, claims: list[JsonObject], used: list[JsonObject], message: str
) -> None:
    container = {"name": "app", "image": "app", "resources": {"claims": used}}
    spec = {"containers": [container], "resourceClaims": claims}

    assert message in problems(registry, "Pod", {"metadata": {"name": "p"}, "spec": spec})


def test_tables_show_the_state_of_claims_and_the_places_of_slices(lab_server: LabServer) -> None:
    lab_server.post(CLAIMS, device_claim("c"))
    lab_server.post(f"{GROUP}/resourceslices", slice_())

    def cells(path: str) -> list[Any]:
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
        reply = lab_server.call("GET", path, headers={"accept": accept})
        return [each["cells"][:-1] for each in reply.body["rows"]]

    assert cells(CLAIMS) == [["c", "pending"]]
    assert cells(f"{GROUP}/resourceslices") == [["n1-devices", "n1", "gpu.example.com", "n1"]]
    body = {"status": {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [POD]}}
    patch = "application/merge-patch+json"
    reply = lab_server.call("PATCH", f"{CLAIMS}/c/status", body, content_type=patch)
    assert reply.status == 200, reply
    assert cells(CLAIMS) == [["c", "allocated,reserved"]]


def test_slices_are_selected_by_node_and_driver(lab_server: LabServer) -> None:
    lab_server.post(f"{GROUP}/resourceslices", slice_())
    path = f"{GROUP}/resourceslices?fieldSelector=spec.nodeName%3Dn1,spec.driver%3D"

    assert len(lab_server.get(path + "gpu.example.com")["items"]) == 1
    assert lab_server.get(path + "other.example.com")["items"] == []
