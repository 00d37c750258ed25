"""Definitions of workloads in the format of scheduler_perf's `performance-config.yaml`.

A test case is a list of operations; a workload is a test case with one set of parameters.
Thresholds are not read.

Upstream: test/integration/scheduler_perf.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from podium.errors import InputError
from podium.objects.reading.yaml_text import documents

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
RECREATE, CREATE = "recreate", "create"

Params = dict[str, Any]


class _Op(Struct, rename="camel", tag_field="opcode", forbid_unknown_fields=True, frozen=True):
    """The base class of operations."""


class _Counted(_Op, frozen=True):
    count: int = 0
    count_param: str = ""

    def number(self, params: Params) -> int:
        """The count of the operation, which may be given by the name of a parameter."""
        return int(parameter(self.count_param, params)) if self.count_param else self.count


class LabelStrategy(Struct, rename="camel", frozen=True):
    """Sets a label of nodes to each of several values in turn."""

    label_key: str
    label_values: list[str]


class UniqueLabelStrategy(Struct, rename="camel", frozen=True):
    """Sets a label of each node to a value of its own."""

    label_key: str


class AttachLimit(Struct, rename="camel", frozen=True):
    """The number of volumes of a CSI driver that a node can attach."""

    count: int | None = None


class AllocatableStrategy(Struct, rename="camel", frozen=True):
    """Adds allocatable resources, and CSI drivers with limits, to nodes."""

    node_allocatable: dict[str, Any] = {}
    csi_node_allocatable: dict[str, AttachLimit] = {}
    migrated_plugins: list[str] = []


class CreateNodes(_Counted, tag="createNodes", frozen=True):
    """Creates nodes from one template; strategies make them differ."""

    node_template_path: str = ""
    label_node_prepare_strategy: LabelStrategy | None = None
    node_allocatable_strategy: AllocatableStrategy | None = None
    unique_node_label_strategy: UniqueLabelStrategy | None = None


class CreateNamespaces(_Counted, tag="createNamespaces", frozen=True):
    """Creates namespaces `PREFIX-0`, `PREFIX-1` and so on."""

    prefix: str = ""
    namespace_template_path: str = ""


class CreatePods(_Counted, tag="createPods", frozen=True):
    """Creates and schedules pods; with `collectMetrics` this is measured."""

    namespace: str = ""
    pod_template_path: str = ""
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""
    #: Whether pods are created and deleted again for some time, instead of so many.
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = "0s"
    duration_param: str = ""
    template_params: dict[str, Any] = {}
    #: The parameter that the count is multiplied by.
    count_multiplier_param: str = ""

    def number(self, params: Params) -> int:
        """The count of the operation, perhaps so many for each of something."""
        given = self.count_multiplier_param
        return super().number(params) * (int(parameter(given, params)) if given else 1)

    def is_steady(self, params: Params) -> bool:
        """Whether batches of pods follow each other until the time is over."""
        if self.steady_state_param:
            return bool(parameter(self.steady_state_param, params))
        return self.steady_state

    def seconds(self, params: Params) -> float:
        """How long batches follow each other."""
        given = self.duration_param
        return seconds(str(parameter(given, params)) if given else self.duration)


class CreatePodSets(_Counted, tag="createPodSets", frozen=True):
    """Creates the same pods in several namespaces."""

    namespace_prefix: str = ""
    create_pods_op: CreatePods = CreatePods()


class CreateAny(_Counted, tag="createAny", frozen=True):
    """Creates objects of any kind that scheduling reads."""

    template_path: str = ""
    namespace: str = ""
    template_params: dict[str, Any] = {}


class CreatePodGroups(CreateAny, tag="createPodGroups", frozen=True):
    """Creates pod groups from one template."""


class UpdateAny(_Counted, tag="updateAny", frozen=True):
    """Replaces objects by those of a template with the same names."""

    template_path: str = ""
    namespace: str = ""
    update_per_second: int = 0
    subresources: list[str] = []


class CreateResourceDriver(_Op, tag="createResourceDriver", frozen=True):
    """Publishes a slice with devices for every node whose name matches a pattern."""

    driver_name: str = ""
    nodes: str = ""
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""

    def devices(self, params: Params) -> int:
        """The number of devices of each node."""
        given = self.max_claims_per_node_param
        return int(parameter(given, params)) if given else self.max_claims_per_node


class CreateResourceClaims(_Counted, tag="createResourceClaims", frozen=True):
    """Creates claims from one template."""

    template_path: str = ""
    namespace: str = ""


class AllocResourceClaims(_Op, tag="allocResourceClaims", frozen=True):
    """Allocates the claims of a namespace without pods, or those of all namespaces."""

    namespace: str = ""


class StartCollectingMetrics(_Op, tag="startCollectingMetrics", frozen=True):
    """Measures the pods of some namespaces from now on, in whichever operation they are tried."""

    name: str = ""
    namespaces: list[str] = []
    label_selector: dict[str, str] = {}


class StopCollectingMetrics(_Op, tag="stopCollectingMetrics", frozen=True):
    """Ends what `startCollectingMetrics` began."""


class DeletePods(_Op, tag="deletePods", frozen=True):
    """Deletes pods of a namespace: all at once, or so many per second in the background."""

    namespace: str = ""
    label_selector: dict[str, str] = {}
    delete_pods_per_second: int = 0
    skip_wait_to_completion: bool = False


class Churn(_Op, tag="churn", frozen=True):
    """Creates, or creates and deletes, objects in the background until the workload ends."""

    mode: str = CREATE
    number: int = 0
    interval_milliseconds: int = 500
    namespace: str = ""
    template_paths: list[str] = []
    #: Replaces the interval: a step after so many pods, on every machine alike.
    every_pods: int = 0


class Barrier(_Op, tag="barrier", frozen=True):
    """Schedules pending pods again."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: str = "Scheduled"


