"""Clean samples of jobs: files read as the truth about labels of the data, and `comes check`."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

from comes.answers import Answers
from comes.cli import app
from comes.datasets import Dataset, ReadOptions, make_scenes, open_dataset
from comes.errors import ComesError
from comes.generation import case_b, simulate_answers
from comes.workflows.priors import check_assumption, estimate_priors, read_clean

RNG = np.random.default_rng(0)
N, NAMES = 400, ["has_sea", "has_sky"]
X = RNG.normal(size=(N, 3))
RELEVANT = X[:, :2] > 0.4
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.9, no_rate=0.6)
ITEMS = [f"photo {row}" for row in range(N)]
DATA = Dataset(X, NAMES, answers=ANSWERS.rename_labels(NAMES), items=ITEMS)
ROWS = RNG.permutation(N)[:200]
WORDS = np.array(["", "no", "yes", "maybe"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of answers, and one of true labels of some items."""
    path = tmp_path_factory.mktemp("clean")
    features = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    said = pd.DataFrame(WORDS[ANSWERS.codes], columns=NAMES)
    pd.concat([pd.Series(ITEMS, name="item"), features, said], axis=1).to_csv(
        path / "answers.csv", index=False
    )
    truth = pd.DataFrame(RELEVANT[ROWS].astype(int), columns=NAMES)[NAMES[::-1]]
    truth.insert(0, "item", [ITEMS[row] for row in ROWS])
    truth.to_csv(path / "expert.csv", index=False)
    np.savez(path / "expert.npz", X=X[ROWS], relevant=RELEVANT[ROWS], label_names=NAMES)
    return path


def test_columns_of_labels_hold_the_truth_in_a_clean_file(folder: Path) -> None:
    reading = ReadOptions(labels=["has_*"])
    data = open_dataset(folder / "answers.csv", reading)
    sample = read_clean(data, folder / "expert.csv", reading)
    assert sample is not None and sample.answers is not None
    np.testing.assert_array_equal(sample.relevant, RELEVANT[ROWS])
    np.testing.assert_array_equal(sample.answers.codes, ANSWERS.codes[ROWS])
    np.testing.assert_allclose(sample.X, X[ROWS])
    alone = read_clean(data, folder / "expert.npz", reading)
    assert alone is not None and alone.answers is None
    np.testing.assert_array_equal(alone.relevant, RELEVANT[ROWS])


def test_a_column_of_names_may_miss_a_label(tmp_path: Path) -> None:
    sets = ["sea;sky" if both else "sea" for both in RNG.random(N) < 0.5]
    data = pd.DataFrame({"item": ITEMS, "x": X[:, 0], "tags": sets})
    data.to_csv(tmp_path / "data.csv", index=False)
    data[["item"]].assign(tags="sea").iloc[:5].to_csv(tmp_path / "clean.csv", index=False)
    reading = ReadOptions(labels=["tags"])
    sample = read_clean(
        open_dataset(tmp_path / "data.csv", reading), tmp_path / "clean.csv", reading
    )
    assert sample is not None
    assert sample.relevant.tolist() == [[True, False]] * 5


def test_true_labels_have_the_names_of_the_labels_or_columns_of_their_own(
    folder: Path, tmp_path: Path
) -> None:
    reading = ReadOptions(labels=NAMES)
    data = open_dataset(folder / "answers.csv", reading)
    features = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    truth = pd.DataFrame(RELEVANT.astype(int), columns=NAMES)
    for name, columns in (("named.csv", truth), ("own.csv", truth.add_prefix("relevant:"))):
        pd.concat([features, columns], axis=1).to_csv(tmp_path / name, index=False)
        sample = read_clean(data, tmp_path / name, reading)
        assert sample is not None, name
        np.testing.assert_array_equal(sample.relevant, RELEVANT)
        np.testing.assert_allclose(sample.X, X)
    with pytest.raises(ComesError, match="answers.csv: the truth is 0 or 1, .*; got 'maybe'"):
        read_clean(data, folder / "answers.csv", reading)


