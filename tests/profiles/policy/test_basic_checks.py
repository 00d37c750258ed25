"""Before any node is looked at: the pod's claims must be there."""

from __future__ import annotations

import pytest

from builders import SOME_TIME
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.view import View
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.pod import ClaimVolume, Pod, PodSpec, Volume
from podium.objects.kinds.storage import PersistentVolumeClaim
from podium.profiles.policy.build import claims_exist

LEAVING = 'persistentvolumeclaim "leaving" is being deleted'


def claim(name: str, namespace: str = "ns", deleted: str | None = None) -> PersistentVolumeClaim:
    metadata = ObjectMeta(name=name, namespace=namespace, deletion_timestamp=deleted)
    return PersistentVolumeClaim(metadata=metadata)


def error(*claims: str) -> str:
    view = View(ContainerSums())
    for each in (claim("here"), claim("leaving", deleted=SOME_TIME), claim("far", "other")):
        view.catalog.claims.put(each)
    volumes = [
        Volume(name=f"v{i}", persistent_volume_claim=ClaimVolume(claim_name=name))
        for i, name in enumerate(claims)
    ]
    metadata = ObjectMeta(name="p", namespace="ns", uid="u")
    return claims_exist(
        view.pods.incoming(Pod(metadata=metadata, spec=PodSpec(volumes=volumes))), view
    )


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ((), ""),
        (("here",), ""),
        (("here", "gone"), 'persistentvolumeclaim "gone" not found'),
        (("far",), 'persistentvolumeclaim "far" not found'),
        (("here", "leaving", "gone"), LEAVING),
        (("gone", "leaving"), 'persistentvolumeclaim "gone" not found'),
        (("",), 'persistentvolumeclaim "" not found'),
    ],
)
def test_the_first_claim_that_fails_is_the_error(claims: tuple[str, ...], text: str) -> None:
    assert error(*claims) == text
