"""Fits on shards: statistics in one pass, then the model that training in memory gives."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

from comes import Answers, CandidateClassifier
from comes.datasets import Dataset, ShardedDataset, open_shards
from comes.errors import ComesError
from comes.estimator import prepare as prepare_module
from comes.estimator.prepare import prepare
from comes.estimator.scaling import fit_scaling
from comes.estimator.stream import gather_statistics
from comes.models.tabular import find_label_head
from comes.tables import ColumnEncoder
from comes.training.linear import fit_linear_part
from comes.training.loop import Training
from comes.training.rows import StreamedRows

Matrix = npt.NDArray[np.float64]
N, D, Q, PARTS = 60, 5, 3, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N * PARTS, D)).astype(np.float32)
RELEVANT = X @ RNG.normal(size=(D, Q)) > 0.3
NO = ~RELEVANT & (RNG.random(RELEVANT.shape) < 0.5)
NAMES = ["sea", "sky", "sun"]


def write_shards(folder: Path, *, with_words: bool = False) -> Path:
    for part in range(PARTS):
        rows = slice(part * N, (part + 1) * N)
        table = pd.DataFrame(X[rows], columns=list("abcde"))
        if with_words:
            table["place"] = np.where(RELEVANT[rows, 0], "coast", "inland")
            table["note"] = np.where(RELEVANT[rows, 1], "blue above", "grey above all")
        for label, name in enumerate(NAMES):
            table[name] = np.where(NO[rows, label], 0, 1)
        table.to_parquet(folder / f"part-{part}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return open_shards(write_shards(tmp_path_factory.mktemp("shards")), labels=tuple(NAMES))


def make(method: str = "likelihood", **settings: Any) -> CandidateClassifier:
    given: dict[str, Any] = {"epochs": 2, "hidden": 8, "device": "cpu", "random_state": 0}
    return CandidateClassifier(method, **(given | settings))


def weights(network: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


@pytest.mark.parametrize("method", ["likelihood", "comes-hl", "comes-rl", "bce", "gdf"])
def test_a_stream_gives_the_model_of_rows_in_memory(
    method: str, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"class_prior": RELEVANT.mean(axis=0)} if method.startswith(("co", "li")) else {}
    streamed = make(method, **known).fit_stream(shards, buffer_rows=2 * N)
    assert streamed.trained_on_ == {"rows": N * PARTS, "kind": "candidates"}
    if method == "gdf":  # which draws an excluded label of every row, block by block
        assert torch.isfinite(weights(streamed.module_)).all()
        return
    answers = Answers.from_candidates(~NO, NAMES)
    training = prepare(make(method, **known), X, answers, scaling=streamed.scaling_)
    rows = StreamedRows(shards.sizes, 2 * N, shards.read, torch.device("cpu"))
    monkeypatch.setattr(Training, "draw_order", lambda own: rows.draw_order(own.shuffle))
    training.run()
    assert torch.equal(weights(streamed.module_)[:100], weights(training.network)[:100])
    # The linear model is fitted to the same rows in another order.
    torch.testing.assert_close(
        weights(streamed.module_), weights(training.network), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("in_memory", [N * PARTS, 50])
def test_a_stream_has_a_linear_model_fitted_to_a_sample(
    in_memory: int, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def watch(layer: Any, rows: Any, targets: Any, *rest: Any, **given: Any) -> float:
        seen.append((len(rows), tuple(targets.shape)))
        return fit_linear_part(layer, rows, targets, *rest, **given)

    monkeypatch.setattr(prepare_module, "fit_linear_part", watch)
    monkeypatch.setattr(prepare_module, "ROWS_IN_MEMORY", in_memory)
    fitted = make(class_prior=RELEVANT.mean(axis=0)).fit_stream(shards)
    ((n, shape),) = seen
    assert shape == (n, Q) and n == pytest.approx(in_memory, abs=20)
    layer: Any = fitted.module_.linear
    alone = fitted.scaling_(X) @ layer.weight.numpy() + layer.bias.numpy()
    assert ((alone > 0) == RELEVANT).mean() > (0.9 if in_memory > 50 else 0.75)
    plain = make(model="mlp", class_prior=RELEVANT.mean(axis=0)).fit_stream(shards)
    table = pd.DataFrame(X, columns=list("abcde"))
    expected = (2 * plain.decision_function(table) + alone) / 3
    np.testing.assert_allclose(fitted.decision_function(table), expected, atol=1e-4)


def test_priors_are_estimated_and_predictions_are_as_good_as_of_a_fit(shards: Any) -> None:
    settings: dict[str, Any] = {"epochs": 20, "hidden": 50, "n_networks": 1}
    fitted = make(**settings).fit_stream(shards)
    assert abs(fitted.class_prior_ - RELEVANT.mean(axis=0)).max() < 0.15
    frame = pd.DataFrame(X, columns=list("abcde"))
    prior = fitted.class_prior_
    in_memory = make(class_prior=prior, **settings).fit(frame, ~NO, label_names=NAMES)
    assert fitted.count_seen_rows(frame) == len(frame)
    assert abs(fitted.score(frame, RELEVANT) - in_memory.score(frame, RELEVANT)) < 0.03


def test_a_table_with_words_is_encoded(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, with_words=True)
    shards = open_shards(folder, labels=tuple(NAMES))
    fitted = make(class_prior=[0.4] * Q).fit_stream(shards)
    table = pd.read_parquet(folder / "part-1.parquet").drop(columns=NAMES)
    assert fitted.predict(table).shape == (N, Q)
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(table), fitted.decision_function(table))


def test_many_labels_are_streamed_in_chunks(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for part in range(3):
        table = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
        table["positives"] = [[f"l{j}" for j in rng.choice(500, 3)] for _ in range(N)]
        table.to_parquet(tmp_path / f"part-{part}.parquet")
    shards = replace(open_shards(tmp_path), is_sparse=True)
    for method, known in {"likelihood": {"rates": {"yes": 1.0}}, "bce": {}}.items():
        fitted = make(method, n_networks=1, epochs=1, **known).fit_stream(shards)
        assert find_label_head(fitted.module_).n_labels == len(shards.label_names), method
        assert np.isfinite(fitted.history_.risk).all(), method
        top = fitted.predict_top(table[["a", "b"]], 5)
        assert top.labels.shape == (N, 5), method


def test_a_method_that_compares_labels_takes_blocks_as_matrices(shards: Any) -> None:
    fits = [
        make("comes-rl", class_prior=[0.4] * Q).fit_stream(given).module_
        for given in (replace(shards, is_sparse=True), shards)
    ]
    assert torch.equal(*map(weights, fits))


def test_maybe_is_left_out_where_somebody_else_says_yes(tmp_path: Path) -> None:
    for part, word in enumerate(("yes", "maybe")):
        table = pd.DataFrame({"a": X[:N, 0], "sea": np.where(X[:N, 0] > 0, word, "no")})
        table.to_parquet(tmp_path / f"{part}.parquet", index=False)
    fitted = make("bce").fit_stream(open_shards(tmp_path, labels=("sea",)))
    assert fitted.trained_on_ == {"rows": 2 * N, "kind": "answers"}
    sure = make("bce").fit_stream(open_shards(tmp_path / "0.parquet", labels=("sea",)))
    assert fitted.history_.risk[0] < sure.history_.risk[0]  # half of the "yes" are left out


class StoppedError(Exception):
    pass


def test_a_stop_in_the_middle_of_an_epoch_changes_nothing(
    shards: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ShardedDataset.load

    def counted(shards: ShardedDataset, block: int) -> Dataset:
        calls.append(block)
        if len(calls) == stops_at:
            raise StoppedError
        return load(shards, block)

    def fit(path: Path) -> CandidateClassifier:
        clf = make(epochs=3, batch_size=16, class_prior=[0.4] * Q)
        return clf.fit_stream(shards, buffer_rows=N, checkpoint=path, checkpoint_every=0.0)

    monkeypatch.setattr(ShardedDataset, "load", counted)
    calls: list[int] = []
    stops_at = None
    through = fit(tmp_path / "through")
    stops_at, n_calls = len(calls) - 2 * PARTS, len(calls)  # some blocks before the end
    calls.clear()
    with pytest.raises(StoppedError):
        fit(tmp_path / "stopped")
    assert (tmp_path / "stopped").exists()
    calls.clear()
    stops_at = None
    resumed = fit(tmp_path / "stopped")
    assert len(calls) < n_calls, "it did not start anew"
    assert torch.equal(weights(resumed.module_), weights(through.module_))


def test_settings_that_need_all_rows_are_refused(shards: Any) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"early_stopping": True}, "neither hold rows out nor learn thresholds"),
        ({"threshold": "f1"}, "Set them to False and 'auto'"),
        ({"warm_start": True}, "fit_stream starts anew"),
        ({"rates": {"exclude": "instance"}}, "depend on the instance were removed"),
    ]
    for settings, message in wrong:
        with pytest.raises(ComesError, match=message):
            make(**settings).fit_stream(shards)


def test_shards_without_answers_are_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0], "relevant": ["sea"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ComesError, match="needs rows with features and answers"):
        make().fit_stream(open_shards(tmp_path, relevant=("relevant",)))


# Statistics in one pass


def drawn_rows(n: int = 103, d: int = 5, q: int = 3) -> tuple[Matrix, Answers]:
    """Return features, among them one far from 0, one of 0 and 1 and a constant, and answers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * [1, 10, 0.1, 1, 1] + [1e7, 0, -3, 0, 0]
    X[:, 3] = rng.random(n) < 0.1
    X[:, 4] = 2.5
    codes = rng.integers(0, 4, (n, q))
    return X, Answers.from_codes(codes, "answers", [f"l{j}" for j in range(q)])


