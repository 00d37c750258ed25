"""What is refused in everything that makes pods.

Upstream: pkg/apis/apps/validation, pkg/apis/batch/validation, and replication controllers in
pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from podium.lab.api.field_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.api.status import JsonDict
from podium.lab.defaults.workloads import CONTROLLER
from podium.lab.validation.metadata import label_problems
from podium.lab.validation.pods import pod_spec
from podium.lab.validation.selectors import label_selector
from podium.objects.kinds.meta import LabelSelector
from podium.objects.selectors.selectors import SelectorError, from_label_selector, from_map_literal

Problems = Iterator[FieldError]

_NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_UNMATCHED = "`selector` does not match template `labels`"
_IMMUTABLE = "field is immutable"
_STATEFUL_CHANGES = frozenset(
    {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
     "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}
)  # fmt: skip


def counts(spec: JsonDict, path: str, *fields: str) -> Problems:
    """Numbers that cannot be negative."""
    for field in fields:
        if (spec.get(field) or 0) < 0:
            yield invalid_value(f"{path}.{field}", spec[field], _NOT_NEGATIVE)


def _selector(item: JsonDict, kind: str) -> Problems:
    """The selector is there, is legal and is not empty."""
    selector = item["spec"].get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        what = f"empty selector is invalid for {kind}"
        yield invalid_value("spec.selector", selector, what)


def template(item: JsonDict, *, restart: tuple[str, ...] = ("Always",)) -> Problems:
    """The selector selects what the template makes, and that is a pod."""
    spec = item["spec"]
    made = spec["template"]
    labels = made["metadata"].get("labels") or {}
    if not _selects(spec.get("selector"), labels):
        yield invalid_value("spec.template.metadata.labels", labels, _UNMATCHED)
    yield from label_problems(labels, "spec.template.metadata.labels")
    claims = spec.get("volumeClaimTemplates") or ()
    claimed = [(each.get("metadata") or {}).get("name") or "" for each in claims]
    yield from pod_spec(made["spec"], "spec.template.spec", claimed)
    policy = made["spec"].get("restartPolicy")
    if policy not in restart:
        yield not_supported("spec.template.spec.restartPolicy", policy, restart)


def _selects(selector: JsonDict | None, labels: dict[str, str]) -> bool:
    try:
        wanted = None if selector is None else msgspec.convert(selector, LabelSelector)
        found = from_label_selector(wanted)
    except (SelectorError, msgspec.ValidationError):
        return True  # said elsewhere
    return found.empty or found.matches(labels)


def share(value: Any, path: str) -> Problems:
    """A number of pods, or a percentage of them."""
    if isinstance(value, int):
        if value < 0:
            yield invalid_value(path, value, _NOT_NEGATIVE)
    elif not re.fullmatch("[0-9]+%", value):
        yield invalid_value(path, value, _PERCENT)
    elif int(value[:-1]) > 100:
        yield invalid_value(path, value, "must not be greater than 100%")


def _is_none(value: Any) -> bool:
    return value in {0, "0%"}


def deployment(item: JsonDict) -> Problems:
    """A deployment."""
    spec = item["spec"]
    yield from counts(spec, "spec", "replicas")
    yield from _selector(item, "deployment")
    yield from template(item)
    yield from _strategy(spec["strategy"])
    yield from counts(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    yield from counts(spec, "spec", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and 0 <= deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value(
            "spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
        )


def _strategy(strategy: JsonDict) -> Problems:
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
        yield from share(rolling["maxUnavailable"], f"{path}.maxUnavailable")
        yield from share(rolling["maxSurge"], f"{path}.maxSurge")
        if _is_none(rolling["maxUnavailable"]) and _is_none(rolling["maxSurge"]):
            yield invalid_value(
                f"{path}.maxUnavailable",
                rolling["maxUnavailable"],
                "may not be 0 when `maxSurge` is 0",
            )


def same_selector(item: JsonDict, old: JsonDict) -> Problems:
    """The selector stays as it is."""
    new, before = item["spec"].get("selector"), old["spec"].get("selector")
    if new != before:
        yield invalid_value("spec.selector", new, _IMMUTABLE)


def replica_set(item: JsonDict) -> Problems:
    """A replica set."""
    yield from counts(item["spec"], "spec", "replicas", "minReadySeconds")
    yield from _selector(item, "replicaset")
    yield from template(item)


def stateful_set(item: JsonDict) -> Problems:
    """A stateful set."""
    spec = item["spec"]
    policy = spec.get("podManagementPolicy")
    if policy not in {"OrderedReady", "Parallel"}:
        what = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", policy, what)
    strategy = spec["updateStrategy"]
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        what = "must be 'RollingUpdate' or 'OnDelete'"
        yield invalid_value("spec.updateStrategy", strategy, what)
    yield from counts(spec, "spec", "replicas", "minReadySeconds")
    yield from _selector(item, "statefulset")
    yield from template(item)


def stateful_set_update(item: JsonDict, old: JsonDict) -> Problems:
    """Little of a stateful set may change."""
    new, before = item["spec"], old["spec"]
    changed = {key for key in new.keys() | before.keys() if new.get(key) != before.get(key)}
    if changed - _STATEFUL_CHANGES:
        yield forbidden_field(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
            "forbidden",
        )


def daemon_set(item: JsonDict) -> Problems:
    """A daemon set."""
    spec = item["spec"]
    yield from _selector(item, "daemonset")
    yield from template(item)
    yield from counts(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy = spec["updateStrategy"]
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        kinds = ("RollingUpdate", "OnDelete")
        yield not_supported("spec.updateStrategy.type", strategy.get("type"), kinds)


def replication_controller(item: JsonDict) -> Problems:
    """A replication controller."""
    spec = item["spec"]
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    yield from counts(spec, "spec", "replicas", "minReadySeconds")
    made = spec["template"]
    labels = made["metadata"].get("labels") or {}
    if selector and not from_map_literal(selector).matches(labels):
        yield invalid_value("spec.template.metadata.labels", labels, _UNMATCHED)
    yield from label_problems(labels, "spec.template.metadata.labels")
    yield from pod_spec(made["spec"], "spec.template.spec")
    policy = made["spec"].get("restartPolicy")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ("Always",))


def job(item: JsonDict) -> Problems:
    """A job."""
    spec = item["spec"]
    fields = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    yield from counts(spec, "spec", *fields, "ttlSecondsAfterFinished")
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from label_selector(selector, "spec.selector")
        generated = {"matchLabels": {CONTROLLER: item["metadata"].get("uid")}}
        if not spec.get("manualSelector") and selector != generated:
            yield invalid_value("spec.selector", selector, "`selector` not auto-generated")
    yield from _job_template(item)


def _job_template(item: JsonDict) -> Problems:
    made = item["spec"]["template"]
    labels = made["metadata"].get("labels") or {}
    if not _selects(item["spec"].get("selector"), labels):
        yield invalid_value("spec.template.metadata.labels", labels, _UNMATCHED)
    yield from pod_spec(made["spec"], "spec.template.spec")
    policy = made["spec"].get("restartPolicy")
    if policy == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def job_update(item: JsonDict, old: JsonDict) -> Problems:
    """What a job does stays as it is."""
    new, before = item["spec"], old["spec"]
    indexed = new.get("completionMode") == "Indexed"
    for field in ("completions", "selector", "template", "completionMode"):
        if field == "completions" and indexed:
            continue
        if field == "template" and before.get("suspend"):
            continue
        if new.get(field) != before.get(field):
            yield invalid_value(f"spec.{field}", new.get(field), _IMMUTABLE)
