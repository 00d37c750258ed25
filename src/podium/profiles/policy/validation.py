"""Checks of a whole Policy; kube-scheduler refuses it in one sentence with all that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.objects.names import label_key_reasons
from podium.objects.resource_names import is_extended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.profiles.policy.document import ExtenderConfig, Policy

MAX_INT = (1 << 63) - 1
MAX_SCORE = 10
MAX_WEIGHT = MAX_INT // MAX_SCORE


def check_policy(policy: Policy) -> None:
    """Refuse wrong weights and managed resources, and several extenders that bind."""
    texts = list(_errors(policy))
    if texts:
        raise ConfigError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _errors(policy: Policy) -> Iterator[str]:
    for priority in policy.priorities or ():
        if not 0 < priority.weight < MAX_WEIGHT:
            yield (
                f"Priority {priority.name} should have a positive weight applied to it "
                "or it has overflown"
            )
    seen: set[str] = set()
    for extender in policy.extenders or ():
        if extender.prioritize_verb and extender.weight <= 0:
            yield (
                f"Priority for extender {extender.url_prefix} "
                "should have a positive weight applied to it"
            )
        yield from _resources(extender, seen)
    binders = sum(bool(extender.bind_verb) for extender in policy.extenders or ())
    if binders > 1:
        yield f"Only one extender can implement bind, found {binders}"


def _resources(extender: ExtenderConfig, seen: set[str]) -> Iterator[str]:
    for resource in extender.managed_resources:
        reasons = label_key_reasons(resource.name)
        yield from reasons
        if not reasons and not is_extended(resource.name):
            yield f"{resource.name} is an invalid extended resource name"
        if resource.name in seen:
            yield f"Duplicate extender managed resource name {resource.name}"
        seen.add(resource.name)
