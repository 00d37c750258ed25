"""Decides on which node each Kubernetes pod runs, exactly as kube-scheduler does, and shows why.

The names below are the public API; `docs/library.md` shows each of them at work. A name is imported
when it is first used, so that importing the package costs nothing, and nothing here changes the
process: no signal handlers, no logging configuration, no tuning of the garbage collector.

    objects = podium.read(["cluster.yaml"])
    for step in podium.simulate(objects, podium.default_profile()):
        print(step.decision.pod, step.decision.node or step.decision.message)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation, Step
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.errors import ConfigError, InputError, PodiumError
    from podium.library.decision_json import to_json
    from podium.library.explanation import Explanation, explain
    from podium.library.frames import frame
    from podium.library.pending_pods import pending
    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource
    from podium.library.profiles import (
        Options,
        default_profile,
        from_config,
        from_policy,
        from_provider,
        load_rules,
        parse_config,
        parse_policy,
    )
    from podium.library.reading import read
    from podium.library.simulations import open_simulation, simulate
    from podium.library.snapshots.profile import snapshot_profiles
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.objects.selectors.requirements import (
        Requirement,
        Selector,
        SelectorError,
        requirement,
    )
    from podium.objects.selectors.selectors import parse_selector
    from podium.past.recordings.comparison import Difference
    from podium.past.recordings.recording import Recording, record
    from podium.past.recordings.replay import Replay, replay
    from podium.past.recordings.scenarios import Scenario, read_recordings
    from podium.what_if.capacity.capacity import PodKind, capacity
    from podium.what_if.capacity.node_shapes import NodeShape
    from podium.what_if.capacity.results import Capacity
    from podium.what_if.compare.comparison import compare
    from podium.what_if.compare.results import Comparison
    from podium.what_if.fix.fix import apply_fix, fix
    from podium.what_if.fix.results import Fix, Fixes
    from podium.what_if.plan.changes import parse_change
    from podium.what_if.plan.cluster_copy import CopyOptions
    from podium.what_if.plan.inputs import cluster_documents
    from podium.what_if.plan.plan import plan
    from podium.what_if.plan.results import Plan
    from podium.what_if.survive.survival import Survival, survive

__version__ = "0.1.0"

__all__ = [
    "Capacity",
    "ChosenProfiles",
    "Comparison",
    "ConfigError",
    "CopyOptions",
    "Decision",
    "Difference",
    "Explanation",
    "Fix",
    "Fixes",
    "InputError",
    "Node",
    "NodeShape",
    "Objects",
    "Options",
    "Plan",
    "Pod",
    "PodKind",
    "PodiumError",
    "Profile",
    "ProfileSource",
    "Recording",
    "Replay",
    "Requirement",
    "Scenario",
    "Selector",
    "SelectorError",
    "Simulation",
    "Step",
    "Survival",
    "__version__",
    "apply_fix",
    "capacity",
    "cluster_documents",
    "compare",
    "default_profile",
    "explain",
    "fix",
    "frame",
    "from_config",
    "from_policy",
    "from_provider",
    "load_rules",
    "open_simulation",
    "parse_change",
    "parse_config",
    "parse_policy",
    "parse_selector",
    "pending",
    "plan",
    "read",
    "read_recordings",
    "record",
    "replay",
    "requirement",
    "simulate",
    "snapshot_profiles",
    "survive",
    "to_json",
]

#: Module -> the public names that it defines.
_MODULES = {
    "podium.cluster.simulation": ("Simulation", "Step"),
    "podium.engine.framework.decision": ("Decision",),
    "podium.engine.framework.profile": ("Profile",),
    "podium.errors": ("ConfigError", "InputError", "PodiumError"),
    "podium.library.explanation": ("Explanation", "explain"),
    "podium.library.pending_pods": ("pending",),
    "podium.what_if.capacity.capacity": ("PodKind", "capacity"),
    "podium.what_if.compare.comparison": ("compare",),
    "podium.what_if.fix.fix": ("apply_fix", "fix"),
    "podium.what_if.capacity.node_shapes": ("NodeShape",),
    "podium.library.frames": ("frame",),
    "podium.library.profile_choice": ("ChosenProfiles",),
    "podium.library.profile_source": ("ProfileSource",),
    "podium.library.profiles": (
        "Options",
        "default_profile",
        "from_config",
        "from_policy",
        "from_provider",
        "load_rules",
        "parse_config",
        "parse_policy",
    ),
    "podium.library.reading": ("read",),
    "podium.past.recordings.comparison": ("Difference",),
    "podium.past.recordings.recording": ("Recording", "record"),
    "podium.past.recordings.replay": ("Replay", "replay"),
    "podium.past.recordings.scenarios": ("Scenario", "read_recordings"),
    "podium.library.simulations": ("open_simulation", "simulate"),
    "podium.library.snapshots.profile": ("snapshot_profiles",),
    "podium.objects.kinds.node": ("Node",),
    "podium.objects.kinds.pod": ("Pod",),
    "podium.objects.reading.collection": ("Objects",),
    "podium.objects.selectors.requirements": (
        "Requirement",
        "Selector",
        "SelectorError",
        "requirement",
    ),
    "podium.objects.selectors.selectors": ("parse_selector",),
    "podium.what_if.plan.changes": ("parse_change",),
    "podium.what_if.plan.cluster_copy": ("CopyOptions",),
    "podium.what_if.plan.inputs": ("cluster_documents",),
    "podium.what_if.plan.plan": ("plan",),
    "podium.what_if.plan.results": ("Plan",),
    "podium.what_if.survive.survival": ("Survival", "survive"),
    "podium.library.decision_json": ("to_json",),
    "podium.what_if.capacity.results": ("Capacity",),
    "podium.what_if.compare.results": ("Comparison",),
    "podium.what_if.fix.results": ("Fix", "Fixes"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
