"""Reviews of authentication and authorization: the lab has one user, which may do everything.

Upstream: pkg/registry/authentication, pkg/registry/authorization.
"""

from __future__ import annotations

from typing import Any

from podium.lab.api.resources import Resource
from podium.lab.http.tokens import LAB_USER, ServiceAccountTokens
from podium.objects.kinds.meta import JsonObject

_ALL_RESOURCES = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_ALL_URLS = {"nonResourceURLs": ["*"], "verbs": ["*"]}


def review(resource: Resource, body: JsonObject, tokens: ServiceAccountTokens) -> JsonObject:
    """A review with its status filled in; *tokens* knows whose token a token is."""
    status: dict[str, Any]
    if resource.kind == "TokenReview":
        return tokens.review(body | {"kind": resource.kind, "apiVersion": resource.group_version})
    if resource.kind == "SelfSubjectReview":
        status = {"userInfo": LAB_USER}
    elif resource.kind == "SelfSubjectRulesReview":
        status = {
            "resourceRules": [_ALL_RESOURCES],
            "nonResourceRules": [_ALL_URLS],
            "incomplete": False,
        }
    else:
        status = {"allowed": True, "reason": "the lab has one user, who may do everything"}
    version = resource.group_version
    return body | {"kind": resource.kind, "apiVersion": version, "status": status}
