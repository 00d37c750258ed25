"""The files that a command reads."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from podium.library.reading import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.objects.reading.collection import Objects


def read_files(files: Sequence[str]) -> Objects:
    """The objects in the files, kept until the command ends.

    The garbage collector need not look at them again; a large cluster is decided about faster so.
    """
    objects = read(files)
    gc.freeze()
    return objects
