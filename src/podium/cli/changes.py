"""The flags of a plan's changes; the order in which they are given is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., Any]")

#: Flag, form of its value, help.
_FLAGS: Final = (
    ("drain", "NODE", "Cordon a node and evict its pods, as kubectl drain does."),
    ("lose", "NODE|LABEL=VALUE", "Nodes that are gone at once, with what runs on them."),
    ("add", "COUNT:NODE|FILE", "Add nodes like one of the cluster, or like the one in a file."),
    ("cordon", "NODE", "Mark a node as unschedulable."),
    ("uncordon", "NODE", "Mark it as schedulable again."),
    ("taint", "NODE:KEY=VALUE:EFFECT", "Add a taint to a node; a - at the end removes it."),
    ("scale", "KIND/NAME=N", "Set the replicas of a workload."),
    ("apply", "FILE", "Create or change objects, as kubectl apply does."),
    ("delete", "KIND/NAME", "Delete an object and what it owns."),
    ("rollout", "KIND/NAME", "Restart the pods of a workload, as kubectl rollout restart does."),
    ("replace", "LABEL=VALUE", "Replace nodes by new ones of their shape, --surge at a time."),
)


class ChangeOption(click.Option):
    """One flag of many that fill the same list; each value is kept with the name of its flag."""

    def __init__(self, flag: str, **more: Any) -> None:
        """A flag `--FLAG VALUE` that may be given many times."""
        super().__init__([f"--{flag}", "changes"], multiple=True, type=click.UNPROCESSED, **more)
        self._flag = flag

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser append the flag together with its value."""
        super().add_to_parser(parser, ctx)
        entry = parser._long_opt[f"--{self._flag}"]  # noqa: SLF001  click has no other way
        append = entry.process

        def process(value: Any, state: Any) -> None:
            append((self._flag, value), state)

        entry.process = process


def change_flags(command: _Command) -> _Command:
    """Give a command the flags of all changes; it gets them as one `changes` argument."""
    for flag, value, text in reversed(_FLAGS):
        option = ChangeOption(flag, metavar=value, help=text)
        parameters: list[click.Parameter] = command.__dict__.setdefault("__click_params__", [])
        parameters.append(option)
    return command
