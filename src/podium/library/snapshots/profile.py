"""The profile in use when a snapshot was written: kept in the snapshot, and made again from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.profile import Profile
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.reading.collection import Objects

#: Options that are kept: the field of `ProfileSource`, and its name in the snapshot.
_OPTIONS: Final = {
    "percentage_of_nodes_to_score": "percentageOfNodesToScore",
    "hard_pod_affinity_symmetric_weight": "hardPodAffinitySymmetricWeight",
    "no_preemption": "noPreemption",
    "ties": "ties",
    "scheduler_name": "schedulerName",
}
_POLICY, _CONFIG = "the policy of the snapshot", "the configuration of the snapshot"


def snapshot_profiles(objects: Objects, *, ask_extenders: bool = False) -> tuple[Profile, ...]:
    """The profiles that were in use in the cluster that a snapshot was taken of.

    Objects that are not of a snapshot say nothing about a profile: they get the default one. A
    snapshot that names extenders is refused, unless they may be asked.
    """
    return ProfileSource(ask_extenders=ask_extenders).choose(objects.snapshot).profiles


def kept_profile(source: ProfileSource, chosen: ChosenProfiles) -> dict[str, Any]:
    """What a snapshot keeps so that the same profiles can be made again."""
    found: dict[str, Any] = {}
    if chosen.policy is not None:
        found["policy"] = chosen.policy
    elif chosen.config is not None:
        found["config"] = chosen.config
    elif source.provider is not None:
        found["provider"] = source.provider
    if not chosen.generation.uses_policies or not found:
        found["profile"] = chosen.generation.name
    gates = {name: on for changes in source.feature_gates for name, on in changes.items()}
    if gates:
        found["featureGates"] = gates
    for field, name in _OPTIONS.items():
        value = getattr(source, field) or getattr(source, f"usual_{field}", None)
        if value not in (None, False):
            found[name] = value
    return found


def source_in(snapshot: Mapping[str, Any], given: ProfileSource) -> ProfileSource:
    """The source of the profile that a snapshot keeps; options that are *given* win."""
    kept = snapshot.get("profile")
    if kept is None:
        return given
    if not isinstance(kept, dict):
        raise InputError("is no profile", object="Snapshot", path="profile")
    texts = {}
    for field, name in (("policy", _POLICY), ("config", _CONFIG)):
        if field in kept:
            texts[name] = msgspec.json.encode(kept[field]).decode()
    changes: dict[str, Any] = {
        "texts": texts,
        "policy": _POLICY if "policy" in kept else None,
        "config": _CONFIG if "config" in kept else None,
        "provider": _text(kept, "provider"),
        "profile": _text(kept, "profile"),
        "feature_gates": (_gates(kept), *given.feature_gates),
    }
    for field, name in _OPTIONS.items():
        if name in kept and getattr(given, field) in (None, False):
            changes[field] = kept[name]
    return replace(given, **changes)


def _text(kept: Mapping[str, Any], name: str) -> str | None:
    found = kept.get(name)
    if found is not None and not isinstance(found, str):
        raise InputError("is not text", object="Snapshot", path=f"profile.{name}")
    return found


def _gates(kept: Mapping[str, Any]) -> Mapping[str, bool]:
    found = kept.get("featureGates", {})
    if not isinstance(found, dict) or not all(isinstance(on, bool) for on in found.values()):
        raise InputError("is not a map of gates", object="Snapshot", path="profile.featureGates")
    return found
