"""Prefers nodes that hold the pod's images: ImageLocality, and v1.13 ImageLocalityPriority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import PluginDeclaration, PriorityDeclaration, plain
from podium.engine.framework.rule import Everywhere, ScoreRule
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, as_int
from podium.engine.rules.plugins import MAX_SCORE
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.state.node_columns import NO_NODES
from podium.engine.state.pod_class import once_per_form

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

MEBIBYTE = 1024 * 1024
#: The sizes between which scores grow.
MIN_IMAGE_BYTES = 23 * MEBIBYTE
MAX_IMAGE_BYTES = 1000 * MEBIBYTE


def tagged(image: str) -> str:
    """The image name with `:latest` where it has neither tag nor digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


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

    def __init__(
        self, volumes: Literal["ignored", "scored", "scored and counted"] = "scored"
    ) -> None:
        """*volumes*: what image volumes count for; counted, they raise the maximum as well."""
        self.scores_volumes = volumes != "ignored"
        self.counts_volumes = volumes == "scored and counted"

    def row_key(self, cls: PodClass) -> Hashable:
        """The images, and the number of those that count for the maximum."""
        return (self._images(cls), self._counted(cls))

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 if no node has any of the images."""
        known = any(name in view.nodes.images for name in self._images(pod.cls))
        return None if known else Everywhere(0)

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The size of each image and the number of nodes that hold it."""
        found = (view.nodes.images.get(name) for name in self._images(pod.cls))
        return (
            len(view.nodes.order),
            *((each.size, len(each.counts)) if each else None for each in found),
        )

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """Shares are computed from all nodes of the cluster."""
        total = len(at.view.nodes.order)
        present = at.full(0)
        for name in self._images(pod.cls):
            size, rows = at.view.nodes.images.get(name, NO_NODES)
            worth = int(float(size) * (float(len(rows)) / float(total))) if rows else 0
            present = present + at.where(at.has_image(name), worth, 0)
        most = MAX_IMAGE_BYTES * self._counted(pod.cls)
        # In this order: without any container the most is less than the least.
        bounded = at.where(present > most, most, present)
        present = at.where(present < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, bounded)
        return at.divide(MAX_SCORE * (present - MIN_IMAGE_BYTES), most - MIN_IMAGE_BYTES)

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The images that the node holds: bytes, and on how many nodes of all they are."""
        for name in self._images(pod.cls):
            size, rows = at.view.nodes.images.get(name, NO_NODES)
            if as_int(at.has_image(name)):
                yield ScoreNumber(f"bytes of {name}", size, None, "memory")
                yield ScoreNumber(f"nodes with {name}", len(rows), len(at.view.nodes.order))

    def _images(self, cls: PodClass) -> tuple[str, ...]:
        """The images that score, each with a tag."""
        containers, volumes = _all_images(cls)
        return containers + volumes if self.scores_volumes else containers

    def _counted(self, cls: PodClass) -> int:
        """How many images the maximum is made for."""
        containers, volumes = _all_images(cls)
        return len(containers) + (len(volumes) if self.counts_volumes else 0)


@once_per_form
def _all_images(cls: PodClass) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The images of init containers and containers, and those of image volumes, with tags."""
    spec = cls.spec
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    volumes = (volume.image.reference for volume in cls.volumes if volume.image is not None)
    return tuple(tagged(each.image) for each in containers), tuple(map(tagged, volumes))


IMAGE_LOCALITY: Final = PluginDeclaration(
    "ImageLocality",
    "score",
    "images that the node has already",
    score=lambda _, context: ImageLocality(context.choices.image_volumes),
    weight=1,
)


class ImageLocalityPriority(ScoreRule):
    """Prefers nodes that hold the pod's images; an image on many nodes counts more."""

    name = "ImageLocalityPriority"
    formula = "bytes of the pod's images there * share of nodes with them, up to 1000 MiB for 10"
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The images."""
        return _container_images(cls)

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 if no node has any of the images."""
        return (
            None
            if any(name in view.nodes.images for name in _container_images(pod.cls))
            else Everywhere(0)
        )

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The number of nodes; how many had an image is kept with each node."""
        return len(view.nodes.row_of)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The bytes of the pod's images on the node, on a scale from 23 MiB to 1000 MiB.

        The size of an image is weighted by the share of nodes that hold it.
        """
        total = len(at.view.nodes.row_of)
        present = at.full(0)
        for name in _container_images(pod.cls):
            share = at.image_nodes(name) / total
            present = present + at.truncate(at.image_size(name) * share)
        present = at.where(present < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, present)
        present = at.where(present > MAX_IMAGE_BYTES, MAX_IMAGE_BYTES, present)
        span = MAX_IMAGE_BYTES - MIN_IMAGE_BYTES
        return at.divide(HIGHEST_PRIORITY * (present - MIN_IMAGE_BYTES), span)

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The images that the node holds: bytes, and on how many nodes of all they are."""
        for name in _container_images(pod.cls):
            if size := as_int(at.image_size(name)):
                nodes = as_int(at.image_nodes(name))
                yield ScoreNumber(f"bytes of {name}", size, None, "memory")
                yield ScoreNumber(f"nodes with {name}", nodes, len(at.view.nodes.row_of))


@once_per_form
def _container_images(cls: PodClass) -> tuple[str, ...]:
    """The images of the regular containers, each with a tag."""
    return tuple(tagged(each.image) for each in cls.spec.containers or ())


IMAGE_LOCALITY_PRIORITY: Final = PriorityDeclaration(
    "ImageLocalityPriority",
    "the node holds the pod's images",
    plain(ImageLocalityPriority),
    providers=BOTH_PROVIDERS,
)
