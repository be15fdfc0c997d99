"""What one pass over blocks finds is what all rows in memory say."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import Answers
from comes.columns import ColumnEncoder
from comes.datasets import Dataset, open_shards
from comes.errors import ComesError
from comes.estimator import gather_statistics
from comes.estimator.scaling import fit_scaling

Matrix = npt.NDArray[np.float64]


def drawn_rows(n: int = 103, d: int = 5, q: int = 3) -> tuple[Matrix, Answers]:
    """Return features, among them one far from 0, one of 0 and 1 and a constant, and answers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * [1, 10, 0.1, 1, 1] + [1e7, 0, -3, 0, 0]
    X[:, 3] = rng.random(n) < 0.1
    X[:, 4] = 2.5
    codes = rng.integers(0, 4, (n, q))
    return X, Answers.of_codes(codes, "answers", [f"l{j}" for j in range(q)])


def cut(X: object, answers: Answers, step: int) -> list[Dataset]:
    """Return rows as blocks."""
    whole = Dataset(X, answers.label_names or [], answers=answers)
    n = len(whole)
    return [whole.take(np.arange(start, min(start + step, n))) for start in range(0, n, step)]


@pytest.mark.parametrize("step", [1, 10, 1000])
@pytest.mark.parametrize("how", ["auto", "dense", "standard", "centre", "maxabs", None])
def test_a_scaling_in_one_pass_is_that_of_all_rows(how: str | None, step: int) -> None:
    X, answers = drawn_rows()
    found = gather_statistics(cut(X, answers, step), scale=how)
    wanted = fit_scaling(X, how)
    for name in ("shift", "scale"):
        ours, theirs = getattr(found.scaling, name), getattr(wanted, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.prepare(X), wanted(X), rtol=1e-5, atol=1e-5)
    assert found.prepare(X).dtype == np.float32


@pytest.mark.parametrize("how", ["auto", "maxabs", None])
def test_sparse_features_stay_sparse(how: str | None) -> None:
    X, answers = drawn_rows()
    thin = sparse.csr_array(np.where(abs(X) < 4, X, 0))
    found = gather_statistics(cut(thin, answers, 10), scale=how)
    prepared = found.prepare(thin)
    assert sparse.issparse(prepared)
    wanted = fit_scaling(thin, how)(thin)
    np.testing.assert_allclose(prepared.toarray(), wanted.toarray(), rtol=1e-6)
    with pytest.raises(ComesError, match="scale='standard' subtracts the mean"):
        gather_statistics(cut(thin, answers, 10), scale="standard")
    with pytest.raises(ComesError, match="scale must be 'auto'.* got 'x'"):
        gather_statistics(cut(thin, answers, 10), scale="x")


@pytest.mark.parametrize("step", [1, 10, 25, 1000])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_answers_are_counted_in_even_and_odd_rows(step: int, is_sparse: bool) -> None:
    X, answers = drawn_rows()
    codes = answers.codes
    if is_sparse:
        answers = Answers.of_states(answers.states, "answers", answers.label_names)
    found = gather_statistics(cut(X, answers, step))
    assert found.n_rows == 103 and found.counts.n_rows.tolist() == [52, 51]
    assert found.kind == "answers"
    for code, counts in enumerate((found.counts.no, found.counts.yes, found.counts.maybe), 1):
        for half in (0, 1):
            wanted = [sum(codes[i, j] == code for i in range(half, 103, 2)) for j in range(3)]
            assert counts[half].tolist() == wanted


def test_answers_that_a_model_chose_are_not_counted() -> None:
    X, answers = drawn_rows(n=4)
    chosen = np.zeros((4, 3), dtype=bool)
    chosen[:2] = True
    marked = Answers.of_codes(answers.codes, "answers", answers.label_names, chosen=chosen)
    found = gather_statistics([Dataset(X, answers.label_names or [], answers=marked)])
    kept = gather_statistics([Dataset(X[2:], answers.label_names or [], answers=answers[2:])])
    assert found.counts.no.tolist() == kept.counts.no.tolist()
    assert found.n_rows == 4


def test_a_table_is_encoded_and_scaled_as_in_memory() -> None:
    X, answers = drawn_rows()
    table = pd.DataFrame({"size": X[:, 1], "colour": np.where(X[:, 3] > 0, "red", "blue")})
    table.loc[::9, "size"] = np.nan
    found = gather_statistics(cut(table, answers, 20))
    assert found.encoder is not None
    matrix = ColumnEncoder().fit_transform(table)
    wanted = fit_scaling(matrix, "auto")(matrix)
    np.testing.assert_allclose(found.prepare(table), wanted, rtol=1e-6, atol=1e-6)
    numbers = pd.DataFrame(X, columns=list("abcde"))
    plain = gather_statistics(cut(numbers, answers, 20))
    assert plain.encoder is None  # complete numbers are a matrix
    given = gather_statistics(cut(numbers, answers, 20), encoder=ColumnEncoder({"a": "ignored"}))
    assert given.encoder is not None and "a" not in given.encoder.used_columns


def test_blocks_of_several_kinds_are_refused() -> None:
    X, answers = drawn_rows(n=4)
    other = Answers.of_codes(np.ones((4, 3), dtype=int), "candidates", answers.label_names)
    names = answers.label_names or []
    blocks = [Dataset(X, names, answers=answers), Dataset(X, names, answers=other)]
    with pytest.raises(ComesError, match="one kind in every block; got answers and candidates"):
        gather_statistics(blocks)
    with pytest.raises(ComesError, match="statistics need rows; got no block"):
        gather_statistics([])


def test_shards_and_memory_give_the_same_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    X, answers = drawn_rows()
    (tmp_path / "parts").mkdir()
    labels = {f"answer:{name}": answers.codes[:, j] for j, name in enumerate(["a", "b", "c"])}
    words = np.array([None, "no", "yes", "maybe"], dtype=object)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    table = table.assign(**{name: words[codes] for name, codes in labels.items()})
    table[:40].to_parquet(tmp_path / "parts/0.parquet", row_group_size=9)
    table[40:].to_parquet(tmp_path / "parts/1.parquet")
    shards = open_shards(tmp_path / "parts", rows_at_once=11)
    found = gather_statistics(shards)
    wanted = fit_scaling(X, "auto")
    np.testing.assert_allclose(found.scaling.shift, wanted.shift, rtol=1e-6)  # type: ignore
    np.testing.assert_allclose(found.scaling.scale, wanted.scale, rtol=1e-6)  # type: ignore
    whole = gather_statistics(cut(X, answers, 200))
    assert found.counts.no.tolist() == whole.counts.no.tolist()
    read = [shards.prepared(found.prepare).read(block)[0] for block in range(len(shards.blocks))]
    np.testing.assert_allclose(np.concatenate(read), wanted(X), rtol=1e-5, atol=1e-5)
