"""Recordings as they are in files: one scenario per line, decoded and checked for its types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from podium.errors import InputError
from podium.library.files import lines_of, opened_folders
from podium.objects.kinds.meta import JsonObject, Object
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.null_values import without_nulls
from podium.objects.reading.type_errors import explain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUFFIXES: Final = (".jsonl", ".jsonl.gz")
_HINT: Final = "recordings end in .jsonl or .jsonl.gz"
#: What only steps of the plugin generation have.
_PLUGIN_STEPS: Final = frozenset(
    {"placed", "best", "prefilter", "preenqueue", "nominated", "retry"}
)


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A mapping of a recording; unknown fields are skipped."""


class RecordedOptions(_Part, frozen=True):
    """How the scheduler was started."""

    percentage_of_nodes_to_score: int = 100
    hard_pod_affinity_symmetric_weight: int = 1
    disable_preemption: bool = False
    feature_gates: dict[str, bool] = {}
    env: dict[str, str] = {}
    after_preemption: Literal["retry", "defer", "terminate"] = "retry"


class Expected(_Part, frozen=True):
    """What the scheduler decided; a field that is absent was not recorded."""

    config_error: str | None = None
    predicates: list[str] | None = None
    priorities: list[str] | None = None
    steps: list[JsonObject] | None = None


class Scenario(_Part, frozen=True):
    """A cluster, pods to schedule, and what kube-scheduler decided about them."""

    name: str
    objects: list[JsonObject]
    pending: list[JsonObject]
    expected: Expected
    policy: JsonObject | None = None
    provider: str | None = None
    options: RecordedOptions = RecordedOptions()
    config: JsonObject | None = None

    @property
    def generation(self) -> str:
        """The generation it was recorded from, told by fields that only one of them has."""
        if self.policy is not None or self.provider is not None:
            return "v1.13"
        steps = self.expected.steps or ()
        if self.config is not None or any(_PLUGIN_STEPS & step.keys() for step in steps):
            return "v1.36"
        # Every step of the older generation says which attempt it is.
        return "v1.36" if steps and not any("attempt" in step for step in steps) else "v1.13"


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
            yield where, _DECODER.decode(line)
        except msgspec.ValidationError as error:
            raise InputError(f"is not a recorded scenario: {_words(error)}", where=where) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InputError(f"is not readable JSON: {_words(error)}", where=where) from None


def scenario_of(value: JsonObject) -> Scenario:
    """The scenario in a value that was decoded from JSON."""
    try:
        return msgspec.convert(value, Scenario)
    except msgspec.ValidationError as error:
        raise InputError(f"is not a recorded scenario: {_words(error)}") from None


def _words(error: Exception) -> str:
    text = str(error).replace("`", "").replace("$.", "")
    return text[:1].lower() + text[1:]


def objects_of(scenario: Scenario) -> Objects:
    """The objects of a scenario, exactly as they were served."""
    objects = Objects()
    for item in scenario.objects:
        kind = item.get("kind")
        known = KINDS.get(kind) if isinstance(kind, str) else None
        if known is not None and isinstance(kind, str):
            objects.add(kind, _typed(item, kind, known.type))
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
