"""Which argument of a command names a configuration, and the profiles that it makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from podium.library.profile_source import ProfileSource
from podium.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.library.notices import Notify
    from podium.library.profile_choice import ChosenProfiles

_NAMES: Final = frozenset(each.name for each in RELEASES)
_PROVIDERS: Final = frozenset(name for each in RELEASES for name in each.providers)
#: The configurations that have a name: generations and providers.
NAMED: Final = tuple(name for each in RELEASES for name in (each.name, *sorted(each.providers)))
_CONFIG, _POLICY = "KubeSchedulerConfiguration", "Policy"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
#: Configurations are short; a longer file is a dump of a cluster.
_MOST_BYTES: Final = 1 << 20


def configuration(
    argument: str, feature_gates: tuple[Mapping[str, bool], ...], notify: Notify
) -> ChosenProfiles | None:
    """The profiles that an argument names; None if it is a file with objects of a cluster."""
    source = ProfileSource(feature_gates=feature_gates, notify=notify)
    if argument in _NAMES:
        return replace(source, profile=argument).choose()
    if argument in _PROVIDERS:
        return replace(source, provider=argument).choose()
    if argument.endswith(".py"):
        return replace(source, rules=(argument,)).choose()
    kind = _kind(Path(argument))
    if kind == _CONFIG:
        return replace(source, config=argument).choose()
    if kind == _POLICY:
        return replace(source, policy=argument).choose()
    return None


def _kind(path: Path) -> str:
    """The kind of the only document in a file, as far as it is one of a configuration."""
    is_short = path.is_file() and path.stat().st_size <= _MOST_BYTES
    if not is_short or not path.name.endswith(_SUFFIXES):
        return ""
    return configuration_kind(path.read_text("utf-8", errors="replace"))


def configuration_kind(text: str) -> str:
    """`Policy` or `KubeSchedulerConfiguration` if the text is one such document, else nothing.

    A ConfigMap around a Policy counts as one.
    """
    if _CONFIG not in text and _POLICY not in text and "policy.cfg" not in text:
        return ""
    try:
        found = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return ""
    document = found[0] if len(found) == 1 and isinstance(found[0], dict) else {}
    kind = document.get("kind")
    if kind == "ConfigMap" and "policy.cfg" in (document.get("data") or {}):
        return _POLICY
    return kind if kind in {_CONFIG, _POLICY} else ""
