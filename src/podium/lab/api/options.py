"""Options of requests that write or delete.

Upstream: apimachinery/pkg/apis/meta/v1, CreateOptions to DeleteOptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.lab.api.status import bad_request, invalid, invalid_value, not_supported
from podium.objects.kinds.meta import JsonObject

_PROPAGATION = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of creating, updating and patching an object."""

    #: Check and complete the object without storing it.
    dry_run: bool = False
    #: `fieldManager`, the owner of the fields that this write sets.
    manager: str = ""
    #: Server-side apply takes over fields that other managers own.
    force: bool = False
    #: Reject fields that the API does not have.
    strict: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of deleting: grace period, preconditions and propagation to dependents."""

    grace: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    dry_run: bool = False

    @staticmethod
    def read(body: JsonObject, parameters: dict[str, str]) -> DeleteOptions:
        """The options in the body, or in the query *parameters* if there is no body."""
        given: dict[str, Any] = body or dict(parameters)
        grace = given.get("gracePeriodSeconds")
        try:
            seconds = None if grace in {None, ""} else int(grace)
        except (TypeError, ValueError):
            raise bad_request(f"gracePeriodSeconds: {grace!r} is not a whole number") from None
        conditions: dict[str, Any] = body.get("preconditions") or {}
        made = DeleteOptions(
            grace=seconds,
            uid=str(conditions.get("uid") or ""),
            version=str(conditions.get("resourceVersion") or ""),
            propagation=str(given.get("propagationPolicy") or _legacy(given)),
            dry_run=asks_dry_run(given.get("dryRun"), "DeleteOptions"),
        )
        made.check()
        return made

    def check(self) -> None:
        """Reject values that the API does not allow."""
        problems = []
        if self.propagation and self.propagation not in _PROPAGATION:
            problems.append(
                not_supported("propagationPolicy", self.propagation, [*_PROPAGATION, "nil"])
            )
        if self.grace is not None and not -(2**63) <= self.grace < 2**63:
            problems.append(invalid_value("gracePeriodSeconds", self.grace, "must be 64 bits"))
        if problems:
            raise invalid("DeleteOptions", "meta.k8s.io", "", problems)


def _legacy(given: dict[str, Any]) -> str:
    """The propagation policy that the deprecated `orphanDependents` stands for."""
    orphan = given.get("orphanDependents")
    if orphan in {None, ""}:
        return ""
    return "Orphan" if orphan in {True, "true"} else "Background"


def asks_dry_run(given: Any, kind: str = "CreateOptions") -> bool:
    """Whether `dryRun`, a string or a list, is set; its only legal value is `All`."""
    words = [given] if isinstance(given, str) else given or []
    if not isinstance(words, list) or any(word != "All" for word in words if word):
        problem = not_supported("dryRun", words, ["All"])
        raise invalid(kind, "meta.k8s.io", "", [problem])
    return "All" in words
