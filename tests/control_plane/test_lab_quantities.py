"""Quantities, here and at a real API server, are written in the same form."""

from __future__ import annotations

import random
from typing import Any

from control_plane.harness import ControlPlane
from podium.lab.schema.typed_bodies import with_canonical_quantities
from podium.objects.quantity import canonical

#: Forms that the real server keeps although there is a shorter one (`+5`, `5.`, `1E3`, `123.456k`)
#: are not among them.
WRITTEN = """
    0 1 1000m 100m 0.5 .5 1500m 1k 1000k 1024Mi 1Gi 2.5Gi 1.5Ki 0.1Ki 512Ki 1023 1024 1024Ki
    1e3 12e6 1e-3 100e3 1E 1.5E 1T 3P 0.001 0.0001 1n 1u 1500u 0.1m 123456789 1000000 1048576 64Mi
    6.4Gi 0Ki 0e5 1.0 100Ei 1Pi 10Ti 999Ki 1000Ki 2048 1.23456789 1e9 1e10 5e-9 0.3Gi 1024.5Ki
"""


def forms() -> list[Any]:
    numbers = random.Random(1)  # noqa: S311
    suffixes = ["", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "u"]
    made = [f"{numbers.randrange(1, 10**6)}{numbers.choice(suffixes)}" for _ in range(60)]
    return [*WRITTEN.split(), *made, 1, 0, 25, 2048]


def written(server: ControlPlane, **spec: Any) -> dict[str, Any]:
    """A pod as the server writes it."""
    pod = {"metadata": {"name": "quantities"}, "spec": spec}
    found: dict[str, Any] = server.post("/api/v1/namespaces/default/pods?dryRun=All", pod)["spec"]
    return found


def test_an_amount_becomes_what_the_real_server_makes_of_it(control_plane: ControlPlane) -> None:
    volumes = [
        {"name": f"v{index}", "emptyDir": {"sizeLimit": form}} for index, form in enumerate(forms())
    ]
    pod = written(control_plane, containers=[{"name": "c", "image": "i"}], volumes=volumes)
    real = [each["emptyDir"]["sizeLimit"] for each in pod["volumes"]]
    found = zip(forms(), real, map(canonical, forms()), strict=True)
    assert [each for each in found if each[1] != each[2]] == []


def test_an_amount_of_a_resource_is_in_thousandths(control_plane: ControlPlane) -> None:
    containers = [
        {"name": f"c{index}", "image": "i", "resources": {"limits": {"cpu": form}}}
        for index, form in enumerate(forms())
    ]
    pod = written(control_plane, containers=containers)
    real = [each["resources"]["limits"]["cpu"] for each in pod["containers"]]
    ours = [canonical(form, milli=True) for form in forms()]
    found = zip(forms(), real, ours, strict=True)
    assert [each for each in found if each[1] != each[2]] == []


def test_a_pod_is_written_as_the_real_server_writes_it(control_plane: ControlPlane) -> None:
    resources = {"requests": {"cpu": 1, "memory": "1024Mi"}, "limits": {"cpu": "2000m"}}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "quantities", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.5Gi"}}],
        },
    }
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    real = control_plane.post(path, pod)["spec"]
    ours = with_canonical_quantities("Pod", "v1", pod)["spec"]
    # A limit alone is a request as well; that is a default and not the form.
    del real["containers"][0]["resources"]["requests"]
    del ours["containers"][0]["resources"]["requests"]
    assert ours["containers"][0]["resources"] == real["containers"][0]["resources"]
    assert ours["volumes"] == real["volumes"]
