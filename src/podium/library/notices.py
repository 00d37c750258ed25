"""What does not stop a decision but should be known: a rule that failed, an extender ignored."""

from __future__ import annotations

from collections.abc import Callable

Notify = Callable[[str], None]


def log_warning(sentence: str) -> None:
    """Log the sentence as a warning of the logger `podium`; what the library does by default."""
    import logging  # noqa: PLC0415  commands print notes instead

    logging.getLogger("podium").warning("%s", sentence)


def once(notify: Notify) -> Notify:
    """Pass each sentence on to *notify* the first time only."""
    known: set[str] = set()

    def notify_once(sentence: str) -> None:
        if sentence not in known:
            known.add(sentence)
            notify(sentence)

    return notify_once
