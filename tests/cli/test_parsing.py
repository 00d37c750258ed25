"""Addresses, switches and old names of flags, on commands made for that."""

from __future__ import annotations

from typing import Any

import click
import pytest

from cli.conftest import Files, Podium
from manifests import FIVE, pod
from podium.cli.flags import ListenAddress, cluster_flags, listen_flag
from podium.cli.parsing import FlagsCommand

DEFAULT = ListenAddress("127.0.0.1", 8888)


def server(*arguments: str, hidden: bool = True) -> ListenAddress:
    """Where a command with these arguments would listen."""

    @click.command(cls=FlagsCommand)
    @listen_flag(DEFAULT, "Where.", host_name="--host", hidden=hidden)
    def command(*, listen: ListenAddress) -> ListenAddress:
        return listen

    found: ListenAddress = command.main(list(arguments), standalone_mode=False)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), DEFAULT),
        (("--listen", "0.0.0.0:0"), ("0.0.0.0", 0)),  # noqa: S104  nothing listens here
        (("--listen=localhost:65535",), ("localhost", 65535)),
        (("--listen", "[::1]:80"), ("::1", 80)),
        (("--port", "9"), ("127.0.0.1", 9)),
        (("--host", "::1"), ("::1", 8888)),
        (("--host", "h", "--port", "0"), ("h", 0)),
    ],
)
def test_an_address_to_listen_on(arguments: tuple[str, ...], expected: tuple[str, int]) -> None:
    assert server(*arguments) == expected


@pytest.mark.parametrize(
    "text", ["", "8888", ":8888", "host", "host:", "host:http", "host:65536", "::1:80", "host:-1"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no address; HOST:PORT would be one"):
        server("--listen", text)


def test_an_address_is_given_once() -> None:
    with pytest.raises(click.UsageError, match="--listen has a host and a port; give it alone"):
        server("--listen", "a:1", "--port", "2")


@pytest.mark.parametrize(("hidden", "notes"), [(True, 1), (False, 0)])
def test_old_names_of_an_address_are_noted(
    capsys: pytest.CaptureFixture[str], hidden: bool, notes: int
) -> None:
    server("--port", "1", hidden=hidden)

    assert capsys.readouterr().err.count("by --listen HOST:PORT now") == notes


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(ListenAddress("::1", 80)) == "[::1]:80"
    assert str(DEFAULT) == "127.0.0.1:8888"


def switch(*arguments: str, default: bool | None = None) -> Any:
    @click.command(cls=FlagsCommand)
    @click.option("--on", is_flag=True, default=default)
    @click.argument("rest", nargs=-1)
    def command(*, on: bool | None, rest: tuple[str, ...]) -> Any:
        return on, rest

    return command.main(list(arguments), standalone_mode=False)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), (None, ())),
        (("--on",), (True, ())),
        (("--on=false",), (False, ())),
        (("--on", "x", "--on=0"), (False, ("x",))),
        (("--on=f", "--on=T", "x"), (True, ("x",))),
        (("x", "--", "--on=false"), (None, ("x", "--on=false"))),
    ],
)
def test_off_is_not_the_same_as_not_mentioned(arguments: tuple[str, ...], expected: Any) -> None:
    assert switch(*arguments) == expected


def test_a_switch_that_is_on_can_be_turned_off() -> None:
    assert switch(default=True) == (True, ())
    assert switch("--on=false", default=True) == (False, ())


def test_the_api_server_has_one_name_and_that_of_kube_scheduler() -> None:
    @click.command(cls=FlagsCommand)
    @cluster_flags(master=True)
    def command(**given: Any) -> Any:
        return given

    for name in ("--server", "--master"):
        given = command.main([name, "http://x"], standalone_mode=False)
        assert given["reach"] == {"kubeconfig": None, "context": None, "server": "http://x"}


def test_an_old_name_works_and_is_noted(podium: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a")])

    result = podium("explain", "a", file, "--verbose=true", "-o", "json")

    assert result.err == "podium: note: --verbose is called --timings now\n"
    assert result.json["timings"]
    assert "timings" not in podium("explain", "a", file, "--verbose=false", "-o", "json").json
