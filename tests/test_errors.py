"""Errors are one sentence each, with their parts as attributes."""

from cases import cases
from podium.errors import ConfigError, InputError, PodiumError


@cases(
    ("error", "sentence"),
    {
        "what alone": (InputError("is empty"), "is empty"),
        "with its file": (InputError("is empty", where="a.yaml"), "a.yaml: is empty"),
        "everything that is known, in order": (
            InputError(
                "'x' is not a quantity",
                where="a.yaml",
                object="Pod default/web",
                path="spec.overhead.cpu",
                hint="write 500m",
            ),
            "a.yaml: Pod default/web: spec.overhead.cpu: 'x' is not a quantity; write 500m",
        ),
        "a refusal": (ConfigError("Invalid configuration"), "Invalid configuration"),
        "a refusal with a hint": (
            ConfigError("Invalid configuration", hint="did you mean HostName?"),
            "Invalid configuration; did you mean HostName?",
        ),
    },
)
def test_an_error_reads_as_one_sentence(error: PodiumError, sentence: str) -> None:
    assert str(error) == sentence
    assert error.exit_code == 2


def test_locating_an_error_keeps_what_it_knew() -> None:
    error = InputError("is wrong", object="Pod default/a", path="spec", hint="fix it")

    located = error.located(where="a.yaml", object="document at line 3")

    assert str(located) == "a.yaml: Pod default/a: spec: is wrong; fix it"
