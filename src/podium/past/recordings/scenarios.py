"""Recordings as they are in files: one scenario per line, decoded and checked for its types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from podium.errors import InputError
from podium.generations.known import GENERATIONS
from podium.library.files import lines_of, opened_folders
from podium.objects.kinds.meta import JsonObject, Object
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.json_text import without_nulls
from podium.objects.reading.type_errors import explain
from podium.past.recordings.comparison import PREEMPT_FIELDS, STEP_FIELDS
from podium.releases import RELEASES, V1_13, V1_36, release_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.releases import Release

#: What recordings with pod groups have in place of steps.
_GROUP_FIELDS: Final = ("cycles", "placed", "groups", "queue")
SUFFIXES: Final = (".jsonl", ".jsonl.gz")
_UNKNOWN_FIELD: Final = re.compile(
    r"Object contains unknown field `(?P<name>.*?)`( - at `\$\.(?P<place>.*)`)?"
)
#: What a scenario may be configured with, and which of it each form of recordings has.
_CONFIGURATION: Final = frozenset({"policy", "provider", "options", "config"})
_CONFIGURED_BY: Final = {
    "Policy": ("policy", "provider", "options"),
    "KubeSchedulerConfiguration": ("config",),
}
_HINT: Final = "recordings end in .jsonl or .jsonl.gz"
#: What only steps of the plugin generation have.
_PLUGIN_STEPS: Final = frozenset(
    {"placed", "best", "prefilter", "preenqueue", "nominated", "retry"}
)


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A mapping of a recording; an unknown field is refused, since nothing would compare it."""


class RecordedOptions(_Part, frozen=True):
    """How the scheduler was started."""

    percentage_of_nodes_to_score: int = 100
    hard_pod_affinity_symmetric_weight: int = 1
    disable_preemption: bool = False
    feature_gates: dict[str, bool] = {}
    env: dict[str, str] = {}
    after_preemption: Literal["retry", "defer", "terminate"] = "retry"


class RecordedAttempt(_Part, frozen=True):
    """A search for a node in a cycle."""

    pod: str
    feasible: list[str]
    total: dict[str, int] | None = None
    node: str | None = None
    message: str | None = None


class RecordedPod(_Part, frozen=True):
    """What became of a pod in a cycle."""

    pod: str
    node: str | None = None
    code: str | None = None
    message: str | None = None
    nominated: str | None = None


class RecordedCycle(_Part, frozen=True, omit_defaults=True):
    """One pod or pod group taken from the queue."""

    entity: str
    pods: list[RecordedPod]
    members: list[str] = []
    attempts: list[RecordedAttempt] = []
    evicted: list[str] = []


class RecordedCondition(_Part, frozen=True, omit_defaults=True):
    """A condition of a pod group."""

    type: str
    status: str
    reason: str
    message: str = ""


class Expected(_Part, frozen=True):
    """What the scheduler decided; a field that is absent was not recorded."""

    config_error: str | None = None
    predicates: list[str] | None = None
    priorities: list[str] | None = None
    steps: list[JsonObject] | None = None
    #: Of recordings with pod groups: one for each pod or group taken from the queue.
    cycles: list[RecordedCycle] | None = None
    #: Pod -> its node at the end.
    placed: dict[str, str | None] | None = None
    #: Pod group -> its conditions at the end.
    groups: dict[str, list[RecordedCondition]] | None = None
    #: Where pods wait at the end.
    queue: dict[str, list[str]] | None = None

    @property
    def has_groups(self) -> bool:
        """Whether pods of groups were scheduled together."""
        return self.cycles is not None


class Scenario(_Part, frozen=True):
    """A cluster, pods to schedule, and what kube-scheduler decided about them."""

    name: str
    objects: list[JsonObject]
    pending: list[JsonObject]
    expected: Expected
    category: str = ""
    #: The version of kube-scheduler that was recorded, for example `v1.36.4`.
    release: str = ""
    policy: JsonObject | None = None
    provider: str | None = None
    options: RecordedOptions | None = None
    config: JsonObject | None = None

    @property
    def generation(self) -> Release:
        """The generation of its release, else the one whose fields it has."""
        return release_of(self.release) or self._told_by_fields()

    def _told_by_fields(self) -> Release:
        if self.policy is not None or self.provider is not None:
            return V1_13
        steps = self.expected.steps or ()
        if self.config is not None or any(_PLUGIN_STEPS & step.keys() for step in steps):
            return V1_36
        # Every step of the older generation says which attempt it is.
        return V1_36 if steps and not any("attempt" in step for step in steps) else V1_13


_DECODER: Final = msgspec.json.Decoder(Scenario)


def read_recordings(paths: Sequence[str]) -> Iterator[Scenario]:
    """The scenarios in *paths*: files of recordings, and folders of them."""
    for file in recordings_in(paths):
        for _, scenario in scenarios_in(file):
            yield scenario


