"""Tables of cases, each named by a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest


def cases(names: str | Sequence[str], table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Runs a test once for each case of a table; several names stand for the parts of a case."""
    several = not isinstance(names, str) or "," in names
    found = [
        pytest.param(*(case if several else (case,)), id=sentence)
        for sentence, case in table.items()
    ]
    return pytest.mark.parametrize(names, found)
