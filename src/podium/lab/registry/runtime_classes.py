"""Runtime classes at admission: the overhead, node selector and tolerations that a pod gets.

Upstream: plugin/pkg/admission/runtimeclass, pkg/util/tolerations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.lab.api.status import StatusError, forbidden
from podium.lab.registry.resource_lists import amounts
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry


def admit(registry: Registry, pod: JsonObject) -> None:
    """Complete a new pod from its runtime class; refuse an overhead that is not the class's."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    given: JsonObject | None = None
    if name:
        given = registry.find("runtimeclasses", name)
        if given is None:
            raise _rejected(pod, f"pod rejected: RuntimeClass {quoted(name)} not found")
    overhead = ((given or {}).get("overhead") or {}).get("podFixed")
    if (given or {}).get("overhead") is None:
        if spec.get("overhead") is not None:
            why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _rejected(pod, f"pod rejected: {why}")
    else:
        if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
            why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise _rejected(pod, f"pod rejected: {why}")
        spec["overhead"] = dict(overhead or {})
    scheduling = (given or {}).get("scheduling")
    if scheduling:
        _set_node_selector(pod, scheduling.get("nodeSelector") or {})
        merged = merge_tolerations(
            spec.get("tolerations") or [], scheduling.get("tolerations") or []
        )
        if merged:
            spec["tolerations"] = merged


def _set_node_selector(pod: JsonObject, wanted: dict[str, str]) -> None:
    if not wanted:
        return
    own = pod["spec"].setdefault("nodeSelector", {})
    for key, value in wanted.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise _rejected(pod, why)
        own[key] = value


def _rejected(pod: JsonObject, why: str) -> StatusError:
    return forbidden("pods", pod["metadata"].get("name", ""), why)


def merge_tolerations(first: list[JsonObject], second: list[JsonObject]) -> list[JsonObject]:
    """Both lists in one, without the tolerations that another one includes."""
    everything = [*first, *second]
    merged: list[JsonObject] = []
    for index, each in enumerate(everything):
        if any(_includes(kept, each) for kept in merged):
            continue
        if any(each != later and _includes(later, each) for later in everything[index + 1 :]):
            continue
        merged.append(each)
    return merged


def _includes(wide: JsonObject, narrow: JsonObject) -> bool:
    """Whether everything that *narrow* tolerates is tolerated by *wide*."""
    if wide == narrow:
        return True
    operator = wide.get("operator") or "Equal"
    wide_key, wide_effect = wide.get("key") or "", wide.get("effect") or ""
    if (narrow.get("key") or "") != wide_key and (wide_key or operator != "Exists"):
        return False
    if wide_effect and (narrow.get("effect") or "") != wide_effect:
        return False
    if wide_effect == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator == "Exists":
        return True
    same_value = (narrow.get("value") or "") == (wide.get("value") or "")
    return narrow.get("operator") == "Equal" and same_value
