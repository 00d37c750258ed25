"""Loads workloads and selects those that are named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace as replaced

from podium.errors import InputError
from podium.generations.known import GENERATIONS
from podium_research.bench.definitions import BenchWorkload, CreateNodes, read_workloads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.framework.choices import FeatureGate
    from podium.engine.framework.generation import Generation
    from podium.engine.framework.profile import Profile
    from podium.library.profile_source import ProfileSource

BUILT_IN = Path(__file__).parent / "workloads" / "workloads.yaml"
#: The parameter with the number of nodes, in workloads that create them from one template.
NODES = "initNodes"
#: Without names, the workloads with this label are selected, if there are any.
SHORT = "short"


@dataclass(frozen=True, slots=True)
class SizeOverrides:
    """Numbers that replace those of the file; None keeps the number of the file."""

    nodes: int | None = None
    existing: int | None = None
    pods: int | None = None

    def params(self) -> dict[str, int]:
        """The given numbers by the names of the parameters of workloads."""
        known = {NODES: self.nodes, "initPods": self.existing, "measurePods": self.pods}
        return {name: value for name, value in known.items() if value is not None}


def load_workloads(file: str | None = None) -> list[BenchWorkload]:
    """The workloads of a file; by default those that Podium contains."""
    return read_workloads(Path(file) if file else BUILT_IN)


def select_workloads(
    known: Sequence[BenchWorkload], names: Sequence[str], sizes: SizeOverrides
) -> list[BenchWorkload]:
    """The workloads that are named by case, by `Case/Size`, or by a pattern of either.

    With size overrides only one workload per case is selected, as all sizes would be equal.
    """
    found = [workload for workload in known if _is_named(workload, names)]
    for name in names:
        if not any(_is_named(workload, [name]) for workload in known):
            cases = ", ".join(dict.fromkeys(workload.case for workload in known))
            raise InputError(f"there is no workload {name!r}", hint=f"known: {cases}")
    if not names:
        found = [workload for workload in known if SHORT in workload.labels] or list(known)
    for workload in found:
        workload.check()
    changes = sizes.params()
    return _resized(found, changes) if changes else found


def _is_named(workload: BenchWorkload, names: Sequence[str]) -> bool:
    return any(
        fnmatchcase(workload.name, name) or fnmatchcase(workload.case, name) for name in names
    )


def _resized(found: Sequence[BenchWorkload], changes: dict[str, int]) -> list[BenchWorkload]:
    for name in changes:
        known = any(name in workload.params for workload in found)
        if not known and not (name == NODES and any(_shares(each, changes) for each in found)):
            raise InputError(f"none of these workloads has a parameter {name}")
    first = {workload.case: workload for workload in reversed(found)}
    resized = [workload.with_params(changes | _shares(workload, changes)) for workload in found]
    return [
        replaced(after, size=_size(after))
        for before, after in zip(found, resized, strict=True)
        if first[before.case] is before
    ]


def _counted_nodes(workload: BenchWorkload) -> dict[str, int]:
    """The parameters that say how many nodes are created from each of several templates."""
    ops = (op for op in workload.ops if isinstance(op, CreateNodes) and op.count_param)
    names = [op.count_param.removeprefix("$") for op in ops]
    return {name: int(workload.params[name]) for name in names if name in workload.params}


def _shares(workload: BenchWorkload, changes: dict[str, int]) -> dict[str, int]:
    """The given number of nodes, in the proportions of a workload with several templates for them.

    What is left over by rounding goes to the last of them.
    """
    nodes, counts = changes.get(NODES), _counted_nodes(workload)
    total = sum(counts.values())
    if nodes is None or NODES in workload.params or not total:
        return {}
    shares = {name: nodes * count // total for name, count in counts.items()}
    last = list(shares)[-1]
    return shares | {last: shares[last] + nodes - sum(shares.values())}


def _size(workload: BenchWorkload) -> str:
    nodes = workload.params.get(NODES) or sum(_counted_nodes(workload).values())
    return f"{nodes}Nodes" if nodes else workload.size


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
