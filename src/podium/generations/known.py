"""The generations that Podium decides as, oldest first."""

from __future__ import annotations

from typing import Final

from podium.generations.v1_13 import V1_13
from podium.generations.v1_34 import V1_34
from podium.generations.v1_35 import V1_35
from podium.generations.v1_36 import V1_36
from podium.generations.v1_37 import V1_37
from podium.releases import DEFAULT_RELEASE

#: Name -> generation.
GENERATIONS: Final = {each.name: each for each in (V1_13, V1_34, V1_35, V1_36, V1_37)}
#: What decides when nothing else is named.
DEFAULT: Final = GENERATIONS[DEFAULT_RELEASE.name]
