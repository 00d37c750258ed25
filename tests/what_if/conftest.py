"""The command line, as the tests of `cli` have it."""

from cli.conftest import _plain_environment, podium

__all__ = ["_plain_environment", "podium"]
