"""What an error advises can be done with the command that was called."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

from comes.cli import app
from comes.cli.advice import drop_foreign_options, find_options
from command_line import Run, command_runner

run = pytest.fixture(command_runner)

COMMAND = typer.main.get_command(app)
MESSAGE = "column 'a' must be numeric (got text). Ignore it (--ignore on the command line)."


def test_options_are_those_of_the_command() -> None:
    assert "--ignore" in find_options(COMMAND, ["fit", "a.csv"])
    assert "--ignore" in find_options(COMMAND, ["datasets", "--json", "a.csv"])
    assert "--form" in find_options(COMMAND, ["datasets", "convert", "a.csv", "b.csv"])
    assert "--ignore" not in find_options(COMMAND, ["export", "model", "a.onnx"])
    assert find_options(COMMAND, []) == find_options(COMMAND, ["nothing"]) == set()


def test_brackets_with_options_of_others_are_dropped() -> None:
    assert drop_foreign_options(MESSAGE, COMMAND, ["fit", "a.csv"]) == MESSAGE
    assert drop_foreign_options(MESSAGE, COMMAND, ["export", "m", "a.onnx"]) == (
        "column 'a' must be numeric (got text). Ignore it."
    )


def test_a_training_that_ran_away_is_an_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from comes.datasets import make_scenes
    from comes.jobs import generate_candidates

    monkeypatch.chdir(tmp_path)
    generate_candidates(make_scenes(n=100), tmp_path / "d.npz", rate=0.5)
    for method in ("likelihood", "bce"):
        settings = ("--method", method, "--learning-rate", "1e9", "--epochs", "20", "-o", "m")
        error = run("fit", "d.npz", *settings, code=1).stderr
        assert "ran away" in error or "became" in error
        assert "ower the learning rate" in error and not (tmp_path / "m").exists()


def test_training_rows_are_noticed_with_true_labels_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from comes.datasets import make_scenes, write_dataset
    from comes.jobs import fit_model, generate_candidates

    monkeypatch.chdir(tmp_path)
    scenes = make_scenes(n=100)
    seen = generate_candidates(scenes, rate=0.5).take(range(50))
    fit_model(seen, {"method": "bce", "epochs": 1}, output=tmp_path / "m")
    write_dataset(scenes.take(range(40)), tmp_path / "seen.npz")
    write_dataset(scenes.take(range(50, 100)), tmp_path / "unseen.npz")
    text = "rows that training saw: these numbers are too good"
    assert f"40 of 40 rows have the features of {text}" in run(
        "evaluate", "seen.npz", "-m", "m"
    ).stdout.replace("\n", " ")
    assert '"rows_seen_in_training": 40' in run("evaluate", "seen.npz", "-m", "m", "--json").stdout
    assert text not in run("evaluate", "unseen.npz", "-m", "m").stdout


@pytest.mark.filterwarnings("always::comes.errors.ComesWarning")
def test_a_label_that_cannot_be_estimated_is_called_by_its_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    table = table.assign(has_sky=(table["a"] > 0).astype(int), has_sun=1)
    table.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "--labels", "has_*", "--method", "bce", "--epochs", "1", "-o", "m")
    run(*fit)
    errors = run("evaluate", "d.csv", "--labels", "has_*", "-m", "m").stderr
    assert "class prior of label 'has_sun'" in errors
