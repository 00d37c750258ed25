"""Who may send requests to a port: one set of rules for all servers."""

from __future__ import annotations

import pytest

from podium.kube.http_rules import bearer_of, host_name, is_of_other_site, is_of_page, is_secret


def headers(**given: str) -> dict[bytes, bytes]:
    return {name.replace("_", "-").encode(): text.encode() for name, text in given.items()}


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ({}, False),
        ({"sec_fetch_site": "same-origin"}, False),
        ({"sec_fetch_site": "none"}, False),
        ({"sec_fetch_site": "cross-site"}, True),
        ({"sec_fetch_site": "same-site"}, True),
        ({"sec_fetch_site": "anything"}, True),
        ({"origin": "http://127.0.0.1:1"}, False),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://[::"}, True),
        ({"origin": "http://127.0.0.1:1", "sec_fetch_site": "cross-site"}, True),
    ],
)
def test_a_browser_says_where_a_request_comes_from(given: dict[str, str], other: bool) -> None:
    sent = headers(host="127.0.0.1:1", **given)

    assert is_of_other_site(sent) is other
    assert is_of_page(sent) is bool(given)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:80", "::1"),
        ("LOCALHOST", "localhost"),
        ("", None),
        ("[::", None),
    ],
)
def test_the_name_by_which_it_was_sent(host: str, name: str | None) -> None:
    assert host_name(headers(host=host)) == name


def test_secrets() -> None:
    assert bearer_of(headers(authorization="bEaReR  abc ")) == b"abc"
    assert bearer_of(headers(authorization="Basic abc")) == b""
    assert is_secret(b"abc", "abc")
    assert not is_secret(b"abd", "abc")
