"""Finding an API server and being let in: kubeconfig files, service accounts, plugins, flags."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases import cases
from control_plane.harness import ADMIN, ControlPlane
from kube.reflecting import PODS, connected
from kube.scripted import answer, run_uvloop, scripted
from kube.test_proxies import tunnel
from podium.errors import InputError, PodiumError
from podium.kube.access import Access, access_by_flags, load_access
from podium.kube.client import ApiClient
from podium.kube.credentials import TokenFile
from podium.kube.errors import ApiError, UnreachableError
from podium.serving.access.serving_certificate import serving_certificate

NOWHERE: dict[str, str] = {"HOME": "/nonexistent"}


def written(
    path: Path,
    user: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    **parts: Any,
) -> Path:
    """A kubeconfig with one context."""
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": dict(user or {})}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **parts,
    }
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


EXEC = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}


def oidc(issuer: str, **config: Any) -> dict[str, Any]:
    """A user of OpenID Connect."""
    known = {"idp-issuer-url": issuer, "client-id": "us", "refresh-token": "one", **config}
    return {"auth-provider": {"name": "oidc", "config": known}}


def headers(access: Access) -> dict[str, str]:
    if not access.credentials.fresh():
        asyncio.run(access.credentials.renew())
    return dict(access.headers())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


# Where it is looked for --------------------------------------------------------------------------


def test_a_named_file_comes_first(config: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other", cluster={"server": "https://other"})
    access = load_access(written(config), environ={"KUBECONFIG": str(other)})
    assert (access.url, access.host, access.port) == ("https://one:6443", "one", 6443)


def test_files_of_the_environment_are_merged(config: Path, tmp_path: Path) -> None:
    first = {"contexts": [{"name": "y", "context": {"cluster": "c", "user": "u"}}]}
    one = tmp_path / "one"
    one.write_text(yaml.safe_dump({"current-context": "y", **first}), "utf-8")
    written(config, {"token": "t"}, cluster={"server": "https://merged/"})
    missing = tmp_path / "missing"
    access = load_access(environ={"KUBECONFIG": f"{missing}:{one}:{config}"})
    assert access.url == "https://merged"
    assert headers(access) == {"Authorization": "Bearer t"}


def test_the_service_account_of_a_pod(tmp_path: Path, control_plane: ControlPlane) -> None:
    (tmp_path / "token").write_text("first\n", "utf-8")
    (tmp_path / "ca.crt").write_bytes(control_plane.authority.read_bytes())
    (tmp_path / "namespace").write_text("podium-system", "utf-8")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = load_access(environ=environ, service_account=tmp_path)
    assert access.url == "https://[fd00::1]:443"
    assert access.namespace == "podium-system"
    assert headers(access) == {"Authorization": "Bearer first"}


def test_the_home_folder_is_last(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube" / "config")
    assert load_access(environ={"HOME": str(tmp_path)}).url == "https://one:6443"


def test_an_address_alone_needs_no_file() -> None:
    access = load_access(master="http://127.0.0.1:8080", environ=NOWHERE)
    assert access.tls is None
    assert headers(access) == {}


def test_an_address_takes_the_place_of_the_one_in_the_file(config: Path) -> None:
    access = load_access(written(config, {"token": "t"}), master="https://elsewhere:1")
    assert access.url == "https://elsewhere:1"
    assert headers(access) == {"Authorization": "Bearer t"}


def test_another_context(config: Path) -> None:
    contexts = [
        {"name": "x", "context": {"cluster": "c", "user": "u"}},
        {"name": "z", "context": {"cluster": "c", "user": "other", "namespace": "team"}},
    ]
    users = [{"name": "u", "user": {}}, {"name": "other", "user": {"token": "z"}}]
    written(config, contexts=contexts, users=users)
    access = load_access(config, context="z")
    assert access.namespace == "team"
    assert headers(access) == {"Authorization": "Bearer z"}


def test_whom_it_speaks_for(config: Path) -> None:
    access = load_access(written(config, {"username": "me", "password": "pw", "as": "you"}))
    basic = base64.b64encode(b"me:pw").decode()
    assert headers(access) == {"Impersonate-User": "you", "Authorization": f"Basic {basic}"}


def test_groups_uid_and_further_values_of_whom_it_speaks_for(config: Path) -> None:
    user = {
        "as": "you",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"acme.com/Scopes": ["view", "edit"]},
    }

    assert load_access(written(config, user)).headers() == [
        ("Impersonate-User", "you"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-acme.com%2Fscopes", "view"),
        ("Impersonate-Extra-acme.com%2Fscopes", "edit"),
    ]


async def test_all_groups_are_sent(config: Path) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())

    def access(url: str) -> Access:
        user = {"as": "you", "as-groups": ["dev", "ops"]}
        return load_access(written(config, user, {"server": url}))

    async with scripted(reply, access) as (client, server):
        await client.get("/x")
        async with client.stream("/x", {"watch": "1"}, idle_seconds=5):
            pass
        for head in server.heads:
            assert "Impersonate-Group: dev\r\nImpersonate-Group: ops\r\n" in head
        assert len(server.heads) == 2


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        ({"as-groups": ["dev"]}, 'as-groups: needs "as" beside it, the name of a user'),
        ({"as": "you", "as-groups": "dev"}, "as-groups: is no list of texts but 'dev'"),
        ({"as": "you", "as-user-extra": ["a"]}, "as-user-extra: is no map but ['a']"),
        (
            {"as": "you", "as-user-extra": {"k": "v"}},
            "as-user-extra.k: is no list of texts but 'v'",
        ),
    ],
)
def test_whom_it_cannot_speak_for(config: Path, user: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        load_access(written(config, user))
    assert sentence in str(caught.value)


# What is wrong with it ---------------------------------------------------------------------------


@cases(
    ("changes", "sentence"),
    {
        "a context that is not there": (
            {"current-context": "gone"},
            "{file}: there is no context 'gone'; known: x",
        ),
        "no context": ({"current-context": ""}, "{file}: no current-context is set; known: x"),
        "a cluster that is not there": (
            {"clusters": []},
            "{file}: context 'x': there is no cluster 'c'",
        ),
        "a user that is not there": (
            {"users": [{"name": "me", "user": {}}]},
            "{file}: context 'x': there is no user 'u'; known: me",
        ),
        "no list": ({"users": "none"}, "{file}: users: is no list"),
        "no name": ({"users": [{"user": {}}]}, "{file}: users[0]: needs a name and a user"),
        "no server": (
            {"clusters": [{"name": "c", "cluster": {}}]},
            "{file}: cluster 'c': server: is missing",
        ),
        "no address": (
            {"clusters": [{"name": "c", "cluster": {"server": "one"}}]},
            "'one' is no address of an API server; https://HOST:PORT would be one",
        ),
        "a number": (
            {"clusters": [{"name": "c", "cluster": {"server": 6443}}]},
            "{file}: cluster 'c': server: is no text but 6443",
        ),
        **{
            f"the address {address!r}": (
                {"clusters": [{"name": "c", "cluster": {"server": address}}]},
                f"{told!r} is no address of an API server; https://HOST:PORT would be one",
            )
            for address, told in {
                "https://one:99999": "https://one:99999",
                "https://one:0": "https://one:0",
                "https://[::1": "https://[::1",
                "https://a..example": "https://a..example",
                "https://one/a b": "https://one/a b",
                "https://one/ä": "https://one/ä",
                "http://one two": "http://one two",
                "http://us:secret@one": "http://one",
            }.items()
        },
    },
)
def test_a_file_that_cannot_be_used(config: Path, changes: Any, sentence: str) -> None:
    with pytest.raises(PodiumError) as caught:
        load_access(written(config, **changes))
    assert str(caught.value) == sentence.format(file=config)


UNFIT = "has a line break or another character that no header may have"


@pytest.mark.parametrize(
    ("section", "fields", "sentence"),
    [
        (
            "cluster",
            {"certificate-authority": "ca.crt"},
            "cluster 'c': certificate-authority: {folder}/ca.crt: no such file or directory",
        ),
        (
            "cluster",
            {"certificate-authority-data": "bm90aGluZw=="},
            "cluster 'c': certificate-authority: is no certificate in PEM form",
        ),
        (
            "cluster",
            {"certificate-authority-data": "?"},
            "cluster 'c': certificate-authority-data: is not base64",
        ),
        (
            "cluster",
            {"insecure-skip-tls-verify": "false"},
            "cluster 'c': insecure-skip-tls-verify: is not true or false but 'false'",
        ),
        (
            "cluster",
            {"certificate-authority": "/etc\0"},
            "cluster 'c': certificate-authority: /etc\0: embedded null byte",
        ),
        (
            "cluster",
            {"certificate-authority": "~nobody-here/ca.crt"},
            "cluster 'c': certificate-authority: ~nobody-here/ca.crt: there is no such user",
        ),
        (
            "user",
            {"client-certificate-data": "bm90aGluZw=="},
            "user 'u': client-key: is missing beside client-certificate",
        ),
        (
            "user",
            {"client-certificate-data": "bm90aGluZw==", "client-key-data": "bm90aGluZw=="},
            "user 'u': the client certificate and its key are not in PEM form, or do not match",
        ),
        ("user", {"exec": {"command": 5}}, "user 'u': exec: needs a command"),
        (
            "user",
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v9"}},
            (
                "user 'u': exec.apiVersion: 'client.authentication.k8s.io/v9' is not known; "
                "known: client.authentication.k8s.io/v1, client.authentication.k8s.io/v1beta1"
            ),
        ),
        ("user", {"exec": {**EXEC, "args": "x"}}, "user 'u': exec.args: is no list of texts"),
        (
            "user",
            {"exec": {**EXEC, "env": [{"name": "A", "value": 1}]}},
            "user 'u': exec.env: is no list of name and value, both texts",
        ),
        (
            "user",
            {"auth-provider": {"name": "gcp"}},
            (
                "user 'u': auth-provider.name: 'gcp' is not known; "
                "known: oidc; for others, use an exec plugin"
            ),
        ),
        ("user", {"auth-provider": {"name": "oidc"}}, "user 'u': auth-provider.config: is missing"),
        (
            "user",
            oidc("http://issuer", **{"id-token": "a.?.c"}),
            "user 'u': auth-provider.config.id-token: is no JSON Web Token",
        ),
        *(
            (
                "user",
                oidc("http://issuer", **{"id-token": f"a.{claims}.c"}),
                "user 'u': auth-provider.config.id-token: is no JSON Web Token",
            )
            for claims in ("W10=", "eyJleHAiOiJ4In0=", base64.b64encode(b"[" * 9999).decode())
        ),
        ("user", {"token": "a\nb"}, f"user 'u': the token {UNFIT}"),
        ("user", {"token": "secret\r\nX: y"}, f"user 'u': the token {UNFIT}"),
        ("user", {"as": "a\r\nb"}, f"user 'u': Impersonate-User {UNFIT}"),
        ("user", {"as": "a", "as-groups": ["b\0"]}, f"user 'u': Impersonate-Group {UNFIT}"),
        (
            "user",
            oidc("http://issuer", **{"refresh-token": 5}),
            "user 'u': auth-provider.config.refresh-token: is no text but something else",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 8 else "",
)
def test_a_field_that_cannot_be_used(
    config: Path, section: str, fields: Any, sentence: str
) -> None:
    written(config, **{section: fields})
    with pytest.raises(PodiumError) as caught:
        load_access(config)
    assert str(caught.value) == f"{config}: {sentence.format(folder=config.parent)}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "no such file or directory; is it the right kubeconfig?"),
        ("a: [", "is not readable YAML at line 1"),
        pytest.param("[" * 5000, "is not readable YAML", id="deep"),
        ("- a", "is no kubeconfig: it has no fields"),
        ("", "no current-context is set; give --context"),
    ],
)
def test_a_file_that_is_none(config: Path, text: str | None, sentence: str) -> None:
    if text is not None:
        config.write_text(text, "utf-8")
    with pytest.raises(PodiumError) as caught:
        load_access(config)
    assert str(caught.value) == f"{config}: {sentence}"


def test_nothing_to_be_found() -> None:
    with pytest.raises(PodiumError, match=r"there is no cluster to talk to: .*; give --kubeconfig"):
        load_access(environ=NOWHERE)


@pytest.mark.parametrize("text", [None, "  \n"])
def test_a_token_file_without_a_token(config: Path, tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "token").write_text(text, "utf-8")
    with pytest.raises(PodiumError, match=rf"^{tmp_path}/token: .*token"):
        load_access(written(config, {"tokenFile": "token"}))


# Tokens that change ------------------------------------------------------------------------------


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    path, now = tmp_path / "token", [0.0]
    path.write_text("one", "utf-8")
    access = Access("https://x", TokenFile(path, lambda: now[0]))
    assert headers(access) == {"Authorization": "Bearer one"}
    path.write_text("two", "utf-8")
    assert headers(access) == {"Authorization": "Bearer one"}  # it was read just now
    now[0] += 11
    assert headers(access) == {"Authorization": "Bearer two"}
    path.unlink()
    now[0] += 11
    assert headers(access) == {"Authorization": "Bearer two"}  # better than none


async def test_a_token_that_is_turned_down_is_read_again(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("outdated", "utf-8")
    access = access_by_flags(
        control_plane.url, token_file=str(path), ca_file=str(control_plane.authority)
    )
    path.write_text(ADMIN, "utf-8")

    async with ApiClient(access) as client:
        assert (await client.get(PODS))["kind"] == "PodList"


async def test_a_service_account_whose_token_is_renewed(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(control_plane.authority.read_bytes())

    def give_token_of(account: str) -> None:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        control_plane.post(accounts, {"metadata": {"name": account}})
        asked = {"spec": {"expirationSeconds": 600}}
        made = control_plane.post(f"{accounts}/{account}/token", asked)
        (tmp_path / "token").write_text(made["status"]["token"], "utf-8")

    give_token_of("old")
    host, _, port = control_plane.url.removeprefix("https://").partition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    access = load_access(environ=environ, service_account=tmp_path)
    async with ApiClient(access) as client:
        for account in ("old", "new"):
            if account == "new":
                give_token_of("new")
                access.credentials._until = 0.0  # type: ignore[attr-defined]
            with pytest.raises(ApiError) as caught:
                await client.get(PODS)
            assert user_of(caught.value) == f"system:serviceaccount:default:{account}"


async def test_nobody_knows_us(control_plane: ControlPlane) -> None:
    access = access_by_flags(control_plane.url, token="wrong", ca_file=str(control_plane.authority))  # noqa: S106

    async with ApiClient(access) as client:
        with pytest.raises(ApiError, match=r"the credentials are not accepted \(Unauthorized\)"):
            await client.get(PODS)


# Certificates ------------------------------------------------------------------------------------


async def test_a_server_that_is_not_trusted_is_not_talked_to(control_plane: ControlPlane) -> None:
    async with ApiClient(access_by_flags(control_plane.url, token=ADMIN)) as client:
        with pytest.raises(UnreachableError, match="its certificate is not trusted: self"):
            await client.get(PODS)
    trusting = access_by_flags(control_plane.url, token=ADMIN, insecure=True)
    async with ApiClient(trusting) as client:
        assert (await client.get(PODS))["kind"] == "PodList"


def test_the_name_in_the_certificate_may_be_another(
    control_plane: ControlPlane, config: Path
) -> None:
    cluster = {
        "server": control_plane.url.replace("127.0.0.1", "localhost"),
        "certificate-authority": str(control_plane.authority),
    }

    async def run(**more: str) -> None:
        async with connected(written(config, {"token": ADMIN}, {**cluster, **more})) as client:
            await client.get(PODS)
            async with client.stream(PODS, {"watch": "1"}, idle_seconds=10):
                pass

    with pytest.raises(UnreachableError, match="certificate is not trusted: Hostname mismatch"):
        asyncio.run(run())
    asyncio.run(run(**{"tls-server-name": "kubernetes.default.svc"}))


@pytest.mark.parametrize("run", [asyncio.run, run_uvloop])
@pytest.mark.parametrize("form", ["kubeconfig", "service account", "flags", "through a proxy"])
async def test_a_renewed_authority_is_used_without_a_restart(
    tmp_path: Path, config: Path, form: str, run: Any
) -> None:
    """The server has a certificate of another authority, and the file has been written anew."""
    authority = tmp_path / "ca.crt"
    by_proxy: dict[str, str] = {}

    def access(url: str) -> Access:
        if form == "flags":
            return access_by_flags(url, ca_file=str(authority))
        if form != "service account":
            cluster = {"server": url, "certificate-authority": str(authority), **by_proxy}
            return load_access(written(config, {"token": "t"}, cluster))
        (tmp_path / "token").write_text("t", "utf-8")
        host, port = url.removeprefix("https://").split(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        return load_access(environ=environ, service_account=tmp_path)

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(Connection="close"))

    with serving_certificate("", "") as first, serving_certificate("", "") as second:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(first.certificate, first.key)
        authority.write_bytes(first.certificate.read_bytes())
        async with tunnel() as proxy:
            if form == "through a proxy":
                by_proxy["proxy-url"] = proxy.url
            async with scripted(reply, access, tls=tls) as (client, _):
                assert await client.get(PODS) == {}
                tls.load_cert_chain(second.certificate, second.key)
                for not_yet in (first.certificate.read_bytes(), b"half a cert"):
                    authority.write_bytes(not_yet)
                    with pytest.raises(UnreachableError, match="certificate is not trusted"):
                        await client.get(PODS)
                authority.write_bytes(second.certificate.read_bytes())
                assert await client.get(PODS) == {}
                async with client.stream(PODS, {"watch": "1"}, idle_seconds=5):
                    pass
            assert bool(proxy.asked) == bool(by_proxy)


def user_of(error: ApiError) -> str:
    """Whom the API server takes us for."""
    assert error.status == 403
    return error.message.partition('User "')[2].partition('"')[0]


@pytest.mark.parametrize("inline", [True, False])
async def test_client_certificates(control_plane: ControlPlane, config: Path, inline: bool) -> None:
    certificate, key = control_plane.certificate("carol", "team")
    user: dict[str, str] = {"client-certificate": str(certificate), "client-key": str(key)}
    if inline:
        texts = {"client-certificate": certificate.read_bytes(), "client-key": key.read_bytes()}
        user = {f"{name}-data": base64.b64encode(text).decode() for name, text in texts.items()}
    cluster = {
        "server": control_plane.url,
        "certificate-authority": str(control_plane.authority),
    }

    async with connected(written(config, user, cluster)) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(PODS)
        assert user_of(caught.value) == "carol"


# Plugins -----------------------------------------------------------------------------------------

PLUGIN = """
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
runs = open(sys.argv[1], "a+")
runs.write("x")
runs.seek(0)
status = json.load(open(sys.argv[2]))
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


