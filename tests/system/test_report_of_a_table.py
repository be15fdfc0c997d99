"""From a table to a model and its page, all by commands."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import Run, command_runner


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return command_runner(monkeypatch, capsys)


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_the_whole_road_on_the_command_line(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    relevant = X[:, :3] > 0.3
    table = pd.DataFrame(X, columns=["red", "green", "blue", "noise"])
    table.insert(0, "photo", [f"{k:03}.jpg" for k in range(300)])
    whose, how = ("ann", "bob"), ("calm", "busy", "calm")
    table["note"] = [f"seen by {whose[k % 2]} on a {how[k % 3]} day, no {k}" for k in range(300)]
    table["country"] = [("de", "fr", None)[k % 3] for k in range(300)]
    for j, name in enumerate(("sky", "sea", "cat")):
        said = np.where(rng.random(300) < 0.6, np.where(relevant[:, j], "yes", "no"), "")
        table[f"said_{name}"], table[f"is_{name}"] = said, relevant[:, j].astype(int)
    table.to_csv("photos.csv", index=False)
    columns = ("--labels", "said_*", "--item", "photo")
    run("split", "photos.csv", *columns, "--relevant", "is_*")
    run("fit", "photos-train.csv", *columns, "--ignore", "is_*", "-o", "model", "--epochs", "30")
    run("evaluate", "photos-test.csv", *columns, "--relevant", "is_*", "-m", "model")
    run("predict", "photos-test.csv", "-m", "model", "--item", "photo", "-o", "predictions.csv")
    predictions = pd.read_csv("predictions.csv")
    assert predictions["item"].tolist() == pd.read_csv("photos-test.csv")["photo"].tolist()
    shown = run("report", "photos-test.csv", *columns, "--relevant", "is_*", "-m", "model")
    assert shown.stdout == "page: report/index.html\n"
    text = Path("report/index.html").read_text(encoding="utf-8")
    assert "From true labels" in text and "From answers" in text
    named = (
        "F1 of every label",
        "Answers about every label",
        "Risk of every epoch",
        "Calibration from answers",
    )
    assert all(f'aria-label="{name}' in text for name in named)
    assert text.count("<svg") == 5  # those, and the calibration from true labels
    assert "on a calm day" in text and "<dt><bdi>country</bdi></dt><dd>–</dd>" in text
    assert "yes rate" in text and "By true labels, the model is" in text
