"""The horizontal autoscaler: sets the replicas of a workload from what its pods use.

It follows metrics of the types Resource and ContainerResource, which are those of the lab's metrics
API. Other types need an adapter that a lab does not have, which the conditions of the autoscaler
say.

Upstream: pkg/controller/podautoscaler (horizontal.go, replica_calculator.go).
"""

from __future__ import annotations

from math import ceil
from typing import ClassVar, Final, NamedTuple

from podium.lab.api.encoding import format_time
from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, changed_key
from podium.lab.controllers.framework.object_fields import (
    Key,
    condition,
    is_terminating,
    new_condition,
)
from podium.lab.registry.registry import DEFAULT_WRITE
from podium.lab.registry.resource_lists import amounts, container_usage, text_of
from podium.lab.registry.subresources import scale_of, update_scale
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import nano
from podium.objects.selectors.selectors import parse_selector

#: Seconds between two looks at an autoscaler.
SYNC_SECONDS: Final = 15.0
_TOLERANCE: Final = 0.1
_KIND: Final = "HorizontalPodAutoscaler"
_DOWN_WINDOW: Final = 300
_DEFAULT_UP: Final[list[JsonObject]] = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_DEFAULT_DOWN: Final[list[JsonObject]] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


class _Proposal(NamedTuple):
    """The replicas that one metric proposes, and how its status shows it."""

    replicas: int
    metric: str
    status: JsonObject


class _CannotScale(Exception):  # noqa: N818  ends one sync, and is written into a condition
    """Why an autoscaler does nothing: the type, reason and message of its condition."""

    def __init__(self, kind: str, reason: str, message: str) -> None:
        self.kind, self.reason, self.message = kind, reason, message
        super().__init__(message)


