"""Access to the lab: host names, pages of other sites, the token, and sizes of requests."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from lab.serving import TOKEN, LabServer, pod

PODS = "/api/v1/namespaces/default/pods"


def test_without_the_token_nothing_is_answered_but_health_and_version(
    lab_server: LabServer,
) -> None:
    for wrong in ("", "Bearer nonsense", "Basic abc", f"Bearer {TOKEN}x"):
        reply = lab_server.call("GET", PODS, headers={"Authorization": wrong})
        assert (reply.status, reply.body["reason"]) == (401, "Unauthorized")
    assert lab_server.call("GET", "/healthz", headers={"Authorization": ""}).body == "ok"
    assert lab_server.call("GET", "/version", headers={"Authorization": ""}).body["major"] == "1"


def test_a_browser_without_the_token_is_told_what_to_do(lab_server: LabServer) -> None:
    headers = {"Authorization": "", "Accept": "text/html,application/xhtml+xml"}

    reply = lab_server.call("GET", "/", headers=headers)

    assert reply.status == 401
    assert "Open the address that <code>podium lab</code> printed" in str(reply.body)
    assert TOKEN not in str(reply.body)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::"]
)
def test_a_host_that_is_not_loopback_is_rejected(lab_server: LabServer, host: str) -> None:
    assert lab_server.call("GET", PODS, headers={"Host": host}).status in {400, 421}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:1234", "[::1]:1"])
def test_hosts_of_loopback_are_served(lab_server: LabServer, host: str) -> None:
    assert lab_server.call("GET", PODS, headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_other_sites_cannot_write(lab_server: LabServer, headers: dict[str, str]) -> None:
    reply = lab_server.call("POST", PODS, pod(), headers=headers)

    assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
    assert lab_server.get(PODS)["items"] == []


def test_pages_of_the_lab_can_write(lab_server: LabServer) -> None:
    headers = {"Origin": lab_server.url, "Sec-Fetch-Site": "same-origin"}

    assert lab_server.call("POST", PODS, pod(), headers=headers).status == 201


def test_the_address_with_the_token_becomes_a_cookie(lab_server: LabServer) -> None:
    nothing = {"Authorization": ""}
    welcome = lab_server.call("GET", f"{PODS}?limit=5&token={TOKEN}", headers=nothing)

    assert welcome.status == 303
    assert welcome.headers["location"] == f"{PODS}?limit=5"
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    kept = {"Authorization": "", "Cookie": cookie.partition(";")[0]}
    assert lab_server.call("GET", PODS, headers=kept).status == 200


@pytest.mark.parametrize(
    "path", ["//evil.example", "/\\evil.example", "/%5Cevil.example", "/%09/evil"]
)
def test_the_address_with_the_token_cannot_lead_elsewhere(lab_server: LabServer, path: str) -> None:
    welcome = lab_server.call("GET", f"{path}?token={TOKEN}", headers={"Authorization": ""})

    location = welcome.headers.get("location", "")
    assert not location.startswith(("//", "/\\", "/\t"))
    assert not urlsplit(location).netloc


def test_sizes_are_limited(lab_server: LabServer) -> None:
    large = pod("web", containers=[{"name": "a", "image": "b" * 4_000_000}])

    assert lab_server.call("POST", PODS, large).status == 413
    assert lab_server.call("GET", f"{PODS}?labelSelector={'a' * 9000}").status == 414
    assert lab_server.call("GET", PODS, headers={"X-Large": "a" * 40_000}).status in {400, 431}


def test_two_labs_in_one_browser_keep_their_cookies_apart(lab_server: LabServer) -> None:
    nothing = {"Authorization": ""}
    welcome = lab_server.call("GET", f"{PODS}?token={TOKEN}", headers=nothing)
    own = welcome.headers["set-cookie"].partition(";")[0]
    # A browser sends the cookies of all ports of a host.
    other = own.partition("=")[0].rpartition("-")[0] + "-1=other"

    for cookies in (f"{own}; {other}", f"{other}; {own}"):
        reply = lab_server.call("GET", PODS, headers=nothing | {"Cookie": cookies})
        assert reply.status == 200
    elsewhere = own.replace("podium-token-", "podium-token-1")
    reply = lab_server.call("GET", PODS, headers=nothing | {"Cookie": elsewhere})
    assert reply.status == 401