WHY = [{"name": "WHY", "value": "no ticket"}]


class Plugin:
    """A program that prints credentials, and how often it was run."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self._folder, self._plane = folder, plane
        (folder / "plugin.py").write_text(PLUGIN, "utf-8")

    @property
    def runs(self) -> int:
        path = self._folder / "runs"
        return len(path.read_text("utf-8")) if path.exists() else 0

    def prints(self, **status: Any) -> None:
        (self._folder / "status.json").write_text(json.dumps(status), "utf-8")

    def kubeconfig(self, version: str = "v1", **changes: Any) -> Path:
        paths = [str(self._folder / name) for name in ("plugin.py", "runs", "status.json")]
        plugin = {
            "apiVersion": f"client.authentication.k8s.io/{version}",
            "command": sys.executable,
            "args": paths,
            "interactiveMode": "Never",
            **changes,
        }
        cluster = {
            "server": self._plane.url,
            "certificate-authority": str(self._plane.authority),
        }
        return written(self._folder / "config", {"exec": plugin}, cluster)


@pytest.fixture
def plugin(tmp_path: Path, control_plane: ControlPlane) -> Plugin:
    return Plugin(tmp_path, control_plane)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_plugin_is_run_once_for_many_requests(plugin: Plugin, version: str) -> None:
    plugin.prints(token=ADMIN, expirationTimestamp="2999-01-01T00:00:00Z")

    async with connected(plugin.kubeconfig(version)) as client:
        await asyncio.gather(*(client.get(PODS) for _ in range(8)))
    assert plugin.runs == 1


async def test_a_plugin_is_run_again_when_its_token_ends(plugin: Plugin) -> None:
    plugin.prints(token=ADMIN, expirationTimestamp="2001-01-01T00:00:00Z")

    async with connected(plugin.kubeconfig()) as client:
        await client.get(PODS)
        await client.get(PODS)
    assert plugin.runs == 2


async def test_a_plugin_is_run_again_when_its_token_is_turned_down(plugin: Plugin) -> None:
    async with connected(plugin.kubeconfig()) as client:
        plugin.prints(token="outdated")  # noqa: S106
        with pytest.raises(ApiError, match="not accepted"):
            await client.get(PODS)
        assert plugin.runs == 2
        plugin.prints(token=ADMIN)
        await client.get(PODS)
    assert plugin.runs == 3


async def test_a_plugin_may_print_a_certificate(
    plugin: Plugin, control_plane: ControlPlane
) -> None:
    def prints(user: str) -> None:
        certificate, key = control_plane.certificate(user)
        plugin.prints(
            clientCertificateData=certificate.read_text("utf-8"),
            clientKeyData=key.read_text("utf-8"),
            expirationTimestamp="2001-01-01T00:00:00Z",
        )

    async with connected(plugin.kubeconfig()) as client:
        for user in ("dave", "erin"):
            prints(user)
            with pytest.raises(ApiError) as caught:
                await client.get(PODS)
            # A new certificate needs a new connection.
            assert user_of(caught.value) == user


@cases(
    ("changes", "status", "sentence"),
    {
        "not installed": (
            {"command": "no-such-plugin", "installHint": "get it from your admin"},
            {},
            "exec: no-such-plugin no such file or directory; get it from your admin",
        ),
        "one that fails": ({"command": "false"}, {}, "exec: false process returned 1"),
        "one that prints something else": (
            {"command": "echo"},
            {},
            "exec: echo failed to decode process output",
        ),
        "a list": ({"command": "echo", "args": ["[]"]}, {}, "echo answered without a status"),
        "another kind": (
            {"command": "echo", "args": ['{"status": {}, "kind": "Pod", "apiVersion": "v1"}']},
            {},
            "echo answered with Pod of v1, not client.authentication.k8s.io/v1",
        ),
        "one that says why": (
            {"command": "sh", "args": ["-c", "echo $WHY >&2; exit 3"], "env": WHY},
            {},
            "exec: sh process returned 3. no ticket",
        ),
        "nothing": ({}, {"token": ""}, "printed neither a token nor a certificate with its key"),
        "a certificate that is none": (
            {},
            {"clientCertificateData": "a", "clientKeyData": "b"},
            "printed what cannot be used: the client certificate and its key",
        ),
        "lists in lists": (
            {"command": sys.executable, "args": ["-c", "print('[' * 100000)"]},
            {},
            "failed to decode process output: maximum recursion depth exceeded",
        ),
        "an argument that none can have": (
            {"args": ["a\0b"]},
            {},
            "embedded null byte",
        ),
        "a token that no request can have": (
            {},
            {"token": "a\nb"},
            f"printed what cannot be used: the token {UNFIT}",
        ),
        "no time": (
            {},
            {"token": "t", "expirationTimestamp": "soon"},
            "expirationTimestamp 'soon' is no time",
        ),
    },
)
async def test_a_plugin_that_does_not_help(
    plugin: Plugin, changes: Any, status: Any, sentence: str
) -> None:
    plugin.prints(**status)

    async with connected(plugin.kubeconfig(**changes)) as client:
        with pytest.raises(UnreachableError) as caught:
            await client.get(PODS)
        assert sentence in str(caught.value)
        assert str(caught.value).startswith(f"{plugin.kubeconfig()}: user 'u': exec: ")


def test_a_plugin_that_hangs_is_ended(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another program keeps its pipes open."""
    monkeypatch.setattr("podium.kube.credentials._PLUGIN_SECONDS", 0.5)
    begun = time.monotonic()
    hangs: dict[str, Any] = {"command": "sh", "args": ["-c", "sleep 20 & sleep 20"]}

    async def run() -> None:
        async with connected(plugin.kubeconfig(**hangs)) as client:
            with pytest.raises(UnreachableError, match=r"exec: sh did not answer within 0\.5 s"):
                await client.get(PODS)

    asyncio.run(run())

    assert time.monotonic() - begun < 15


