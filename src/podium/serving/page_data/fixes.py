"""What would make a pending pod fit, worked out on a copy of the cluster; and one such fix tried.

Nothing of this touches the scheduler or the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.cluster.simulation import Simulation
from podium.errors import InputError
from podium.library.explained_causes import add_causes
from podium.serving.page_data.decision_data import DRY_RUN, decision_data
from podium.what_if.fix.fix import apply_fix, fix
from podium.what_if.fix.results import Edit, Fix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

Data = dict[str, Any]


class _PostedEdit(msgspec.Struct):
    """An edit as a page sends it back."""

    action: str
    kind: str
    names: list[str]
    patch: list[dict[str, Any]]
    like: str = ""


def found_fixes(objects: Objects, pod: Pod, profile: Profile) -> Data:
    """The fixes for a pending pod of the objects."""
    found = fix(objects, pod, profile)
    data = found.as_json()
    for fixed, each in zip(found.fixes, data["fixes"], strict=True):
        for edit, written in zip(fixed.edits, each["edits"], strict=True):
            written |= {"kind": edit.kind, "names": list(edit.names), "like": edit.like}
    return data


def read_fix(request: Mapping[str, Any]) -> Fix:
    """The fix that a page sends back."""
    try:
        edits = msgspec.convert(request.get("edits"), list[_PostedEdit])
    except msgspec.ValidationError as error:
        hint = "send one of the fixes as it was given"
        raise InputError(f"edits cannot be read: {error}", hint=hint) from None
    return Fix(
        tuple(
            Edit(e.action, "", e.kind, tuple(e.names), tuple(e.patch), "", 0.0, e.like)
            for e in edits
        ),
        "",
    )


def tried_fix(objects: Objects, pod: Pod, profile: Profile, posted: Fix) -> Data:
    """The decision about the pod after the edits of a fix."""
    try:
        after = apply_fix(objects, posted)
    except (msgspec.ValidationError, LookupError, ValueError, TypeError) as error:
        raise InputError(f"an edit cannot be made: {error}") from None
    wanted = next((each for each in after.pods if each.key == pod.key), None)
    if wanted is None:
        raise InputError(f"the edits remove the pod {pod.key} itself")
    after.pods = [each for each in after.pods if each.key != pod.key]
    simulation = Simulation(profile)
    simulation.load(after)
    decision = simulation.attempt(wanted, recording=True)
    add_causes(simulation.cache.columns, wanted, profile, decision)
    return decision_data(
        decision,
        source=DRY_RUN,
        ties=profile.ties,
        max_score=profile.max_score,
        never=wanted.spec.preemption_policy == "Never",
    )
