"""A pod for tests of patches."""

from __future__ import annotations

from typing import Any

import pytest

from podium.lab.api.status import StatusError
from podium.lab.patch.patches import apply_patch

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x/a", "x/b"]},
    "spec": {
        "containers": [
            {"name": "one", "image": "i", "env": [{"name": "A", "value": "1"}]},
            {"name": "two", "image": "j"},
        ],
        "tolerations": [{"key": "k"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def rejection(form: str, patch: object) -> StatusError:
    with pytest.raises(StatusError) as caught:
        apply_patch("Pod", form, POD, patch)
    return caught.value
