"""Other requests for workloads, as tools recommend them.

Sources are the JSON of krr, VerticalPodAutoscaler objects, the answer of a Prometheus query or of
the metrics API, and a CSV of your own.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.engine.state.accounting import amount
from podium.errors import InputError
from podium.kube.client import ApiClient
from podium.kube.errors import ApiError
from podium.lab.contents.documents import documents
from podium.library.files import text_from
from podium.library.reading import contents
from podium.objects.quantity import QuantityError, amount_of
from podium.objects.reading import yaml_text

if TYPE_CHECKING:
    from podium.kube.access import Access

_CSV_COLUMNS: Final = ("namespace", "kind", "name", "container")
_AUTOSCALER: Final = "VerticalPodAutoscaler"
_PATHS: Final = {
    "vpa": "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers",
    "metrics": "/apis/metrics.k8s.io/v1beta1/pods",
}
_SECONDS: Final = 30
_MOST_BYTES: Final = 64 << 20
#: The part of a pod's name that a ReplicaSet, a StatefulSet, a DaemonSet or a Job adds.
_POD_SUFFIX: Final = re.compile(r"(-[a-z0-9]{5,10})?-[a-z0-9]{5}$|-\d+$")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What one container of a workload should request."""

    namespace: str
    #: Empty if the source does not say; then any workload of the name is meant.
    kind: str
    name: str
    #: Empty for all containers of the workload.
    container: str
    #: Resource -> amount.
    requests: Mapping[str, str]