class Sleep(_Op, tag="sleep", frozen=True):
    """Adds to the time of the workload."""

    duration: str = "0s"
    duration_param: str = ""


class Unknown(_Op, tag="unknown", frozen=True):
    """An unknown or invalid operation; only workloads that contain it cannot be run."""

    sentence: str


Known = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | CreateAny
    | CreatePodGroups
    | UpdateAny
    | CreateResourceDriver
    | CreateResourceClaims
    | AllocResourceClaims
    | StartCollectingMetrics
    | StopCollectingMetrics
    | DeletePods
    | Churn
    | Barrier
    | Sleep
)
Op = Known | Unknown
OPCODES = tuple(str(op.__struct_config__.tag) for op in get_args(Known))


class Size(Struct, rename="camel", frozen=True):
    """The name and parameters of a workload in a test case."""

    name: str
    params: Params = {}
    labels: list[str] = []
    feature_gates: dict[str, bool] = {}


class _CaseText(Struct, rename="camel", frozen=True):
    name: str
    workload_template: list[dict[str, Any]]
    workloads: list[Size]
    default_pod_template_path: str = ""
    scheduler_config_path: str = ""
    description: str = ""
    feature_gates: dict[str, bool] = {}
    #: Rules that a profile needs for this case.
    needs: list[str] = []


