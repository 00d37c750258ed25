"""What a profile is made from, as plain values: a file or a name, and options.

Commands fill in a `ProfileSource` from their flags. Nothing of the engine is imported before a
profile is chosen.

Where no flag names a generation, `PODIUM_PROFILE` does, then `profile` in the file
`podium/config.yaml` of `$XDG_CONFIG_HOME` (`~/.config` without it), then the newest generation that
is the default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from podium.errors import ConfigError, InputError
from podium.library.notices import Notify, log_warning
from podium.releases import DEFAULT_RELEASE, RELEASES, release_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.library.profile_choice import ChosenProfiles


#: The fields that name a profile, of which one may be given.
NAMING: Final = ("policy", "provider", "config", "profile")


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """A Policy file, a provider, a configuration file or a generation, and options."""

    #: A Policy file (v1.13); `-` is standard input.
    policy: str | None = None
    #: An algorithm provider (v1.13).
    provider: str | None = None
    #: A file with a KubeSchedulerConfiguration (v1.36); `-` is standard input.
    config: str | None = None
    #: A generation: for its default profile, or to read the configuration file as it does.
    profile: str | None = None
    #: Changes to feature gates; later ones win.
    feature_gates: tuple[Mapping[str, bool], ...] = ()
    percentage_of_nodes_to_score: int | None = None
    hard_pod_affinity_symmetric_weight: int | None = None
    no_preemption: bool = False
    ties: str | None = None
    #: What holds where neither this source nor a configuration or snapshot says anything.
    usual_ties: str | None = None
    usual_percentage: int = 100
    #: Whether the extenders that a snapshot names may be asked.
    ask_extenders: bool = False
    #: Decide about pods of this scheduler only.
    scheduler_name: str | None = None
    #: Files, modules and entry points with user rules, and the limits for these rules.
    rules: tuple[str, ...] = ()
    rule_seconds: float | None = None
    rule_overruns: int | None = None
    #: Keyword arguments of user rules, by the name of the rule.
    rule_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    #: Texts of files that are not on disk, by the name that *policy* or *config* has.
    texts: Mapping[str, str] = field(default_factory=dict)
    #: Called with a sentence when a user rule fails or takes too long.
    notify: Notify = log_warning
    #: Called in another thread with a sentence when a user rule does not return.
    on_hang: Notify | None = None

    def named(self) -> list[str]:
        """The fields that name a profile and are given."""
        return [name for name in NAMING if getattr(self, name) is not None]

    def agrees(self) -> bool:
        """Whether *profile* is a generation that the file or provider given besides is for."""
        release = release_of(self.profile or "")
        of_policy = self.policy is not None or self.provider is not None
        kind = "Policy" if of_policy else "KubeSchedulerConfiguration"
        return release is not None and release.configured_by == kind

    def choose(self, snapshot: Mapping[str, Any] | None = None) -> ChosenProfiles:
        """The profiles and what they were made from: those of a *snapshot* unless one is named."""
        from podium.library.profile_choice import choose  # noqa: PLC0415  brings the engine

        if snapshot is not None and not self.named():
            from podium.library.snapshots.profile import source_in  # noqa: PLC0415  rarely needed

            chosen = choose(source_in(snapshot, self))
            if not self.ask_extenders:
                _refuse_extenders(chosen)
            return chosen
        return choose(self)

    def text(self, path: str) -> str:
        """The text of the file that *policy* or *config* names."""
        from podium.library.files import text_from  # noqa: PLC0415  only where a file is named

        found = self.texts.get(path)
        return text_from(path) if found is None else found


def _refuse_extenders(chosen: ChosenProfiles) -> None:
    """Who wrote a snapshot may name any address in it, and files with keys."""
    urls = {each.url_prefix for profile in chosen.profiles for each in profile.extenders}
    if urls:
        named = ", ".join(sorted(urls))
        raise InputError(
            f"the snapshot names extenders ({named}), which are asked only with --ask-extenders",
            hint="add it; or --config or --policy, which decide without its profile",
        )


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
