"""Numbers and dates as people write them are read right, or said aloud."""

import datetime
from typing import Any

import pandas as pd
import pytest

from comes.errors import ComesWarning
from comes.tables import Column, ColumnEncoder, describe_columns
from comes.tables.cells import read_dates, read_numbers
from refusals import refused


def describe(cells: Any, name: str = "x", **kinds: str) -> Column:
    (column,) = describe_columns(pd.DataFrame({name: cells}), kinds)
    return column


def dates_of(cells: list[Any], name: str = "x") -> list[Any]:
    column = describe(cells, name)
    assert column.kind == "date", (cells, column)
    return list(read_dates(pd.Series(cells), column.form))


def numbers_of(cells: list[Any]) -> list[float]:
    column = describe(cells)
    assert column.kind == "number", (cells, column)
    return list(read_numbers(pd.Series(cells), column.form or "."))


DAYS = [datetime.datetime(2025, 10, 12), datetime.datetime(2024, 5, 23)]
TIMES = [day.replace(hour=14, minute=30) for day in DAYS]
EXACT = [time.replace(second=15) for time in TIMES]
FORMS = {
    "%Y-%m-%d": DAYS,
    "%Y/%m/%d": DAYS,
    "%Y.%m.%d": DAYS,
    "%d.%m.%Y": DAYS,
    "%d.%m.%y": DAYS,
    "%d/%m/%Y": DAYS,
    "%m/%d/%Y": DAYS,
    "%m/%d/%y": DAYS,
    "%d-%m-%Y": DAYS,
    "%d-%b-%y": DAYS,
    "%d-%b-%Y": DAYS,
    "%d %b %Y": DAYS,
    "%d. %B %Y": DAYS,
    "%b %d %Y": DAYS,
    "%b %d, %Y": DAYS,
    "%B %d, %Y": DAYS,
    "%d %B %Y": DAYS,
    "%a, %d %b %Y": DAYS,
    "%A, %B %d, %Y": DAYS,
    "%Y-%m": [day.replace(day=1) for day in DAYS],
    "%b %Y": [day.replace(day=1) for day in DAYS],
    "%m/%Y": [day.replace(day=1) for day in DAYS],
    "%b-%y": [day.replace(day=1) for day in DAYS],
    "%Y-%m-%d %H:%M": TIMES,
    "%d.%m.%Y %H:%M": TIMES,
    "%m/%d/%Y %I:%M %p": TIMES,
    "%d-%b-%y %I:%M:%S %p": EXACT,
    "%Y-%m-%dT%H:%M:%S": EXACT,
    "%Y-%m-%dT%H:%M:%SZ": EXACT,
    "%Y-%m-%dT%H:%M:%S+00:00": EXACT,
    "%Y-%m-%d %H:%M:%S.%f": EXACT,
    "%Y-%m-%d %H:%M UTC": TIMES,
    "%a, %d %b %Y %H:%M:%S GMT": EXACT,
    "%a %b %d %H:%M:%S %Y": EXACT,
}


def test_dates_are_read_in_the_forms_that_people_write() -> None:
    for form, moments in FORMS.items():
        assert dates_of([moment.strftime(form) for moment in moments]) == moments, form
    assert dates_of(["12-OCT-25", "1-oct-25"])[1] == datetime.datetime(2025, 10, 1)
    zoned = dates_of(["2025-10-12T14:30:15+02:00", "2025-10-12T14:30:15-0130"])
    assert [moment.hour for moment in zoned] == [12, 16]


def test_several_forms_of_dates_are_each_read_by_their_own() -> None:
    cells = ["2025-10-12", "23-May-24", "23 May 2024", "2024-05-23"] * 5
    assert dates_of(cells) == [DAYS[0], DAYS[1], DAYS[1], DAYS[1]] * 5
    assert "read as %Y-%m-%d or %d-%b-%y or %d %b %Y" in describe(cells).why
    # What one form decides, days first, holds for the other.
    assert dates_of(["23.05.2024", "12/10/2025"] * 5) == DAYS[::-1] * 5


def test_where_no_cell_tells_the_month_is_first_and_that_is_said() -> None:
    column = describe(["01/02/2026", "03/04/2026"])
    assert column.form == "%m/%d/%Y" and "the month first, as no cell tells" in column.why
    with pytest.warns(ComesWarning, match="'x' is taken for date.*the month first, as no cell"):
        ColumnEncoder().fit(pd.DataFrame({"x": ["01/02/2026", "03/04/2026"]}))
    assert not describe(["01/22/2026", "03/04/2026"]).is_doubtful


def test_numbers_of_eight_digits_are_dates_where_the_name_says_so() -> None:
    numbers: list[Any] = [20251012, 20240523, 20240524]
    assert dates_of(numbers, "order_date")[:2] == DAYS
    assert dates_of([str(number) for number in numbers], "Day")[:2] == DAYS
    assert describe(numbers, "amount").kind == "number"
    assert describe([20251012, 20241399], "date").kind == "number"
    assert describe(numbers, "amount", amount="date").kind == "date"


def test_a_tenth_of_other_cells_counts_as_missing() -> None:
    days = [f"2026-01-{day:02d}" for day in range(1, 21)]
    column = describe([*days, "soon", "2026-13-01"])
    assert (column.kind, column.n_missing) == ("date", 2)
    assert "2 other cells count as missing ('soon', '2026-13-01')" in column.why
    assert describe([*days, *["soon", "later", "never"] * 3]).kind == "category"
    numbers = [f"{number} m2" for number in range(30)]
    column = describe([*numbers, "large", None])
    assert (column.kind, column.n_missing) == ("number", 2)
    assert "1 other cell counts as missing ('large')" in column.why


