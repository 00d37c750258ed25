"""Errors that say what the lab leaves out, instead of a bare 404.

`kubectl exec`, `logs`, `port-forward`, `autoscale` and `top` lead to these paths.
"""

from __future__ import annotations

from podium.lab.api.status import StatusError, bad_request, unknown_path
from podium.objects.names import quoted

#: Subresources of a pod that need running containers, and the end of their error.
_NEEDS_CONTAINERS = {
    "exec": "no commands can be run in it",
    "attach": "there is nothing to attach to",
    "portforward": "it has no ports",
    "proxy": "it answers no requests",
}
_GROUPS = {
    "custom.metrics.k8s.io": "no custom metrics: nothing runs in its pods",
    "external.metrics.k8s.io": "no external metrics: it has no adapter for them",
    "admissionregistration.k8s.io": "no admission policies; webhooks are kept and not called",
    "certificates.k8s.io": "no certificates: it speaks plain HTTP on loopback",
}


def unserved(group: str, namespace: str, rest: list[str]) -> StatusError:
    """The error for a path that is not served; *rest* is what follows the namespace."""
    match rest:
        case ["pods", name, subresource, *_] if not group and subresource in _NEEDS_CONTAINERS:
            return bad_request(_not_running(namespace, name, _NEEDS_CONTAINERS[subresource]))
        case ["nodes", name, "proxy", *_] if not group:
            return bad_request(f"node {quoted(name)} has no kubelet: the lab only plays its part")
    error = unknown_path()
    if group in _GROUPS:
        error.message = f"{error.message}: the lab has {_GROUPS[group]}"
    return error


def missing_log(namespace: str, name: str) -> str:
    """The text that is served as the log of a pod."""
    return _not_running(namespace, name, "there are no logs") + "\n"


def _not_running(namespace: str, name: str, consequence: str) -> str:
    pod = quoted(f"{namespace}/{name}")
    return f"pod {pod} runs nowhere: pods of the lab are only scheduled, so {consequence}"
