"""Texts on the command line: from a table, or from questions, to a model and its predictions."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.annotate import import_answers, open_project
from comes.datasets import KNOWN, catalogue
from comes.images import load_model
from comes.tables.texts import open_embedding
from command_line import Run, command_runner
from word_models import save_model, stand_in_for_model2vec

LABELS = ("sport", "weather")
WORDS = {"sport": ["match", "goal", "team", "scored"], "weather": ["rain", "sun", "cloud", "storm"]}
FILLERS = ["the", "in", "and", "today", "again", "north", "said"]
RNG = np.random.default_rng(0)
N = 240
RELEVANT = RNG.random((N, 2)) < 0.5


def make_text(relevant: Any) -> str:
    """Words of the relevant labels among words that say nothing."""
    words = [str(word) for word in RNG.choice(FILLERS, 4)]
    for label, is_there in zip(LABELS, relevant, strict=True):
        words += [str(word) for word in RNG.choice(WORDS[label], 2 if is_there else 0)]
    return " ".join(RNG.permutation(words))


TEXTS = [make_text(row) for row in RELEVANT]
# Every irrelevant pair is excluded half of the time.
CANDIDATES = RELEVANT | (RNG.random((N, 2)) < 0.5)
VECTORS = {word: (own, 1 - own, 0.5) for own, label in enumerate(LABELS) for word in WORDS[label]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of texts with candidates, vectors of words, and an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    names = [";".join(np.array(LABELS)[row]) or "(none)" for row in CANDIDATES]
    table = pd.DataFrame({"note": [f"n{k}" for k in range(N)], "body": TEXTS, "maybe": names})
    table.to_csv("texts.csv", index=False)
    stand_in_for_model2vec(monkeypatch)
    save_model(tmp_path / "vectors", VECTORS)
    return tmp_path


run = pytest.fixture(command_runner)


FIT = ("fit", "texts.csv", "--text", "body", "--labels", "maybe", "--item", "note", "-o", "model")
LEARNED = ("--epochs", "80", "--set", "exclude_rate=0.5")


@pytest.mark.parametrize("options", [(), ("--embedding", "vectors")])
def test_from_texts_to_predictions(folder: Path, run: Run, options: tuple[str, ...]) -> None:
    run(*FIT, *LEARNED, *options)
    texts = pd.Series(["a goal for the team", "storm and rain again"], name="body")
    texts.to_frame().assign(item=["p", "q"]).to_csv("new.csv", index=False)
    run("predict", "new.csv", "--model", "model", "-o", "scores.csv")
    assert pd.read_csv("scores.csv")["item"].tolist() == ["p", "q"]
    model = load_model("model")
    scores = model.decision_function(texts.to_frame())
    assert scores[0, 0] > scores[0, 1] and scores[1, 1] > scores[1, 0]
    assert model.score(pd.DataFrame({"body": TEXTS}), RELEVANT) > 0.95


def test_the_embedding_of_a_model_is_checked(folder: Path, run: Run) -> None:
    run(*FIT, "--method", "bce", "--epochs", "1", "--embedding", "vectors")
    described = json.loads(Path("model", "model.json").read_text())
    [part] = described["columns"]["parts"]
    opened = open_embedding("vectors")
    assert (part["embedding"], part["checksum"]) == ("vectors", opened.checksum)
    save_model(folder / "vectors", VECTORS | {"sun": (0, 1, 0.6)})
    error = run("predict", "texts.csv", "--model", "model", "-o", "s.csv", code=1).stderr
    assert "'vectors' must be the one that the model was trained with" in error
    shutil.rmtree("vectors")
    error = run("predict", "texts.csv", "--model", "model", "-o", "s.csv", code=1).stderr
    assert "'vectors' is neither 'wordllama', nor a folder" in error


def test_comments_by_name(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "data" / "goemotions"
    home.mkdir(parents=True)
    (home / "labels.txt").write_text("\n".join(LABELS))
    lines = [
        f"{text}\t{int(row[1])}\tn{k}"
        for k, (text, row) in enumerate(zip(TEXTS, RELEVANT, strict=True))
    ]
    (home / "test.tsv").write_text("\n".join(lines) + "\n")
    small = replace(KNOWN["GoEmotions"], rows={"test": N}, n_labels=2)
    monkeypatch.setattr(catalogue, "KNOWN", {**KNOWN, "GoEmotions": small})
    monkeypatch.setenv("COMES_DATA", str(folder / "data"))
    drawing = ("--simulate", "b", "--rate", "0.5")
    run("datasets", "convert", "GoEmotions:test", *drawing, "-o", "said.csv")
    run("fit", "said.csv", "--text", "text", "--method", "bce", "--epochs", "1", "-o", "model")
    run("predict", "GoEmotions:test", "--model", "model", "-o", "scores.csv")
    assert pd.read_csv("scores.csv")["item"].tolist() == [f"n{k}" for k in range(N)]
    output = run("evaluate", "GoEmotions:test", "--model", "model").stdout
    assert "average precision" in output


def test_an_embedding_needs_a_text(folder: Path, run: Run) -> None:
    pd.DataFrame({"x": RNG.random(N), "maybe": pd.read_csv("texts.csv")["maybe"]}).to_csv(
        "numbers.csv", index=False
    )
    command = ("fit", "numbers.csv", "--labels", "maybe", "-o", "m", "--embedding", "vectors")
    error = run(*command, code=1).stderr
    assert "no column is taken for a text" in error and "--text" in error


@pytest.mark.long
def test_from_questions_about_texts_to_a_model(folder: Path, run: Run) -> None:
    pd.DataFrame({"item": [f"n{k}" for k in range(N)], "text": TEXTS}).to_csv(
        "items.csv", index=False
    )
    Path("classes.txt").write_text("\n".join(LABELS))
    run("annotate", "init", "news", "--items", "items.csv", "--classes", "classes.txt")
    assert "has no answers yet" in run("fit", "news", "-o", "model", code=1).stderr
    said = [
        {"item": f"n{row}", "label": label, "answer": "maybe" if RELEVANT[row, j] else "no"}
        for row in range(0, N, 2)
        for j, label in enumerate(LABELS)
    ]
    pd.DataFrame(said).to_csv("said.csv", index=False)
    project = open_project("news")
    import_answers(project, "said.csv")
    project.engine.dispose()
    rates = ("--set", "no_rate=0.99", "--set", "yes_rate=0.01", "--epochs", "80")
    output = run("fit", "news", "-o", "model", *rates).stdout
    assert "1 text" in output
    pd.DataFrame({"text": ["the team scored", "rain"]}).to_csv("new.csv", index=False)
    run("predict", "new.csv", "--model", "model", "-o", "scores.csv")
    predicted = load_model("model").predict(pd.read_csv("new.csv"))
    assert predicted.tolist() == [[1, 0], [0, 1]]
    run("predict", "news", "--model", "model", "-o", "all.csv", "--ask-next", "next.csv")
    assert pd.read_csv("all.csv")["item"].tolist() == [f"n{k}" for k in range(N)]
    Path("priors.csv").write_text("label,class_prior\nsport,0.5\nweather,0.5\n")
    judged = run("evaluate", "news", "--model", "model", "--priors", "priors.csv").stdout
    assert "hamming" in judged.lower()
    error = run("fit", "news", "--labels", "maybe", "-o", "m", code=1).stderr
    assert "annotation project, which says itself" in error