def recordings_in(paths: Sequence[str]) -> list[str]:
    """The files of recordings in *paths*: files, whatever their ending, and folders of them."""
    return opened_folders(paths, SUFFIXES, _HINT)


def scenarios_in(path: str) -> Iterator[tuple[str, Scenario]]:
    """Each scenario of a file, with its place: `FILE:LINE`."""
    for number, line in lines_of(path):
        where = f"{path}:{number}"
        try:
            scenario = _DECODER.decode(line)
            _check(scenario)
        except msgspec.ValidationError as error:
            raise InputError(_refusal(error), where=where) from None
        except InputError as error:
            raise error.located(where=where) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InputError(f"is not readable JSON: {_words(error)}", where=where) from None
        yield where, scenario


def scenario_of(value: JsonObject) -> Scenario:
    """The scenario in a value that was decoded from JSON."""
    try:
        scenario = msgspec.convert(value, Scenario)
    except msgspec.ValidationError as error:
        raise InputError(_refusal(error)) from None
    _check(scenario)
    return scenario


def _check(scenario: Scenario) -> None:
    """Refuse a scenario that has something which a replay would neither use nor compare."""
    if scenario.release and release_of(scenario.release) is None:
        known = ", ".join(each.name for each in RELEASES)
        what = f"{scenario.name}: release is {scenario.release!r}, which no generation stands for"
        raise InputError(what, hint=f"known: {known}")
    form = scenario.generation.configured_by
    unused = [
        name
        for name in _CONFIGURATION - {*_CONFIGURED_BY[form]}
        if getattr(scenario, name) is not None
    ]
    if unused:
        raise InputError(
            f"{scenario.name}: a recording of {scenario.generation.name} has no field {min(unused)}"
        )
    expected = scenario.expected
    if all(part is None for part in msgspec.structs.astuple(expected)):
        what = "expected is empty, so that nothing would be compared"
        raise InputError(f"{scenario.name}: {what}")
    _check_groups(scenario)
    for index, step in enumerate(expected.steps or ()):
        place = f"expected.steps[{index}]"
        _check_fields(scenario, place, step, STEP_FIELDS[form])
        preempt = step.get("preempt")
        if isinstance(preempt, dict):
            _check_fields(scenario, f"{place}.preempt", preempt, PREEMPT_FIELDS[form])
    for index, item in enumerate(scenario.objects):
        kind = item.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            what = f"{scenario.name}: objects[{index}].kind is {kind!r}, which is not read"
            raise InputError(what, hint=f"known: {', '.join(sorted(KINDS))}")


def _check_groups(scenario: Scenario) -> None:
    """Refuse cycles of a release without pod groups, and those beside steps: nothing compares."""
    expected = scenario.expected
    given = [name for name in _GROUP_FIELDS if getattr(expected, name) is not None]
    together = GENERATIONS[scenario.generation.name].choices.pod_groups
    compared = together and expected.has_groups and expected.steps is None
    if given and not compared:
        raise InputError(f"{scenario.name}: {_not_compared('expected', given[0])}")


def _check_fields(scenario: Scenario, place: str, found: JsonObject, known: frozenset[str]) -> None:
    for name in found:
        if name not in known:
            raise InputError(f"{scenario.name}: {_not_compared(place, name)}")


def _not_compared(place: str, name: str) -> str:
    return f"{place}.{name} is a field that is not compared".lstrip(".")


def _refusal(error: msgspec.ValidationError) -> str:
    unknown = _UNKNOWN_FIELD.fullmatch(str(error))
    if unknown is None:
        return f"is not a recorded scenario: {_words(error)}"
    return _not_compared(unknown["place"] or "", unknown["name"])


def _words(error: Exception) -> str:
    text = str(error).removeprefix("JSON is malformed: ").replace("`", "").replace("$.", "")
    return text[:1].lower() + text[1:]


def objects_of(scenario: Scenario) -> Objects:
    """The objects of a scenario, exactly as they were served."""
    objects = Objects()
    for item in scenario.objects:
        kind = item["kind"]
        objects.add(kind, _typed(item, kind, KINDS[kind].type))
    return objects


def pending_of(scenario: Scenario) -> list[Pod]:
    """The pods to schedule, in this order."""
    found: list[Any] = [_typed(item, "Pod", Pod) for item in scenario.pending]
    return found


def _typed(item: JsonObject, kind: str, shape: type[Object]) -> Object:
    try:
        return msgspec.convert(item, shape)
    except msgspec.ValidationError:
        pass  # a null perhaps, which Kubernetes accepts
    try:
        return msgspec.convert(without_nulls(item), shape)
    except msgspec.ValidationError as error:
        raise explain(error, kind, item) from None
