import datetime
import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from comes.errors import ComesWarning
from comes.tables import ColumnEncoder
from comes.tables.encoder import encode_table
from mixed_tables import make_table
from refusals import refused

FRAME, _ = make_table()


def encoded(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """The features of a frame by their names."""
    encoder = ColumnEncoder(**options)
    matrix = encoder.fit_transform(frame)
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    return pd.DataFrame(dense, columns=encoder.get_feature_names_out())


def test_numbers_are_standardised_and_missing_ones_marked() -> None:
    found = encoded(pd.DataFrame({"size": [1.0, 3.0, np.nan, 8.0]}))
    filled = np.array([1.0, 3.0, 3.0, 8.0])  # the median is 3
    np.testing.assert_allclose(found["size"], (filled - filled.mean()) / filled.std(), rtol=1e-6)
    assert found["size is missing"].tolist() == [0, 0, 1, 0]


def test_numbers_in_texts_are_read() -> None:
    as_text = ["1,200.50 €", "12", "-3.5", "", "1,000,000", "7 €"] * 5
    as_numbers = [1200.5, 12, -3.5, np.nan, 1e6, 7] * 5
    texts, numbers = (encoded(pd.DataFrame({"x": cells})) for cells in (as_text, as_numbers))
    pd.testing.assert_frame_equal(texts, numbers)
    with_commas = ["1.200,50", "12", "-3,5", "", "1.000.000,0", "7,0"] * 5
    pd.testing.assert_frame_equal(encoded(pd.DataFrame({"x": with_commas})), numbers)


def test_flags_are_0_and_1_however_they_are_written() -> None:
    for cells in (["Yes", "NO", "Yes", ""], ["on", "off", "on", None], [True, False, True, None]):
        found = encoded(pd.DataFrame({"flag": cells * 3}))
        assert found["flag"].tolist()[:3] == [1, 0, 1], cells
        assert found["flag is missing"].tolist()[:4] == [0, 0, 0, 1], cells


def test_large_numbers_stay_finite() -> None:
    found = encoded(pd.DataFrame({"x": [1e300, -1e300, None, 3e307], "y": [2**63, 1, 5, None]}))
    assert np.isfinite(found.to_numpy()).all() and found["x"].std() > 0


def test_categories_have_a_feature_each_and_rare_ones_share_one() -> None:
    cells = ["red"] * 300 + ["blue"] * 190 + ["mauve", "teal"] * 5
    cells[0] = None  # type: ignore[call-overload]
    found = encoded(pd.DataFrame({"c": cells, "x": np.random.default_rng(0).normal(size=500)}))
    assert list(found.columns[:5]) == [
        "c = blue",
        "c = mauve",
        "c = red",
        "c = teal",
        "c is missing",
    ]
    cells = ["red"] * 300 + ["blue"] * 196 + ["mauve", "teal"] * 2
    found = encoded(pd.DataFrame({"c": cells}))
    assert list(found.columns) == ["c = blue", "c = red", "c is rare"]
    expected = [[c == "blue", c == "red", c in ("mauve", "teal")] for c in cells]
    np.testing.assert_array_equal(found.to_numpy(), np.array(expected, dtype=float))

    cells = ["red"] * 300 + ["blue"] * 196 + ["mauve", "teal"] * 2
    encoder = ColumnEncoder().fit(pd.DataFrame({"c": cells}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix = encoder.transform(pd.DataFrame({"c": ["pink", "red"]}))
    assert matrix.tolist() == [[0, 0, 1], [0, 1, 0]]


def test_categories_that_differ_in_case_and_blanks_are_one() -> None:
    cells = ["red", "Red ", "RED", "red", "dark  Blue", "Dark Blue", "Dark Blue", "\uff32ed"] * 3
    encoder = ColumnEncoder()
    matrix = encoder.fit_transform(pd.DataFrame({"c": cells}))
    assert encoder.get_feature_names_out().tolist() == ["c = Dark Blue", "c = red"]
    assert matrix[:, 1].tolist() == [1, 1, 1, 1, 0, 0, 0, 1] * 3
    assert encoder.columns_[0].why == "2 different values; 4 more differ in case or blanks alone"
    news = encoder.transform(pd.DataFrame({"c": ["ReD", " DARK   blue"]}))
    assert news.tolist() == [[0, 1], [1, 0]]
    old = {"kind": "category", "column": "c", "levels": ["Red", "red"], "has_rare": True}
    state = encoder.state()[0] | {"parts": [old | {"marks_missing": False}]}
    again = ColumnEncoder.from_state(state, {})
    assert again.transform(pd.DataFrame({"c": ["red", "Red", "RED"]})).tolist() == [
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 1],
    ]
    flags = encoded(pd.DataFrame({"f": ["Yes", "yes", "NO", "no "] * 3}))
    assert flags["f"].tolist() == [1, 1, 0, 0] * 3


def test_columns_without_features_are_named() -> None:
    values: list[Any] = [[1, 2], {"a": 1}, {1}, np.zeros(2), b"raw", (1, 2)]
    for value in values:
        cells = pd.Series([value, value, value], dtype=object)
        with pytest.warns(ComesWarning, match=f"'x' is left out: .*{type(value).__name__}"):
            ColumnEncoder().fit(pd.DataFrame({"x": cells, "c": ["a", "b", "a"]}))


def test_columns_of_arrow_are_read() -> None:
    pa = pytest.importorskip("pyarrow")

    days = [datetime.date(2026, 1, 1), datetime.date(2026, 2, 1), None]
    frame = pd.DataFrame(
        {
            "list": pd.Series([[1], [2], None], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
            "raw": pd.Series([b"a", b"b", None], dtype=pd.ArrowDtype(pa.binary())),
            "day": pd.Series(days, dtype=pd.ArrowDtype(pa.date32())),
            "flag": pd.Series([True, False, None], dtype=pd.ArrowDtype(pa.bool_())),
            "word": pd.Series(["a", "b", "a"], dtype=pd.ArrowDtype(pa.string())),
        }
    )
    with pytest.warns(ComesWarning, match="'list' is left out.*'raw' is left out"):
        encoder = ColumnEncoder().fit(frame)
    kinds = [column.kind for column in encoder.columns_]
    assert kinds == ["ignored", "ignored", "date", "boolean", "category"]


def test_the_training_table_is_encoded_as_by_its_fit() -> None:
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "area": [f"{value:.1f} m2" for value in rng.uniform(20, 90, n)],
            "price": [f"EUR {value:,.2f}" for value in rng.uniform(1e3, 1e6, n)],
            "pay": [f"{value}k" for value in rng.integers(20, 90, n)],
            "seen": [f"{day}-Oct-25" for day in rng.integers(1, 28, n)],
            "kind": rng.choice(["Flat", "flat ", "House", "HOUSE"], n),
            "tiny": rng.normal(size=n) * 1e-200,
            "note": [f"one more note on {word}" for word in rng.choice(list("abcdefgh"), n)],
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    encoder = ColumnEncoder({"note": "text"})
    matrix = encoder.fit_transform(frame).toarray()
    assert [c.kind for c in encoder.columns_[:5]] == ["number"] * 3 + ["date", "category"]
    np.testing.assert_array_equal(encoder.transform(frame).toarray(), matrix)
    state, arrays = encoder.state()
    again = ColumnEncoder.from_state(json.loads(json.dumps(state)), arrays)
    np.testing.assert_array_equal(again.transform(frame).toarray(), matrix)
    assert again.word_columns == ["area", "price", "pay", "seen", "kind", "note"]
    place = encoder.get_feature_names_out().tolist().index("tiny")
    assert matrix[:, place].std() == pytest.approx(1, abs=1e-5)


def test_a_state_of_an_earlier_version_means_the_same() -> None:
    columns = [
        {"name": name, "kind": name, "why": "", "n_missing": 0} for name in ("number", "date")
    ]
    learned = {"median": 0.0, "mean": 0.0, "scale": 1.0, "marks_missing": False}
    number = {"kind": "number", "column": "number", "decimal": ".", **learned}
    date = {"kind": "date", "column": "date", "form": "%d.%m.%Y", "first": "2026-01-01 00:00:00"}
    parts = [number, date | learned | {"cycles": []}]
    state = {"kinds": None, "text": "tfidf", "columns": columns, "parts": parts}
    encoder = ColumnEncoder.from_state(state, {})
    frame = pd.DataFrame({"number": ["1,200 €", "7 %", "3.5"], "date": ["02.01.2026"] * 3})
    assert encoder.transform(frame).tolist() == [[1200, 1], [7, 1], [3.5, 1]]


def test_dates_are_days_and_places_in_cycles() -> None:
    days = pd.to_datetime(pd.Series(["2026-01-01", "2026-01-08", "2026-07-02", None]))
    found = encoded(pd.DataFrame({"d": days}))
    elapsed = np.array([0.0, 7.0, 182.0, 7.0])  # the middle date where it is missing
    np.testing.assert_allclose(
        found["d: days"], (elapsed - elapsed.mean()) / elapsed.std(), rtol=1e-6
    )
    angle = 2 * np.pi * np.array([0, 7, 182, 7]) / 366
    np.testing.assert_allclose(found["d: year sin"], np.sin(angle), atol=1e-6)
    assert found["d is missing"].tolist() == [0, 0, 0, 1]
    assert not [name for name in found.columns if "week" in name]  # all are Thursdays


def test_dates_of_any_century_are_dates() -> None:
    days = pd.Series([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None] * 7, dtype=object)
    encoder = ColumnEncoder()
    matrix = encoder.fit_transform(pd.DataFrame({"d": days}))
    assert encoder.columns_[0].kind == "date" and np.isfinite(matrix).all()
    assert np.isfinite(encoder.transform(pd.DataFrame({"d": [np.nan, 3.5]}))).all()


def test_a_time_zone_more_or_less_is_said() -> None:
    plain = pd.Series(pd.to_datetime(["2026-01-01 11:00", "2026-01-02 17:00"]))
    rome = plain.dt.tz_localize("Europe/Rome")
    for training, new, message in (
        (rome, plain, "'t' have no time zone, and those of training had one"),
        (plain, rome, "'t' have a time zone, and those of training had none"),
        (rome.astype(object), plain.astype(object), "have no time zone"),
        (rome, plain.astype(str), "have no time zone"),
    ):
        encoder = ColumnEncoder().fit(pd.DataFrame({"t": training}))
        with pytest.warns(ComesWarning, match=message):
            encoder.transform(pd.DataFrame({"t": new}))
        part: Any = encoder.parts_[0]
        encoder.parts_ = (replace(part, is_zoned=None),)  # of an earlier version
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            encoder.transform(pd.DataFrame({"t": new}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for training, new in ((rome, rome.astype(str)), (plain, plain.astype(str))):
            ColumnEncoder().fit(pd.DataFrame({"t": training})).transform(pd.DataFrame({"t": new}))
    mixed = [pd.Series([*rome, *plain], dtype=object), ["2026-01-01T11:00Z", "2026-01-02T11:00"]]
    for cells in mixed:
        with pytest.warns(ComesWarning, match="'t' is taken for date: .*some have a time zone"):
            ColumnEncoder().fit(pd.DataFrame({"t": cells}))


def test_times_are_compared_in_utc() -> None:
    rome = pd.to_datetime(["2026-01-01 12:00", "2026-01-02 18:00"]).tz_localize("Europe/Rome")
    plain = pd.to_datetime(["2026-01-01 11:00", "2026-01-02 17:00"])
    as_text = ["2026-01-01T12:00:00+0100", "2026-01-02T18:00:00+0100"]
    frames = [encoded(pd.DataFrame({"t": cells})) for cells in (rome, plain, as_text)]
    for other in frames[1:]:
        pd.testing.assert_frame_equal(frames[0], other)
    assert frames[0]["t: day sin"].nunique() == 2


def test_texts_are_those_of_scikit_learn() -> None:
    texts = FRAME["body"]
    expected = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, min_df=2, token_pattern=r"(?u)\b\w+\b"
    ).fit_transform(texts)
    matrix = ColumnEncoder(kinds={"body": "text"}).fit_transform(FRAME[["body"]])
    assert sparse.issparse(matrix) and matrix.dtype == np.float32
    np.testing.assert_allclose(matrix.toarray(), expected.toarray(), atol=1e-6)


@pytest.mark.parametrize(
    ("n_texts", "kept"),
    [(299, ["a b", "b c"]), (300, ["a b"]), (60, ["a b", "b c"])],  # in 3 and 2 texts
)
def test_a_pair_of_words_stands_in_one_text_of_a_hundred(n_texts: int, kept: list[str]) -> None:
    words = ["a b", "a b c", "b c a b"] + [f"w{k % 7}" for k in range(n_texts - 3)]
    encoder = ColumnEncoder(kinds={"body": "text"}).fit(pd.DataFrame({"body": words}))
    terms = [name.removeprefix("body: ") for name in encoder.get_feature_names_out()]
    assert [term for term in terms if " " in term] == kept
    assert {"a", "b", "c"} < set(terms)  # a word needs two texts, however many there are


def test_what_was_learned_is_stored_as_json_and_arrays() -> None:
    encoder = ColumnEncoder(kinds={"stars": "category"})
    matrix = encoder.fit_transform(FRAME)
    state, arrays = encoder.state()
    again = ColumnEncoder.from_state(json.loads(json.dumps(state)), arrays)
    other = again.transform(FRAME)
    for part in ("data", "indices", "indptr"):
        assert getattr(other, part).tobytes() == getattr(matrix, part).tobytes()
    assert again.get_params() == encoder.get_params() and again.columns_ == encoder.columns_
    assert list(again.get_feature_names_out()) == list(encoder.get_feature_names_out())


def test_rows_are_encoded_one_by_one() -> None:
    encoder = ColumnEncoder().fit(FRAME)
    whole = encoder.transform(FRAME).toarray()
    some = encoder.transform(FRAME.iloc[[7]]).toarray()
    np.testing.assert_array_equal(some[0], whole[7])


def test_columns_are_found_by_name() -> None:
    encoder = ColumnEncoder().fit(FRAME)
    expected = encoder.transform(FRAME).toarray()
    np.testing.assert_array_equal(encoder.transform(FRAME[FRAME.columns[::-1]]).toarray(), expected)
    without = FRAME.drop(columns=["ticket_id", "unit", "notes"])  # nothing is made of them
    np.testing.assert_array_equal(encoder.transform(without).toarray(), expected)
    with pytest.warns(ComesWarning, match="column 'weight' is not known to the model and ignored"):
        encoder.transform(FRAME.assign(weight=1))
    with refused("'colour' is missing; .*Did you mean 'Colour'"):
        encoder.transform(FRAME.rename(columns={"colour": "Colour"}))


def test_an_empty_column_can_stand_for_a_missing_one() -> None:
    encoder = ColumnEncoder().fit(FRAME)
    for name in encoder.used_columns:
        with pytest.warns(ComesWarning, match=f"column '{name}' holds nothing that training saw"):
            matrix = encoder.transform(FRAME.assign(**{name: None}))
        assert matrix.shape[0] == len(FRAME) and np.isfinite(matrix.data).all()


def test_news_is_said_in_one_sentence() -> None:
    frame = pd.DataFrame({"c": ["a", "b"] * 20, "x": np.linspace(0, 1, 40) ** 2})
    encoder = ColumnEncoder().fit(frame)
    news = frame.assign(c=["z", *frame["c"][1:]])
    with pytest.warns(ComesWarning, match=r"'c' holds values that training did not see in 1 rows"):
        matrix = encoder.transform(news)
    assert matrix[0, :2].tolist() == [0, 0]
    stray = frame.assign(x=["much", *frame["x"][1:].astype(str)])
    with pytest.warns(ComesWarning, match="1 cells of column 'x' are not numbers"):
        encoder.transform(stray)


def test_categories_do_not_depend_on_how_they_are_stored() -> None:
    for as_stored in (int, float, str, "Int64", "category"):
        frame = pd.DataFrame({"zip": [1, 2, 3] * 10})
        encoder = ColumnEncoder(kinds={"zip": "category"}).fit(frame)
        same = encoder.transform(frame.astype({"zip": as_stored}))
        np.testing.assert_array_equal(same, encoder.transform(frame))


def test_infinite_numbers_are_refused_with_their_place() -> None:
    frame = pd.DataFrame({"x": [1.0, np.inf, None], "c": ["a", "b", "a"]})
    with refused("'x' must hold finite numbers; got inf at row 1"):
        ColumnEncoder().fit(frame)
    encoder = ColumnEncoder().fit(frame.assign(x=[1.0, 2.0, np.nan]))
    with refused("'x' must hold finite numbers; got inf at row 1"):
        encoder.transform(frame)


def test_something_must_be_left_to_learn_from() -> None:
    with refused(r"no column is left.*'id' is taken for id.*'c' .*constant"):
        ColumnEncoder().fit(pd.DataFrame({"id": ["x", "y", "z"], "c": "same"}))
    with refused("must be a pandas DataFrame"):
        ColumnEncoder().fit(np.eye(3))  # type: ignore[arg-type]


def test_matrices_and_complete_numbers_stay_as_they_are() -> None:
    for X in (np.eye(3), sparse.csr_array(np.eye(3)), pd.DataFrame({"x": [0.5, 1.5]})):
        assert encode_table(X) is X
    assert encode_table(FRAME).shape[0] == len(FRAME)


def test_many_rows_are_encoded_as_few_are() -> None:
    frame, _ = make_table(3000)  # more than the cells that are looked at to find a form
    encoder = ColumnEncoder()
    matrix = encoder.fit_transform(frame)
    assert sparse.issparse(matrix) and matrix.shape[0] == 3000
    kinds = [(column.name, column.kind) for column in encoder.columns_]
    assert kinds == [(column.name, column.kind) for column in ColumnEncoder().fit(FRAME).columns_]
    np.testing.assert_array_equal(encoder.transform(frame.tail(5)).toarray(), matrix[-5:].toarray())
