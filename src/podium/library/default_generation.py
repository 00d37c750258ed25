"""The generation that decides when no flag names one: of the environment, or of a file.

`PODIUM_PROFILE` comes first, then `profile` in the file `podium/config.yaml` of `$XDG_CONFIG_HOME`
(`~/.config` without it), then the newest generation that is the default.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from podium.errors import ConfigError
from podium.releases import DEFAULT_RELEASE, RELEASES

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "PODIUM_PROFILE"
_KNOWN: Final = tuple(each.name for each in RELEASES)


def default_generation(environment: Mapping[str, str]) -> str:
    """The name of the generation; an error if what is configured is none."""
    return configured_generation(environment) or DEFAULT_RELEASE.name


def configured_generation(environment: Mapping[str, str]) -> str:
    """The name of the generation of the environment or of a file; empty if neither has one."""
    named = environment.get(VARIABLE, "")
    if named:
        return _checked(named, f"${VARIABLE}")
    path = config_file(environment)
    return _in_file(path) if path is not None and path.is_file() else ""


def config_file(environment: Mapping[str, str]) -> Path | None:
    """Where the file with a user's defaults is; None without a home directory."""
    base = environment.get("XDG_CONFIG_HOME")
    home = environment.get("HOME")
    if not base and not home:
        return None
    folder = Path(base) if base else Path(str(home)) / ".config"
    return folder / "podium" / "config.yaml"


def _in_file(path: Path) -> str:
    import yaml  # noqa: PLC0415  only where there is a file

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {_line(error)}") from None
    if found is None:
        return ""
    if not isinstance(found, dict) or set(found) - {"profile"}:
        raise ConfigError(f"{path}: expected only `profile`", hint=f"profile: {_KNOWN[0]}")
    named = found.get("profile")
    return "" if named is None else _checked(str(named), f"{path}: profile")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _checked(name: str, where: str) -> str:
    if name not in _KNOWN:
        raise ConfigError(f"{where} is {name!r}", hint=f"served: {', '.join(_KNOWN)}")
    return name
