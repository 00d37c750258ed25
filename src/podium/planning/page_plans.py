"""Plans for the pages of a lab, made on a copy of the objects of its registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.lab.api.resources import STORED
from podium.lab.contents.documents import Document
from podium.planning.changes import parse_change
from podium.planning.plan import plan
from podium.planning.plan_report import summary

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.lab.registry.registry import Registry
    from podium.library.profile_choice import ChosenProfiles

Data = dict[str, Any]

#: Kinds that nothing in a plan depends on, or that controllers make anew.
_LEFT_OUT: Final = frozenset({"Event", "Lease", "Secret", "Endpoints", "EndpointSlice"})


def registry_planner(
    registry: Registry, chosen: ChosenProfiles
) -> Callable[[Sequence[Profile], Sequence[tuple[str, str]]], Callable[[], Data]]:
    """A function that prepares a plan: it reads the changes and the records, and returns the work.

    The preparation belongs into the thread of the registry; the work may be done in another one.
    """

    def prepare(
        profiles: Sequence[Profile], changes: Sequence[tuple[str, str]]
    ) -> Callable[[], Data]:
        wanted = [parse_change(flag, text) for flag, text in changes]
        records = [
            record
            for resource in STORED.values()
            if resource.kind not in _LEFT_OUT
            for record in registry.store.table(resource.storage).records.values()
        ]
        deciding = replace(chosen, profile=profiles[0], others=tuple(profiles[1:]))

        def work() -> Data:
            documents = [Document("", record.object()) for record in records]
            found = plan(documents, wanted, deciding)
            for each in found.pending:
                each.decision = None  # the page of the pod has it
            data: Data = msgspec.to_builtins(found)
            return data | {"summary": summary(found), "leavesPods": found.leaves_pods}

        return work

    return prepare
