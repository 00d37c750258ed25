"""Durations as Go reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.times import parse, text_of


@pytest.mark.parametrize(
    ("text", "nanoseconds", "written"),
    [
        ("0", 0, "0s"),
        ("15s", 15_000_000_000, "15s"),
        ("1m", 60_000_000_000, "1m0s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("100ms", 100_000_000, "100ms"),
        ("1500us", 1_500_000, "1.5ms"),
        ("1.5µs", 1_500, "1.5µs"),
        ("7ns", 7, "7ns"),
        ("-1h2m3.4s", -3_723_400_000_000, "-1h2m3.4s"),
        ("+.5s", 500_000_000, "500ms"),
        ("1s1s", 2_000_000_000, "2s"),
        ("1.0000000019s", 1_000_000_001, "1.000000001s"),
    ],
)
def test_durations(text: str, nanoseconds: int, written: str) -> None:
    assert parse(text) == nanoseconds
    assert text_of(nanoseconds) == written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1.2.3s", 'time: missing unit in duration "1.2.3s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1s x", 'time: unknown unit "s x" in duration "1s x"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
    ],
)
def test_times_that_are_none(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match="time: ") as caught:
        parse(text)

    assert str(caught.value) == expected


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_duration_comes_back_as_it_was(nanoseconds: int) -> None:
    assert parse(text_of(nanoseconds)) == nanoseconds
