"""Commands under the names that they had in earlier versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.cli.console import note
from podium.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Old name -> what it is called now. These work for one release, with a note.
_RENAMED: Final = {
    "record": "history record",
    "replay": "history replay",
    "judge": "history judge",
    "verify": "history verify",
    "survive": "plan --lose-each zone",
}
#: Names that stay as they are, without a note.
_ALIASES: Final = {"why": "explain --decided"}


def by_new_name(args: Sequence[str]) -> list[str]:
    """The command line with the new name of its command, and a note for names that will end."""
    old, *rest = args
    if old in _ALIASES:
        return [*_ALIASES[old].split(), *rest]
    if old == "policy":
        return _policy(rest)
    if old == "learn":
        return _noted(old, _course(rest))
    if old in _RENAMED:
        return _noted(old, _RENAMED[old].split(), rest)
    return list(args)


def _policy(rest: list[str]) -> list[str]:
    """`policy` is `config` for the release that a Policy configures."""
    if rest and rest[0] in {"check", "list", "show"}:
        release = next(each for each in RELEASES if each.configured_by == "Policy")
        return ["config", rest[0], "--profile", release.name, *rest[1:]]
    return ["config", *rest]


def _course(rest: list[str]) -> list[str]:
    if not rest or rest[0].startswith("-"):
        return ["help", "course", *rest]
    return ["lab", "--chapter", *rest]


def _noted(old: str, new: list[str], rest: Sequence[str] = ()) -> list[str]:
    note(f"`podium {old}` is called `podium {' '.join(new)}` now")
    return [*new, *rest]
