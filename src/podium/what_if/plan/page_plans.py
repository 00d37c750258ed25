"""Plans for pages: of a lab in a thread, of a live cluster in a process of its own.

As a program it reads a request from standard input and writes the answer to standard output.
`podium run` starts it for its pages (`live_plans`). It reads the cluster and writes nothing to it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError, PodiumError
from podium.kube.access import load_access
from podium.lab.api.resources import STORED
from podium.lab.contents.documents import Document
from podium.library.profile_source import ProfileSource
from podium.profiles.similar_names import did_you_mean
from podium.what_if.plan.changes import AddNodes, Apply, Change, parse_change
from podium.what_if.plan.cluster_copy import CopyOptions
from podium.what_if.plan.inputs import live_documents
from podium.what_if.plan.live_plans import PlanAnswer, PlanRequest
from podium.what_if.plan.plan import plan

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.lab.registry.registry import Registry
    from podium.library.profile_choice import ChosenProfiles
    from podium.serving.page_data.page_data import Planner

Data = dict[str, Any]

#: Kinds that nothing in a plan depends on, or that controllers make anew.
_LEFT_OUT: Final = frozenset({"Event", "Lease", "Secret", "Endpoints", "EndpointSlice"})


def registry_planner(registry: Registry, chosen: ChosenProfiles) -> Planner:
    """A function that makes plans: it copies records in this thread, and plans in another one."""

    async def planned(
        profiles: Sequence[Profile], _: str | None, changes: Sequence[tuple[str, str]]
    ) -> Data:
        wanted = page_changes(changes)
        check_added_nodes(wanted, {key.name for key in registry.store.table("nodes").records})
        records = [
            record
            for resource in STORED.values()
            if resource.kind not in _LEFT_OUT
            for record in registry.store.table(resource.storage).records.values()
        ]
        deciding = replace(chosen, profile=profiles[0], others=tuple(profiles[1:]))

        def work() -> Data:
            documents = [Document("", record.object()) for record in records]
            return plan_data(documents, wanted, deciding)

        running = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(running)
        finally:
            if not running.done():
                # The thread cannot be ended; further plans have to wait for it.
                await asyncio.wait([running])

    return planned


def page_changes(changes: Sequence[tuple[str, str]]) -> list[Change]:
    """The changes of a form; none may read a file of the server."""
    wanted = [parse_change(flag, text) for flag, text in changes]
    for change in wanted:
        if isinstance(change, Apply):
            hint = "podium plan --apply FILE reads one"
            raise InputError("the pages read no files", where=f"--{change}", hint=hint)
    return wanted


def check_added_nodes(changes: Sequence[Change], nodes: Collection[str]) -> None:
    """Refuse new nodes like one that the cluster does not have: it would be sought as a file."""
    for change in changes:
        if isinstance(change, AddNodes) and change.like not in nodes:
            names = sorted(nodes)
            hint = did_you_mean(change.like, names) or "COUNT:NODE adds nodes like NODE"
            raise InputError(f"there is no node {change.like!r}", where=f"--{change}", hint=hint)


def plan_data(
    documents: Sequence[Document], changes: Sequence[Change], chosen: ChosenProfiles
) -> Data:
    """What follows from the changes, as a page shows it."""
    found = plan(documents, changes, chosen, CopyOptions(now=time.time(), is_whole=True))
    for each in found.pending:
        each.decision = None  # the page of the pod has it
    data: Data = msgspec.to_builtins(found)
    return data | {"summary": found.summary(), "leavesPods": found.makes_worse}


#: It gives way to the scheduler where both want a processor.
_NICENESS: Final = 10


def answer(request: PlanRequest) -> PlanAnswer:
    """The plan of the request, or why there is none."""
    try:
        return PlanAnswer(plan=_planned(request))
    except PodiumError as error:
        return PlanAnswer(error=str(error))


def _planned(request: PlanRequest) -> Data:
    changes = page_changes(request.changes)
    chosen = source_of(request).choose()
    found = live_documents(load_access(request.kubeconfig, request.context, request.server))
    names = {each.item["metadata"]["name"] for each in found.documents if each.kind == "Node"}
    check_added_nodes(changes, names)
    data = plan_data(found.documents, changes, chosen)
    notes = list(found.notes())
    if any(profile.extenders for profile in chosen.profiles):
        notes.append("extenders are not asked in a plan")
    return data | {"notes": [*data["notes"], *notes]}


def source_of(request: PlanRequest) -> ProfileSource:
    """What the profiles of the request are made from."""
    values = dict(request.source)
    for name in ("feature_gates", "rules"):
        values[name] = tuple(values[name])
    return ProfileSource(**values)


def main() -> int:
    """Answer the request on standard input."""
    os.nice(_NICENESS)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=PlanRequest)
    sys.stdout.buffer.write(msgspec.json.encode(answer(request)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
