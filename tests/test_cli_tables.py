"""Tables with every kind of column on the command line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comes.datasets import ReadOptions, open_dataset
from comes.estimator import CandidateClassifier
from comes.generation import case_b
from comes.workflows.fit import fit_model
from command_line import Run, command_runner
from mixed_tables import NAMES, make_table
from results import skip_drawing

QUICK = ("--method", "bce", "--epochs", "2")


def add_labels(frame: pd.DataFrame, marked: np.ndarray, name: str) -> pd.DataFrame:
    cells = [";".join(np.array(NAMES)[row]) or "(none)" for row in marked]
    return frame.assign(**{name: cells})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table to train on, one to test on, a new one, and a model."""
    folder = tmp_path_factory.mktemp("tables")
    frame, relevant = make_table(300)
    frame["zip"] = np.resize(["00123", "01234", "99999"], len(frame))
    train = add_labels(frame, case_b(relevant, 0.7, seed=0), "maybe")
    train[:200].to_csv(folder / "train.csv", index=False)
    add_labels(train, relevant, "true")[200:].to_csv(folder / "test.csv", index=False)
    columns = list(np.random.default_rng(0).permutation(frame.columns))
    frame[200:][columns].to_csv(folder / "new.csv", index=False)
    reading = ReadOptions(labels=["maybe"])
    fit_model(
        folder / "train.csv",
        {"method": "bce", "epochs": 2},
        reading=reading,
        output=folder / "model",
    )
    return folder


