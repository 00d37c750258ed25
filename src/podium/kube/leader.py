"""Questions to the leading replica of a scheduler, through the proxy of the API server.

The lease names the replica that holds it: its pod, an underscore and a random part. The API server
passes requests on to that pod, so that no port has to be forwarded.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from podium.errors import InputError
from podium.kube.api import KubeApi, pod_path
from podium.kube.errors import ApiError

#: The cookie in which a token reaches a replica behind the proxy, which keeps bearers to itself.
COOKIE: Final = "podium-token"
#: The service account that may read the endpoints of a replica, and how long its tokens are valid.
READER: Final = "podium-reader"
_TOKEN_SECONDS: Final = 600
#: The port of a replica whose pod names none.
DEFAULT_PORT: Final = 10251
_NOT_FOUND: Final = 404
#: Names of ports, the best first.
_PORT_NAMES: Final = ("https", "http", "metrics")


class NoLeaderError(InputError):
    """No replica of the scheduler holds the lease: it does not exist, or was given back."""


async def leader_proxy(api: KubeApi, namespace: str, lease: str) -> tuple[str, str]:
    """The pod that holds the lease, and the path under which the API server passes requests on."""
    path = (
        f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, '')}/leases/{quote(lease, '')}"
    )
    try:
        found = await api.get(path)
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        raise NoLeaderError(
            f"there is no lease {namespace}/{lease}",
            hint="no `podium run` leads in this cluster; --lease names another one",
        ) from None
    holder = str((found.get("spec") or {}).get("holderIdentity") or "")
    name = holder.rpartition("_")[0] or holder
    if not name:
        raise NoLeaderError(
            f"no replica holds the lease {namespace}/{lease}",
            hint="the replicas of the scheduler are starting or gone; try again in a moment",
        )
    try:
        pod = await api.get(pod_path(namespace, name))
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        raise InputError(
            f"the leader {holder} is no pod of the namespace {namespace}",
            hint="name its address with --scheduler",
        ) from None
    scheme, port = _port_of(pod)
    target = quote(f"{scheme}{name}:{port}", ":")
    return name, f"/api/v1/namespaces/{quote(namespace, '')}/pods/{target}/proxy"


async def reader_token(api: KubeApi, namespace: str) -> str:
    """A new token of the service account that may read the endpoints of replicas."""
    path = f"/api/v1/namespaces/{quote(namespace, '')}/serviceaccounts/{READER}/token"
    wanted = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    made = await api.create(path, wanted)
    return str((made.get("status") or {}).get("token") or "")


def _port_of(pod: Any) -> tuple[str, int]:
    """The scheme, as the proxy wants it before the name, and the port of a replica."""
    ports = [
        each
        for container in (pod.get("spec") or {}).get("containers") or ()
        for each in container.get("ports") or ()
    ]
    for name in _PORT_NAMES:
        for each in ports:
            if each.get("name") == name:
                return ("https:" if name == "https" else ""), int(each["containerPort"])
    return "", int(ports[0]["containerPort"]) if ports else DEFAULT_PORT
