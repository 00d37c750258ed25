"""Validation of workloads: deployments, sets, jobs, cron jobs and autoscalers.

Upstream: pkg/apis/apps/validation, pkg/apis/batch/validation, and replication controllers in
pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from podium.lab.api.field_errors import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.defaults.workloads import CONTROLLER_UID_LABEL
from podium.lab.schema.cron_schedule import ScheduleError, parse_schedule, zone_of
from podium.lab.validation.metadata import validate_labels
from podium.lab.validation.pods import validate_pod_spec
from podium.lab.validation.selectors import validate_label_selector
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.selectors.selectors import SelectorError, from_label_selector, from_map_literal

_NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_UNMATCHED = "`selector` does not match template `labels`"
_IMMUTABLE = "field is immutable"
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_MUTABLE_STATEFUL_FIELDS = frozenset(
    {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
     "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}
)  # fmt: skip


def _validate_non_negative(spec: JsonObject, path: str, *fields: str) -> FieldErrors:
    """Validate numbers that cannot be negative."""
    for field in fields:
        if (spec.get(field) or 0) < 0:
            yield invalid_value(f"{path}.{field}", spec[field], _NOT_NEGATIVE)


def _validate_selector(item: JsonObject, kind: str) -> FieldErrors:
    """Validate a selector, which must exist and must not be empty."""
    selector = item["spec"].get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from validate_label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        what = f"empty selector is invalid for {kind}"
        yield invalid_value("spec.selector", selector, what)


def _validate_template(item: JsonObject, *, restart: tuple[str, ...] = ("Always",)) -> FieldErrors:
    """Validate the pod template, whose labels the selector must match."""
    spec = item["spec"]
    made = spec["template"]
    labels = made["metadata"].get("labels") or {}
    if not _selects(spec.get("selector"), labels):
        yield invalid_value("spec.template.metadata.labels", labels, _UNMATCHED)
    yield from validate_labels(labels, "spec.template.metadata.labels")
    claims = spec.get("volumeClaimTemplates") or ()
    claimed = [(each.get("metadata") or {}).get("name") or "" for each in claims]
    yield from validate_pod_spec(made["spec"], "spec.template.spec", claimed)
    policy = made["spec"].get("restartPolicy")
    if policy not in restart:
        yield not_supported("spec.template.spec.restartPolicy", policy, restart)


def _selects(selector: JsonObject | None, labels: dict[str, str]) -> bool:
    try:
        wanted = None if selector is None else msgspec.convert(selector, LabelSelector)
        found = from_label_selector(wanted)
    except (SelectorError, msgspec.ValidationError):
        return True  # an invalid selector is reported by its own validation
    return found.empty or found.matches(labels)


def validate_int_or_percent(value: Any, path: str) -> FieldErrors:
    """Validate a number of pods or a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield invalid_value(path, value, _NOT_NEGATIVE)
    elif not re.fullmatch("[0-9]+%", value):
        yield invalid_value(path, value, _PERCENT)
    elif int(value[:-1]) > 100:
        yield invalid_value(path, value, "must not be greater than 100%")


def _is_zero(value: Any) -> bool:
    return value in {0, "0%"}


