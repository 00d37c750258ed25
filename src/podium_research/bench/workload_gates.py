"""The feature gates that a workload is measured with, as far as they are the scheduler's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium.errors import InputError
from podium.generations.known import GENERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.choices import FeatureGate
    from podium.engine.framework.generation import Generation
    from podium.engine.framework.profile import Profile
    from podium.library.profile_source import ProfileSource
    from podium_research.bench.definitions import BenchWorkload


def profile_for(workload: BenchWorkload, source: ProfileSource) -> Profile:
    """The profile of the source with the gates of the workload; flags override them."""
    chosen = source.choose()
    wanted = gates_for(workload, chosen.generation)
    if not wanted:
        return chosen.profile
    return replace(source, feature_gates=(wanted, *source.feature_gates)).choose().profile


def gates_for(workload: BenchWorkload, generation: Generation) -> Mapping[str, bool]:
    """The gates that are changed; an error if the workload needs one that cannot be turned on.

    Gates of other programs, gates that a release does not have any more, and those that cannot be
    turned off, change nothing.
    """
    known = {gate.name: gate for gate in generation.gates}
    wanted = {}
    for name, on in workload.feature_gates.items():
        gate = known.get(name)
        if on and not _can_be_on(name, gate, generation):
            what = f"needs the feature gate {name}, which is off by default and not supported"
            hint = "choose another workload or another --profile"
            raise InputError(what, object=f"workload {workload.name}", hint=hint)
        if gate is not None and on is not gate.default and not (gate.fixed or gate.locked):
            wanted[name] = on
    return wanted


def _can_be_on(name: str, gate: FeatureGate | None, generation: Generation) -> bool:
    if gate is not None:
        return gate.default or not gate.fixed
    # Removed gates were on by default before; what remains is younger, or of another program.
    elsewhere = [
        each for other in GENERATIONS.values() for each in other.gates if each.name == name
    ]
    return generation.uses_policies or not elsewhere or any(each.default for each in elsewhere)
