"""The whole state of a scheduler as records, and the state made again from them.

A checkpoint has all objects, in the order in which the cache keeps them. It also has what does not
follow from them: the past of the cache, assumed pods, nominations, the rule that breaks ties.
Reservations are not in it: a checkpoint waits until no assumed pod has any. Those of bound pods are
restored from the pods, as after a restart of the scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace

from podium.cluster.cache.past import Past
from podium.engine.state.pod_class import NOT_STARTED, started_at
from podium.past.format.records import Checkpoint
from podium.scheduler.placing.failure_handler import EVICTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.engine.cycle.ties import Ties
    from podium.engine.state.pod_class import Resident
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.past.format.records import Record
    from podium.past.format.writing import HistoryWriter
    from podium.scheduler.state.cluster_state import ClusterState

#: A time when a pod that is terminating began to, where only that matters.
_SOME_TIME = "2000-01-01T00:00:00Z"


def can_be_written(state: ClusterState) -> bool:
    """Whether everything that decisions depend on has a place in a checkpoint."""
    columns = state.cache.columns
    promised = columns.catalog.promised_volumes or columns.catalog.provisioning
    reserved = any(state.cache.is_assumed(uid) for uid in columns.pods.reservations)
    unreported = columns.catalog.resource_claims.in_flight
    return not (state.is_frozen or promised or reserved or unreported)


def checkpoint(
    state: ClusterState, ties: Ties, writer: HistoryWriter, now: float
) -> Iterator[Record]:
    """The records of a checkpoint: objects first, then the `Checkpoint` itself."""
    columns = state.cache.columns
    for kind, shelf in columns.catalog.shelves():
        for item in shelf:
            yield writer.put_record(now, kind, item)
    for row in columns.nodes.order.tolist():
        node = columns.nodes.objects[row]
        assert node is not None
        yield writer.put_record(now, "Node", node)
    for pod in state.pods():
        yield writer.put_record(now, "Pod", pod)
    placed: list[tuple[str, list[str]]] = []
    assumed: dict[str, str] = {}
    variants: dict[str, tuple[str | None, bool, bool]] = {}
    for row, residents in enumerate(columns.pods.residents):
        if not residents:
            continue
        name = columns.nodes.names[row]
        placed.append((name, [resident.key for resident in residents]))
        for resident in residents:
            if state.cache.is_assumed(resident.uid):
                assumed[resident.key] = name
            known = state.pod_named(resident.key)
            if known is not None and (variant := _variant(resident, known)) is not None:
                variants[resident.key] = variant
    nominated = [
        (node, [(pod.key, pod.uid) for pod in state.queue.nominated_on(node)])
        for node in state.queue.nominated_nodes()
    ]
    past = msgspec.Raw(msgspec.msgpack.encode(state.cache.past()))
    yield Checkpoint(now, past, placed, assumed, variants, nominated, ties.position())


def _variant(resident: Resident, known: Pod) -> tuple[str | None, bool, bool] | None:
    """What the cache knows of a pod otherwise than its last version says; None: nothing."""
    started = started_at(known.status.start_time)
    if (resident.started, resident.terminating) == (started, known.terminating):
        return None
    text = known.status.start_time if resident.started != NOT_STARTED else None
    return text, resident.terminating, resident.evicted


def restore(
    state: ClusterState, ties: Ties, found: Checkpoint, objects: Iterable[tuple[str, Object]]
) -> None:
    """Fill an empty state with the *objects*, by kind, and the facts of a checkpoint.

    Nominations are left to the caller.
    """
    pods: dict[str, Pod] = {}
    for kind, item in objects:
        if kind == "Pod":
            pods[item.key] = cast("Pod", item)
        else:
            state.index(kind).put(item)
    index = state.index("Pod")
    for node, keys in found.placed:
        for key in keys:
            pod = pods.pop(key, None)
            if pod is None:
                continue
            index.put(_as_cached(pod, found.variants.get(key)))
            index.known[key] = pod
            if key in found.assumed:
                state.cache.assume(pod, node)
    for pod in pods.values():
        index.put(pod)
    past = msgspec.msgpack.decode(found.past, type=Past | None)
    if past is not None:
        state.cache.restore_past(past)
    if found.ties:
        ties.restore(found.ties)


def _as_cached(pod: Pod, variant: tuple[str | None, bool, bool] | None) -> Pod:
    if variant is None:
        return pod
    started, terminating, evicted = variant
    metadata = replace(pod.metadata, deletion_timestamp=_SOME_TIME if terminating else None)
    others = [c for c in pod.status.conditions or () if c.type != EVICTED.type]
    conditions = [*others, EVICTED] if evicted else others
    status = replace(pod.status, start_time=started, conditions=conditions)
    return replace(pod, metadata=metadata, status=status)
