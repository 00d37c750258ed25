"""Quantities: every form, exact rounding, and what happens beyond 64 bits."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.kinds.meta import RawQuantity
from podium.objects.quantity import QuantityError, milli, nano, value

SUFFIXES: dict[str, Fraction | int] = {
    "": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
    "e3": 10**3, "E3": 10**3, "e-3": Fraction(1, 1000), "e+2": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "units", "thousandths"),
    [
        pytest.param("1", 1, 1000, id="a plain number"),
        pytest.param(2, 2, 2000, id="an integer"),
        pytest.param(0.5, 1, 500, id="a float is rounded up to whole units"),
        pytest.param(1e22, 0, 0, id="a float in exponent form"),
        pytest.param("100m", 1, 100, id="milli"),
        pytest.param("1500m", 2, 1500, id="milli beyond one"),
        pytest.param("0.5m", 1, 1, id="less than a thousandth is rounded up"),
        pytest.param("1n", 1, 1, id="a billionth is rounded up"),
        pytest.param("1e-12", 1, 1, id="less than a billionth is rounded up"),
        pytest.param("-1500m", -2, -1500, id="negative numbers are rounded away from zero"),
        pytest.param("1Gi", 2**30, 2**30 * 1000, id="binary"),
        pytest.param("0.1Gi", 107374183, 107374182400, id="a fraction of a binary unit"),
        pytest.param("1E", 10**18, 0, id="E alone is exa"),
        pytest.param("1E3", 1000, 10**6, id="E with digits is an exponent"),
        pytest.param("1e3", 1000, 10**6, id="e with digits is an exponent"),
        pytest.param("1e-3", 1, 1, id="a negative exponent"),
        pytest.param("1.", 1, 1000, id="nothing after the point"),
        pytest.param(".5", 1, 500, id="nothing before the point"),
        pytest.param("+5", 5, 5000, id="a plus sign"),
        pytest.param(" 5 ", 5, 5000, id="blanks around it"),
        pytest.param("0005", 5, 5000, id="leading zeros"),
        pytest.param("m", 0, 0, id="a suffix alone is zero"),
        pytest.param("-", 0, 0, id="a sign alone is zero"),
        pytest.param("1e4294967299", 1000, 10**6, id="the exponent wraps in 32 bits"),
    ],
)
def test_reading(raw: RawQuantity, units: int, thousandths: int) -> None:
    assert value(raw) == units
    assert milli(raw) == thousandths


@pytest.mark.parametrize(
    ("raw", "units", "thousandths"),
    [
        pytest.param("10E", 0, 0, id="a short decimal beyond 64 bits reads 0"),
        pytest.param("1e99", 0, 0, id="a large exponent reads 0"),
        pytest.param("1e2147483647", 0, 0, id="the largest exponent reads 0 at once"),
        pytest.param("10000000000G", -8446744073709551616, 0, id="powers of 1, 2, 3, 6, 9 wrap"),
        pytest.param("100000000000000000", 10**17, 7766279631452241920, id="thousandths wrap"),
        pytest.param(str(2**63 - 1), 2**63 - 1, -1000, id="the largest number"),
        pytest.param(str(10**19), -8446744073709551616, 1864712049423024128, id="longer ones wrap"),
        pytest.param("8Ei", 2**63 - 1, -1000, id="binary forms are capped"),
        pytest.param("-8Ei", -(2**63 - 1), 1000, id="binary forms are capped below, too"),
        pytest.param("4503599627370496Ki", 2**62, 0, id="an exact binary form"),
        pytest.param("1234567890123456789e999999", 0, 0, id="a long number with a large exponent"),
        pytest.param("9" * 5000, -1, -1000, id="thousands of digits wrap"),
        pytest.param("1" * 5000 + "Gi", 2**63 - 1, -1000, id="thousands of digits are capped"),
        pytest.param("0." + "0" * 5000 + "1", 1, 1, id="thousands of zeros round up"),
    ],
)
def test_beyond_64_bits(raw: str, units: int, thousandths: int) -> None:
    assert value(raw) == units
    assert milli(raw) == thousandths


@pytest.mark.parametrize(
    "raw",
    ["", " ", "abc", "1e", "Pi", "1kk", "1.2.3", "5 Gi", "+-5", "1m5", "0x10", "1_000", "inf",
     "nan", "٣", "1e99999999999999999999", "1e" + "9" * 5000, "1Gi\n1Gi", True],
)  # fmt: skip
def test_what_is_not_a_quantity(raw: RawQuantity) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        nano(raw)


decimals = st.builds(
    lambda whole, fraction: f"{whole}.{fraction}" if fraction else str(whole),
    st.integers(-9999, 9999),
    st.text("0123456789", max_size=4),
)


@given(decimals, st.sampled_from(sorted(SUFFIXES)))
def test_amounts_are_exact_and_rounded_away_from_zero(number: str, suffix: str) -> None:
    exact = Fraction(number) * SUFFIXES[suffix] * 10**9
    rounded = ceil(abs(exact)) * (-1 if number.startswith("-") else 1)
    cap = (2**63 - 1) * 10**9
    if suffix.endswith("i"):
        rounded = max(-cap, min(cap, rounded))

    assert nano(number + suffix) == rounded


@given(st.integers(-(10**17), 10**17))
def test_what_is_written_in_a_unit_is_read_in_that_unit(number: int) -> None:
    assert nano(f"{number}n") == number
    assert milli(f"{number}m") == number
    assert value(str(number)) == value(number) == number


@given(st.fractions(0, 10**12), st.fractions(0, 10**12))
def test_more_never_reads_as_less(one: Fraction, other: Fraction) -> None:
    small, large = (f"{float(each):.6f}" for each in sorted([one, other]))

    assert value(small) <= value(large)
    assert milli(small) <= milli(large)
    assert nano(small) <= nano(large)


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=24))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        units = value(text)
    except QuantityError:
        return
    assert -(2**63) <= units < 2**63
