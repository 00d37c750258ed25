"""What a client may ask beside the object itself, for writes and for deletions.

Upstream: apimachinery/pkg/apis/meta/v1, CreateOptions to DeleteOptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.lab.api.field_errors import invalid_value, not_supported
from podium.lab.api.status import JsonDict, bad_request, invalid

_PROPAGATION = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write: really or not, and in whose name."""

    dry_run: bool = False
    #: Who owns the fields that this write sets, by the name it gives itself.
    manager: str = ""
    #: The program that writes, for those who give no name.
    program: str = ""
    #: Server-side apply takes fields from others.
    force: bool = False
    #: Fields that the API does not have are refused.
    strict: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete: how gently, on which conditions, and what becomes of those it owned."""

    grace: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    dry_run: bool = False

    @staticmethod
    def read(body: JsonDict, parameters: dict[str, str]) -> DeleteOptions:
        """The options in a body, or in the address when there is no body."""
        said: dict[str, Any] = body or dict(parameters)
        grace = said.get("gracePeriodSeconds")
        try:
            seconds = None if grace in {None, ""} else int(grace)
        except (TypeError, ValueError):
            raise bad_request(f"gracePeriodSeconds: {grace!r} is not a whole number") from None
        conditions: dict[str, Any] = body.get("preconditions") or {}
        made = DeleteOptions(
            grace=seconds,
            uid=str(conditions.get("uid") or ""),
            version=str(conditions.get("resourceVersion") or ""),
            propagation=str(said.get("propagationPolicy") or _legacy(said)),
            dry_run=asks_dry_run(said.get("dryRun"), "DeleteOptions"),
        )
        made.check()
        return made

    def check(self) -> None:
        """Refuse what means nothing."""
        problems = []
        if self.propagation and self.propagation not in _PROPAGATION:
            problems.append(
                not_supported("propagationPolicy", self.propagation, [*_PROPAGATION, "nil"])
            )
        if self.grace is not None and not -(2**63) <= self.grace < 2**63:
            problems.append(invalid_value("gracePeriodSeconds", self.grace, "must be 64 bits"))
        if problems:
            raise invalid("DeleteOptions", "meta.k8s.io", "", problems)


def _legacy(said: dict[str, Any]) -> str:
    """The word for the older `orphanDependents`."""
    orphan = said.get("orphanDependents")
    if orphan in {None, ""}:
        return ""
    return "Orphan" if orphan in {True, "true"} else "Background"


def asks_dry_run(said: Any, kind: str = "CreateOptions") -> bool:
    """Whether `dryRun` is set, given as text or as a list; the only legal word is `All`."""
    words = [said] if isinstance(said, str) else said or []
    if not isinstance(words, list) or any(word != "All" for word in words if word):
        problem = not_supported("dryRun", words, ["All"])
        raise invalid(kind, "meta.k8s.io", "", [problem])
    return "All" in words
