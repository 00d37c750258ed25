"""Credentials for an API server: a fixed token, a token file, a plugin that is run, or OIDC.

`authorization` is the header to send; `fresh` says whether it is still valid, and `renew` is
awaited when it is not, or when the API server rejected it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import ssl
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import quote_plus, urlencode

import msgspec

from podium.errors import InputError
from podium.kube.errors import UnreachableError, words
from podium.kube.failure_log import FailureLog
from podium.kube.kubeconfig import Chosen, KubeconfigEntry

logger = logging.getLogger(__name__)

#: A token file is read again after this time; it is rewritten long before the old token expires.
_FILE_SECONDS = 10.0
#: A plugin is run again so long before its token expires, and may take so long to answer.
_EARLY_SECONDS, _PLUGIN_SECONDS = 30.0, 60.0
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
#: The start of the fields of an auth provider.
_OIDC = "auth-provider.config."

#: Called with a client certificate and its key.
Present = Callable[[bytes, bytes], None]
#: What no header of a request may have, above all the end of a line.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def in_header(text: str, what: str) -> str:
    """The text, which a header of a request may have; `InputError` if none may."""
    if _CONTROL.search(text):
        raise InputError(f"{what} has a line break or another character that no header may have")
    return text


def bearer(token: str) -> str:
    """The header with a token."""
    return f"Bearer {in_header(token, 'the token')}"


def basic(name: str, secret: str) -> str:
    """The header with a name and a password."""
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


class Credentials:
    """Credentials that never change: a token, a password, or none. Base of all others."""

    def __init__(self, authorization: str = "") -> None:
        self.authorization = authorization

    def fresh(self) -> bool:
        """Whether `authorization` is still valid."""
        return True

    async def renew(self, *, rejected: bool = False) -> bool:  # noqa: ARG002
        """Update `authorization`; whether a *rejected* request is worth sending again."""
        return False


class TokenFile(Credentials):
    """A token in a file that is rewritten from outside, such as that of a service account."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._path = path
        self._clock = clock
        self._until = 0.0
        self._failures = FailureLog(logger.warning)
        self._read()

    def _read(self) -> None:
        try:
            token = self._path.read_text("utf-8").strip()
        except UnicodeDecodeError:
            raise InputError("the token is no text in UTF-8", where=str(self._path)) from None
        except (OSError, ValueError) as error:
            what = (getattr(error, "strerror", None) or str(error)).lower()
            raise InputError(f"the token cannot be read: {what}", where=str(self._path)) from None
        if not token:
            raise InputError("there is no token in it", where=str(self._path))
        try:
            self.authorization = bearer(token)
        except InputError as error:
            raise error.located(where=str(self._path)) from None
        self._until = self._clock() + _FILE_SECONDS

    def fresh(self) -> bool:
        """Whether the file was read a short while ago."""
        return self._clock() < self._until

    async def renew(self, *, rejected: bool = False) -> bool:  # noqa: ARG002
        """Read the file again; while it cannot be read, the old token is used."""
        before = self.authorization
        try:
            self._read()
        except InputError as error:
            self._until = self._clock() + 1.0
            self._failures.failed("token", f"{error}; the token before it is used")
        else:
            self._failures.succeeded("token")
        return self.authorization != before


