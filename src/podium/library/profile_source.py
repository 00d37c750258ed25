"""What a profile is made from, as plain values: a file or a name, and options.

Commands fill in a `ProfileSource` from their flags. Nothing of the engine is imported before a
profile is chosen.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.library.generations import V1_13, V1_36
from podium.library.notices import Notify, log_warning

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
    #: A generation, for its default profile.
    profile: str | None = None
    #: Changes to feature gates; later ones win.
    feature_gates: tuple[Mapping[str, bool], ...] = ()
    percentage_of_nodes_to_score: int | None = None
    hard_pod_affinity_symmetric_weight: int | None = None
    no_preemption: bool = False
    ties: str | None = None
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

    def named(self) -> list[str]:
        """The fields that name a profile and are given."""
        return [name for name in NAMING if getattr(self, name) is not None]

    def agrees(self) -> bool:
        """Whether *profile* is the generation of the file or provider that is given besides."""
        of_policy = self.policy is not None or self.provider is not None
        return self.profile == (V1_13 if of_policy else V1_36).name

    def choose(self, snapshot: Mapping[str, Any] | None = None) -> ChosenProfiles:
        """The profiles and what they were made from: those of a *snapshot* unless one is named."""
        from podium.library.profile_choice import choose  # noqa: PLC0415  brings the engine

        if snapshot is not None and not self.named():
            from podium.library.snapshots.profile import source_in  # noqa: PLC0415  rarely needed

            return choose(source_in(snapshot, self))
        return choose(self)

    def text(self, path: str) -> str:
        """The text of the file that *policy* or *config* names."""
        from podium.library.files import text_from  # noqa: PLC0415  only where a file is named

        found = self.texts.get(path)
        return text_from(path) if found is None else found
