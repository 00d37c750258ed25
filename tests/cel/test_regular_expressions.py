"""Regular expressions: RE2's semantics in linear time, with the texts of Go."""

from __future__ import annotations

import pytest

from podium.cel.regular_expressions import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("[[:alpha:]]+", "abc", True),
        ("^[[:alpha:]]+$", "a1", False),
        (r"\pL", "é", True),
        (r"\p{Greek}", "\N{GREEK SMALL LETTER OMEGA}", True),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        # Digits and letters are those of ASCII.
        (r"\d", "٣", False),
        (r"\w", "é", False),
        # The end is the end, also before a last newline.
        ("a$", "a\n", False),
        ("(?m)a$", "a\n", True),
        (r"a\z", "a", True),
        ("(?i)k", "\N{KELVIN SIGN}", True),
        ("(?P<name>a)", "a", True),
        ("(?<name>a)", "a", True),
        ("(?s)a.b", "a\nb", True),
        ("a.b", "a\nb", False),
    ],
)
def test_a_pattern_matches_as_in_go(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern).matches(text) is expected


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("[", "missing closing ]: `[`"),
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("[b-a]", "invalid character class range: `b-a`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name: `n`"),
        (r"\pL{1000}", r"expression too large: `\pL{1000}`"),
    ],
)
def test_what_is_no_pattern_is_refused_in_the_words_of_go(pattern: str, error: str) -> None:
    with pytest.raises(PatternError) as found:
        compile_pattern(pattern)

    assert str(found.value) == f"error parsing regexp: {error}"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a*", "baaac", ["", "aaa", ""]),
        ("", "ab", ["", "", ""]),
        ("[0-9]+", "a1b22", ["1", "22"]),
        ("é", "éaé", ["é", "é"]),
        ("x", "abc", []),
    ],
)
def test_all_matches_are_those_of_go(pattern: str, text: str, expected: list[str]) -> None:
    assert list(compile_pattern(pattern).all(text)) == expected


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a?){50}a{50}$", "^((a+)b?)+$"])
def test_no_pattern_backtracks(pattern: str) -> None:
    assert compile_pattern(pattern).matches("a" * 10_000 + "!") is False
