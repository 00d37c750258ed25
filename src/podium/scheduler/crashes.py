"""Unforeseen exceptions while a pod was decided.

A rule that raises must not stop the decisions about other pods. The pod gets a SchedulerError and
is attempted again after its backoff. The log has the traceback once per place in the code.
"""

from __future__ import annotations

import logging
import traceback
from typing import Final

logger = logging.getLogger(__name__)

#: Longer texts of exceptions are cut.
_LONGEST_TEXT: Final = 500


class Crashes:
    """Writes tracebacks to the log, each once."""

    def __init__(self) -> None:
        #: The kind of each exception that was logged, and where it was raised.
        self._logged: set[tuple[str, str, int]] = set()

    def note(self, key: str, bug: Exception) -> None:
        """Log an exception that was raised while the pod with this *key* was decided."""
        raised = traceback.extract_tb(bug.__traceback__)[-1:]
        file, line = (raised[0].filename, raised[0].lineno or 0) if raised else ("", 0)
        place = (type(bug).__name__, file, line)
        if place not in self._logged:
            self._logged.add(place)
            logger.error("deciding about pod %s failed, please report it", key, exc_info=bug)


def described(bug: Exception) -> str:
    """The text of the error that the pod gets."""
    text = f"{type(bug).__name__}: {bug}"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
