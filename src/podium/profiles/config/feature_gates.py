"""The feature gates of a KubeSchedulerConfiguration's generation.

Gates of other components are accepted and have no effect, so that one list of gates may serve all
components of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.generations.known import DEFAULT, GENERATIONS
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from podium.engine.framework.generation import Generation


class ConfigurationGates:
    """Which feature gates are on."""

    def __init__(
        self, changes: Mapping[str, bool] | None = None, generation: Generation = DEFAULT
    ) -> None:
        """*changes* to the defaults; what kube-scheduler refuses is refused with its text."""
        self.generation = generation
        self._gates = {gate.name: gate for gate in generation.gates}
        self._on = {gate.name: gate.default for gate in generation.gates}
        refusals: list[str] = []
        for name, value in (changes or {}).items():
            if name not in self._gates and name not in generation.other_gates:
                hint = _hint(name, generation)
                raise ConfigError(f"unrecognized feature gate: {name}", hint=hint)
            refusals += self._set(name, value=value)
        refusals = refusals or list(self._unmet())
        if refusals:
            raise ConfigError(refusals[0] if len(refusals) == 1 else f"[{', '.join(refusals)}]")

    def __getitem__(self, name: str) -> bool:
        """Whether a gate is on; one that the generation does not have is off."""
        return self._on.get(name, False)

    def as_dict(self) -> dict[str, bool]:
        """Every gate that the scheduler reads and its value, by name."""
        return dict(self._on)

    def changed(self) -> list[str]:
        """The gates that are not at their defaults."""
        return [gate.name for gate in self._gates.values() if self._on[gate.name] != gate.default]

    def check_supported(self) -> None:
        """Refuse values that kube-scheduler supports and Podium does not."""
        for gate in self._gates.values():
            if gate.fixed and self._on[gate.name] != gate.default:
                raise ConfigError(
                    f"feature gate {gate.name}={_word(self._on[gate.name])} is not supported",
                    hint=f"leave it out or write {gate.name}={_word(gate.default)}",
                )

    def _set(self, name: str, *, value: bool) -> Iterator[str]:
        gate = self._gates.get(name)
        if gate is None:
            return
        if gate.locked and value != gate.default:
            yield (
                f"cannot set feature gate {name} to {_word(value)}, "
                f"feature is locked to {_word(gate.default)}"
            )
        self._on[name] = value

    def _unmet(self) -> Iterator[str]:
        for gate in self._gates.values():
            off = [name for name in gate.needs if not self[name]]
            if self._on[gate.name] and off:
                yield (
                    f"{gate.name} is enabled, but depends on features that are disabled: "
                    f"[{' '.join(off)}]"
                )


def _word(value: object) -> str:
    return str(value).lower()


def _hint(name: str, generation: Generation) -> str:
    """Another generation that has the gate, or a gate of a similar name."""
    others = [each.name for each in reversed(GENERATIONS.values()) if _has(each, name)]
    if others:
        return f"it is a gate of {others[0]}: add --profile {others[0]}"
    known = [gate.name for gate in generation.gates]
    return did_you_mean(name, known) or f"the scheduler reads: {', '.join(known)}"


def _has(generation: Generation, name: str) -> bool:
    return any(gate.name == name for gate in generation.gates)
