"""The address of an API server, how its certificate is verified, and the credentials for it.

`load_access` searches where every client of Kubernetes does: the given kubeconfig, those of
$KUBECONFIG, the service account of the pod, and the kubeconfig in the home folder.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from podium.errors import ConfigError, InputError
from podium.kube.credentials import Credentials, TokenFile, bearer, credentials_of, in_header
from podium.kube.errors import UnreachableError
from podium.kube.http_rules import TARGET, is_host, shown
from podium.kube.kubeconfig import Chosen, KubeconfigEntry, read_kubeconfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access:
    """One API server and the credentials for it. TLS is verified unless that is switched off."""

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        authority: Callable[[], bytes | None] | None = None,
        server_name: str = "",
        proxy: str = "",
        namespace: str = "default",
        extra_headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Access the server at *url*, whose certificate is verified as *tls* says.

        Without that, it is verified with what *authority* reads, which is read again if it does not
        know the server; or else with the authorities of the system.
        """
        parts = _parts_of(url)
        if server_name and not is_host(server_name):
            raise InputError(f"{server_name!r} is no name of a server")
        self.url = url.rstrip("/")
        #: The address without the token of a lab, for messages.
        self.shown = shown(self.url)
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        #: The host as it stands before a port: an IPv6 address in brackets.
        self.bracketed_host = f"[{self.host}]" if ":" in self.host else self.host
        self.port = parts.port or (443 if self.secure else 80)
        #: The start of every path, where the server is behind a router.
        self.prefix = parts.path.rstrip("/")
        self.server_name = server_name
        self.proxy = proxy
        self.namespace = namespace
        self.credentials = credentials or Credentials()
        #: Number of the current client certificate; connections made with an older one are closed.
        self.generation = 0
        #: Headers that every request brings besides the credentials.
        self.extra_headers = tuple(extra_headers)
        self._reload_certificate: Callable[[], None] | None = None
        self._certificate: tuple[bytes, bytes] | None = None
        #: Reads the authority that the server's certificate is verified with, and what it read.
        self._read_authority = authority
        self._authority = None if authority is None else authority()
        self.tls = (tls or _verifying(self._authority)) if self.secure else None

    def headers(self) -> list[tuple[str, str]]:
        """The headers with the credentials as they are; several may have one name."""
        authorization = self.credentials.authorization
        given = [("Authorization", authorization)] if authorization else []
        return [*self.extra_headers, *given]

    def with_cookie(self, name: str, text: str) -> Access:
        """The same access, whose requests also bring a cookie for what is behind the API server."""
        access = copy(self)
        access.extra_headers = (*self.extra_headers, ("Cookie", f"{name}={text}"))
        return access

    async def rejected(self) -> bool:
        """Renew the credentials after an answer with 401; whether to send the request again."""
        try:
            if self._reload_certificate is not None:
                self._reload_certificate()
        except InputError as error:
            raise UnreachableError(str(error)) from error
        renewed = await self.credentials.renew(rejected=True)
        return renewed or self._reload_certificate is not None

    def use_certificate(self, certificate: bytes, key: bytes) -> None:
        """Use this client certificate from now on. The ssl module loads it from files only."""
        if self.tls is None:
            return
        with tempfile.TemporaryDirectory(prefix="podium-") as folder:
            paths = [Path(folder, name) for name in ("certificate.pem", "key.pem")]
            for path, text in zip(paths, (certificate, key), strict=True):
                path.touch(mode=0o600)
                path.write_bytes(text)
            try:
                self.tls.load_cert_chain(*map(str, paths))
            except (ssl.SSLError, ValueError):
                what = "the client certificate and its key are not in PEM form, or do not match"
                raise InputError(what) from None
        self._certificate = (certificate, key)
        self.generation += 1

    def reload_authority(self) -> bool:
        """Read the authority again, since it does not know the server; whether it has changed."""
        if self._read_authority is None:
            return False
        try:
            authority = self._read_authority()
            if authority == self._authority:
                return False
            tls = _verifying(authority)
        except (InputError, OSError, ValueError):
            return False  # a file that is being written is read again with the next connection
        self._authority, self.tls = authority, tls
        if self._certificate is not None:
            self.use_certificate(*self._certificate)
        return True

    def use_certificate_of(self, read: Callable[[], tuple[bytes, bytes]]) -> None:
        """Use the client certificate that *read* returns, and read it again after a 401."""

        def reload() -> None:
            self.use_certificate(*read())

        reload()
        self._reload_certificate = reload


def _parts_of(url: str) -> SplitResult:
    """The parts of the address of an API server, all of which requests can have."""
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in {"http", "https"}
            and is_host(parts.hostname or "")
            and parts.port != 0
            and "@" not in parts.netloc  # a kubeconfig has passwords elsewhere
            and TARGET.fullmatch(parts.path or "/")
        )
    except ValueError:
        usable = False
    if not usable:
        hint = "https://HOST:PORT would be one"
        raise InputError(f"{shown(url)!r} is no address of an API server", hint=hint)
    return parts


