"""Policies and profiles in one line each."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.framework.profile import Profile
from podium.errors import ConfigError
from podium.profiles.policy.build import Options, from_policy


def policy(**sections: Any) -> dict[str, Any]:
    return {"kind": "Policy", "apiVersion": "v1", **sections}


def predicates(*names: str | dict[str, Any]) -> dict[str, Any]:
    return policy(predicates=[{"name": n} if isinstance(n, str) else n for n in names])


def priorities(*entries: str | dict[str, Any]) -> dict[str, Any]:
    given = [{"name": e, "weight": 1} if isinstance(e, str) else e for e in entries]
    return policy(priorities=[{"weight": 1, **entry} for entry in given])


def profile(document: dict[str, Any], **options: Any) -> Profile:
    return from_policy(document, Options(**options))


def running(document: dict[str, Any], **options: Any) -> list[str]:
    return [rule.name for rule in profile(document, **options).predicates]


def refusal(document: Any, **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        profile(document, **options)
    return caught.value
