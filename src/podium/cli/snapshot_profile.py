"""The profile in use, as a snapshot keeps it, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.cli.flags import ProfileFlags
    from podium.cli.generations import Chosen

#: Options that are kept besides: the flag, and its name in the snapshot.
_OPTIONS: Final = {
    "percentage_of_nodes_to_score": "percentageOfNodesToScore",
    "hard_pod_affinity_symmetric_weight": "hardPodAffinitySymmetricWeight",
    "no_preemption": "noPreemption",
    "ties": "ties",
    "scheduler_name": "schedulerName",
}
_POLICY, _CONFIG = "the policy of the snapshot", "the configuration of the snapshot"


def profile_of(flags: ProfileFlags, chosen: Chosen) -> dict[str, Any]:
    """What to keep so that the same profile can be had again."""
    found: dict[str, Any] = {}
    if chosen.policy is not None:
        found["policy"] = chosen.policy
    elif chosen.config is not None:
        found["config"] = chosen.config
    elif flags.provider is not None:
        found["provider"] = flags.provider
    else:
        found["profile"] = chosen.profile.name.partition(" ")[0]
    gates = {name: on for changes in flags.feature_gates for name, on in changes.items()}
    if gates:
        found["featureGates"] = gates
    for field, name in _OPTIONS.items():
        value = getattr(flags, field)
        if value not in (None, False):
            found[name] = value
    return found


def flags_of(snapshot: Mapping[str, Any], given: ProfileFlags) -> ProfileFlags:
    """The flags that stand for a snapshot's profile; what is given on the command line wins."""
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


#: Where a Policy or a KubeSchedulerConfiguration names label keys.