def load_access(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    master: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Find the access to a cluster; *master* replaces the server that a kubeconfig names."""
    if kubeconfig:
        return _by_kubeconfig(read_kubeconfig([Path(kubeconfig)], context), master)
    if master:
        return Access(master)
    named = [Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if named:
        there = [path for path in named if path.exists()]
        return _by_kubeconfig(read_kubeconfig(there or named[:1], context), master)
    if environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return _in_cluster(environ, service_account)
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if home.exists():
        return _by_kubeconfig(read_kubeconfig([home], context), master)
    raise ConfigError(
        "there is no cluster to talk to: no $KUBECONFIG, no service account, no ~/.kube/config",
        hint="give --kubeconfig FILE; a command that takes FILES needs no cluster",
    )


def access_by_flags(
    url: str, *, token: str = "", token_file: str = "", ca_file: str = "", insecure: bool = False
) -> Access:
    """The access that the flags of a command describe one by one."""
    credentials: Credentials
    if token_file:
        credentials = TokenFile(Path(token_file))
    else:
        credentials = Credentials(bearer(token) if token else "")
    try:
        access = Access(url, credentials, authority=Path(ca_file).read_bytes if ca_file else None)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--certificate-authority {ca_file}: {error}") from error
    if insecure and access.tls is not None:
        _trust_anybody(access.tls)
    return access


def _by_kubeconfig(chosen: Chosen, master: str | None) -> Access:
    cluster, user = chosen.cluster, chosen.user
    url = master or cluster.text("server")
    if not url:
        raise cluster.wrong("server", "is missing")
    access = _verifying_access(
        url,
        cluster,
        server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
        namespace=chosen.namespace,
        extra_headers=_impersonation(user),
    )
    access.credentials = credentials_of(chosen, access.use_certificate)
    if any(user.fields.get(f"client-certificate{form}") for form in ("", "-data")):
        try:
            access.use_certificate_of(lambda: _client_certificate(chosen))
        except InputError as error:
            raise error.located(where=str(user.file), object=user.what) from None
    return access


def _impersonation(user: KubeconfigEntry) -> list[tuple[str, str]]:
    """The headers for the user, uid, groups and further values of `as` and its companions."""
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra = user.fields.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise user.wrong("as-user-extra", f"is no map but {extra!r}")
    if not name:
        for field in ("as-uid", "as-groups", "as-user-extra"):
            if user.fields.get(field):
                raise user.wrong(field, 'needs "as" beside it, the name of a user')
        return []
    headers = [("Impersonate-User", name)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    values = KubeconfigEntry(
        user.what, user.file, {f"as-user-extra.{key}": extra[key] for key in extra}
    )
    for key in extra:
        header = f"Impersonate-Extra-{quote(str(key).lower(), safe='')}"
        headers += [(header, value) for value in values.texts(f"as-user-extra.{key}")]
    for header, value in headers:
        try:
            in_header(value, header)
        except InputError as error:
            raise error.located(where=str(user.file), object=user.what) from None
    return headers


def _client_certificate(chosen: Chosen) -> tuple[bytes, bytes]:
    user = chosen.user
    certificate, key = user.data("client-certificate"), user.data("client-key")
    if certificate is None or key is None:
        raise user.wrong("client-key", "is missing beside client-certificate")
    return certificate, key


def _verifying_access(url: str, cluster: KubeconfigEntry, **named: Any) -> Access:
    """The access to a server whose certificate is verified as a kubeconfig says."""
    is_secure = url.lower().startswith("https")
    try:
        access = Access(
            url,
            authority=(lambda: cluster.data("certificate-authority")) if is_secure else None,
            **named,
        )
    except (ValueError, ssl.SSLError):
        raise cluster.wrong("certificate-authority", "is no certificate in PEM form") from None
    insecure = cluster.fields.get("insecure-skip-tls-verify") or False
    if not isinstance(insecure, bool):
        raise cluster.wrong("insecure-skip-tls-verify", f"is not true or false but {insecure!r}")
    if insecure and access.tls is not None:
        if cluster.data("certificate-authority") is not None:
            what = "excludes certificate-authority, which would not be used"
            raise cluster.wrong("insecure-skip-tls-verify", what)
        _trust_anybody(access.tls)
    return access


def _verifying(authority: bytes | None) -> ssl.SSLContext:
    """Verify servers with an authority in PEM form; None for those of the system.

    Around certificates there may be notes in any language.
    """
    text = authority.decode("ascii", "ignore") if authority is not None else None
    return ssl.create_default_context(cadata=text)


def _trust_anybody(tls: ssl.SSLContext) -> None:
    """Switch the verification of the server off."""
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE


def _in_cluster(environ: Mapping[str, str], folder: Path) -> Access:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    authority = folder / "ca.crt"
    name = folder / "namespace"
    namespace = name.read_text("utf-8").strip() if name.exists() else "default"
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token, read = TokenFile(folder / "token"), authority.read_bytes
    try:
        return Access(url, token, authority=read, namespace=namespace)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"the authority cannot be read: {reason}", where=str(authority)) from None
