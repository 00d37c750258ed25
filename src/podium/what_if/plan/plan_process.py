"""The program that makes one plan of a live cluster.

It reads a request from standard input and writes the answer to standard output.
`podium run` starts it for its pages (`live_plans`). It reads the cluster and writes nothing to it.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import msgspec

from podium.errors import PodiumError
from podium.kube.access import load_access
from podium.library.profile_source import ProfileSource
from podium.what_if.plan.live import live_documents
from podium.what_if.plan.live_plans import Data, PlanAnswer, PlanRequest
from podium.what_if.plan.page_plans import check_added_nodes, page_changes, plan_data

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