class BenchWorkload(Struct, frozen=True):
    """A test case with one set of parameters."""

    case: str
    size: str
    ops: tuple[Op, ...]
    params: Params
    #: The folder to which paths in operations are relative.
    folder: Path
    default_pod_template: str = ""
    labels: tuple[str, ...] = ()
    description: str = ""
    needs: tuple[str, ...] = ()
    #: Feature gates that it sets, also those of other programs.
    feature_gates: dict[str, bool] = {}
    #: Warnings about fields of the file that are ignored.
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the workload, `Case/Size`."""
        return f"{self.case}/{self.size}"

    def check(self) -> None:
        """Raise an error if an operation cannot be executed."""
        for op in self.ops:
            if isinstance(op, Unknown):
                raise InputError(op.sentence, object=f"workload {self.name}")

    def with_params(self, changes: Params) -> BenchWorkload:
        """The workload with other values of the parameters that it has."""
        own = {name: value for name, value in changes.items() if name in self.params}
        return msgspec.structs.replace(self, params=self.params | own) if own else self


def parameter(name: str, params: Params) -> Any:
    """The value of the parameter `$name`."""
    bare = name.removeprefix("$")
    if bare not in params:
        known = ", ".join(params) or "none"
        raise InputError(f"there is no parameter {name}", hint=f"known: {known}")
    return params[bare]


def template_params(given: Params, params: Params) -> Params:
    """The values of an operation's `templateParams`: `$name`, `$name|default`, or plain values."""
    found = {}
    for name, value in given.items():
        if isinstance(value, str) and value.startswith("$"):
            wanted, bar, default = value[1:].partition("|")
            found[name] = params.get(wanted, default) if bar else parameter(wanted, params)
        else:
            found[name] = value
    return found


def seconds(text: str) -> float:
    """The seconds of a duration as Go writes it: `1m30s`, `500ms`."""
    parts = _DURATION.findall(text)
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise InputError(f"{text!r} is no duration", hint="write it like 500ms, 10s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def read_workloads(path: Path) -> list[BenchWorkload]:
    """All workloads of a file, in the order of the file."""
    where = str(path)
    try:
        found = [document.value for document in documents(path.read_text("utf-8"))]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise InputError(f"cannot be read: {reason.lower()}", where=where) from None
    except InputError as error:
        raise error.located(where=where) from None
    if len(found) != 1 or not isinstance(found[0], list):
        hint = "a performance-config.yaml begins with - name: …"
        raise InputError("is no list of test cases", where=where, hint=hint)
    try:
        return [workload for case in found[0] for workload in _case(case, path)]
    except InputError as error:
        raise error.located(where=where) from None


def _case(value: object, path: Path) -> list[BenchWorkload]:
    try:
        case = msgspec.convert(value, _CaseText)
    except msgspec.ValidationError as error:
        name = value.get("name", "") if isinstance(value, dict) else ""
        raise InputError(_lower(str(error)), object=f"test case {name}".strip()) from None
    ops = tuple(_op(op, f"test case {case.name}") for op in case.workload_template)
    notes = []
    if case.scheduler_config_path:
        notes.append(f"{case.name}: schedulerConfigPath is not read; the profile comes from flags")
    return [
        BenchWorkload(
            case=case.name,
            size=size.name,
            ops=ops,
            params=size.params,
            folder=path.parent,
            default_pod_template=case.default_pod_template_path,
            labels=tuple(size.labels),
            description=case.description,
            needs=tuple(case.needs),
            notes=tuple(notes),
            feature_gates={**case.feature_gates, **size.feature_gates},
        )
        for size in case.workloads
    ]


def _op(value: dict[str, Any], place: str) -> Op:
    opcode = value.get("opcode")
    if opcode not in OPCODES:
        known = f"known: {', '.join(OPCODES)}"
        return Unknown(str(InputError(f"the operation {opcode!r} is not known", hint=known)))
    try:
        op: Op = msgspec.convert(value, Known)
    except msgspec.ValidationError as error:
        return Unknown(f"{opcode}: {_lower(str(error))}")
    if isinstance(op, Churn):
        _check_churn(op, place)
    return op


def _check_churn(churn: Churn, place: str) -> None:
    if churn.mode not in {RECREATE, CREATE}:
        hint = f"known: {RECREATE}, {CREATE}"
        raise InputError(f"churn: there is no mode {churn.mode!r}", object=place, hint=hint)
    if churn.mode == RECREATE and churn.number < 1:
        raise InputError(f"churn: with mode {RECREATE}, number is at least 1", object=place)
    if churn.interval_milliseconds <= 0 or not churn.template_paths:
        what = (
            "intervalMilliseconds is not positive" if churn.template_paths else "no templatePaths"
        )
        raise InputError(f"churn: {what}", object=place)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