def test_rows_of_a_clean_sample_are_items_of_the_data_or_others() -> None:
    assert read_clean(DATA, None, None) is None
    truth = RELEVANT[:3]
    theirs = Dataset(X[:3], NAMES, relevant=truth, items=["a", "b", "c"])
    sample = read_clean(DATA, theirs, None)
    assert sample is not None and sample.answers is None
    own = Dataset(None, NAMES, relevant=truth, items=ITEMS[2::-1])
    sample = read_clean(DATA, own, None)
    assert sample is not None and sample.answers is not None
    np.testing.assert_array_equal(sample.answers.codes, ANSWERS.codes[2::-1])
    np.testing.assert_array_equal(sample.X, X[2::-1])
    mixed = Dataset(None, NAMES, relevant=truth, items=["a", *ITEMS[:2]])
    with pytest.raises(ComesError, match=r"1 of 3 clean items are not in the data \(first: 'a'\)"):
        read_clean(DATA, mixed, None)


def test_a_clean_sample_sharpens_the_table_of_priors() -> None:
    scenes = make_scenes("train", n=150)
    candidates = case_b(scenes.known_relevant(), 0.5, seed=0)
    data = Dataset(scenes.X, scenes.label_names, candidates, scenes.known_relevant())
    blind = estimate_priors(data, exclude_rate=0.5)
    sharp = estimate_priors(data, exclude_rate=0.5, clean=replace(data, answers=None))
    assert (sharp["standard_error"] < blind["standard_error"]).all()
    assert sharp["error"].abs().mean() < blind["error"].abs().mean()
    np.testing.assert_allclose(sharp["error"], sharp["class_prior"] - sharp["true_prior"])
    assert sharp["class_prior"].between(sharp["lower"], sharp["upper"]).all()


def test_the_check_needs_the_truth_about_rows_with_features() -> None:
    with pytest.raises(ComesError, match="the check needs rows with features, true labels"):
        check_assumption(DATA)
    bare = Dataset(None, NAMES, answers=ANSWERS.rename_labels(NAMES), relevant=RELEVANT)
    with pytest.raises(ComesError, match="the check needs rows with features, true labels"):
        check_assumption(bare)


def test_the_check_counts_pairs_that_were_asked_at_random() -> None:
    """A rate that depends on the row is found; questions that a model chose are left out."""
    rng = np.random.default_rng(1)
    asked, chosen = rng.random(RELEVANT.shape) < 0.9, rng.random(RELEVANT.shape) < 0.1
    says_no = rng.random(RELEVANT.shape) < np.column_stack([np.full(N, 0.5), X[:, 2] > 0])
    no = asked & ~RELEVANT & says_no
    answers = Answers(no, maybe=asked & ~no, chosen=chosen, label_names=NAMES)
    known = asked & ~RELEVANT & ~chosen
    for features in (X, pd.DataFrame(X), sparse.csr_array(X)):
        check = check_assumption(Dataset(features, NAMES, answers=answers, relevant=RELEVANT))
        assert check.per_label["label"].tolist() == NAMES
        assert check.per_label["n_known"].tolist() == known.sum(axis=0).tolist()
        assert check.per_label["n_excluded"].tolist() == (known & no).sum(axis=0).tolist()
        assert check.per_label["says"].tolist() == ["nothing found", "not constant"]


def test_comes_check_prints_a_table_and_a_conclusion(folder: Path) -> None:
    arguments = ["priors", str(folder / "answers.csv"), "--check", "--labels", "has_*"]
    arguments += ["--clean", str(folder / "expert.csv")]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "has_sea" in shown.output and "nothing found" in shown.output
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert found["conclusion"].startswith("For none of 2 labels")
    assert [row["label"] for row in found["labels"]] == NAMES
