"""Replays a recorded scenario and finds what came out differently."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.cluster.simulation import Simulation
from podium.errors import ConfigError, InputError
from podium.library.generations import not_served
from podium.library.recordings.replay_v1_36 import run_plugins
from podium.library.recordings.scenarios import Scenario, objects_of, pending_of, scenario_of
from podium.profiles.policy.build import Options, from_policy, from_provider
from podium.render.recording import v1_13 as recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from podium.engine.framework.profile import Profile
    from podium.library.recordings.scenarios import Expected
    from podium.objects.kinds.meta import JsonObject

#: Fields of a step whose absence is an answer: no error, no node, nothing to say.
TELLING: Final = frozenset(
    {
        *("error", "host", "message", "preempt"),
        *("placed", "best", "nominated", "prefilter", "preenqueue", "volumes", "retry"),
    }
)
#: With fewer feasible nodes nothing is scored, and no scores are recorded.
SCORED_NODES: Final = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that was expected and did not come; None stands for nothing."""

    scenario: str
    #: `namespace/name (attempt N)`; empty when it is about the configuration.
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
class Outcome:
    """What came of a scenario, in the words of a recording."""

    config_error: str | None = None
    predicates: list[str] = field(default_factory=list)
    priorities: list[str] = field(default_factory=list)
    steps: list[JsonObject] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Replay:
    """A scenario after its replay."""

    scenario: str
    steps: int
    differences: list[Difference]


def replay(recorded: Scenario | JsonObject) -> Replay:
    """Run a scenario and compare every step whole."""
    scenario = recorded if isinstance(recorded, Scenario) else scenario_of(recorded)
    run = REPLAYERS.get(scenario.generation)
    if run is None:
        what = f"{scenario.name}: a recording of {scenario.generation}"
        raise not_served(scenario.generation, what)
    try:
        outcome = run(scenario)
    except InputError as error:
        raise InputError(f"{scenario.name}: {error}") from None
    except ValueError as error:
        raise InputError(f"{scenario.name}: {error}") from None
    expected = scenario.expected.steps
    steps = len(outcome.steps) if expected is None else len(expected)
    return Replay(scenario.name, steps, list(compare(scenario.name, scenario.expected, outcome)))


def run_predicates(scenario: Scenario) -> Outcome:
    """Run a scenario of the predicates-and-priorities generation."""
    try:
        profile = profile_of(scenario)
    except ConfigError as error:
        return Outcome(config_error=error.text)
    if profile.extenders:
        raise InputError("asks extenders, whose answers a recording does not hold")
    simulation = Simulation(
        profile, listed_order=True, after_preemption=scenario.options.after_preemption
    )
    simulation.load(objects_of(scenario))
    attempts = simulation.run(pending_of(scenario), recording=True)
    return Outcome(
        predicates=list(profile.configured_predicates),
        priorities=[f"{weighted.name}:{weighted.weight}" for weighted in profile.priorities],
        steps=[recording.step(each.decision, each.attempt) for each in attempts],
    )


def run_current(scenario: Scenario) -> Outcome:
    """Run a scenario of the plugins generation."""
    try:
        return Outcome(steps=run_plugins(scenario))
    except ConfigError as error:
        return Outcome(config_error=error.text)


#: How scenarios of each served generation are run.
REPLAYERS: Final[dict[str, Callable[[Scenario], Outcome]]] = {
    "v1.13": run_predicates,
    "v1.36": run_current,
}


def profile_of(scenario: Scenario) -> Profile:
    """The configuration a scenario was recorded with."""
    given = scenario.options
    options = Options(
        percentage_of_nodes_to_score=given.percentage_of_nodes_to_score,
        hard_pod_affinity_symmetric_weight=given.hard_pod_affinity_symmetric_weight,
        disable_preemption=given.disable_preemption,
        feature_gates=given.feature_gates,
        max_pd_volumes=given.env.get("KUBE_MAX_PD_VOLS"),
    )
    if scenario.policy is not None:
        return from_policy(scenario.policy, options)
    return from_provider(scenario.provider or "DefaultProvider", options)


def compare(name: str, expected: Expected, outcome: Outcome) -> Iterator[Difference]:
    """Everything that was recorded against what came."""
    if expected.config_error != outcome.config_error:
        # What follows from a refused configuration would only repeat it.
        yield Difference(name, "", "configError", expected.config_error, outcome.config_error)
        return
    for what in ("predicates", "priorities"):
        wanted, came = getattr(expected, what), getattr(outcome, what)
        if wanted is not None and wanted != came:
            yield Difference(name, "", what, wanted, came)
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
    for key in sorted(wanted.keys() | (came.keys() & telling)):
        rest = _narrowed(wanted.get(key), came.get(key), top=key)
        if rest is not None:
            yield Difference(name, label, key, *rest)


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
    """Equal as JSON is: 1 is neither true nor 1.0. Null, `[]`, `{}` and absent are all nothing."""
    if _is_nothing(one) or _is_nothing(other):
        return _is_nothing(one) and _is_nothing(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