@pytest.fixture
def run(
    written: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the command line in a copy of that folder."""
    monkeypatch.chdir(shutil.copytree(written, tmp_path / "tables"))
    return command_runner(monkeypatch, capsys)


def test_fit_evaluate_and_predict_need_no_option_but_the_labels(run: Run) -> None:
    fitted = run("fit", "train.csv", "--labels", "maybe", "-o", "model", *QUICK).stdout
    assert "200 rows, 14 columns, 3 labels" in fitted
    assert "columns: 3 numbers, 3 categories, 2 booleans, 2 dates, 1 text" in fitted
    assert "'ticket_id' (looks like an ID)" in fitted
    truth = ("--relevant", "true", "--ignore", "maybe")
    scored = run("evaluate", "test.csv", *truth, "-m", "model", "--json")
    assert 0 < json.loads(scored.stdout)["average_precision"] < 1
    run("predict", "new.csv", "-m", "model", "-o", "out.csv")
    predicted = pd.read_csv("out.csv")
    assert predicted["item"].tolist() == [f"t{k:05d}" for k in range(200, 300)]
    model = CandidateClassifier.load("model")
    dtypes = {"zip": str}  # else 00123 is 123
    proba = model.predict_proba(pd.read_csv("new.csv", dtype=dtypes))
    written = predicted[[f"probability:{name}" for name in sorted(NAMES)]]
    np.testing.assert_allclose(written, proba, atol=1e-5)


@pytest.mark.filterwarnings("always::comes.errors.ComesWarning")
def test_numbers_and_dates_can_be_said(run: Run) -> None:
    table = pd.read_csv("train.csv", dtype=str, keep_default_na=False)
    table["code"] = [f"{number % 40:04d}" for number in range(len(table))]
    table["due"] = np.where(np.arange(len(table)) % 3, "12-Oct-25", "not yet")
    table.to_csv("odd.csv", index=False)
    says = ("odd.csv", "--labels", "maybe", "--number", "code", "--date", "du*")
    listed = json.loads(run("datasets", *says, "--json").stdout)["columns"]
    rows = {row["column"]: row for row in listed}
    assert rows["code"]["taken_for"] == "number" and not rows["code"]["missing"]
    assert rows["due"]["taken_for"] == "date" and rows["due"]["missing"] == 67
    assert "67 other cells count as missing ('not yet')" in rows["due"]["why"]
    twice = run("datasets", *says, "--category", "code", code=1).stderr
    assert "'code' is named as a number and as a category" in twice


@pytest.mark.filterwarnings("always::comes.errors.ComesWarning")
def test_what_columns_are_can_be_said(run: Run) -> None:
    says = ("--text", "street", "--category", "stars", "--ignore", "body,s?en", "--item", "price")
    command = ("train.csv", "--labels", "maybe", *says)
    listed = json.loads(run("datasets", *command, "--json").stdout)["columns"]
    kinds = {row["column"]: row["taken_for"] for row in listed}
    assert kinds["street"] == "text" and kinds["stars"] == "category" and kinds["zip"] == "category"
    assert kinds["body"] == kinds["seen"] == "ignored" and kinds["unit"] == "constant"
    assert kinds["price"] == "item" and kinds["maybe"] == "label" and len(kinds) == 15
    run("fit", *command, "-o", "model", *QUICK)
    run("predict", "new.csv", "-m", "model", "-o", "out.csv")
    new = pd.read_csv("new.csv", dtype=str, keep_default_na=False)
    assert pd.read_csv("out.csv")["item"].tolist() == new["price"].tolist()
    new["stars"] = new["stars"].replace({"1": "9"})
    new.to_csv("new.csv", index=False)
    warned = run("predict", "new.csv", "-m", "model", "-o", "out.csv").stderr
    assert "column 'stars' holds values that training did not see" in warned and "('9')" in warned
    shown = run("evaluate", "test.csv", *command[1:], "-m", "model", code=1).stderr
    assert "the model knows its columns; leave --text, --category, --number" in shown
    missing = ("train.csv", "--labels", "maybe", "--text", "boddy", "-o", "other")
    assert "Did you mean 'body'?" in run("fit", *missing, code=1).stderr


def test_a_column_that_is_gone_is_one_sentence(run: Run) -> None:
    pd.read_csv("new.csv").rename(columns={"colour": "color"}).to_csv("new.csv", index=False)
    said = run("predict", "new.csv", "-m", "model", "-o", "out.csv", code=1).stderr
    assert "no column 'colour'" in said and "Did you mean 'color'?" in said
    assert not Path("out.csv").exists()


@pytest.mark.long
def test_choosing_priors_and_experiments_take_tables(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    labels = ("--labels", "maybe")
    run("priors", "train.csv", *labels, "--exclude-rate", "0.7", "-o", "priors.csv")
    assert pd.read_csv("priors.csv")["label"].tolist() == sorted(NAMES)
    chosen = ("--priors", "priors.csv", "--select", "epochs", "--method", "bce", "--epochs", "4")
    fitted = run("fit", "train.csv", *labels, *chosen, "-o", "model").stdout
    assert "Chosen: bce" in fitted and "1 text" in fitted
    config = """
    name = "table"
    folds = 2
    [settings]
    epochs = 1
    [[methods]]
    method = "bce"
    [[data]]
    name = "test.csv"
    case = "b"
    rate = 0.5
    read = {relevant = ["true"], ignore = ["maybe"]}
    """
    Path("config.toml").write_text("\n".join(line.strip() for line in config.splitlines()))
    run("bench", "config.toml", "-o", "runs")
    assert list(Path("runs").rglob("result.json"))


def test_tables_are_written_as_tables(run: Run) -> None:
    convert = ("datasets", "convert", "train.csv", "--labels", "maybe")
    run(*convert, "-o", "again.parquet")
    again, first = open_dataset("again.parquet"), open_dataset("train.csv", labels=["maybe"])
    assert list(again.X.columns) == list(first.X.columns) and again.items == first.items
    said = run(*convert, "-o", "again.npz", code=1).stderr
    assert "Write .csv or .parquet" in said


def test_a_name_that_is_too_long_for_a_file(run: Run) -> None:
    name, labels = f"{'y' * 5000}.csv", ("--labels", "maybe")
    for command in (
        ("datasets", name, *labels),
        ("split", name, *labels),
        ("fit", name, *labels, "-o", "other"),
        ("predict", name, "-m", "model", "-o", "out.csv"),
    ):
        assert "... does not exist" in run(*command, code=1).stderr, command