class ExecPlugin(Credentials):
    """A program that prints credentials: a token, a client certificate, or both."""

    def __init__(self, user: KubeconfigEntry, present: Present) -> None:
        super().__init__()
        self._user = user
        self._present = present
        self._config = _exec_config(user)
        self._until = 0.0
        self._runs = 0
        self._lock = asyncio.Lock()

    def fresh(self) -> bool:
        """Whether the credentials that the program printed last have not expired."""
        return time.time() < self._until

    async def renew(self, *, rejected: bool = False) -> bool:
        """Run the program again, once for all requests that wait for it."""
        before = self._runs
        async with self._lock:
            if self._runs != before or (self.fresh() and not rejected):
                return True  # another request renewed them meanwhile
            self._take(await self._run())
            self._runs += 1
        return True

    async def _run(self) -> dict[str, Any]:
        """Run the program; the status that it printed."""
        try:
            async with asyncio.timeout(_PLUGIN_SECONDS):
                output = await self._output()
        except TimeoutError:
            raise self._failed(f"did not answer within {_PLUGIN_SECONDS:g} s") from None
        except (OSError, ValueError) as error:
            hint = self._config.get("installHint")
            what = (getattr(error, "strerror", None) or str(error)).lower()
            raise self._failed(f"{what}; {hint}" if hint else what) from None
        try:
            printed = json.loads(output)
        except (ValueError, RecursionError) as error:
            raise self._failed(f"failed to decode process output: {error}") from None
        if not isinstance(printed, dict) or not isinstance(printed.get("status"), dict):
            raise self._failed("answered without a status")
        asked, version = self._config["apiVersion"], printed.get("apiVersion")
        if version != asked or printed.get("kind") != "ExecCredential":
            raise self._failed(f"answered with {printed.get('kind')} of {version}, not {asked}")
        status: dict[str, Any] = printed["status"]
        return status

    async def _output(self) -> bytes:
        config = self._config
        asked = {
            "apiVersion": config["apiVersion"],
            "kind": "ExecCredential",
            "spec": {"interactive": sys.stdout.isatty()},
        }
        added = {each["name"]: each["value"] for each in config.get("env") or ()}
        process = await asyncio.create_subprocess_exec(
            config["command"],
            *(config.get("args") or ()),
            env={**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdout=PIPE,
            stderr=PIPE,
        )
        try:
            output, errors = await process.communicate()
        except BaseException:
            # Programs that it has started may keep its pipes open: this side is closed, too.
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
            await process.wait()
            raise
        if process.returncode:
            reason = errors.decode(errors="replace").strip()
            what = f"process returned {process.returncode}"
            raise self._failed(f"{what}. {reason}" if reason else what)
        return output

    def _take(self, status: dict[str, Any]) -> None:
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise self._failed("printed neither a token nor a certificate with its key")
        until, ends = float("inf"), status.get("expirationTimestamp")
        if ends:
            try:
                moment = datetime.fromisoformat(str(ends))
            except ValueError:
                raise self._failed(f"expirationTimestamp {ends!r} is no time") from None
            until = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - _EARLY_SECONDS
        try:
            authorization = bearer(str(token)) if token else ""
            if certificate and key:
                self._present(str(certificate).encode(), str(key).encode())
        except (InputError, UnicodeEncodeError) as error:
            raise self._failed(f"printed what cannot be used: {error}") from None
        self.authorization, self._until = authorization, until

    def _failed(self, what: str) -> UnreachableError:
        return UnreachableError(
            f"{self._user.file}: {self._user.what}: exec: {self._config['command']} {what}"
        )


def _exec_config(user: KubeconfigEntry) -> dict[str, Any]:
    config = user.fields["exec"]
    if not isinstance(config, dict) or not isinstance(config.get("command"), str):
        raise user.wrong("exec", "needs a command")
    version = config.get("apiVersion")
    if version not in _EXEC_VERSIONS:
        hint = f"known: {', '.join(_EXEC_VERSIONS)}"
        raise user.wrong("exec.apiVersion", f"{version!r} is not known; {hint}")
    args, env = config.get("args") or [], config.get("env") or []
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        raise user.wrong("exec.args", "is no list of texts")
    if not isinstance(env, list) or not all(
        isinstance(each, dict)
        and all(isinstance(each.get(part), str) for part in ("name", "value"))
        for each in env
    ):
        raise user.wrong("exec.env", "is no list of name and value, both texts")
    command = config["command"]
    if os.sep in command and not Path(command).is_absolute():
        # Absolute: what remains of "./plugin" beside a relative file would be looked for on PATH.
        config = {**config, "command": str(user.file.parent.absolute() / command)}
    return config


class _Claims(msgspec.Struct, frozen=True):
    """What an ID token says: when it ends."""

    exp: float | None = None


class OidcToken(Credentials):
    """The ID token of an `auth-provider`; its refresh token buys another one when it expires."""

    def __init__(self, user: KubeconfigEntry) -> None:
        super().__init__()
        provider = user.fields["auth-provider"]
        name = provider.get("name") if isinstance(provider, dict) else provider
        if name != "oidc":
            hint = "known: oidc; for others, use an exec plugin"
            raise user.wrong("auth-provider.name", f"{name!r} is not known; {hint}")
        config = provider.get("config")
        if not isinstance(config, dict):
            raise user.wrong("auth-provider.config", "is missing")
        fields = {_OIDC + key: value for key, value in config.items()}
        self._user = KubeconfigEntry(user.what, user.file, fields)
        self._refresh_token = self._user.text(f"{_OIDC}refresh-token")
        self._until = 0.0
        self._lock = asyncio.Lock()
        token = self._user.text(f"{_OIDC}id-token")
        if token:
            try:
                self._take(token)
            except (ValueError, InputError):
                raise self._user.wrong(f"{_OIDC}id-token", "is no JSON Web Token") from None

    def fresh(self) -> bool:
        """Whether the ID token has not expired."""
        return time.time() < self._until

    async def renew(self, *, rejected: bool = False) -> bool:  # noqa: ARG002
        """Fetch another ID token if this one has expired."""
        async with self._lock:
            if self.fresh():
                return False
            try:
                found = await asyncio.to_thread(self._fetched)
                self._take(str(found["id_token"]))
            except KeyError as error:
                raise self._failed(f"the answer has no {error.args[0]}") from None
            except (OSError, ValueError, TypeError, RecursionError, InputError) as error:
                raise self._failed(words(getattr(error, "reason", None) or error)) from error
            self._refresh_token = str(found.get("refresh_token") or self._refresh_token)
        return True

    def _take(self, token: str) -> None:
        """Use an ID token from now on; `ValueError` if it is none."""
        _, payload, _ = token.split(".")
        text = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        try:
            claims = msgspec.json.decode(text, type=_Claims)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(str(error)) from None
        self.authorization = bearer(token)
        self._until = float("inf") if claims.exp is None else claims.exp - _EARLY_SECONDS

    def _fetched(self) -> dict[str, Any]:
        """The answer of the issuer to the refresh token."""
        from urllib.request import Request, urlopen  # noqa: PLC0415  rarely needed

        issuer, client, secret = (
            self._user.text(f"{_OIDC}{name}")
            for name in ("idp-issuer-url", "client-id", "client-secret")
        )
        if not (issuer and client and self._refresh_token):
            raise ValueError("that needs refresh-token, client-id and idp-issuer-url")
        authority = self._user.data(f"{_OIDC}idp-certificate-authority")
        tls = ssl.create_default_context(
            cadata=authority.decode("ascii", "ignore") if authority else None
        )
        form, headers = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}, {}
        if secret:
            headers["Authorization"] = basic(quote_plus(client), quote_plus(secret))
        else:
            form["client_id"] = client

        def fetch(url: str, data: bytes | None = None) -> dict[str, Any]:
            if not url.startswith(("https://", "http://")):
                raise ValueError(f"{url!r} is no address of an issuer")
            request = Request(url, data, headers if data else {})  # noqa: S310  as checked
            with urlopen(request, timeout=_PLUGIN_SECONDS, context=tls) as answer:  # noqa: S310
                return dict(json.load(answer))

        known = fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        return fetch(str(known["token_endpoint"]), urlencode(form).encode())

    def _failed(self, what: str) -> UnreachableError:
        user = self._user
        return UnreachableError(
            f"{user.file}: {user.what}: auth-provider: the token cannot be renewed: {what}"
        )


def credentials_of(chosen: Chosen, present: Present) -> Credentials:
    """The credentials of a kubeconfig's user; *present* receives client certificates."""
    user = chosen.user
    if user.fields.get("exec"):
        return ExecPlugin(user, present)
    if user.fields.get("auth-provider"):
        return OidcToken(user)
    path = user.path("tokenFile")
    if path is not None:
        return TokenFile(path)
    token = user.text("token")
    if token:
        try:
            return Credentials(bearer(token))
        except InputError as error:
            raise error.located(where=str(user.file), object=user.what) from None
    name = user.text("username")
    if name:
        return Credentials(basic(name, user.text("password")))
    return Credentials()
