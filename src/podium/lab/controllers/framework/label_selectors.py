"""Label selectors of objects, compiled once per distinct selector."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from podium.objects.kinds.meta import LabelSelector
from podium.objects.selectors.selectors import NOTHING, Selector, SelectorError, from_label_selector


def compile_selector(written: Any) -> Selector:
    """The selector of a `LabelSelector` field; absent and invalid ones select nothing."""
    return NOTHING if written is None else _compile(msgspec.json.encode(written))


@lru_cache(maxsize=1 << 12)
def _compile(text: bytes) -> Selector:
    try:
        return from_label_selector(msgspec.json.decode(text, type=LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING
