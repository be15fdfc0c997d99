import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from comes.tables import describe_columns
from comes.tables.columns import find_item_column, needs_encoding
from mixed_tables import make_table
from refusals import refused

N = 60


def kind_of(cells: Any, name: str = "x") -> str:
    (column,) = describe_columns(pd.DataFrame({name: cells}))
    return column.kind


def test_every_kind_is_found() -> None:
    frame, _ = make_table()
    assert {column.name: column.kind for column in describe_columns(frame)} == {
        "ticket_id": "id",
        "size": "number",
        "stars": "number",
        "price": "number",
        "colour": "category",
        "street": "category",
        "urgent": "boolean",
        "news": "boolean",
        "opened": "date",
        "seen": "date",
        "body": "text",
        "unit": "constant",
        "notes": "empty",
    }


def test_a_column_is_taken_for_what_it_is() -> None:
    cases: list[tuple[str, Any, str]] = [
        ("customer_id", [f"c{k}" for k in range(N)], "id"),
        ("customerId", list(range(3, 3 + 7 * N, 7)), "id"),
        ("ID", [5, 2, 9], "id"),
        ("x", list(range(100, 100 + N)), "id"),  # counts the rows
        ("x", [5, 6, 7], "number"),  # may be chance
        ("x", np.arange(N) / 2, "number"),
        ("paid", list(range(3, 3 + 7 * N, 7)), "number"),  # ends in id, but is no word
        ("group_id", [1, 2] * (N // 2), "number"),  # not unique
        ("mail", [f"p{k}@example.org" for k in range(N)], "id"),
        ("code", [f"{k:032x}" for k in range(N)], "id"),
        ("reply", [f"we have sent you part {k // 6} of it" for k in range(6 * N)], "text"),
        ("title", [f"on the use of {k} stones in rivers" for k in range(N)], "text"),
        ("when", [f"2026-01-{1 + k % 28:02d}" for k in range(N)], "date"),
        ("when", [datetime.date(2026, 1, 1 + k % 28) for k in range(N)], "date"),
        ("when", pd.period_range("2020-01", periods=N, freq="M"), "date"),
        ("took", pd.to_timedelta(np.random.default_rng(0).normal(size=N), unit="h"), "number"),
        ("share", [f"{k} %" for k in range(0, 2 * N, 2)], "number"),
        ("share", [f"{k},5" for k in range(0, 2 * N, 2)], "number"),
        ("cost", [Decimal(k * k) / 7 for k in range(N)], "number"),
        ("flag", ["Yes", "NO"] * (N // 2), "boolean"),
        ("flag", [0, 1] * (N // 2), "boolean"),
        ("pair", ["yes", "false"] * (N // 2), "category"),
        ("grade", pd.Categorical([1, 2, 3] * (N // 3)), "category"),
        ("mixed", [1, "two", 3.5, None] * (N // 4), "category"),
        ("mixed", [*(k * 1.37 for k in range(N - 2)), "unknown", "lost"], "number"),
        ("nested", [[1, 2]] * N, "ignored"),
        ("nested", [{"a": 1}] * N, "ignored"),
        ("complex", np.arange(N) * 1j, "ignored"),
        ("huge", [10**30 + k for k in range(N)], "id"),
        ("words", ["", "n/a", "-"] * (N // 3), "empty"),
    ]
    for name, cells, kind in cases:
        assert kind_of(cells, name) == kind


def test_reasons_name_what_is_lost_or_ambiguous() -> None:
    mixed = [*(k * 1.37 for k in range(N - 2)), "unknown", "lost"]
    dates = [f"{1 + k % 9:02d}/{1 + k % 9:02d}/2026" for k in range(N)]
    found = describe_columns(pd.DataFrame({"mixed": mixed, "when": dates}))
    assert "2 other cells count as missing ('unknown', 'lost')" in found[0].why
    assert found[0].n_missing == 2
    assert "the month first" in found[1].why


def test_what_is_asked_for_is_taken() -> None:
    frame, _ = make_table()
    kinds = {"stars": "category", "colour": "text", "body": "ignored", "ticket_id": "category"}
    found = {column.name: column for column in describe_columns(frame, kinds)}
    assert {name: found[name].kind for name in kinds} == kinds
    assert {found[name].why for name in kinds} == {"asked for"}


def test_a_wrong_wish_is_one_sentence() -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({"colours": "text"}, "no column 'colours'.*Did you mean 'colour'"),
        ({"colour": "words"}, "'colour' must be taken for one of number.*got 'words'"),
        ({"colour": "date"}, "'colour' must hold dates; got 'red'"),
    ]
    for kinds, message in cases:
        with refused(message):
            describe_columns(pd.DataFrame({"colour": ["red", "blue"]}), kinds)

    frame = pd.DataFrame([["a", "b"], ["c", "d"]], columns=["x", "x"])
    with refused("'x' occurs more than once"):
        describe_columns(frame)


def test_complete_numbers_need_no_encoding() -> None:
    cases: list[tuple[Any, bool]] = [
        ([1.5, 2.5], False),
        ([True, False], False),
        (pd.array([1, 2], dtype="Int64"), False),
        (pd.Series([1, 2.5], dtype=object), False),
        (pd.array([1, None], dtype="Int64"), True),
        ([1.5, None], True),
        (["a", "b"], True),
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), True),
        (pd.to_timedelta([1, 2], unit="D"), True),
        (pd.Categorical([1, 2]), True),
    ]
    for cells, is_needed in cases:
        assert needs_encoding(pd.DataFrame({"x": cells, "y": [0.1, 0.2]})) is is_needed

    assert needs_encoding(pd.DataFrame({"id": [7, 3, 9], "x": [0.1, 0.2, 0.3]}))


def test_items_are_named_by_ids_that_differ() -> None:
    frame, _ = make_table()
    assert find_item_column(frame) == "ticket_id"
    assert find_item_column(frame.assign(ticket_id="t1")) is None
    assert (
        find_item_column(frame.assign(ticket_id=frame["ticket_id"].where(frame.index > 0))) is None
    )
