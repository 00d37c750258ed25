"""Decides on which node each Kubernetes pod runs, exactly as kube-scheduler does, and shows why.

The names below are the public API. Each is imported when it is first used, so that importing the
package costs nothing.

    objects = podium.read(["cluster.yaml"])
    profile = podium.from_provider("DefaultProvider", podium.Options())
    for step in podium.simulate(objects, profile):
        print(step.decision.pod, step.decision.node)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation, Step
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.errors import ConfigError, InputError, PodiumError
    from podium.library.pending import pending
    from podium.library.reading import read
    from podium.library.simulating import simulate
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.profiles.policy.build import Options, from_policy, from_provider, parse_policy
    from podium.render.decision.as_json import to_json

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "Decision",
    "InputError",
    "Node",
    "Objects",
    "Options",
    "Pod",
    "PodiumError",
    "Profile",
    "Simulation",
    "Step",
    "__version__",
    "from_policy",
    "from_provider",
    "parse_policy",
    "pending",
    "read",
    "simulate",
    "to_json",
]

_HOMES = {
    "ConfigError": "podium.errors",
    "Decision": "podium.engine.framework.decision",
    "InputError": "podium.errors",
    "Node": "podium.objects.kinds.node",
    "Objects": "podium.objects.reading.collection",
    "Options": "podium.profiles.policy.build",
    "Pod": "podium.objects.kinds.pod",
    "PodiumError": "podium.errors",
    "Profile": "podium.engine.framework.profile",
    "Simulation": "podium.cluster.simulation",
    "Step": "podium.cluster.simulation",
    "from_policy": "podium.profiles.policy.build",
    "from_provider": "podium.profiles.policy.build",
    "parse_policy": "podium.profiles.policy.build",
    "pending": "podium.library.pending",
    "read": "podium.library.reading",
    "simulate": "podium.library.simulating",
    "to_json": "podium.render.decision.as_json",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