@dataclass(slots=True)
class Recommendations:
    """All recommendations of a source, and what could not be used."""

    found: list[Recommendation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_recommendations(source: str) -> Recommendations:
    """The recommendations in a file, behind an http address, or in `-`."""
    if source.startswith(("http://", "https://")):
        text, where = _fetched(source), source
    else:
        text, where = text_from(source), source
    try:
        return parse_recommendations(text)
    except InputError as error:
        raise error.located(where=where) from None


def autoscalers_in(paths: Sequence[str]) -> Recommendations:
    """The recommendations of the VerticalPodAutoscalers in manifests, dumps or snapshots."""
    items = [
        each.item
        for where, data in contents(paths)
        for each in documents(data, where)
        if each.kind == _AUTOSCALER
    ]
    if not items:
        hint = "kubectl get verticalpodautoscalers -A -o yaml would add them"
        raise InputError("holds no VerticalPodAutoscaler", where=", ".join(paths), hint=hint)
    return _from_objects(items)


def live_recommendations(source: str, access: Access) -> Recommendations:
    """Those of the VerticalPodAutoscalers of a cluster (`vpa`), or of its usage now (`metrics`)."""
    path = _PATHS[source]
    try:
        return parse_recommendations(asyncio.run(_read_path(access, path)).decode())
    except ApiError as error:
        raise InputError(f"the cluster does not serve {path}: {error}") from None


async def _read_path(access: Access, path: str) -> bytes:
    async with ApiClient(access) as client:
        return await client.request("GET", path, timeout=60.0)


def parse_recommendations(text: str) -> Recommendations:
    """The recommendations in a text, whatever its format."""
    stripped = text.lstrip()
    if stripped.startswith(("{", "[")):
        try:
            return _from_data(json.loads(stripped))
        except (ValueError, RecursionError) as error:
            raise InputError(f"cannot be read: {error}") from None
    first = stripped.splitlines()[0] if stripped else ""
    if "," in first and "container" in first and ":" not in first:
        return _from_csv(text)
    return _from_objects(each.value for each in yaml_text.documents(text))


def _fetched(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310  http only
            data: bytes = answer.read(_MOST_BYTES + 1)
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        raise InputError(f"does not answer: {error}", where=address) from None
    if len(data) > _MOST_BYTES:
        raise InputError("answers with more than 64 MiB", where=address)
    return data.decode("utf-8", "replace")


def _from_data(data: Any) -> Recommendations:
    if isinstance(data, dict) and isinstance(data.get("scans"), list):
        return _from_krr(data["scans"])
    if isinstance(data, dict) and isinstance((data.get("data") or {}).get("result"), list):
        return _from_series(data["data"]["result"])
    return _from_objects(data if isinstance(data, list) else [data])


# krr ------------------------------------------------------------------------------------------


def _from_krr(scans: Iterable[Any]) -> Recommendations:
    """`krr … -f json`: cpu is in cores, memory in bytes; `?` where there is no data."""
    made = Recommendations()
    for scan in scans:
        about, recommended = scan["object"], scan["recommended"]["requests"]
        amounts = {
            resource: _number_text(resource, (given or {}).get("value"))
            for resource, given in recommended.items()
        }
        requests = {name: text for name, text in amounts.items() if text}
        label = f"{about['kind']}/{about['namespace']}/{about['name']}"
        if not requests:
            made.notes.append(f"{label}: krr has no value for container {about['container']}")
            continue
        made.found.append(
            Recommendation(
                about["namespace"], about["kind"], about["name"], about["container"], requests
            )
        )
    return made


def _number_text(resource: str, amount: Any) -> str:
    """A number of cores or bytes as a quantity; empty if there is none."""
    if not isinstance(amount, int | float) or isinstance(amount, bool):
        try:
            amount = float(amount)
        except (TypeError, ValueError):
            return ""
    if not math.isfinite(amount) or amount < 0:
        return ""
    return f"{math.ceil(amount * 1000)}m" if resource == "cpu" else str(math.ceil(amount))


# Objects --------------------------------------------------------------------------------------


def _from_objects(documents: Iterable[Any]) -> Recommendations:
    made = Recommendations()
    usage: dict[tuple[str, str, str], dict[str, str]] = {}
    for item in _flat(documents):
        kind = item.get("kind")
        if kind == _AUTOSCALER:
            _add_autoscaler(made, item)
        elif kind == "PodMetrics":
            _add_usage(usage, item)
        else:
            made.notes.append(f"{kind} recommends no requests; left out")
    made.found += [
        Recommendation(namespace, "", name, container, requests)
        for (namespace, name, container), requests in usage.items()
    ]
    if not made.found:
        hint = "krr -f json, VerticalPodAutoscalers, PodMetrics, a Prometheus answer or a CSV work"
        raise InputError("holds no recommendation", hint=hint)
    return made


def _flat(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for item in documents:
        if not isinstance(item, dict):
            continue
        if isinstance(item.get("items"), list):
            kind = str(item.get("kind", "")).removesuffix("List")
            yield from ({"kind": kind, **each} for each in item["items"])
        else:
            yield item


def _add_autoscaler(made: Recommendations, item: Mapping[str, Any]) -> None:
    about = item.get("metadata") or {}
    target = (item.get("spec") or {}).get("targetRef") or {}
    status = (item.get("status") or {}).get("recommendation") or {}
    containers = status.get("containerRecommendations") or ()
    if not containers or not target.get("name"):
        made.notes.append(f"VerticalPodAutoscaler {about.get('name')} has no recommendation yet")
    for each in containers:
        requests = {name: str(amount) for name, amount in (each.get("target") or {}).items()}
        _check_amounts(requests, f"VerticalPodAutoscaler {about.get('name')}")
        made.found.append(
            Recommendation(
                str(about.get("namespace") or "default"),
                str(target.get("kind", "")),
                str(target["name"]),
                str(each.get("containerName", "")),
                requests,
            )
        )


def _add_usage(usage: dict[tuple[str, str, str], dict[str, str]], item: Mapping[str, Any]) -> None:
    """What a pod uses now; the pod of a workload that uses most counts."""
    about = item["metadata"]
    workload = _POD_SUFFIX.sub("", str(about["name"]))
    for container in item.get("containers") or ():
        key = (str(about.get("namespace") or "default"), workload, str(container["name"]))
        _check_amounts(container.get("usage") or {}, f"PodMetrics {about['name']}")
        _take_highest(usage.setdefault(key, {}), container.get("usage") or {})


def _take_highest(kept: dict[str, str], given: Mapping[str, Any]) -> None:
    for resource, text in ((name, str(raw)) for name, raw in given.items()):
        if resource not in kept or amount(resource, text) > amount(resource, kept[resource]):
            kept[resource] = text


def _check_amounts(requests: Mapping[str, Any], where: str) -> None:
    for resource, text in requests.items():
        try:
            amount_of(str(text))
        except QuantityError as error:
            raise InputError(str(error), object=where, path=resource) from None


# Prometheus and CSV ---------------------------------------------------------------------------


def _from_series(result: Iterable[Mapping[str, Any]]) -> Recommendations:
    """An instant vector with the labels namespace, pod or workload, container and resource."""
    made = Recommendations()
    usage: dict[tuple[str, str, str], dict[str, str]] = {}
    kinds: dict[tuple[str, str, str], str] = {}
    for series in result:
        labels = series.get("metric") or {}
        pod, workload = str(labels.get("pod", "")), str(labels.get("workload", ""))
        resource = labels.get("resource")
        if not labels.get("namespace") or not (pod or workload) or not resource:
            hint = "give series with the labels namespace, pod or workload, container, resource"
            raise InputError(f"a series has the labels {', '.join(sorted(labels))}", hint=hint)
        text = _number_text(resource, (series.get("value") or (0, ""))[1])
        if not text:
            continue
        name = workload or _POD_SUFFIX.sub("", pod)
        key = (labels["namespace"], name, labels.get("container", ""))
        kinds[key] = labels.get("workload_type", "")
        _take_highest(usage.setdefault(key, {}), {resource: text})
    made.found = [
        Recommendation(namespace, _KINDS.get(kinds[key].lower(), ""), name, container, requests)
        for key, requests in usage.items()
        for namespace, name, container in (key,)
    ]
    if not made.found:
        raise InputError("holds no series with a value")
    return made


_KINDS: Final = {
    name.lower(): name for name in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
}


def _from_csv(text: str) -> Recommendations:
    made = Recommendations()
    reader = csv.DictReader(io.StringIO(text))
    columns = [name.strip() for name in reader.fieldnames or ()]
    missing = [name for name in _CSV_COLUMNS if name not in columns]
    resources = [name for name in columns if name not in _CSV_COLUMNS]
    if missing or not resources:
        hint = f"the first line is {','.join(_CSV_COLUMNS)},cpu,memory"
        raise InputError(f"lacks the columns {', '.join(missing) or 'of resources'}", hint=hint)
    for number, row in enumerate(reader, 2):
        cells = {str(name).strip(): (cell or "").strip() for name, cell in row.items() if name}
        requests = {name: cells[name] for name in resources if cells.get(name)}
        _check_amounts(requests, f"line {number}")
        if requests:
            namespace, kind, name, container = (cells[column] for column in _CSV_COLUMNS)
            made.found.append(Recommendation(namespace, kind, name, container, requests))
    if not made.found:
        raise InputError("holds no recommendation")
    return made