class HorizontalAutoscaler(Controller[Key]):
    """Scales workloads. Its keys are those of autoscalers."""

    name: ClassVar = "horizontal-pod-autoscaler"

    def __init__(self, cluster: Cluster) -> None:
        """Watch autoscalers; pods are looked at every few seconds."""
        super().__init__(cluster)
        self.watch(_KIND, self._on_autoscaler)
        #: Recommendations and changes of replicas by autoscaler: time and number.
        self._recommended: dict[Key, list[tuple[float, int]]] = {}
        self._changes: dict[Key, list[tuple[float, int]]] = {}

    def _on_autoscaler(self, old: JsonObject | None, new: JsonObject | None) -> None:
        key = changed_key(old, new)
        if new is None:
            self._recommended.pop(key, None)
            self._changes.pop(key, None)
        elif old is None or old.get("spec") != new.get("spec"):
            self.enqueue(key)

    def sync(self, key: Key) -> None:
        """Compare usage with the target, scale, and write the status."""
        autoscaler = self.cluster.get(_KIND, *key)
        if autoscaler is None or is_terminating(autoscaler):
            return
        status: JsonObject = {
            name: value
            for name, value in (autoscaler.get("status") or {}).items()
            if name in {"lastScaleTime", "conditions"}
        }
        status["observedGeneration"] = autoscaler["metadata"].get("generation", 1)
        try:
            self._scale(key, autoscaler, status)
        except _CannotScale as error:
            self._set_condition(status, error.kind, "False", error.reason, error.message)
            self.warn(autoscaler, error.reason, error.message)
        status.setdefault("currentReplicas", 0)
        status.setdefault("desiredReplicas", status["currentReplicas"])
        self.cluster.update_status(autoscaler, status)
        self.enqueue(key, after=SYNC_SECONDS, clock=True)

    def _scale(self, key: Key, autoscaler: JsonObject, status: JsonObject) -> None:
        spec = autoscaler["spec"]
        resource, scale = self._target(key[0], spec["scaleTargetRef"])
        self._set_condition(
            status, "AbleToScale", "True", "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )  # fmt: skip
        current = int(scale["spec"].get("replicas") or 0)
        status["currentReplicas"] = status["desiredReplicas"] = int(scale["status"]["replicas"])
        if current == 0 and spec.get("minReplicas", 1) != 0:
            self._set_condition(
                status, "ScalingActive", "False", "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )  # fmt: skip
            return
        selector = str(scale["status"].get("selector") or "")
        proposals = [
            self._proposal(key[0], selector, current, metric)
            for metric in spec.get("metrics") or ()
        ]
        if not proposals:
            raise _CannotScale("ScalingActive", "InvalidMetricSourceType", "no metrics are given")
        best = max(proposals, key=lambda each: each.replicas)
        status["currentMetrics"] = [each.status for each in proposals]
        self._set_condition(
            status, "ScalingActive", "True", "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {best.metric}",
        )  # fmt: skip
        desired = self._limited(key, spec, current, best.replicas, status)
        status["desiredReplicas"] = desired
        if desired != current:
            self._write_scale(key, autoscaler, resource, scale, desired)
            reason = f"{best.metric} {'above' if desired > current else 'below'} target"
            self.record(autoscaler, "SuccessfulRescale", f"New size: {desired}; reason: {reason}")
            now = self.cluster.now()
            status["lastScaleTime"] = format_time(now)
            self._changes.setdefault(key, []).append((now, desired - current))

    def _target(self, namespace: str, reference: JsonObject) -> tuple[Resource, JsonObject]:
        registry = self.cluster.registry
        kind, name = reference.get("kind", ""), reference.get("name", "")
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        for resource in registry.stored_resources():
            if (resource.kind, resource.group) == (kind, group) and (
                "scale" in resource.subresources
            ):
                item = registry.find(resource.storage, name, namespace)
                if item is not None:
                    return resource, scale_of(item, resource)
        why = f"the HPA controller was unable to get the target's current scale: {kind} {name}"
        raise _CannotScale("AbleToScale", "FailedGetScale", f"{why} not found")

    def _write_scale(
        self, key: Key, autoscaler: JsonObject, resource: Resource, scale: JsonObject, desired: int
    ) -> None:
        scale["spec"]["replicas"] = desired
        place = (key[0], scale["metadata"]["name"])
        try:
            update_scale(self.cluster.registry, resource, place, scale, DEFAULT_WRITE)
        except StatusError as error:
            self.warn(autoscaler, "FailedRescale", error.message)
            raise

    def _proposal(
        self, namespace: str, selector: str, current: int, metric: JsonObject
    ) -> _Proposal:
        kind = metric.get("type", "")
        source = metric.get({"Resource": "resource"}.get(kind, "containerResource")) or {}
        if kind not in {"Resource", "ContainerResource"}:
            reason = f"FailedGet{kind}Metric" if kind != "Pods" else "FailedGetPodsMetric"
            text = f"the lab has no adapter for metrics of the type {kind}, only those of resources"
            raise _CannotScale("ScalingActive", reason, text)
        name, target = source["name"], source["target"]
        container = source.get("container", "")
        used, requested, count = self._usage(namespace, selector, name, container)
        if not count:
            text = f"unable to get metrics for resource {name}: no ready pods"
            raise _CannotScale("ScalingActive", "FailedGetResourceMetric", text)
        label = f"{name} {'container ' if container else ''}resource"
        shown: JsonObject = {"averageValue": text_of(name, used // count)}
        if target.get("averageUtilization") is not None:
            if not requested:
                text = f"failed to get {name} utilization: missing request for {name}"
                raise _CannotScale("ScalingActive", "FailedGetResourceMetric", text)
            utilization = used * 100 // requested
            ratio = utilization / target["averageUtilization"]
            shown["averageUtilization"] = utilization
            label += " utilization (percentage of request)"
        else:
            ratio = used / count / max(nano(target["averageValue"]), 1)
        replicas = current if abs(ratio - 1.0) <= _TOLERANCE else ceil(ratio * count)
        field = "containerResource" if container else "resource"
        status = {"name": name, "current": shown}
        if container:
            status["container"] = container
        return _Proposal(replicas, label, {"type": kind, field: status})

    def _usage(
        self, namespace: str, selector: str, name: str, container: str
    ) -> tuple[int, int, int]:
        """What the ready pods use and request of a resource, and how many they are."""
        wanted = parse_selector(selector)
        used = requested = count = 0
        for pod in self.cluster.pods.in_namespace(namespace).values():
            if not pod.active or not pod.ready or not selector or not wanted.matches(pod.labels):
                continue
            whole = self.cluster.get("Pod", *pod.key)
            if whole is None:
                continue
            count += 1
            usages = container_usage(whole)
            for each in whole["spec"].get("containers") or ():
                if not container or each["name"] == container:
                    used += usages[each["name"]].get(name, 0)
                    requests = amounts((each.get("resources") or {}).get("requests"))
                    requested += requests.get(name, 0)
        return used, requested, count

    def _limited(
        self, key: Key, spec: JsonObject, current: int, proposed: int, status: JsonObject
    ) -> int:
        """The proposed replicas after stabilization, policies, minimum and maximum."""
        behavior = spec.get("behavior") or {}
        up, down = behavior.get("scaleUp") or {}, behavior.get("scaleDown") or {}
        desired = self._stabilized(key, current, proposed, up, down)
        now = self.cluster.now()
        if desired > current:
            desired = min(desired, self._bound(key, current, up, now, 1))
        elif desired < current:
            desired = max(desired, self._bound(key, current, down, now, -1))
        lowest, highest = spec.get("minReplicas", 1), spec["maxReplicas"]
        bounded = min(max(desired, lowest), highest)
        if bounded == desired:
            text = "the desired count is within the acceptable range"
            limited = ("False", "DesiredWithinRange", text)
        elif desired > bounded:
            text = "the desired replica count is more than the maximum replica count"
            limited = ("True", "TooManyReplicas", text)
        else:
            text = "the desired replica count is less than the minimum replica count"
            limited = ("True", "TooFewReplicas", text)
        self._set_condition(status, "ScalingLimited", *limited)
        return int(bounded)

    def _stabilized(
        self, key: Key, current: int, proposed: int, up: JsonObject, down: JsonObject
    ) -> int:
        """The replicas after stabilization: down to the highest, up to the lowest in the window."""
        now = self.cluster.now()
        down_window = down.get("stabilizationWindowSeconds", _DOWN_WINDOW)
        up_window = up.get("stabilizationWindowSeconds", 0)
        # The first recommendation is what there is: a new autoscaler does not shrink at once.
        history = [*(self._recommended.get(key) or [(now, current)]), (now, proposed)]
        longest = max(down_window, up_window)
        history = [each for each in history if each[0] > now - longest] or [(now, proposed)]
        self._recommended[key] = history
        lowest = min([n for at, n in history if at > now - up_window] or [proposed])
        highest = max([n for at, n in history if at > now - down_window] or [proposed])
        found = current
        found = max(found, min(lowest, proposed))
        return min(found, max(highest, proposed))

    def _bound(self, key: Key, current: int, rules: JsonObject, now: float, sign: int) -> int:
        """The most replicas that policies allow where *sign* is 1, the fewest where it is -1."""
        if rules.get("selectPolicy") == "Disabled":
            return current
        bounds: list[int] = []
        for policy in rules.get("policies") or (_DEFAULT_UP if sign > 0 else _DEFAULT_DOWN):
            start = current - sign * self._changed(key, now, policy["periodSeconds"], sign)
            bound = start + sign * policy["value"]
            if policy["type"] == "Percent":
                share = start * (1 + sign * policy["value"] / 100)
                bound = ceil(share) if sign > 0 else int(share)
            bounds.append(bound)
        strict = rules.get("selectPolicy") == "Min"
        return min(bounds) if strict is (sign > 0) else max(bounds)

    def _changed(self, key: Key, now: float, seconds: float, sign: int) -> int:
        """How many replicas were added (sign 1) or removed (-1) within so many seconds."""
        changes = self._changes.get(key, ())
        return sum(abs(n) for at, n in changes if at > now - seconds and n * sign > 0)

    def _set_condition(
        self, status: JsonObject, kind: str, value: str, reason: str, message: str
    ) -> None:
        before, at = condition({"status": status}, kind), self.cluster.timestamp()
        made = new_condition(before, kind, value, reason, message, at=at)
        others = [each for each in status.get("conditions") or () if each["type"] != kind]
        order = ("AbleToScale", "ScalingActive", "ScalingLimited")
        status["conditions"] = sorted([*others, made], key=lambda each: order.index(each["type"]))