def validate_deployment(item: JsonObject) -> FieldErrors:
    """Validate the numbers, selector, template, strategy and deadline of a deployment."""
    spec = item["spec"]
    yield from _validate_non_negative(spec, "spec", "replicas")
    yield from _validate_selector(item, "deployment")
    yield from _validate_template(item)
    yield from _validate_strategy(spec["strategy"])
    yield from _validate_non_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    yield from _validate_non_negative(spec, "spec", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and 0 <= deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value(
            "spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
        )


def _validate_strategy(strategy: JsonObject) -> FieldErrors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden_field(
                "spec.strategy.rollingUpdate",
                "may not be specified when strategy `type` is 'Recreate'",
            )
    elif kind != "RollingUpdate":
        yield not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    elif rolling:
        path = "spec.strategy.rollingUpdate"
        yield from validate_int_or_percent(rolling["maxUnavailable"], f"{path}.maxUnavailable")
        yield from validate_int_or_percent(rolling["maxSurge"], f"{path}.maxSurge")
        if _is_zero(rolling["maxUnavailable"]) and _is_zero(rolling["maxSurge"]):
            yield invalid_value(
                f"{path}.maxUnavailable",
                rolling["maxUnavailable"],
                "may not be 0 when `maxSurge` is 0",
            )


def validate_selector_unchanged(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a workload whose selector is immutable."""
    new, before = item["spec"].get("selector"), old["spec"].get("selector")
    if new != before:
        yield invalid_value("spec.selector", new, _IMMUTABLE)


def validate_replica_set(item: JsonObject) -> FieldErrors:
    """Validate the numbers, selector and template of a replica set."""
    yield from _validate_non_negative(item["spec"], "spec", "replicas", "minReadySeconds")
    yield from _validate_selector(item, "replicaset")
    yield from _validate_template(item)


def validate_stateful_set(item: JsonObject) -> FieldErrors:
    """Validate the policies, numbers, selector and template of a stateful set."""
    spec = item["spec"]
    policy = spec.get("podManagementPolicy")
    if policy not in {"OrderedReady", "Parallel"}:
        what = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", policy, what)
    strategy = spec["updateStrategy"]
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        what = "must be 'RollingUpdate' or 'OnDelete'"
        yield invalid_value("spec.updateStrategy", strategy, what)
    yield from _validate_non_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from _validate_selector(item, "statefulset")
    yield from _validate_template(item)


def validate_stateful_set_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a stateful set: most fields of its spec are immutable."""
    new, before = item["spec"], old["spec"]
    changed = {key for key in new.keys() | before.keys() if new.get(key) != before.get(key)}
    if changed - _MUTABLE_STATEFUL_FIELDS:
        yield forbidden_field(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
            "forbidden",
        )


def validate_daemon_set(item: JsonObject) -> FieldErrors:
    """Validate the selector, template, numbers and update strategy of a daemon set."""
    spec = item["spec"]
    yield from _validate_selector(item, "daemonset")
    yield from _validate_template(item)
    yield from _validate_non_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy = spec["updateStrategy"]
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        kinds = ("RollingUpdate", "OnDelete")
        yield not_supported("spec.updateStrategy.type", strategy.get("type"), kinds)


def validate_replication_controller(item: JsonObject) -> FieldErrors:
    """Validate a replication controller, whose selector is a map of labels."""
    spec = item["spec"]
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    yield from _validate_non_negative(spec, "spec", "replicas", "minReadySeconds")
    made = spec["template"]
    labels = made["metadata"].get("labels") or {}
    if selector and not from_map_literal(selector).matches(labels):
        yield invalid_value("spec.template.metadata.labels", labels, _UNMATCHED)
    yield from validate_labels(labels, "spec.template.metadata.labels")
    yield from validate_pod_spec(made["spec"], "spec.template.spec")
    policy = made["spec"].get("restartPolicy")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ("Always",))


def validate_job(item: JsonObject) -> FieldErrors:
    """Validate a job, whose selector is generated unless `manualSelector` is set."""
    spec = item["spec"]
    fields = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    yield from _validate_non_negative(spec, "spec", *fields, "ttlSecondsAfterFinished")
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from validate_label_selector(selector, "spec.selector")
        generated = {"matchLabels": {CONTROLLER_UID_LABEL: item["metadata"].get("uid")}}
        if not spec.get("manualSelector") and selector != generated:
            yield invalid_value("spec.selector", selector, "`selector` not auto-generated")
    yield from _validate_job_template(item)


def _validate_job_template(item: JsonObject) -> FieldErrors:
    made = item["spec"]["template"]
    labels = made["metadata"].get("labels") or {}
    if not _selects(item["spec"].get("selector"), labels):
        yield invalid_value("spec.template.metadata.labels", labels, _UNMATCHED)
    yield from validate_pod_spec(made["spec"], "spec.template.spec")
    policy = made["spec"].get("restartPolicy")
    if policy == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def validate_job_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a job: completions, selector and template are immutable."""
    new, before = item["spec"], old["spec"]
    indexed = new.get("completionMode") == "Indexed"
    for field in ("completions", "selector", "template", "completionMode"):
        if field == "completions" and indexed:
            continue
        if field == "template" and before.get("suspend"):
            continue
        if new.get(field) != before.get(field):
            yield invalid_value(f"spec.{field}", new.get(field), _IMMUTABLE)


def validate_cron_job(item: JsonObject) -> FieldErrors:
    """The errors in a cron job: its schedule and time zone, and the restart policy of its pods."""
    spec = item["spec"]
    if not spec.get("schedule"):
        yield required("spec.schedule")
    else:
        try:
            parse_schedule(spec["schedule"])
        except ScheduleError as error:
            yield invalid_value("spec.schedule", spec["schedule"], str(error))
    try:
        zone_of(spec.get("timeZone"))
    except ScheduleError as error:
        yield invalid_value("spec.timeZone", spec.get("timeZone"), str(error))
    if spec["concurrencyPolicy"] not in _CONCURRENCY:
        yield not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _CONCURRENCY)
    policy = spec["jobTemplate"]["spec"]["template"]["spec"].get("restartPolicy")
    if policy not in {"OnFailure", "Never"}:
        path = "spec.jobTemplate.spec.template.spec.restartPolicy"
        yield not_supported(path, policy, ["OnFailure", "Never"])


def validate_autoscaler(item: JsonObject) -> FieldErrors:
    """The errors in an autoscaler."""
    spec = item["spec"]
    lowest, highest = spec.get("minReplicas", 1), spec.get("maxReplicas") or 0
    if lowest < 1:
        yield invalid_value("spec.minReplicas", lowest, "must be greater than or equal to 1")
    if highest < 1:
        yield invalid_value("spec.maxReplicas", highest, "must be greater than 0")
    elif highest < lowest:
        why = "must be greater than or equal to `minReplicas`"
        yield invalid_value("spec.maxReplicas", highest, why)
    reference = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        if not reference.get(name):
            yield required(f"spec.scaleTargetRef.{name}")
