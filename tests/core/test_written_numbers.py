"""Numbers as people write them: each column of texts with the numbers that it holds."""

import pytest

from amlb_ext.core.errors import DataError
from amlb_ext.core.numbers import AmbiguousNumberError, read_written_numbers

#: Texts of one column, and their numbers.
READ = [
    ({"$1,234.50": 1234.5, "$2": 2, "-$3.5": -3.5, "$-4": -4, "7": 7}, None),
    ({"US$5": 5, "US$1,000.25": 1000.25}, None),
    ({"1.234,56 \u20ac": 1234.56, "3 \u20ac": 3, "\u20ac 7,5": 7.5}, None),
    ({"EUR 5": 5, "5,50 EUR": 5.5}, None),
    ({"CHF 1'200.50": 1200.5, "CHF 5.-": 5, "CHF 1\u2019000": 1000}, None),
    ({"Rs.500": 500, "Rs. 1,200.50": 1200.5}, None),
    ({"\u20b912,34,567.5": 1234567.5}, None),
    ({"25,312.74": 25312.74, "1": 1}, None),
    ({"1,234": 1234, "0.5": 0.5}, None),
    ({"1,234": 1.234, "1,5": 1.5}, None),
    ({"1.234": 1234, "1,5": 1.5}, None),
    ({"1.000.000": 1e6, "3": 3}, None),
    ({"1,000,000": 1e6, "3": 3}, None),
    ({"1.234": 1.234, "2.345": 2.345}, None),
    ({"1,234": 1234}, "."),
    ({"1,234": 1.234}, ","),
    ({"1.234 \u20ac": 1234}, ","),
    ({"1,5": 1.5, "2.5": None, "3,5": 3.5}, ","),
    ({"0.5": 0.5, "1.234": 1.234}, ","),
    ({"1 234": 1234, "1\u202f234\u00a0567": 1234567, "12 34": None}, None),
    ({"1 234,5": 1234.5}, None),
    ({"(12.5)": -12.5, "(1,000)": -1000, "3": 3}, None),
    ({"$(12.50)": -12.5, "($3)": -3}, None),
    ({"12.50-": -12.5, "\u22125": -5, "\u20137": -7, "+5": 5, "1e3": 1000}, None),
    ({"12.5%": 0.125, "3 %": 0.03, "0": 0, "-7%": -0.07}, None),
    ({"1,5 %": 0.015, "2,25%": 0.0225}, None),
    ({"5\u2030": 0.005}, None),
    ({"12 kg": 12, "3.5 kg": 3.5, "0": 0}, None),
    ({"12kg": 12, "n/a": None}, None),
    ({"5 \u00b0C": 5, "-3 \u00b0C": -3}, None),
    ({"13:45": 825, "13:45:30": 825.5, "0:00": 0, "25:10": None}, None),
    ({"1:45 PM": 825, "12:30 a.m.": 30, "9am": 540, "13:00 pm": None}, None),
    ({"12345678901234567890": 12345678901234567890}, None),
    ({"3+": None, "<5": None, "1": 1, "--5": None, "(-5)": None}, None),
    ({"1/2": None, "2024-01-01": None, "12.5.2024": None, "1.2.3": None}, None),
    ({"E101": None, "0x10": None, "1_000": None, "inf": None, "": None, "-": None}, None),
    ({"\u0663": None, "\uff11": None, "5'10": None, "10-20": None}, None),
]  # fmt: skip


@pytest.mark.parametrize(("numbers", "decimal"), READ)
def test_a_column_of_texts(numbers, decimal):
    assert read_written_numbers(list(numbers), decimal).numbers == numbers


@pytest.mark.parametrize(
    ("texts", "error", "said"),
    [
        (["1,234", "5,678"], AmbiguousNumberError, "is 1234 with a decimal point and 1.234 with"),
        (["$1.234", "$2"], AmbiguousNumberError, "1.234 with a decimal point and 1234 with"),
        (["1,5", "2.5"], DataError, "'2.5' with a decimal point and '1,5' with a decimal comma"),
        (["12 kg", "3 lb"], DataError, "'12 kg' and '3 lb', which are not of one unit"),
        (["$5", "\u20ac5"], DataError, "which are not of one unit"),
        (["12%", "3%", "12"], DataError, "'12%' and '12', which are not of one unit"),
        (["13:45", "7:00", "3"], DataError, "which are not of one unit"),
    ],
)  # fmt: skip
def test_columns_that_contradict_themselves(texts, error, said):
    with pytest.raises(error) as caught:
        read_written_numbers(texts, what="a.csv: column 'c'")
    assert said in str(caught.value)
    assert str(caught.value).startswith("a.csv: column 'c' holds")


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["1", "2.5", "1e3"], ""),
        (["7", "25,312.74"], "'25,312.74' is read as 25312.74"),
        (["12.5%"], "'12.5%' is read as 0.125, a fraction"),
        (["13:45"], "'13:45' is read as 825, minutes since midnight"),
    ],
)
def test_what_no_program_reads_is_told(texts, note):
    assert read_written_numbers(texts).note == note
