"""Workloads as files describe them: test cases, operations and sizes.

The format is that of the Kubernetes community's `performance-config.yaml`. A case is a list of
operations, a workload one set of numbers for it. Labels, thresholds and feature gates are for the
program that the file was written for, and are not read.
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
    """One operation; a number may be given by the name of a parameter instead."""


class _Counted(_Op, frozen=True):
    count: int = 0
    count_param: str = ""

    def number(self, params: Params) -> int:
        """How many, in a workload with these parameters."""
        return int(parameter(self.count_param, params)) if self.count_param else self.count


class LabelStrategy(Struct, rename="camel", frozen=True):
    """Gives nodes the values of a label in turn."""

    label_key: str
    label_values: list[str]


class UniqueLabelStrategy(Struct, rename="camel", frozen=True):
    """Gives every node a label value of its own."""

    label_key: str


class VolumeLimit(Struct, rename="camel", frozen=True):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class AllocatableStrategy(Struct, rename="camel", frozen=True):
    """Gives nodes more allocatable resources, and CSI drivers with limits."""

    node_allocatable: dict[str, Any] = {}
    csi_node_allocatable: dict[str, VolumeLimit] = {}
    migrated_plugins: list[str] = []


class CreateNodes(_Counted, tag="createNodes", frozen=True):
    """Nodes, alike but for what a strategy gives them."""

    node_template_path: str = ""
    label_node_prepare_strategy: LabelStrategy | None = None
    node_allocatable_strategy: AllocatableStrategy | None = None
    unique_node_label_strategy: UniqueLabelStrategy | None = None


class CreateNamespaces(_Counted, tag="createNamespaces", frozen=True):
    """Namespaces `PREFIX-0`, `PREFIX-1` and so on."""

    prefix: str = ""
    namespace_template_path: str = ""


class CreatePods(_Counted, tag="createPods", frozen=True):
    """Pods, one after the other; with `collectMetrics` they are what is measured."""

    namespace: str = ""
    pod_template_path: str = ""
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""


class CreatePodSets(_Counted, tag="createPodSets", frozen=True):
    """The same pods in each of several namespaces."""

    namespace_prefix: str = ""
    create_pods_op: CreatePods = CreatePods()


class CreateAny(_Counted, tag="createAny", frozen=True):
    """Objects of any kind that scheduling reads."""

    template_path: str = ""
    namespace: str = ""


class DeletePods(_Op, tag="deletePods", frozen=True):
    """Pods of a namespace go, all at once or so many per second while others are scheduled."""

    namespace: str = ""
    label_selector: dict[str, str] = {}
    delete_pods_per_second: int = 0
    skip_wait_to_completion: bool = False


class Churn(_Op, tag="churn", frozen=True):
    """Objects that come (and go) while pods are scheduled, from here to the end."""

    mode: str = CREATE
    number: int = 0
    interval_milliseconds: int = 500
    namespace: str = ""
    template_paths: list[str] = []
    #: Instead of an interval: after so many pods. The same on every machine.
    every_pods: int = 0


class Barrier(_Op, tag="barrier", frozen=True):
    """Try the pods again that have no node yet."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: str = "Scheduled"


class Sleep(_Op, tag="sleep", frozen=True):
    """Let time pass."""

    duration: str = "0s"
    duration_param: str = ""


class Unknown(_Op, tag="unknown", frozen=True):
    """An operation that cannot be carried out; it stops only the workloads that have it."""

    sentence: str


Known = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | CreateAny
    | DeletePods
    | Churn
    | Barrier
    | Sleep
)
Op = Known | Unknown
OPCODES = tuple(str(op.__struct_config__.tag) for op in get_args(Known))


class Size(Struct, rename="camel", frozen=True):
    """A workload: the numbers that go into a case."""

    name: str
    params: Params = {}
    labels: list[str] = []


class _CaseText(Struct, rename="camel", frozen=True):
    name: str
    workload_template: list[dict[str, Any]]
    workloads: list[Size]
    default_pod_template_path: str = ""
    scheduler_config_path: str = ""
    description: str = ""
    #: Rules without which the case says nothing.
    needs: list[str] = []


class Workload(Struct, frozen=True):
    """One case at one size, ready to be run."""

    case: str
    size: str
    ops: tuple[Op, ...]
    params: Params
    #: Paths in the operations start here.
    folder: Path
    default_pod_template: str = ""
    labels: tuple[str, ...] = ()
    description: str = ""
    needs: tuple[str, ...] = ()
    #: Things that the file asks for and that are not done.
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`Case/Size`."""
        return f"{self.case}/{self.size}"

    def check(self) -> None:
        """Refuse a workload with operations that cannot be carried out."""
        for op in self.ops:
            if isinstance(op, Unknown):
                raise InputError(op.sentence, object=f"workload {self.name}")

    def with_params(self, changes: Params) -> Workload:
        """The same case with other numbers, as far as it has them."""
        own = {name: value for name, value in changes.items() if name in self.params}
        return msgspec.structs.replace(self, params=self.params | own) if own else self


def parameter(name: str, params: Params) -> Any:
    """The value of `$name`."""
    bare = name.removeprefix("$")
    if bare not in params:
        known = ", ".join(params) or "none"
        raise InputError(f"there is no parameter {name}", hint=f"known: {known}")
    return params[bare]


def seconds(text: str) -> float:
    """A duration as Go writes it: `1m30s`, `500ms`."""
    parts = _DURATION.findall(text)
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise InputError(f"{text!r} is no duration", hint="write it like 500ms, 10s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def read_workloads(path: Path) -> list[Workload]:
    """All workloads of a file, in its order."""
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


def _case(value: object, path: Path) -> list[Workload]:
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
        Workload(
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
