"""The feature gates of a Policy: which rules exist and how they work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.errors import ConfigError
from podium.generations.v1_13 import V1_13
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


GATES: Final = V1_13.gates
_BY_NAME: Final = {gate.name: gate for gate in GATES}


class PolicyGates:
    """Which feature gates are on."""

    def __init__(self, changes: Mapping[str, bool]) -> None:
        """*changes* to the defaults; unknown names and unsupported values are refused."""
        self._on = {gate.name: gate.default for gate in GATES}
        for name, value in changes.items():
            _check(name, value)
            self._on[name] = value

    def __getitem__(self, name: str) -> bool:
        """Whether a gate is on."""
        return self._on[name]

    def hold(self, condition: str) -> bool:
        """Whether a condition holds: `Gate`, `Gate=false`, or nothing, which always does."""
        name, _, value = condition.partition("=")
        return not name or self._on[name] == (value != "false")

    def as_dict(self) -> dict[str, bool]:
        """Every gate and its value, by name."""
        return dict(self._on)


def _check(name: str, value: object) -> None:
    gate = _BY_NAME.get(name)
    if gate is None:
        known = f"known: {', '.join(_BY_NAME)}"
        hint = f"{did_you_mean(name, _BY_NAME)} {known}".lstrip()
        raise ConfigError(f"unknown feature gate {name!r}", hint=hint)
    if not isinstance(value, bool):
        raise ConfigError(f"feature gate {name}: expected true or false, got {value!r}")
    if gate.fixed and value != gate.default:
        raise ConfigError(
            f"feature gate {name}={str(value).lower()} is not supported",
            hint=f"leave it out or write {name}={str(gate.default).lower()}",
        )
