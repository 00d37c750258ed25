"""Client certificates on the secure port, with real certificates over real TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from podium.errors import ConfigError
from podium.kube.errors import ApiError
from podium.serving.access.client_certificates import (
    CONFIG_MAP,
    AuthorityLookup,
    ServerTls,
    authorities_in_config_map,
    authorities_in_file,
)
from podium.serving.access.delegated_access import ACCESS_REVIEWS, DelegatedAccess
from podium.serving.endpoints.http_server import listening, serve_on

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Files:
    """The authorities of users, of proxies and of strangers, and certificates that they signed."""

    folder: Path

    def openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder)

    def authority(self, name: str, subject: str) -> None:
        out = ("-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", subject)
        self.openssl("req", "-x509", *CURVE, *out, "-days", "2")

    def signed(self, authority: str, name: str, subject: str) -> None:
        self.openssl(
            "req", *CURVE, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject
        )
        by = ("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", "-days", "2", *by)

    def text(self, name: str) -> str:
        return (self.folder / f"{name}.crt").read_text()

    def config_map(self, **more: Any) -> dict[str, Any]:
        """What a cluster publishes."""
        names = {
            "requestheader-allowed-names": ["front-proxy"],
            "requestheader-username-headers": ["X-Remote-User"],
            "requestheader-group-headers": ["X-Remote-Group"],
            "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
        } | more
        data = {key: msgspec.json.encode(value).decode() for key, value in names.items()}
        data["client-ca-file"] = self.text("users")
        data["requestheader-client-ca-file"] = self.text("proxies")
        return {"data": data}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    made = Files(tmp_path_factory.mktemp("certificates"))
    for name in ("server", "users", "proxies"):
        made.authority(name, f"/CN={name}")
    made.authority("strangers", "/CN=users")  # a name proves nothing
    made.signed("users", "ann", "/O=readers/O=others/CN=ann")
    made.signed("users", "nameless", "/O=readers")
    made.signed("proxies", "front", "/CN=front-proxy")
    made.signed("proxies", "back", "/CN=back-proxy")
    made.signed("strangers", "eve", "/O=readers/CN=ann")
    return made


class Cluster:
    """An API server that publishes authorities, and allows everything to readers."""

    def __init__(self, published: Any) -> None:
        self.published, self.asked = published, []  # type: ignore[var-annotated]

    async def get(self, path: str) -> Any:
        assert path == CONFIG_MAP
        if isinstance(self.published, ApiError):
            raise self.published
        return self.published

    async def create(self, path: str, obj: dict[str, Any]) -> Any:
        assert path == ACCESS_REVIEWS, "no token is reviewed where a certificate says who it is"
        self.asked.append(obj["spec"])
        return {"status": {"allowed": "readers" in obj["spec"]["groups"]}}


async def served_app(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


Get = Callable[..., Awaitable[int]]


@asynccontextmanager
async def secure_port(
    files: Files, cluster: Cluster, **own: Any
) -> AsyncIterator[tuple[Get, AuthorityLookup]]:
    """A way to ask a secure port with a certificate and headers, and what looks authorities up."""
    tls = ServerTls(files.folder / "server.crt", files.folder / "server.key")
    lookup = AuthorityLookup(cluster, tls, **({"warn": lambda _: None} | own))
    await lookup.first()
    listener = listening("127.0.0.1", 0)
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/metrics"
    app = DelegatedAccess(served_app, cluster, lambda: 0.0, tls.user)
    serving = asyncio.create_task(serve_on(app, listener, tls=tls.context))

    async def get(name: str = "", **headers: str) -> int:
        """The code of the answer; 0 if the connection is refused."""
        context = ssl._create_unverified_context()  # noqa: S323
        if name:
            context.load_cert_chain(files.folder / f"{name}.crt", files.folder / f"{name}.key")
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        connector = aiohttp.TCPConnector(ssl=context)
        try:
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.get(url, headers=sent) as response,
            ):
                return response.status
        except aiohttp.ClientConnectionError:
            return 0

    get.port = listener.getsockname()[1]  # type: ignore[attr-defined]
    try:
        yield get, lookup
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_a_certificate_says_who_asks(files: Files) -> None:
    cluster = Cluster(files.config_map())

    async with secure_port(files, cluster) as (get, _):
        assert await get("ann") == 200
        assert await get("ann", Authorization="Bearer anything") == 200
        assert await get() == 403
        assert await get("nameless") == 403
    ann, anonymous = cluster.asked
    assert (ann["user"], ann["groups"]) == ("ann", ["readers", "others", "system:authenticated"])
    assert anonymous["user"] == "system:anonymous"


async def test_a_certificate_of_another_authority_is_refused(files: Files) -> None:
    cluster = Cluster(files.config_map())

    async with secure_port(files, cluster) as (get, _):
        assert await get("eve") == 0
        assert await get("server") == 0
    assert cluster.asked == []


async def test_a_proxy_says_for_whom_it_asks(files: Files) -> None:
    cluster = Cluster(files.config_map())
    headers = {"X_Remote_User": "bob", "X_Remote_Group": "readers", "X_Remote_Extra_A%2fb": "c"}

    async with secure_port(files, cluster) as (get, _):
        assert await get("front", **headers) == 200
        assert await get("back", **headers) == 403
        assert await get("front") == 403
        assert await get("ann", **headers) == 200
        assert await get(**headers) == 403
    users = [each["user"] for each in cluster.asked]
    assert users == ["bob", "system:anonymous", "ann"], "answers for the same user are kept"
    assert cluster.asked[0]["groups"] == ["readers", "system:authenticated"]
    assert cluster.asked[0]["extra"] == {"a/b": ["c"]}


async def test_any_proxy_may_ask_where_no_names_are_given(files: Files) -> None:
    cluster = Cluster(files.config_map(**{"requestheader-allowed-names": []}))

    async with secure_port(files, cluster) as (get, _):
        assert await get("back", X_Remote_User="bob", X_Remote_Group="readers") == 200


async def test_a_file_takes_the_place_of_the_clusters_authority(files: Files) -> None:
    cluster = Cluster(files.config_map())

    async with secure_port(files, cluster, client_ca_file=str(files.folder / "strangers.crt")) as (
        get,
        _,
    ):
        assert await get("eve") == 200
        assert await get("ann") == 0
        assert await get("front", X_Remote_User="bob", X_Remote_Group="readers") == 200


async def test_authorities_may_change(files: Files) -> None:
    cluster = Cluster(files.config_map())

    async with secure_port(files, cluster) as (get, lookup):
        assert await get("ann") == 200
        cluster.published = {"data": {"client-ca-file": files.text("strangers")}}
        await lookup.first()
        assert await get("ann") == 0
        assert await get("eve") == 200


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_connection_that_resumes_another_is_known_by_its_certificate(
    files: Files, newest: ssl.TLSVersion
) -> None:
    """And no longer than its authority is trusted."""
    cluster = Cluster(files.config_map())
    context = ssl._create_unverified_context()  # noqa: S323
    context.maximum_version = newest
    context.load_cert_chain(files.folder / "ann.crt", files.folder / "ann.key")

    def ask(port: int, session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None]:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as plain,
            context.wrap_socket(plain, session=session) as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")
            answer, session = connection.recv(12), connection.session
            while connection.recv(4096):
                pass
            with suppress(OSError):
                connection.unwrap()
            return answer, session

    async with secure_port(files, cluster) as (get, lookup):
        answer, session = await asyncio.to_thread(ask, get.port, None)  # type: ignore[attr-defined]
        assert answer == b"HTTP/1.1 200"
        answer, _ = await asyncio.to_thread(ask, get.port, session)  # type: ignore[attr-defined]
        assert answer == b"HTTP/1.1 200"
        cluster.published = {"data": {"client-ca-file": files.text("strangers")}}
        await lookup.first()
        with suppress(OSError):
            answer, _ = await asyncio.to_thread(ask, get.port, session)  # type: ignore[attr-defined]
            assert answer != b"HTTP/1.1 200"


async def test_a_cluster_that_publishes_nothing_is_told_of_once(files: Files) -> None:
    cluster, told = Cluster(ApiError("forbidden", status=403)), []  # type: ignore[var-annotated]

    async with secure_port(files, cluster, warn=told.append) as (get, lookup):
        for _ in range(3):
            await lookup.first()
        assert await get("ann") == 0
        assert await get() == 403
    [line] = told
    assert line == (
        "client certificates: forbidden; the role extension-apiserver-authentication-reader in "
        "kube-system has the right to read them"
    )


def test_what_cannot_be_read_is_named(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"^--client-ca-file nope\.crt: no such file"):
        authorities_in_file("nope.crt")
    with pytest.raises(ConfigError, match=r"server\.key: there is no certificate in PEM$"):
        authorities_in_file(str(files.folder / "server.key"))
    wrong = {"data": {"requestheader-allowed-names": "{"}}
    with pytest.raises(ConfigError, match=r"data\.requestheader-allowed-names: "):
        authorities_in_config_map(wrong)
