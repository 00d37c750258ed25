"""Jobs: defaults, validation, table.

Upstream: pkg/apis/batch, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.api.encoding import parse_time
from podium.lab.api.status import FieldErrors, invalid_value, required
from podium.lab.kinds.field_checks import validate_label_selector, validate_unchanged
from podium.lab.kinds.kind import (
    KindStrategy,
    Printer,
    condition_status,
    duration,
    metadata_of,
    number_at,
    object_at,
)
from podium.lab.kinds.pod import validate_pod_spec
from podium.lab.kinds.workload_fields import (
    TEMPLATE_CELLS,
    UNMATCHED,
    selects,
    spec_with_template,
    validate_non_negative,
)
from podium.objects.kinds.meta import JsonObject

MAX_INT32 = 2**31 - 1
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
_CONTROLLER_UID_LABELS = (CONTROLLER_UID_LABEL, "controller-uid")
_JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_JOB_ENDS = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def set_job_defaults(item: JsonObject) -> None:
    """Set the defaults of a job."""
    spec = spec_with_template(item)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    replaced = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)


def set_job_selector(item: JsonObject) -> None:
    """Make a new job select its pods by its uid, unless its selector is set manually."""
    spec, about = item["spec"], item["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in _CONTROLLER_UID_LABELS:
        labels[key] = about["uid"]
    for key in _JOB_NAME_LABELS:
        labels[key] = about.get("name", "")
    if not about.get("labels"):
        about["labels"] = dict(labels)
    own = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    own[CONTROLLER_UID_LABEL] = about["uid"]


def validate_job(item: JsonObject) -> FieldErrors:
    """Validate a job, whose selector is generated unless `manualSelector` is set."""
    spec = item["spec"]
    fields = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    yield from validate_non_negative(spec, "spec", *fields, "ttlSecondsAfterFinished")
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
    if not selects(item["spec"].get("selector"), labels):
        yield invalid_value("spec.template.metadata.labels", labels, UNMATCHED)
    yield from validate_pod_spec(made["spec"], "spec.template.spec")
    policy = made["spec"].get("restartPolicy")
    if policy == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def validate_job_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a job: completions, selector and template are immutable."""
    loose = {"completions"} if item["spec"].get("completionMode") == "Indexed" else set()
    loose |= {"template"} if old["spec"].get("suspend") else set()
    fixed = ("completions", "selector", "template", "completionMode")
    yield from validate_unchanged(item, old, *(each for each in fixed if each not in loose))


def _completions(job: JsonObject, _now: float) -> str:
    spec, succeeded = object_at(job, "spec"), number_at(job, "status", "succeeded")
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = number_at(spec, "parallelism")
    return f"{succeeded}/1" + (f" of {parallelism}" if parallelism > 1 else "")


def _duration(job: JsonObject, now: float) -> str:
    started = parse_time(object_at(job, "status").get("startTime"))
    ended = parse_time(object_at(job, "status").get("completionTime"))
    return "" if started is None else duration((now if ended is None else ended) - started)


def _job_state(job: JsonObject, _now: float) -> str:
    for kind, word in _JOB_ENDS:
        if condition_status(job, kind) == "True":
            return word
    if metadata_of(job).get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _JOB_STATES if condition_status(job, kind) == "True"), "Running")


KINDS: Mapping[str, KindStrategy] = {
    "Job": KindStrategy(
        set_defaults=set_job_defaults,
        complete_new=set_job_selector,
        has_generation=True,
        validate=validate_job,
        validate_update=validate_job_update,
        table=Printer(
            "Name, Status, Completions, Duration, Age, *Containers, *Images, *Selector",
            {
                "Status": _job_state,
                "Completions": _completions,
                "Duration": _duration,
                **TEMPLATE_CELLS,
            },
        ),
    ),
}
