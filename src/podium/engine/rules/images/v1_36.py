"""v1.36 ImageLocality: prefers nodes that hold the pod's images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import Everywhere, ScoreRule
from podium.engine.rows.rows import Ints, K, OneRow, Rows, as_int
from podium.engine.rules.images.shared import MAX_IMAGE_BYTES, MIN_IMAGE_BYTES, tagged
from podium.engine.rules.v1_36 import MAX_SCORE
from podium.engine.state.node_columns import NO_NODES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


class ImageLocality(ScoreRule):
    """The bytes of the pod's images on a node, scaled by the number of containers.

    The size of an image is weighted by the share of nodes that hold it.
    """

    name = "ImageLocality"
    formula = (
        "bytes of the pod's images there * share of nodes with them, "
        "up to 1000 MiB per container for 100"
    )
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The images, and the number of containers."""
        return (_images(cls), len(cls.spec.containers or ()), len(cls.spec.init_containers or ()))

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 if no node has any of the images."""
        known = any(name in view.nodes.images for name in _images(pod.cls))
        return None if known else Everywhere(0)

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The size of each image and the number of nodes that hold it."""
        found = (view.nodes.images.get(name) for name in _images(pod.cls))
        return (
            len(view.nodes.order),
            *((each.size, len(each.counts)) if each else None for each in found),
        )

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """Shares are computed from all nodes of the cluster."""
        total = len(at.view.nodes.order)
        present = at.full(0)
        for name in _images(pod.cls):
            size, rows = at.view.nodes.images.get(name, NO_NODES)
            worth = int(float(size) * (float(len(rows)) / float(total))) if rows else 0
            present = present + at.has_image(name) * worth
        spec = pod.cls.spec
        containers = len(spec.containers or ()) + len(spec.init_containers or ())
        most = MAX_IMAGE_BYTES * containers
        # In this order: without any container the most is less than the least.
        bounded = at.where(present > most, most, present)
        present = at.where(present < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, bounded)
        return at.divide(MAX_SCORE * (present - MIN_IMAGE_BYTES), most - MIN_IMAGE_BYTES)

    def numbers(self, pod: Incoming, at: OneRow) -> Iterator[ScoreNumber]:
        """The images that the node holds: bytes, and on how many nodes of all they are."""
        for name in _images(pod.cls):
            size, rows = at.view.nodes.images.get(name, NO_NODES)
            if as_int(at.has_image(name)):
                yield ScoreNumber(f"bytes of {name}", size, None, "memory")
                yield ScoreNumber(f"nodes with {name}", len(rows), len(at.view.nodes.order))


def _images(cls: PodClass) -> tuple[str, ...]:
    """The images of init containers, containers and image volumes, each with a tag."""
    return cls.form.once("all images", lambda: tuple(map(tagged, _image_names(cls))))


def _image_names(cls: PodClass) -> list[str]:
    spec = cls.spec
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    volumes = [volume.image.reference for volume in cls.volumes if volume.image is not None]
    return [container.image for container in containers] + volumes


IMAGE_LOCALITY: Final = PluginDeclaration(
    "ImageLocality",
    "score",
    "images that the node has already",
    score=plain(ImageLocality),
    weight=1,
)
