"""What an estimator is given: read right, or refused in one sentence before any work."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score

from comes import Answers, CandidateClassifier
from comes.answers import State
from comes.errors import ComesWarning
from comes.estimator.inputs import (
    add_rows,
    as_matrix,
    count_seen,
    per_label,
    read_answers,
    read_weight,
    remember_rows,
    warn_of_constant,
)
from comes.generation import simulate_answers
from comes.selection import candidate_scorer
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(60, 3)) > 0
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.7, no_rate=0.8, yes_rate=0.8, seed=1)
TICKS = Answers.from_positives(RELEVANT & (RNG.random(RELEVANT.shape) < 0.7))
CANDIDATES = RELEVANT | (RNG.random(RELEVANT.shape) < 0.5)
TABLE = pd.DataFrame(RELEVANT.astype(int), columns=["sea", "sky", "sun"]).rename("row {}".format)
STATES = np.array([None, "no", "yes", "maybe"])
WORDS = TABLE.astype(object)
WORDS[:] = STATES[ANSWERS.codes]
KNOWN_RATES: dict[str, dict[str, Any]] = {
    "answers": {"rates": {"no": 0.8, "yes": 0.8}},
    "positives": {"rates": {"yes": 0.7}},
    "candidates": {"method": "comes-hl"},
}


def classifier(kind: str) -> CandidateClassifier:
    return CandidateClassifier(
        hidden=4, epochs=1, n_networks=1, random_state=0, class_prior=[0.5] * 3, **KNOWN_RATES[kind]
    )


def with_cell(value: Any) -> Any:
    cells = X.astype(object)
    cells[2, 1] = value
    return cells


def out_of_range(form: Callable[[Any], Any], values: Any) -> Any:
    broken = form(values)
    (broken.coords[1] if broken.format == "coo" else broken.indices)[0] = 999
    return broken


# Features


def test_features_in_many_forms_are_the_same_matrix() -> None:
    forms: list[Any] = [
        np.ma.array(X),
        X.view(np.matrix),
        X.tolist(),
        X.astype(object),
        X.astype(str),
        torch.tensor(X),
        torch.tensor(X, requires_grad=True),
        sparse.coo_array(X),
        sparse.csc_matrix(X),
    ]
    for form in forms:
        read = as_matrix(form)
        assert read.dtype == np.float64 and type(read) is not np.matrix
        np.testing.assert_allclose(read.toarray() if sparse.issparse(read) else read, X)
    for form, same in (
        (torch.tensor(X).bfloat16(), torch.tensor(X).bfloat16().float().numpy()),
        (torch.tensor(X).half(), X.astype(np.float16)),
        (X > 0, X > 0),
        (X.astype(np.float32), X.astype(np.float32)),
        (sparse.csr_array(X > 0), sparse.csr_array(X > 0)),
    ):
        read = as_matrix(form)
        assert read.dtype in (np.float32, np.float64)
        assert (read != same).sum() == 0
    numbered = pd.DataFrame(X)
    assert as_matrix(numbered) is numbered
    assert np.isnan(as_matrix(with_cell(None))[2, 1])


NO_NUMBERS: list[Any] = [b"1", 1j, "x", "", pd.NA, [1], {}, 10**400, np.timedelta64(1, "s")]
REFUSED_FEATURES: list[tuple[Any, str]] = [
    (np.ma.array(X, mask=X > 2), "must not have masked entries; got .* Fill or drop them"),
    (out_of_range(sparse.csr_array, X), "sound sparse matrix; scipy says: .* Make it anew"),
    (out_of_range(sparse.csc_matrix, X), "sound sparse matrix"),
    (out_of_range(sparse.coo_array, X), "sound sparse matrix"),
    (torch.tensor(X).to_sparse(), "numpy cannot read this Tensor: .*to_dense"),
    ((row for row in X), r"got a value of type generator. Pass np.array\(list\(X\)\)"),
    (iter(X), r"np.array\(list\(X\)\)"),
    ({"a": [1.0]}, "type dict. Pass a DataFrame"),
    (ANSWERS, r"fit\(X, answers\)"),
    ([[1.0, 2.0], [3.0]], "numpy cannot read this list: .*Give all rows the same length"),
    (np.zeros(3, dtype=[("a", float), ("b", int)]), r"structured array. .* pd.DataFrame\(X\)"),
    (np.zeros(3, dtype=[("a", float)]).view(np.recarray), "structured array"),
    (X.astype("S8"), r"got bytes. Write X.astype\(float\)"),
    (X.astype("m8[s]"), "X holds dates"),
    (X.astype("M8[s]"), "X holds dates"),
    (X + 1j, "Complex data not supported.* Take X.real"),
    (sparse.csr_array(X + 1j), "Complex data not supported"),
    *((with_cell(value), r"must hold numbers; got .* at X\[2, 1\]") for value in NO_NUMBERS),
    (with_cell(datetime.date(2020, 1, 1)), "must hold numbers; got datetime.date"),
    (pd.DataFrame(X, columns=["a", 3, "c", "d"]), "by one type; got the names a and 3. Write X.c"),
    (pd.DataFrame(X, columns=["a", np.nan, "c", "d"]), "got the names a and nan"),
    (pd.DataFrame(X, columns=[0.0, np.nan, 2.0, 3.0]), "must all be named.*nan"),
]


def test_what_is_no_matrix_of_numbers_is_refused_in_one_sentence() -> None:
    for features, message in REFUSED_FEATURES:
        with refused(message):
            as_matrix(features)
    fitted = classifier("candidates").fit(X, CANDIDATES)
    scores = fitted.decision_function(X)
    for features, message in REFUSED_FEATURES[:4]:
        with refused(message):
            fitted.fit(features, CANDIDATES)
        with refused(message):
            fitted.predict(features)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)


def test_features_that_tell_nothing_apart_are_a_warning() -> None:
    for features in (
        1e-200 * X,
        np.where([1, 1, 1, 0], X, 1e-200 * X),
        sparse.csr_array(1e-60 * X),
    ):
        with pytest.warns(ComesWarning, match="too small to be told from 0. Multiply it"):
            warn_of_constant(features)
    with pytest.warns(ComesWarning, match="every feature is constant"):
        warn_of_constant(np.ones((5, 2)))
    for features in (X, 1e-100 * X, sparse.csr_array(X), sparse.csr_array((3, 2)), X[:1]):
        warn_of_constant(features)


def test_rows_that_were_trained_on_are_counted() -> None:
    seen = remember_rows(X[:40])
    assert count_seen(seen, X[30:]) == count_seen(seen, sparse.csr_array(X[30:])) == 10
    assert count_seen(add_rows(seen, remember_rows(X[40:])), X[::-1]) == 60
    assert count_seen(add_rows(None, seen), X + 1e-4) == count_seen(None, X) == 0


# Numbers by row and by label


def test_weights_are_read_or_refused() -> None:
    assert read_weight(None, 3) is None
    for same in ([2, 2, 2], 2, torch.full((3,), 2.0, requires_grad=True), pd.Series([2] * 3)):
        np.testing.assert_array_equal(read_weight(same, 3), [2.0, 2.0, 2.0])
    wrong: list[tuple[Any, str]] = [
        (np.ones(5), r"one number for each of the 3 rows; got shape \(5,\)"),
        ([1, -1, 1], "at least 0; got -1 for row 1"),
        ([1, 1, np.nan], "got nan for row 2"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), "got nan for row 1"),
        (np.zeros(3), "above 0 for some row; got zero for all"),
        (["much"] * 3, "must hold one number"),
        ([1e-300] * 3, "largest sample_weight must be between .* got 1e-300. Divide them all"),
        ([1, 1e300, 1], "got 1e.300. Divide them all"),
    ]
    for weight, message in wrong:
        with refused(message):
            read_weight(weight, 3)
    with refused("one number for each of the 60 rows"):
        classifier("candidates").fit(X, CANDIDATES, sample_weight=[1.0])


def test_a_bad_prior_names_its_label() -> None:
    wrong: list[tuple[Any, str]] = [
        (pd.Series({"a": 0.1}), "got none for 'b'. Add it."),
        (pd.Series({"a": 0.1, "c": 0.2}), "got none for 'b'. Add it."),
        (pd.Series({"b": 0.1, "a": 2.0}), "got 2.0 for label 'a'. Correct it."),
        (pd.Series({"a": 0.1, "b": "much"}), "got 'much' for label 'b'. Correct it."),
        ([0.1, np.nan], "got nan for label 'b'"),
        ([None, "much"], "got None for label 'a'"),
        ([0.1, 0.2, 0.3], "got 3 numbers"),
        (0.5, "got 0.5"),
        ("auto", "got 'auto'"),
        ([0.0, 0.0], "class_prior must be above 0 for some label; got 0 for every one"),
    ]
    for values, message in wrong:
        with refused(message):
            per_label(values, "class_prior", ["a", "b"])
    np.testing.assert_array_equal(per_label(0.5, "no_rate", ["a", "b"]), [0.5, 0.5])


# Answers


def test_words_are_answers() -> None:
    spelled = WORDS.replace({"yes": " Yes", "no": "N", "maybe": "?", None: ""})
    for table in (WORDS, WORDS.astype("string"), WORDS.astype("category"), spelled):
        for read in (read_answers(table, require_candidates=True), read_answers(answers=table)):
            np.testing.assert_array_equal(read.codes, ANSWERS.codes)
            assert read.kind == "answers" and read.label_names == list(TABLE.columns)
            assert read.index is not None and read.index.equals(TABLE.index)
    for array in (WORDS.to_numpy(), spelled.to_numpy().astype(str)):
        named = read_answers(array, label_names=["a", "b", "c"])
        np.testing.assert_array_equal(named.codes, ANSWERS.codes)
        assert named.label_names == ["a", "b", "c"]
    fitted = classifier("answers").fit(X, WORDS)
    same = classifier("answers").fit(X, ANSWERS)
    np.testing.assert_array_equal(fitted.decision_function(X), same.decision_function(X))


def test_gaps_among_0_and_1_are_answers_by_the_call_that_is_shown() -> None:
    gaps = TABLE.where(ANSWERS.codes > 0)
    for values in (gaps, gaps.to_numpy()):
        with refused(r"gap means not asked, .*: fit\(X, Answers\(no=y == 0, yes=y == 1\)\)"):
            read_answers(values)
    nullable: list[Any] = [gaps.astype("Int64"), gaps.astype("boolean"), gaps.astype(object)]
    nullable += [table.where(gaps.notna(), pd.NA) for table in nullable]
    for table in (*nullable, *(table.to_numpy() for table in nullable)):
        call = r"y = pd.DataFrame\(y\).astype\('Float64'\).astype\(float\); fit\("
        with refused(f"not asked, pass answers: {call}"):
            read_answers(candidates=table)
        y = pd.DataFrame(table).astype("Float64").astype(float)
        counts = Answers(no=y == 0, yes=y == 1).count()[["no", "yes"]].to_numpy()
        np.testing.assert_array_equal(counts, np.stack([(gaps == 0).sum(), (gaps == 1).sum()], 1))


def test_a_label_that_is_0_everywhere_is_refused_in_y_of_integers_alone() -> None:
    never = TABLE.assign(sky=0)
    with refused(r"label '1' is 0 in every row of y, .*y.astype\(bool\).*KFold.*y\[train\]"):
        classifier("candidates").fit(X, never.to_numpy())
    for given in (never, never.to_numpy().astype(bool), never.to_numpy().tolist()):
        assert read_answers(given, may_be_encoded=True).count_state(State.NO)[1] == 60
    integers = never.to_numpy()
    for read in (read_answers(candidates=integers), read_answers(integers)):  # y of partial_fit
        assert read.count_state(State.NO)[1] == 60


def test_what_are_no_answers_is_refused_in_one_sentence() -> None:
    broken = out_of_range(sparse.csr_array, RELEVANT)
    unsure = TABLE.astype(float).where(RELEVANT)
    unsure.iloc[0, 0] = -1
    huge = np.broadcast_to(np.array(True), (2**20, 2**11))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"answers": ANSWERS.codes}, r"must be a comes.Answers; got ndarray. Make one"),
        ({"candidates": RELEVANT, "answers": ANSWERS}, "got candidates and answers"),
        ({}, "requires y to be passed"),
        ({"y": RELEVANT, "require_candidates": True}, "fit wants candidates="),
        ({"y": WORDS.replace("no", "nein")}, "words yes, no and maybe .* got .*'nein'. Replace"),
        ({"y": WORDS.replace("no", 1)}, "words yes, no and maybe .* got .*1. Replace"),
        ({"y": WORDS, "label_names": ["a", "b", "c"]}, "DataFrame, which names its columns"),
        ({"candidates": WORDS}, "candidates must be 0 or 1; got"),
        ({"y": unsure}, "must be 0 or 1; got -1.0"),
        ({"y": RELEVANT, "label_names": ["a", "\ud800", "c"]}, r"half of a character .* Rename"),
        ({"y": np.ma.array(RELEVANT, mask=RELEVANT)}, "must not have masked entries"),
        ({"y": np.ma.array(WORDS.to_numpy(), mask=RELEVANT)}, "must not have masked entries"),
        ({"y": huge}, "would take 2 GB. Give sparse"),
        ({"complementary": huge}, "would take 2 GB"),
        ({"y": broken}, "candidates must be a sound sparse matrix"),
        ({"complementary": broken}, "sound sparse matrix"),
        ({"y": torch.tensor(X).bfloat16()}, "matrix of 0 and 1"),
    ]
    for given, message in wrong:
        with refused(message):
            read_answers(**given)
    with refused("sound sparse matrix"):
        Answers(no=broken)
    with refused("sound sparse matrix"):
        Answers.from_codes(broken.astype(int))


# Cross-validation by scikit-learn: that of a plain loop, or a sentence that shows the loop


def loop(model: CandidateClassifier, y: Any, method: str) -> Any:
    folds = KFold(3).split(X)
    rows = y.iloc if isinstance(y, pd.DataFrame) else y
    return np.concatenate(
        [getattr(clone(model).fit(X[train], rows[train]), method)(X[test]) for train, test in folds]
    )


@pytest.mark.filterwarnings("ignore:(No|Fewer than 3) rows? excludes?:comes.errors.ComesWarning")
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_predictions_of_folds_are_those_of_a_loop_or_refused(method: str) -> None:
    always = CANDIDATES.copy()
    always[:, 1] = True
    spelled = WORDS.fillna("")  # scikit-learn cannot sort gaps
    forms: list[tuple[Any, str, bool]] = [  # whether scikit-learn's encoding changes it
        (ANSWERS, "answers", True),
        (TICKS, "positives", True),
        (Answers.from_candidates(CANDIDATES), "candidates", True),
        (spelled, "answers", True),
        (CANDIDATES, "candidates", False),
        (CANDIDATES.astype(int), "candidates", False),
        (pd.DataFrame(CANDIDATES), "candidates", False),
        (always, "candidates", True),
        (pd.DataFrame(always.astype(int)), "candidates", True),
    ]
    for y, kind, changes in forms:
        model = classifier(kind)
        if changes and method != "predict":
            shown = (
                "must be 0 or 1" if y is spelled else r"for train, test in KFold\(5\).split\(X\)"
            )
            with refused(shown):
                cross_val_predict(model, X, y, cv=3, method=method)
            continue
        found = cross_val_predict(model, X, y, cv=3, method=method)
        np.testing.assert_array_equal(found, loop(model, y, method))


@pytest.mark.parametrize(("y", "kind"), [(ANSWERS, "answers"), (CANDIDATES, "candidates")])
def test_scores_of_folds_are_those_of_a_loop(y: Any, kind: str) -> None:
    model, score = classifier(kind), candidate_scorer("log_likelihood")
    search = GridSearchCV(model, {"learning_rate": [1e-3, 1e-1]}, cv=3, scoring=score).fit(X, y)
    for rate, found in zip([1e-3, 1e-1], search.cv_results_["mean_test_score"], strict=True):
        one = clone(model).set_params(learning_rate=rate)
        folds = [
            score(clone(one).fit(X[train], y[train]), X[test], y[test])
            for train, test in KFold(3).split(X)
        ]
        assert found == pytest.approx(np.mean(folds))
        np.testing.assert_allclose(cross_val_score(one, X, y, cv=3, scoring=score), folds)


def test_states_are_numbers_if_a_type_is_named_and_else_cannot_be_classes() -> None:
    np.testing.assert_array_equal(np.array(ANSWERS, dtype=int), ANSWERS.codes)
    for cells in (np.asarray(ANSWERS), np.asarray(ANSWERS, dtype=object)):
        assert cells.dtype == object and (cells == ANSWERS.codes).all()
        with refused(r"fit\(X\[train\], answers\[train\]\).predict_proba\(X\[test\]\)"):
            set(cells[:, 0])