# OpenID Connect ----------------------------------------------------------------------------------


def id_token(expires: int) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"head.{claims}.signature"


OLD, NEW = id_token(1_000_000_000), id_token(32_000_000_000)


class Issuer:
    """Answers as an issuer of tokens, and as the API server that is asked with them."""

    def __init__(self, **answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(
        self, method: str, target: str, body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        host, port = writer.get_extra_info("sockname")
        told: Any = self.answer
        if target == "/token":
            self.asked.append(body.decode())
        else:
            told = {"token_endpoint": f"http://{host}:{port}/token"}
        writer.write(answer(json.dumps(told).encode(), Connection="close"))


def renewed(issuer: Issuer, config: Path, requests: int = 1, **provider: Any) -> list[str]:
    """The credentials that the API server was sent, and the heads of requests to the issuer."""

    async def run() -> list[str]:
        async with scripted(issuer) as (client, script):
            url = client.access.url
            access = load_access(written(config, oidc(url, **provider), {"server": url}))
            async with ApiClient(access) as asking:
                for _ in range(requests):
                    await asking.request("GET", "/api")
            return script.heads

    return asyncio.run(run())


@pytest.mark.parametrize("before", ["", OLD])
@pytest.mark.parametrize("secret", ["", "s:cret"])
def test_an_id_token_that_ended_is_renewed(config: Path, before: str, secret: str) -> None:
    issuer = Issuer(id_token=NEW, refresh_token="two")  # noqa: S106
    provider = {"id-token": before, "client-secret": secret}

    heads = renewed(issuer, config, 2, **provider)

    asked = [head.split(" ")[1] for head in heads]
    assert asked == ["/.well-known/openid-configuration", "/token", "/api", "/api"]
    assert all(f"Authorization: Bearer {NEW}\r\n" in head for head in heads[2:])
    grant = "grant_type=refresh_token&refresh_token=one"
    assert issuer.asked == [grant if secret else f"{grant}&client_id=us"]
    basic = base64.b64encode(b"us:s%3Acret").decode()
    assert (f"Authorization: Basic {basic}\r\n" in heads[1]) == bool(secret)


def test_an_id_token_that_is_valid_is_sent(config: Path) -> None:
    [head] = renewed(Issuer(), config, 1, **{"id-token": NEW})

    assert f"Authorization: Bearer {NEW}\r\n" in head


@pytest.mark.parametrize(
    ("provider", "answered", "sentence"),
    [
        ({"refresh-token": ""}, {}, "that needs refresh-token, client-id and idp-issuer-url"),
        ({"idp-issuer-url": "file:///"}, {}, "is no address of an issuer"),
        ({"idp-issuer-url": "http://127.0.0.1:1"}, {}, "connection refused"),
        ({}, {"access_token": "x"}, "the answer has no id_token"),
    ],
)
def test_an_id_token_that_cannot_be_renewed(
    config: Path, provider: Any, answered: Any, sentence: str
) -> None:
    with pytest.raises(UnreachableError) as caught:
        renewed(Issuer(**answered), config, **provider)

    assert str(caught.value).endswith(sentence)
    start = f"{config}: user 'u': auth-provider: the token cannot be renewed: "
    assert str(caught.value).startswith(start)


def test_a_token_in_the_address_is_not_told() -> None:
    access = Access("http://127.0.0.1:9/token/secret")

    async def run() -> None:
        async with ApiClient(access) as client:
            await client.get("/api")

    with pytest.raises(UnreachableError) as refused:
        asyncio.run(run())
    assert str(refused.value).startswith("http://127.0.0.1:9: ")
    assert "secret" not in str(refused.value)
    assert access.url.endswith("secret")


@pytest.mark.parametrize("field", ["token", "password"])
def test_a_secret_that_is_a_number_is_not_shown(config: Path, field: str) -> None:
    written(config, users=[{"name": "u", "user": {"username": "ann", field: 1234567}}])

    with pytest.raises(PodiumError) as caught:
        load_access(config)

    assert str(caught.value).endswith(f"{field}: is no text but something else")
    assert "1234567" not in str(caught.value)


def test_a_token_file_that_is_no_text_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("good")
    credentials = TokenFile(path)
    path.write_bytes(b"\xff\xfe")

    assert asyncio.run(credentials.renew()) is False
    assert credentials.authorization == "Bearer good"
    with pytest.raises(PodiumError, match="the token is no text in UTF-8"):
        TokenFile(path)


def test_a_token_file_that_cannot_be_read_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("good")
    credentials = TokenFile(path)
    told = f"{path}: the token cannot be read: no such file or directory; the token before it is"

    for _ in range(2):
        path.unlink()
        asyncio.run(credentials.renew())
        asyncio.run(credentials.renew())
        path.write_text("good")
        asyncio.run(credentials.renew())

    assert [each.startswith(told) for each in caplog.messages] == [True, True]


@pytest.mark.parametrize("text", ["a\nb", "a\r\nX-Header: b", "a\0b"])
def test_a_token_file_that_no_request_can_have_ends_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text("good")
    credentials = TokenFile(path)
    path.write_text(text)

    assert asyncio.run(credentials.renew()) is False
    assert credentials.authorization == "Bearer good"
    with pytest.raises(PodiumError, match=f"{path}: the token {UNFIT}"):
        TokenFile(path)


@pytest.mark.parametrize("user", [{"token": "Łódź"}, {"as": "Łódź"}, {"as-user-extra": ["Łódź"]}])
async def test_names_in_any_language_are_sent_in_utf_8(config: Path, user: Any) -> None:
    """As kubectl sends them."""
    if "as-user-extra" in user:
        user = {"as": "you", "as-user-extra": {"city": user["as-user-extra"]}}

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())

    def access(url: str) -> Access:
        return load_access(written(config, user, {"server": url}))

    async with scripted(reply, access) as (client, server):
        await client.get("/x")
        assert "Łódź\r\n" in server.heads[0]


def test_an_authority_may_have_notes_in_any_language(
    config: Path, control_plane: ControlPlane
) -> None:
    noted = config.parent / "ca.crt"
    noted.write_bytes("# Autorität\n".encode() + control_plane.authority.read_bytes())

    access = load_access(written(config, cluster={"certificate-authority": str(noted)}))

    assert access.tls is not None
    assert len(access.tls.get_ca_certs()) == 1


def test_an_authority_that_would_not_be_used_is_refused(
    config: Path, control_plane: ControlPlane
) -> None:
    """As kubectl refuses it: one of the two is a mistake."""
    cluster = {
        "certificate-authority": str(control_plane.authority),
        "insecure-skip-tls-verify": True,
    }
    with pytest.raises(InputError, match="insecure-skip-tls-verify: excludes certificate-auth"):
        load_access(written(config, cluster=cluster))


def test_a_program_beside_a_relative_kubeconfig_is_not_looked_for_on_the_path(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}
    written(config, users=[{"name": "u", "user": {"exec": plugin}}])
    monkeypatch.chdir(config.parent)

    access = load_access(config.name)

    assert access.credentials._config["command"] == str(config.parent / "plugin")  # type: ignore[attr-defined]
