"""What was recorded compared with what came of a replay, field by field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.objects.kinds.meta import JsonObject
    from podium.past.recordings.scenarios import Expected

#: Fields of a step whose absence is an answer: no error, no node, no message.
TELLING: Final = frozenset(
    {
        *("error", "host", "message", "preempt"),
        *("placed", "best", "nominated", "prefilter", "preenqueue", "volumes", "retry"),
        *("claims", "extended"),
    }
)
#: What configures the generation of a recording -> the fields of its steps. No others are compared.
STEP_FIELDS: Final = {
    "Policy": frozenset(
        {
            *("pod", "attempt", "error", "failed", "feasible", "scores", "total"),
            *("host", "message", "preempt"),
        }
    ),
    "KubeSchedulerConfiguration": frozenset(
        {
            *("pod", "retry", "error", "preenqueue", "prefilter", "failed", "feasible"),
            *("nominated", "scores", "total", "best", "placed", "volumes", "claims", "extended"),
            *("message", "preempt"),
        }
    ),
}
#: The same -> the fields of `preempt` in a step.
PREEMPT_FIELDS: Final = {
    "Policy": frozenset(
        {
            *("eligible", "potentialNodes", "candidates", "node", "tie", "victims"),
            *("numPDBViolations", "clearedNominations"),
        }
    ),
    "KubeSchedulerConfiguration": frozenset(
        {"code", "message", "node", "victims", "candidates", "ties", "clearedNominations"}
    ),
}
#: With fewer feasible nodes v1.13 scores nothing, and no scores are recorded.
SCORED_NODES: Final = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that came out differently; None stands for an absent value."""

    scenario: str
    #: `step N, namespace/name, attempt N`; empty when it is about the configuration.
    step: str
    #: The field of the recording. Of maps, only the keys that differ are kept.
    field: str
    expected: Any
    got: Any

    @property
    def where(self) -> str:
        """Step and field."""
        return f"{self.step}: {self.field}" if self.step else self.field


@dataclass(slots=True)
class ScenarioOutcome:
    """What came of a scenario, in the form of a recording."""

    config_error: str | None = None
    predicates: list[str] = field(default_factory=list)
    priorities: list[str] = field(default_factory=list)
    steps: list[JsonObject] = field(default_factory=list)
    #: Of a scenario with pod groups: `cycles`, `placed`, `groups` and `queue`.
    groups: JsonObject | None = None


def compare(name: str, expected: Expected, outcome: ScenarioOutcome) -> Iterator[Difference]:
    """Compare everything that was recorded with what came."""
    if expected.config_error != outcome.config_error:
        # What follows from a refused configuration would only repeat it.
        yield Difference(name, "", "configError", expected.config_error, outcome.config_error)
        return
    for what in ("predicates", "priorities"):
        wanted, came = getattr(expected, what), getattr(outcome, what)
        if wanted is not None and wanted != came:
            yield Difference(name, "", what, wanted, came)
    if expected.has_groups:
        yield from _compare_groups(name, expected, outcome.groups or {})
    if expected.steps is None:
        return
    for index in range(max(len(expected.steps), len(outcome.steps))):
        wanted = expected.steps[index] if index < len(expected.steps) else None
        came = outcome.steps[index] if index < len(outcome.steps) else None
        label = _label(index, wanted or came or {})
        if wanted is None or came is None:
            yield Difference(name, label, "step", wanted, came)
        else:
            yield from _compare_step(name, label, wanted, came)


def _compare_groups(name: str, expected: Expected, came: JsonObject) -> Iterator[Difference]:
    """Compare every cycle whole, and where pods and groups are at the end."""
    recorded = msgspec.to_builtins(expected)
    cycles, own = recorded["cycles"], came.get("cycles", [])
    for index in range(max(len(cycles), len(own))):
        wanted = cycles[index] if index < len(cycles) else {}
        found = own[index] if index < len(own) else {}
        label = f"cycle {index + 1}, {(wanted or found).get('entity', '')}"
        for key in sorted(wanted.keys() | found.keys()):
            if key in {"pods", "attempts"}:
                yield from _compare_lists(name, label, key, wanted.get(key), found.get(key))
                continue
            rest = _narrowed(wanted.get(key), found.get(key))
            if rest is not None:
                yield Difference(name, label, key, *rest)
    for key in ("placed", "groups", "queue"):
        if recorded.get(key) is not None and recorded[key] != came.get(key):
            yield Difference(name, "", key, *_unequal(recorded[key], came.get(key) or {}))


