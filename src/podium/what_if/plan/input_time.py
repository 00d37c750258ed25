"""The time at which the objects of an input were read from their cluster.

Ages, tolerations of taints and deadlines count from there. The newest time that a controller or a
kubelet wrote is close to it: nodes report themselves every few minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from podium.lab.api.encoding import parse_time

if TYPE_CHECKING:
    from podium.lab.contents.documents import Document

#: Fields with times of what has happened.
_FIELDS: Final = frozenset(
    {
        "creationTimestamp",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "startTime",
        "completionTime",
        "time",
        "timeAdded",
    }
)
#: Of pods in JSON text only the creation is looked for; there may be tens of thousands.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_CREATED: Final = re.compile(rb'"creationTimestamp"\s*:\s*"([^"]+)"')


def newest_time(documents: Iterable[Document]) -> float | None:
    """The newest time in the objects, in seconds since 1970; None if they have no times."""
    newest = max((text for each in documents for text in _times(each)), default="")
    return parse_time(newest) if newest else None


def _times(document: Document) -> Iterator[str]:
    if document.kind == "Pod" and document.text is not None:
        found = _CREATED.search(bytes(document.text))
        if found is not None:
            yield found[1].decode(errors="replace")
        return
    yield from _in_value(document.item)


def _in_value(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name in _FIELDS and isinstance(part, str) and _is_time(part):
                yield part
            elif isinstance(part, dict | list):
                yield from _in_value(part)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                yield from _in_value(part)


def _is_time(text: str) -> bool:
    return _TIME.match(text) is not None
