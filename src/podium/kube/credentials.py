"""Credentials for an API server: a fixed token, a token file, or a plugin that is run.

`authorization` is the header to send; `fresh` says whether it is still valid, and `renew` is
awaited when it is not, or when the API server rejected it.
"""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.kube.errors import UnreachableError
from podium.kube.kubeconfig import Chosen, KubeconfigEntry

#: A token file is read again after this time; it is rewritten long before the old token expires.
_FILE_SECONDS = 10.0
#: A plugin is run again so long before its token expires, and may take so long to answer.
_EARLY_SECONDS, _PLUGIN_SECONDS = 30.0, 60.0
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

#: Called with a client certificate and its key.
Present = Callable[[bytes, bytes], None]


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
        self._read()

    def _read(self) -> None:
        try:
            token = self._path.read_text("utf-8").strip()
        except UnicodeDecodeError:
            raise InputError("the token is no text in UTF-8", where=str(self._path)) from None
        except OSError as error:
            what = (error.strerror or str(error)).lower()
            raise InputError(f"the token cannot be read: {what}", where=str(self._path)) from None
        if not token:
            raise InputError("there is no token in it", where=str(self._path))
        self.authorization = f"Bearer {token}"
        self._until = self._clock() + _FILE_SECONDS

    def fresh(self) -> bool:
        """Whether the file was read a short while ago."""
        return self._clock() < self._until

    async def renew(self, *, rejected: bool = False) -> bool:  # noqa: ARG002
        """Read the file again; while it cannot be read, the old token is used."""
        before = self.authorization
        try:
            self._read()
        except InputError:
            self._until = self._clock() + 1.0
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
        from kubernetes_asyncio.config import ConfigException  # noqa: PLC0415  half a second
        from kubernetes_asyncio.config.exec_provider import ExecProvider  # noqa: PLC0415
        from kubernetes_asyncio.config.kube_config import ConfigNode  # noqa: PLC0415

        try:
            async with asyncio.timeout(_PLUGIN_SECONDS):
                status = await ExecProvider(ConfigNode("exec", self._config)).run()
        except TimeoutError:
            raise self._failed(f"did not answer within {_PLUGIN_SECONDS:g} s") from None
        except OSError as error:
            hint = self._config.get("installHint")
            what = (error.strerror or str(error)).lower()
            raise self._failed(f"{what}; {hint}" if hint else what) from None
        except ConfigException as error:
            raise self._failed(str(error).removeprefix("exec: ")) from None
        if not isinstance(status, dict):
            raise self._failed("answered without a status")
        return status

    def _take(self, status: dict[str, Any]) -> None:
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise self._failed("printed neither a token nor a certificate with its key")
        if certificate and key:
            try:
                self._present(str(certificate).encode(), str(key).encode())
            except InputError as error:
                raise self._failed(f"printed what cannot be used: {error}") from None
        self.authorization = f"Bearer {token}" if token else ""
        self._until = float("inf")
        ends = status.get("expirationTimestamp")
        if ends:
            try:
                moment = datetime.fromisoformat(str(ends))
            except ValueError:
                raise self._failed(f"expirationTimestamp {ends!r} is no time") from None
            self._until = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - _EARLY_SECONDS

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
    command = config["command"]
    if os.sep in command and not Path(command).is_absolute():
        # Absolute: what remains of "./plugin" beside a relative file would be looked for on PATH.
        config = {**config, "command": str(user.file.parent.absolute() / command)}
    return config


class AuthProvider(Credentials):
    """The older kind of plugin, built into clients: OpenID Connect."""

    def __init__(self, chosen: Chosen) -> None:
        super().__init__()
        self._chosen = chosen
        self._until = 0.0

    def fresh(self) -> bool:
        """Whether the token was checked a short while ago."""
        return time.monotonic() < self._until

    async def renew(self, *, rejected: bool = False) -> bool:  # noqa: ARG002
        """Renew the token if it is about to expire."""
        from kubernetes_asyncio.config import ConfigException  # noqa: PLC0415
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

        user = self._chosen.user
        document = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": "http://unused"}}],
            "users": [{"name": "it", "user": user.fields}],
        }
        before, settings = self.authorization, _Settings()
        try:
            await KubeConfigLoader(document).load_and_set(settings)
        except (ConfigException, ValueError, KeyError, OSError) as error:
            raise UnreachableError(f"{user.file}: {user.what}: auth-provider: {error}") from error
        self.authorization = settings.api_key.get("BearerToken", "")
        self._until = time.monotonic() + _FILE_SECONDS
        return self.authorization != before


class _Settings:
    """The object that kubernetes_asyncio's loader writes credentials into."""

    def __init__(self) -> None:
        self.api_key: dict[str, str] = {}


def credentials_of(chosen: Chosen, present: Present) -> Credentials:
    """The credentials of a kubeconfig's user; *present* receives client certificates."""
    user = chosen.user
    if user.fields.get("exec"):
        return ExecPlugin(user, present)
    if user.fields.get("auth-provider"):
        return AuthProvider(chosen)
    path = user.path("tokenFile")
    if path is not None:
        return TokenFile(path)
    token = user.text("token")
    if token:
        return Credentials(f"Bearer {token}")
    name = user.text("username")
    if name:
        secret = f"{name}:{user.text('password')}".encode()
        return Credentials(f"Basic {base64.b64encode(secret).decode()}")
    return Credentials()