def cut(X: object, answers: Answers, step: int) -> list[Dataset]:
    """Return rows as blocks."""
    whole = Dataset(X, answers.label_names or [], answers=answers)
    n = len(whole)
    return [whole.take(np.arange(start, min(start + step, n))) for start in range(0, n, step)]


def test_a_scaling_in_one_pass_is_that_of_all_rows() -> None:
    X, answers = drawn_rows()
    for how in ("rows", "columns", "dense", "standard", "centre", "maxabs", None):
        wanted = fit_scaling(X, how)
        for step in (1, 10, 1000):
            case = f"{how}, blocks of {step}"
            found = gather_statistics(cut(X, answers, step), scale=how)
            for name in ("shift", "scale"):
                ours, theirs = getattr(found.scaling, name), getattr(wanted, name)
                assert (ours is None) == (theirs is None), case
                if ours is not None:
                    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=case)
            ready = found.prepare(X)
            np.testing.assert_allclose(ready, wanted(X), rtol=1e-5, atol=1e-5, err_msg=case)
            assert ready.dtype == np.float32, case


def test_sparse_features_stay_sparse() -> None:
    X, answers = drawn_rows()
    thin = sparse.csr_array(np.where(abs(X) < 4, X, 0))
    for how in ("rows", "columns", "maxabs", None):
        prepared = gather_statistics(cut(thin, answers, 10), scale=how).prepare(thin)
        assert sparse.issparse(prepared), how
        wanted = fit_scaling(thin, how)(thin)
        np.testing.assert_allclose(prepared.toarray(), wanted.toarray(), rtol=1e-6)
    with pytest.raises(ComesError, match="scale='standard' subtracts the mean"):
        gather_statistics(cut(thin, answers, 10), scale="standard")
    with pytest.raises(ComesError, match="scale must be 'rows'.* got 'x'"):
        gather_statistics(cut(thin, answers, 10), scale="x")


