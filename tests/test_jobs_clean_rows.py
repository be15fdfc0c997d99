"""Clean samples of jobs: files read as the truth about labels of the data, and `comes check`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

from comes.answers import Answers
from comes.cli import app
from comes.datasets import Dataset, Reading, open_dataset
from comes.errors import ComesError
from comes.generation import simulate_answers
from comes.jobs import check_assumption, estimate_priors, fit_model
from comes.jobs.clean_rows import read_clean

RNG = np.random.default_rng(0)
N, NAMES = 400, ["has_sea", "has_sky"]
X = RNG.normal(size=(N, 3))
RELEVANT = X[:, :2] > 0.4
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.9, no_rate=0.6)
ITEMS = [f"photo {row}" for row in range(N)]
DATA = Dataset(X, NAMES, answers=ANSWERS.named(NAMES), items=ITEMS)
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
    reading = Reading(labels=["has_*"])
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
    reading = Reading(labels=["tags"])
    sample = read_clean(
        open_dataset(tmp_path / "data.csv", reading), tmp_path / "clean.csv", reading
    )
    assert sample is not None
    assert sample.relevant.tolist() == [[True, False]] * 5


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


@pytest.mark.slow
def test_a_clean_file_sharpens_priors_and_a_fit(folder: Path) -> None:
    reading, clean = Reading(labels=["has_*"]), folder / "expert.csv"
    blind = estimate_priors(folder / "answers.csv", reading=reading)
    sharp = estimate_priors(folder / "answers.csv", reading=reading, clean=clean)
    assert (sharp["standard_error"] < blind["standard_error"]).all()
    settings = {"epochs": 1, "random_state": 0}
    fitted = fit_model(folder / "answers.csv", settings, reading=reading, clean=clean)
    again = fit_model(folder / "answers.csv", settings, reading=reading)
    errors = [m.classifier.class_prior_error_ for m in (fitted, again)]
    assert errors[0] is not None and errors[1] is not None
    assert (errors[0] < errors[1]).all()


def test_the_check_needs_the_truth_about_rows_with_features() -> None:
    with pytest.raises(ComesError, match="the check needs rows with features, true labels"):
        check_assumption(DATA)
    bare = Dataset(None, NAMES, answers=ANSWERS.named(NAMES), relevant=RELEVANT)
    with pytest.raises(ComesError, match="the check needs rows with features, true labels"):
        check_assumption(bare)


@pytest.mark.parametrize("as_features", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_the_check_counts_pairs_that_were_asked_at_random(as_features: type) -> None:
    """A rate that depends on the row is found; questions that a model chose are left out."""
    rng = np.random.default_rng(1)
    asked, chosen = rng.random(RELEVANT.shape) < 0.9, rng.random(RELEVANT.shape) < 0.1
    says_no = rng.random(RELEVANT.shape) < np.column_stack([np.full(N, 0.5), X[:, 2] > 0])
    no = asked & ~RELEVANT & says_no
    answers = Answers(no, maybe=asked & ~no, chosen=chosen, label_names=NAMES)
    features = as_features(X)
    check = check_assumption(Dataset(features, NAMES, answers=answers, relevant=RELEVANT))
    known = asked & ~RELEVANT & ~chosen
    assert check.per_label["label"].tolist() == NAMES
    assert check.per_label["n_known"].tolist() == known.sum(axis=0).tolist()
    assert check.per_label["n_excluded"].tolist() == (known & no).sum(axis=0).tolist()
    assert check.per_label["says"].tolist() == ["nothing found", "not constant"]


def test_comes_check_prints_a_table_and_a_conclusion(folder: Path) -> None:
    arguments = ["check", str(folder / "answers.csv"), "--labels", "has_*"]
    arguments += ["--clean", str(folder / "expert.csv")]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "has_sea" in shown.output and "nothing found" in shown.output
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert found["conclusion"].startswith("For none of 2 labels")
    assert [row["label"] for row in found["labels"]] == NAMES
