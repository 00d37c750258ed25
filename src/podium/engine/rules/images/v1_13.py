"""v1.13 ImageLocalityPriority: prefers nodes that hold the pod's images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import PriorityDeclaration, plain
from podium.engine.framework.rule import Everywhere, ScoreRule
from podium.engine.rows.rows import Ints, K, OneRow, Rows, as_int
from podium.engine.rules.images.shared import MAX_IMAGE_BYTES, MIN_IMAGE_BYTES, tagged
from podium.engine.rules.v1_13 import BOTH_PROVIDERS, MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


class ImageLocalityPriority(ScoreRule):
    """Prefers nodes that hold the pod's images; an image on many nodes counts more."""

    name = "ImageLocalityPriority"
    formula = "bytes of the pod's images there * share of nodes with them, up to 1000 MiB for 10"
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The images."""
        return _images(cls)

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 if no node has any of the images."""
        return (
            None if any(name in view.nodes.images for name in _images(pod.cls)) else Everywhere(0)
        )

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The bytes of the pod's images on the node, on a scale from 23 MiB to 1000 MiB.

        The size of an image is weighted by the share of nodes that hold it.
        """
        total = len(at.view.nodes.row_of)
        present = at.full(0)
        for name in _images(pod.cls):
            share = at.image_nodes(name) / total
            present = present + at.truncate(at.image_size(name) * share)
        present = at.where(present < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, present)
        present = at.where(present > MAX_IMAGE_BYTES, MAX_IMAGE_BYTES, present)
        span = MAX_IMAGE_BYTES - MIN_IMAGE_BYTES
        return at.divide(MAX_SCORE * (present - MIN_IMAGE_BYTES), span)

    def numbers(self, pod: Incoming, at: OneRow) -> Iterator[ScoreNumber]:
        """The images that the node holds: bytes, and on how many nodes of all they are."""
        for name in _images(pod.cls):
            if size := as_int(at.image_size(name)):
                nodes = as_int(at.image_nodes(name))
                yield ScoreNumber(f"bytes of {name}", size, None, "memory")
                yield ScoreNumber(f"nodes with {name}", nodes, len(at.view.nodes.row_of))


def _images(cls: PodClass) -> tuple[str, ...]:
    """The images of the regular containers, each with a tag."""
    return cls.form.once(
        "images", lambda: tuple(tagged(c.image) for c in cls.spec.containers or ())
    )


IMAGE_LOCALITY_PRIORITY: Final = PriorityDeclaration(
    "ImageLocalityPriority",
    "the node holds the pod's images",
    plain(ImageLocalityPriority),
    providers=BOTH_PROVIDERS,
)
