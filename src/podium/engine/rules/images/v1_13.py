"""v1.13 ImageLocalityPriority: prefers nodes that hold the pod's images."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from podium.engine.rules.images.shared import MAX_IMAGE_BYTES, MIN_IMAGE_BYTES, tagged
from podium.engine.rules.priorities import MAX_SCORE, NodePriority

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import ImageState, View


class ImageLocalityPriority(NodePriority):
    """Prefers nodes that hold the pod's images; the wider spread an image, the more it counts."""

    name = "ImageLocalityPriority"

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """Nobody has any of the images."""
        return None if any(name in view.images for name in _images(pod.cls)) else 0

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """Bytes present, weighted by their spread, on a scale from 23 MiB to 1000 MiB."""
        total = len(at.view.row_of)
        present = at.full(0)
        for name in _images(pod.cls):
            present = present + at.image(name, partial(_spread_bytes, at, total))
        present = at.where(present < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, present)
        present = at.where(present > MAX_IMAGE_BYTES, MAX_IMAGE_BYTES, present)
        span = MAX_IMAGE_BYTES - MIN_IMAGE_BYTES
        return at.divide(MAX_SCORE * (present - MIN_IMAGE_BYTES), span)


def _spread_bytes(at: Rows, total: int, state: ImageState) -> Ints:
    return at.truncate(state.size * (state.nodes / total))


def _images(cls: PodClass) -> tuple[str, ...]:
    """The images of the regular containers, each with a tag."""
    return cls.once("images", lambda: tuple(tagged(c.image) for c in cls.spec.containers or ()))