def test_numbers_are_read_with_units_currencies_and_thousands() -> None:
    cases: dict[tuple[str, ...], list[float]] = {
        ("26 m2", "31.5 m²", "7M2", "8"): [26, 31.5, 7, 8],
        ("EUR 154,607.50", "€7", "9 eur", "12 Euro"): [154607.5, 7, 9, 12],
        ("$1,234.50", "US$ 7", "9 USD"): [1234.5, 7, 9],
        ("€ 1.234,50", "3,5 €"): [1234.5, 3.5],
        ("49k", "1.2M", "300", "2bn", "3 Mio."): [49e3, 1.2e6, 300, 2e9, 3e6],
        ("10k EUR", "$", "250 EUR")[::2]: [10e3, 250],
        ("3,5 kg", "12 KG"): [3.5, 12],
        ("12 %", "7.5%"): [12, 7.5],
        ("1 234 567", "1\u00a0234,5"): [1234567, 1234.5],
        ("1'234.50", "9"): [1234.5, 9],
        ("(1,234.5)", "55.5", "-3", "\N{MINUS SIGN}4"): [-1234.5, 55.5, -3, -4],
        ("~30", "40.5"): [30, 40.5],
        ("1 bedroom", "2 bedrooms"): [1, 2],
        ("4 km/h", "5.5 km/h"): [4, 5.5],
        ("1e5", "2.5e-3"): [1e5, 2.5e-3],
        (".5", "5.", "+7"): [0.5, 5, 7],
    }
    for cells, expected in cases.items():
        assert numbers_of(list(cells)) == expected, cells
    assert describe(["26 m2", "31.5 m2"]).why == "numbers with 'm2', such as '26 m2'"
    assert describe(["49k", "300"]).why == "numbers such as '49k', read as 49000"


def test_codes_and_ranges_are_no_numbers() -> None:
    cases: list[tuple[str, ...]] = [
        ("00123", "00456"),
        ("A12", "B13"),
        ("12-34", "15-66"),
        ("30-40", "50-60"),
        ("1.2.3", "1.2.4"),
        ("+49 170 1234567", "+49 171 7654321"),
        ("12a", "12b"),
        ("1st", "2nd"),
        ("3 x 4", "5 x 6"),
        ("12 Main Street", "14 Oak Avenue"),
        ("< 5", "> 7"),
    ]
    for cells in cases:
        column = describe([*cells, *cells])
        assert column.kind == "category" and not column.is_doubtful, cells
    assert describe(["12345", "54321"] * 9, "zip code").kind == "category"


def test_different_units_are_not_merged() -> None:
    cells = ["26 m2", "300 sqft", "28 m2", "250 sqft"]
    with pytest.warns(ComesWarning, match="different units .'m2', 'sqft'.*--number"):
        encoder = ColumnEncoder().fit(pd.DataFrame({"area": cells}))
    assert encoder.columns_[0].kind == "category"
    with pytest.warns(ComesWarning, match=r"2 other cells count as missing .'300 sqft', '250"):
        encoder = ColumnEncoder({"area": "number"}).fit(pd.DataFrame({"area": cells}))
    assert encoder.columns_[0].kind == "number" and encoder.columns_[0].n_missing == 2
    frame = pd.DataFrame({"area": ["26 m2", "30"] * 5})
    with pytest.warns(ComesWarning, match="1 cells of column 'area' are not numbers in m2"):
        ColumnEncoder().fit(frame).transform(pd.DataFrame({"area": ["9 sqft", "9 M2", "9"]}))


def test_a_comma_that_may_be_of_thousands_or_decimals_is_said_aloud() -> None:
    frame = pd.DataFrame({"x": ["1,234", "5,678"]})
    with pytest.warns(ComesWarning, match="column 'x' is taken for number.*'1,234' is read as 1"):
        encoder = ColumnEncoder().fit(frame)
    assert encoder.columns_[0].form == "."
    surely = frame.assign(y=["1,5", "2,75"])
    x, y = describe_columns(surely)
    assert x.form == y.form == "," and not x.is_doubtful
    assert read_numbers(surely["x"], ",").tolist() == [1.234, 5.678]
    # A price has no tenths of cents, and one cell among many may tell.
    assert describe_columns(surely.assign(x=["EUR 154,607", "EUR 9"]))[0].form == ". eur"
    many = [f"{n // 900 + 1},{n % 900 + 100}" for n in range(2500)]
    other = ["1,5", "2,75"] * 1250
    for cells, form in ((many, ","), ([*many[:-2], "1,170,305", many[-1]], ".")):
        assert describe_columns(pd.DataFrame({"x": cells, "y": other}))[0].form == form
    assert numbers_of(["154.607 €", "99 €"]) == [154607, 99]
    assert not describe(["154.607 €", "99 €"]).is_doubtful  # nobody writes tenths of cents
    assert numbers_of(["1.234", "5"]) == [1.234, 5]


def test_what_is_asked_for_reads_what_it_can() -> None:
    assert describe(["00123", "00456"], x="number").form == "."
    column = describe(["3", "many", "5 kg"], x="number")
    assert (column.n_missing, column.is_doubtful) == (1, True)
    column = describe(["2026-01-31", "soon", "2026-02-01", "later"], x="date")
    assert (column.kind, column.n_missing) == ("date", 2)
    column = describe(["yes", "no", "perhaps"], x="boolean")
    assert (column.kind, column.n_missing, column.is_doubtful) == ("boolean", 1, True)
    with refused("'x' must hold numbers; got 'red', 'blue'"):
        describe(["red", "blue"], x="number")
