"""Image names as nodes report them, and the sizes between which image scores grow."""

from __future__ import annotations

MEBIBYTE = 1024 * 1024
MIN_IMAGE_BYTES = 23 * MEBIBYTE
MAX_IMAGE_BYTES = 1000 * MEBIBYTE


def tagged(image: str) -> str:
    """The image name with `:latest` where it has neither tag nor digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
