"""Errors are one sentence each, with their parts as attributes."""

import pytest

from podium.errors import ConfigError, InputError, PodiumError


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        pytest.param(InputError("is empty"), "is empty", id="what alone"),
        pytest.param(
            InputError("is empty", where="a.yaml"), "a.yaml: is empty", id="with its file"
        ),
        pytest.param(
            InputError(
                "'x' is not a quantity",
                where="a.yaml",
                object="Pod default/web",
                path="spec.overhead.cpu",
                hint="write 500m",
            ),
            "a.yaml: Pod default/web: spec.overhead.cpu: 'x' is not a quantity; write 500m",
            id="everything that is known, in order",
        ),
        pytest.param(ConfigError("Invalid configuration"), "Invalid configuration", id="a refusal"),
        pytest.param(
            ConfigError("Invalid configuration", hint="did you mean HostName?"),
            "Invalid configuration; did you mean HostName?",
            id="a refusal with a hint",
        ),
    ],
)
def test_an_error_reads_as_one_sentence(error: PodiumError, sentence: str) -> None:
    assert str(error) == sentence
    assert error.exit_code == 2


def test_locating_an_error_keeps_what_it_knew() -> None:
    error = InputError("is wrong", object="Pod default/a", path="spec", hint="fix it")

    located = error.located(where="a.yaml", object="document at line 3")

    assert str(located) == "a.yaml: Pod default/a: spec: is wrong; fix it"
