"""The requests of the long lists, which are sent before the scheduler is imported."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from podium.kube.api import BINARY_OR_JSON
from podium.kube.reflector import LIST_SECONDS, first_list_params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.kube.client import ApiClient

#: Pods that Succeeded or Failed use no resources.
UNFINISHED = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
#: The paths of the long lists by their kinds, which are their handles.
_LONG_LISTS: Final = {"Pod": "/api/v1/pods", "Node": "/api/v1/nodes"}


def selected(kind: str) -> Mapping[str, str]:
    """The parameters that select which objects of a kind are read."""
    return UNFINISHED if kind == "Pod" else {}


async def begin_lists(client: ApiClient) -> None:
    """Send the requests of the two long lists, nodes and pods, before anything else is done.

    Every profile reads both. In a large cluster the API server takes a second or more to prepare
    them; the informers take the answers over.
    """
    await asyncio.gather(
        *(
            client.begin_reading(
                kind,
                path,
                first_list_params(selected(kind)),
                seconds=LIST_SECONDS,
                accept=BINARY_OR_JSON,
            )
            for kind, path in _LONG_LISTS.items()
        )
    )
