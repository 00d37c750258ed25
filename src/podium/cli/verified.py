"""What `--verify` says at the end: how many decisions were made twice, and which of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.cli.console import note
from podium.render.plain import counted

if TYPE_CHECKING:
    from podium.cluster.verification import Verification

#: The exit code when kept answers led to another decision.
DIFFERENT: Final = 3
#: The most differences that are printed.
_MOST: Final = 20


def verified_code(verification: Verification, code: int) -> int:
    """Print what was compared on standard error; the exit code, *code* unless decisions differ."""
    made = counted(verification.compared, "decision")
    if not verification.differing:
        note(f"{made} made twice, from kept answers and without any: all equal")
        return code
    note(f"{made} made twice, from kept answers and without any: {verification.differing} differ")
    for each in verification.found[:_MOST]:
        note(str(each))
    return DIFFERENT
