"""What a cluster has and the lab does not: the sentence that says so instead of a bare 404.

People meet these with `kubectl exec`, `port-forward`, `autoscale` and the like.
"""

from __future__ import annotations

from podium.lab.api.status import StatusError, bad_request, unknown_path
from podium.objects.names import quoted

_RUNNING = {
    "exec": "no commands can be run in it",
    "attach": "there is nothing to attach to",
    "portforward": "it has no ports",
    "proxy": "it answers no requests",
}
_GROUPS = {
    "autoscaling": "no autoscalers: nothing runs in its pods, so there is no load to follow",
    "metrics.k8s.io": "no metrics of pods and nodes: nothing runs in its pods",
    "apiextensions.k8s.io": "no custom resources, only the kinds of `kubectl api-resources`",
    "apiregistration.k8s.io": "no other API servers behind it",
    "admissionregistration.k8s.io": "no admission webhooks",
    "certificates.k8s.io": "no certificates: it speaks plain HTTP on loopback",
}


def unserved(group: str, namespace: str, rest: list[str]) -> StatusError:
    """The refusal of a path that is not served; *rest* is what follows the namespace."""
    match rest:
        case ["pods", name, below, *_] if not group and below in _RUNNING:
            pod = quoted(f"{namespace}/{name}")
            why = f"pods of the lab are only scheduled, so {_RUNNING[below]}"
            return bad_request(f"pod {pod} runs nowhere: {why}")
        case ["nodes", name, "proxy", *_] if not group:
            return bad_request(f"node {quoted(name)} has no kubelet: the lab only plays its part")
    error = unknown_path()
    if group in _GROUPS:
        error.message = f"{error.message}: the lab has {_GROUPS[group]}"
    return error
