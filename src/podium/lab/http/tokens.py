"""Tokens of service accounts, and reviews of authentication and authorization.

A token is issued by `kubectl create token`. It is a JSON Web Token signed with a key of the lab. It
is valid until it expires, and as long as its service account exists. The lab has one user, which
may do everything, and grants every token the same rights.

Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount,
pkg/registry/authentication, pkg/registry/authorization.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import msgspec

from podium.lab.api.encoding import format_time
from podium.lab.api.resources import Resource
from podium.lab.api.status import invalid, invalid_value
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
LAB_USER: Final = {"username": "podium", "groups": ["system:masters"]}
_HEADER: Final = {"alg": "HS256", "typ": "JWT"}
_DEFAULT_SECONDS, _SHORTEST, _LONGEST = 3600, 600, 1 << 32
_ALL_RESOURCES = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_ALL_URLS = {"nonResourceURLs": ["*"], "verbs": ["*"]}


class ServiceAccountTokens:
    """Issues and checks the tokens of one lab."""

    def __init__(self, registry: Registry, key: bytes) -> None:
        """Sign with *key*; service accounts are looked up in *registry*."""
        self._registry = registry
        self._key = hashlib.sha256(b"service accounts" + key).digest()
        self._lab_token = key

    def issue(self, namespace: str, name: str, request: JsonObject) -> JsonObject:
        """The `TokenRequest` *request* for a service account, with the token in its status."""
        account = self._registry.get("serviceaccounts", name, namespace)
        spec = {**(request.get("spec") or {})}
        seconds = spec.setdefault("expirationSeconds", _DEFAULT_SECONDS)
        if not _SHORTEST <= seconds <= _LONGEST:
            least = "may not specify a duration less than 10 minutes"
            why = least if seconds < _SHORTEST else "may not specify a duration larger than 2^32"
            problem = invalid_value("spec.expirationSeconds", seconds, why)
            raise invalid("TokenRequest", "authentication.k8s.io", name, [problem])
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        now = int(self._registry.clock())
        uid = account["metadata"]["uid"]
        claims = {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        token = self._signed(claims)
        metadata = {"name": name, "namespace": namespace}
        metadata["creationTimestamp"] = format_time(now)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata,
            "spec": spec,
            "status": {"token": token, "expirationTimestamp": format_time(now + seconds)},
        }

    def review(self, review: JsonObject) -> JsonObject:
        """A `TokenReview` with its status: who the token belongs to."""
        spec = review.get("spec") or {}
        token = str(spec.get("token") or "")
        user = LAB_USER if self._is_lab_token(token) else self.user_of(token)
        status: JsonObject = {"authenticated": user is not None}
        if user is not None:
            status["user"] = user
            status["audiences"] = spec.get("audiences") or [ISSUER]
        else:
            status["error"] = "the token is not one of this lab, or it has expired"
        return review | {"status": status}

    def user_of(self, token: str) -> JsonObject | None:
        """The service account of a token; `None` if the token is not valid."""
        claims = self._claims(token)
        if claims is None or claims["exp"] <= self._registry.clock():
            return None
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        found = self._registry.find("serviceaccounts", account["name"], namespace)
        if found is None or found["metadata"]["uid"] != account["uid"]:
            return None
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        return {
            "username": claims["sub"],
            "uid": account["uid"],
            "groups": [*groups, "system:authenticated"],
        }

    def _is_lab_token(self, token: str) -> bool:
        return bool(token) and hmac.compare_digest(token.encode(), self._lab_token)

    def _signed(self, claims: JsonObject) -> str:
        text = ".".join(_encoded(msgspec.json.encode(part)) for part in (_HEADER, claims))
        return f"{text}.{_encoded(self._signature(text))}"

    def _signature(self, text: str) -> bytes:
        return hmac.new(self._key, text.encode(), hashlib.sha256).digest()

    def _claims(self, token: str) -> JsonObject | None:
        text, _, signature = token.rpartition(".")
        if text.count(".") != 1 or not token.isascii():
            return None
        try:
            if not hmac.compare_digest(_decoded(signature), self._signature(text)):
                return None
            claims: JsonObject = msgspec.json.decode(_decoded(text.partition(".")[2]))
        except (binascii.Error, msgspec.DecodeError):
            return None
        return claims


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


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
