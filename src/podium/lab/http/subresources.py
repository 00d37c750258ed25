"""What lies below an object: scale, finalize, log; and questions answered on the spot.

Upstream: pkg/registry/apps/*/storage (ScaleREST), pkg/registry/core/namespace (FinalizeREST),
pkg/registry/authorization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.lab.api.field_errors import invalid_value
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, bad_request, conflict, invalid
from podium.objects.kinds.meta import LabelSelector
from podium.objects.names import quoted

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
USER = "podium"


def scale(item: JsonDict) -> JsonDict:
    """The `Scale` of a workload."""
    about = item["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status = item.get("status") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: about[name] for name in names if name in about},
        "spec": {"replicas": (item.get("spec") or {}).get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": selector_text((item.get("spec") or {}).get("selector")),
        },
    }


def selector_text(selector: JsonDict | None) -> str:
    """A selector as people type it."""
    if not selector:
        return ""
    if not {"matchLabels", "matchExpressions"} & selector.keys():
        selector = {"matchLabels": selector}
    wanted = msgspec.convert(selector, LabelSelector)
    terms = [f"{key}={value}" for key, value in sorted((wanted.match_labels or {}).items())]
    for each in wanted.match_expressions or ():
        values = ",".join(sorted(each.values or ()))
        terms.append(
            {
                "In": f"{each.key} in ({values})",
                "NotIn": f"{each.key} notin ({values})",
                "Exists": each.key,
                "DoesNotExist": f"!{each.key}",
            }.get(each.operator, each.key)
        )
    return ",".join(terms)


def rescale(
    registry: Registry,
    row: Resource,
    place: tuple[str, str],
    wanted: JsonDict,
    options: WriteOptions,
) -> JsonDict:
    """Set the number of replicas as a `Scale` says."""
    namespace, name = place
    about = wanted.get("metadata") or {}
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas: expected a whole number")
    if replicas < 0:
        what = "must be greater than or equal to 0"
        problem = invalid_value("spec.replicas", replicas, what)
        raise invalid("Scale", "autoscaling", name, [problem])
    if about.get("name") and about["name"] != name:
        raise bad_request(
            f"the name of the object ({about['name']}) does not match the name on the URL ({name})"
        )
    old = registry.get(row.storage, name, namespace)
    version = about.get("resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(row.qualified, name)

    def change(item: JsonDict) -> JsonDict:
        item["spec"]["replicas"] = replicas
        return item

    made = registry.modify(row.storage, name, namespace, change=change, options=options)
    return scale(made)


def finalize(registry: Registry, name: str, item: JsonDict) -> JsonDict:
    """Take away what keeps a namespace."""
    finalizers = (item.get("spec") or {}).get("finalizers") or []

    def change(namespace: JsonDict) -> JsonDict:
        namespace["spec"]["finalizers"] = finalizers
        return namespace

    return registry.modify("namespaces", name, change=change, subresource="finalize")


def log_sentence(namespace: str, name: str) -> str:
    """What is said instead of a log."""
    return (
        f"pod {quoted(f'{namespace}/{name}')} runs nowhere: pods of the lab are only scheduled, "
        "so there are no logs\n"
    )


def review(row: Resource, asked: JsonDict) -> JsonDict:
    """Whoever has the token may do everything."""
    status: dict[str, Any]
    if row.kind == "SelfSubjectReview":
        status = {"userInfo": {"username": USER, "groups": ["system:masters"]}}
    elif row.kind == "SelfSubjectRulesReview":
        urls = [{"nonResourceURLs": ["*"], "verbs": ["*"]}]
        status = {"resourceRules": [EVERYTHING], "nonResourceRules": urls, "incomplete": False}
    else:
        status = {"allowed": True, "reason": "the lab has one user, who may do everything"}
    return asked | {"kind": row.kind, "apiVersion": row.group_version, "status": status}