def _unequal(wanted: JsonObject, came: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Both sides without the entries that are equal."""
    keys = [key for key in (*wanted, *came) if wanted.get(key, key) != came.get(key, key)]
    return (
        {key: wanted[key] for key in keys if key in wanted},
        {key: came[key] for key in keys if key in came},
    )


def _compare_lists(
    name: str, label: str, field: str, wanted: Any, came: Any
) -> Iterator[Difference]:
    wanted, came = wanted or [], came or []
    for index in range(max(len(wanted), len(came))):
        one = _plain(wanted[index]) if index < len(wanted) else None
        other = _plain(came[index]) if index < len(came) else None
        if one != other:
            yield Difference(name, label, f"{field}[{index}]", one, other)


def _plain(entry: JsonObject) -> JsonObject:
    """An entry without fields that are absent."""
    return {key: value for key, value in entry.items() if value is not None}


def _label(index: int, step: JsonObject) -> str:
    return f"step {index + 1}, {step.get('pod', 'a pod')}, attempt {step.get('attempt', 1)}"


def _compare_step(
    name: str, label: str, wanted: JsonObject, came: JsonObject
) -> Iterator[Difference]:
    telling = set(TELLING)
    feasible = wanted.get("feasible")
    # Recordings of the plugins generation, which count no attempts, score a single node too.
    few = isinstance(feasible, list) and len(feasible) < SCORED_NODES
    if few and "attempt" in wanted:
        telling |= {"scores", "total"}
    came = came | {
        field: _spread(came[field], wanted.get(field), came.get("feasible") or [])
        for field in ("scores", "total")
        if field in came
    }
    wanted, came = _with_deletions(wanted), _with_deletions(came)
    for key in sorted(wanted.keys() | (came.keys() & telling)):
        rest = _narrowed(wanted.get(key), came.get(key), top=key)
        if rest is not None:
            yield Difference(name, label, key, *rest)


def _with_deletions(step: JsonObject) -> JsonObject:
    """A deleted claim is not the same as one that was not written."""
    claims = step.get("claims")
    if not isinstance(claims, dict):
        return step
    return step | {"claims": {k: "deleted" if v is None else v for k, v in claims.items()}}


def _spread(came: Any, wanted: Any, feasible: list[str]) -> Any:
    """Write `*` out as nodes wherever the recording does so."""
    if not isinstance(came, dict) or not isinstance(wanted, dict):
        return came
    if came.keys() == {"*"} and "*" not in wanted:
        return dict.fromkeys(feasible, came["*"])
    return {key: _spread(each, wanted.get(key), feasible) for key, each in came.items()}


def _narrowed(wanted: Any, came: Any, *, top: str = "") -> tuple[Any, Any] | None:
    """Both sides, reduced to what differs; None if nothing does.

    Within `preempt`, too, a field that was not recorded is not compared, except `tie`.
    """
    if isinstance(wanted, dict) and isinstance(came, dict):
        keys = wanted.keys() | came.keys()
        if top == "preempt":
            keys = wanted.keys() | (came.keys() & {"tie", "ties", "clearedNominations"})
        parts = {
            key: rest
            for key in sorted(keys)
            if (rest := _narrowed(wanted.get(key), came.get(key))) is not None
        }
        if not parts:
            return None
        return (
            {key: rest[0] for key, rest in parts.items() if key in wanted},
            {key: rest[1] for key, rest in parts.items() if key in came},
        )
    return None if _same(wanted, came) else (wanted, came)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is neither true nor 1.0. Null, `[]`, `{}` and absent are all the same."""
    if _is_empty(one) or _is_empty(other):
        return _is_empty(one) and _is_empty(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, str):
        return _told(one) == _told(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


#: Followed by the words of a CEL compiler, which every compiler chooses for itself.
_COMPILE_ERROR: Final = "CEL compile error:"


def _told(text: str) -> str:
    """A text without the words of a CEL compiler."""
    before, found, _ = text.partition(_COMPILE_ERROR)
    return before + found


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