def test_answers_are_counted_in_even_and_odd_rows() -> None:
    X, dense = drawn_rows()
    codes = dense.codes
    thin = Answers.from_codes(dense.states, "answers", dense.label_names)
    for answers, step in product((dense, thin), (1, 10, 25, 1000)):
        found = gather_statistics(cut(X, answers, step))
        assert found.counts.n_rows.tolist() == [52, 51], step
        assert found.kind == "answers"
        for code, counts in enumerate((found.counts.no, found.counts.yes, found.counts.maybe), 1):
            for half in (0, 1):
                wanted = [sum(codes[i, j] == code for i in range(half, 103, 2)) for j in range(3)]
                assert counts[half].tolist() == wanted, (step, code, half)


def test_answers_that_a_model_chose_are_not_counted() -> None:
    X, answers = drawn_rows(n=4)
    chosen = np.zeros((4, 3), dtype=bool)
    chosen[:2] = True
    marked = Answers.from_codes(answers.codes, "answers", answers.label_names, chosen=chosen)
    found = gather_statistics([Dataset(X, answers.label_names or [], answers=marked)])
    kept = gather_statistics([Dataset(X[2:], answers.label_names or [], answers=answers[2:])])
    assert found.counts.no.tolist() == kept.counts.no.tolist()
    assert found.counts.n_rows.sum() == 4


def test_a_table_is_encoded_and_scaled_as_in_memory() -> None:
    X, answers = drawn_rows()
    table = pd.DataFrame({"size": X[:, 1], "colour": np.where(X[:, 3] > 0, "red", "blue")})
    table.loc[::9, "size"] = np.nan
    found = gather_statistics(cut(table, answers, 20))
    assert found.encoder is not None
    matrix = ColumnEncoder().fit_transform(table)
    wanted = fit_scaling(matrix, "columns")(matrix)
    np.testing.assert_allclose(found.prepare(table), wanted, rtol=1e-6, atol=1e-6)
    numbers = pd.DataFrame(X, columns=list("abcde"))
    plain = gather_statistics(cut(numbers, answers, 20))
    assert plain.encoder is None  # complete numbers are a matrix
    given = gather_statistics(cut(numbers, answers, 20), encoder=ColumnEncoder({"a": "ignored"}))
    assert given.encoder is not None and "a" not in given.encoder.used_columns


def test_blocks_of_several_kinds_are_refused() -> None:
    X, answers = drawn_rows(n=4)
    other = Answers.from_codes(np.ones((4, 3), dtype=int), "candidates", answers.label_names)
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
    wanted = fit_scaling(X, "columns")
    np.testing.assert_allclose(found.scaling.shift, wanted.shift, rtol=1e-6)  # type: ignore
    np.testing.assert_allclose(found.scaling.scale, wanted.scale, rtol=1e-6)  # type: ignore
    whole = gather_statistics(cut(X, answers, 200))
    assert found.counts.no.tolist() == whole.counts.no.tolist()
    read = [shards.prepared(found.prepare).read(block)[0] for block in range(len(shards.sizes))]
    np.testing.assert_allclose(np.concatenate(read), wanted(X), rtol=1e-5, atol=1e-5)
