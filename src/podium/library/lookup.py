"""The pods or the node that a name stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.objects.kinds.registry import KINDS
from podium.objects.selectors.selectors import SelectorError, parse_selector
from podium.profiles.similar_names import most_similar
from podium.render.plain import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

#: How people call the kinds of workloads, and pods.
_KINDS: Final = {
    "Pod": ("pod", "pods", "po"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "Job": ("job", "jobs"),
    "CronJob": ("cronjob", "cronjobs", "cj"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
}
_KIND_OF: Final = {text: kind for kind, texts in _KINDS.items() for text in texts}
_HASH: Final = "pod-template-hash"
#: Marks of a label selector, which no name has.
_SELECTOR_MARKS: Final = ("=", "!", " in ", " notin ", ",")
_LISTED: Final = 10
#: Comparing a name with more names than this would take longer than the decision.
_SEARCHED: Final = 20_000

#: Kind, namespace and name of a pod, or of a workload that it belongs to.
Identity = tuple[str, str, str]


def pods_named(objects: Objects, name: str, namespace: str = "") -> list[Pod]:
    """The pods that *name* stands for, at least one; of all namespaces unless one is given.

    It is a pod (`NAME`, `NAMESPACE/NAME`), a workload (`NAME`, `KIND/NAME`, `KIND/NAMESPACE/NAME`,
    such as `deployment/web` or `sts/kafka`), or a label selector (`app=web`). A pod comes before a
    workload of the same name.
    """
    if any(mark in name for mark in _SELECTOR_MARKS):
        return _selected(objects, name, namespace)
    kind, named, short = _parsed(name)
    namespace = _same_namespace(name, named, namespace)
    above = Owners(objects)
    found: dict[Identity, list[Pod]] = {}
    for pod in objects.pods:
        for each in above.identities(pod):
            if each[2] == short and kind in {"", each[0]} and namespace in {"", each[1]}:
                found.setdefault(each, []).append(pod)
    pods = {each: group for each, group in found.items() if each[0] == "Pod"}
    chosen = pods or found
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    if chosen:
        spaces = {each[1] for each in chosen}
        names = sorted(_written(each) for each in chosen)
        where = f"in {len(spaces)} namespaces" if len(spaces) > 1 else f"{len(chosen)} things"
        raise InputError(f"{name} is {where}", hint=f"name one: {', '.join(names[:_LISTED])}")
    raise _not_found(objects, kind, namespace, short, above)


def pod_named(objects: Objects, name: str, namespace: str = "") -> Pod:
    """The pod that *name* stands for; of several, the first that is pending."""
    found = pods_named(objects, name, namespace)
    waiting = (pod for pod in found if not pod.spec.node_name and not pod.finished)
    running = (pod for pod in found if not pod.finished and not pod.terminating)
    return next(waiting, None) or next(running, found[0])


def pod_key(name: str, namespace: str = "") -> tuple[str, str] | None:
    """Namespace and name of a pod; None of a workload or a label selector.

    Without a namespace it is `default`.
    """
    if any(mark in name for mark in _SELECTOR_MARKS):
        return None
    kind, named, short = _parsed(name)
    if kind not in {"", "Pod"}:
        return None
    return _same_namespace(name, named, namespace) or "default", short


def _same_namespace(name: str, named: str, namespace: str) -> str:
    """The namespace that a name or a flag gives; an error if they give two."""
    if namespace and named and named != namespace:
        raise InputError(f"{name} is not in the namespace {namespace}", hint="leave out one")
    return namespace or named


def _selected(objects: Objects, text: str, namespace: str) -> list[Pod]:
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        raise InputError(f"{text!r} is no label selector: {error}", hint="app=web is one") from None
    found = [
        pod
        for pod in objects.pods
        if namespace in {"", pod.namespace} and selector.matches(pod.labels)
    ]
    if not found:
        where = f" of the namespace {namespace}" if namespace else ""
        raise InputError(
            f"no pod{where} has the labels {text}", hint="app=web selects by one label"
        )
    return found


def _parsed(name: str) -> tuple[str, str, str]:
    """Kind, namespace and name; the first two are empty if they are not said."""
    parts = name.split("/")
    kind = _KIND_OF.get(parts[0].lower(), "") if len(parts) > 1 else ""
    if kind:
        parts = parts[1:]
    if len(parts) > 2 or not all(parts):
        hint = "a pod, NAMESPACE/NAME, KIND/NAME such as deployment/web, or a label selector"
        raise InputError(f"{name!r} names nothing", hint=hint)
    return kind, parts[0] if len(parts) > 1 else "", parts[-1]


def _written(identity: Identity) -> str:
    kind, namespace, name = identity
    return f"{namespace}/{name}" if kind == "Pod" else f"{kind.lower()}/{namespace}/{name}"


class Owners:
    """What the workloads of pods belong to, as far as the input says."""

    def __init__(self, objects: Objects, of: Pod | None = None) -> None:
        """Look at the workloads of all pods, or of one pod alone."""
        owner = None if of is None else of.metadata.controller()
        self._above: dict[Identity, tuple[str, str]] = {}
        for kind in ("ReplicaSet", "Job"):
            for item in objects.of(kind):
                if owner is not None and item.name != owner.name:
                    continue
                above = item.metadata.controller()
                if above is not None:
                    self._above[kind, item.namespace, item.name] = (above.kind, above.name)

    def workload(self, pod: Pod) -> Identity:
        """The workload that a person changes: the deployment, not its replica set; else the pod."""
        *_, last = self.identities(pod)
        owner = pod.metadata.controller()
        return (owner.kind, pod.namespace, owner.name) if owner and last[0] == "CronJob" else last

    def identities(self, pod: Pod) -> Iterator[Identity]:
        """The pod itself, its controller, and what that belongs to."""
        yield "Pod", pod.namespace, pod.name
        owner = pod.metadata.controller()
        if owner is None:
            return
        identity = (owner.kind, pod.namespace, owner.name)
        yield identity
        above = self._above.get(identity)
        tag = pod.labels.get(_HASH)
        if above is not None:
            yield above[0], pod.namespace, above[1]
        elif owner.kind == "ReplicaSet" and tag and owner.name.endswith(f"-{tag}"):
            yield "Deployment", pod.namespace, owner.name.removesuffix(f"-{tag}")


def workload_identity(pod: Pod, objects: Objects) -> Identity:
    """The workload of one pod, as `Owners.workload` says it."""
    return Owners(objects, of=pod).workload(pod)


def _not_found(
    objects: Objects, kind: str, namespace: str, short: str, above: Owners
) -> InputError:
    for each in _KINDS if not kind else (kind,):
        for item in objects.of(each) if each in KINDS and each != "Pod" else ():
            if item.name == short and namespace in {"", item.namespace}:
                return InputError(f"{each} {item.key} has no pods in the input")
    pods = objects.pods[:_SEARCHED]
    if kind and kind != "Pod":
        found = {_written(e) for pod in pods for e in above.identities(pod) if e[0] == kind}
        known = sorted({each.rpartition("/")[2] for each in found})
        near = most_similar(short, known)
        some = f"there are {listed(known, _LISTED)}" if known else "the input has none"
        hint = f"did you mean {kind.lower()}/{near}?" if near else some
        return InputError(f"there is no {kind.lower()} {short}", hint=hint)
    known = [pod.key if namespace else pod.name for pod in pods]
    known += sorted({e[2] for pod in pods for e in above.identities(pod)} - {*known})
    short = f"{namespace}/{short}" if namespace else short
    hint = _hint(short, known, f"{_input(objects)} holds no pods")
    return InputError(f"there is no pod {short}", hint=hint)


def check_node(objects: Objects, name: str) -> None:
    """Refuse a node that is not in the input."""
    names = [node.name for node in objects.nodes]
    if name not in names:
        hint = _hint(name, names, f"{_input(objects)} holds no nodes")
        raise InputError(f"there is no node {name}", hint=hint)


def _input(objects: Objects) -> str:
    """What an error calls the input: the files without any object, if there are some."""
    return " and ".join(objects.empty_files) or "the input"


def _hint(name: str, known: Iterable[str], otherwise: str) -> str:
    known = list(known)
    near = most_similar(name, known)
    if near:
        return f"did you mean {near}?"
    some = sorted(known)[:3]
    return (
        f"there are {', '.join(some)}{', …' if len(known) > len(some) else ''}"
        if some
        else otherwise
    )
