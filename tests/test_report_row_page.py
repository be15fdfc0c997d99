"""The page about a model of a table: how good it is, what was said, and some of its rows."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes import CandidateClassifier
from comes.answers import Answers
from comes.errors import ComesError
from comes.label_metrics import measure_labels
from comes.report import write_model_page
from command_line import command_runner
from report_pages import ROW_RELEVANT, ROW_SCORES, TABLE, write_rows


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a page."""
    page = write_rows(tmp_path_factory.mktemp("rows") / "page")
    return page.read_text(encoding="utf-8")


def test_the_same_input_gives_the_same_page(text: str, tmp_path: Path) -> None:
    assert write_rows(tmp_path / "page").read_text(encoding="utf-8") == text


def test_the_page_says_how_good_what_was_said_and_shows_rows(text: str) -> None:
    assert "<b>sea</b>" not in text and "&lt;b&gt;sea&lt;/b&gt;" in text
    assert "in 1 of 2 ranges" in text and "<svg" in text
    assert "A note." in text and "no rate" in text and "0.80" in text
    assert "were asked about" in text
    assert '<p class="verdict">Two sentences. In all.</p>' in text
    assert "Ask about &lt;more&gt;.<code>comes predict &#39;a b.csv&#39;</code>" in text
    cards = text.split('<li class="card')[1:]
    assert len(cards) <= 24
    assert any(" doubtful" in card for card in cards) and any(" mistakes" in card for card in cards)
    best = int(np.argmax(ROW_SCORES[:, 0]))
    (card,) = [card for card in cards if f"<bdi>row {best}</bdi>" in card]
    assert f"text &lt;{best}&gt; &amp; more" in card and "most confident: <bdi>sky</bdi>" in card
    assert "and 12 more columns" in card and " …" in card
    assert f"2026-{TABLE['when'][best]:%m-%d}" in card
    assert "nan" not in card.lower().replace("tenant", "")


def test_quality_has_a_bar_for_every_interval(text: str) -> None:
    table = measure_labels(ROW_SCORES - 0.5, ROW_RELEVANT)
    for j in range(4):
        low, high = table["recall_low"][j], table["recall_high"][j]
        assert f"--low:{low:.3f};--high:{high:.3f}" in text
    assert len(re.findall('class="range"', text)) == 4 * 5


def test_rows_without_names_of_columns_are_shown(tmp_path: Path) -> None:
    X = np.zeros((3, 40))
    X[1, 7] = 2.5
    scores = np.array([[0.1], [0.9], [0.5]])
    for rows in (X, sparse.csr_array(X)):
        page = write_model_page(rows, ["sky"], scores, scores > 0.6, tmp_path / "page")
        text = page.read_text(encoding="utf-8")
        assert "2.5" in text and "Quality" not in text
        assert ("and 28 more columns" in text) == (rows is X)
    with pytest.raises(ComesError, match="must be probabilities"):
        write_model_page(np.eye(2), ["sky"], [[2.0], [0.1]], [[1], [0]], tmp_path / "page")


def test_the_command_writes_the_page_of_a_saved_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = command_runner(monkeypatch, capsys)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["red", "green", "blue"])
    relevant = table.to_numpy()[:, :2] > 0.3
    asked = rng.random((60, 2)) < 0.6
    answers = Answers(no=asked & ~relevant, yes=asked & relevant, label_names=["sky", "sea"])
    clf = CandidateClassifier(
        class_prior=relevant.mean(axis=0),
        rates={"no": 0.9, "yes": 0.9},
        hidden=4,
        n_networks=1,
        epochs=2,
        random_state=0,
        verbose=-1,
    ).fit(table, answers)
    clf.save("model")
    for j, name in enumerate(("sky", "sea")):
        words = np.where(asked[:, j], np.where(relevant[:, j], "yes", "no"), "")
        table[f"said_{name}"], table[f"is_{name}"] = words, relevant[:, j].astype(int)
    table.to_csv("photos.csv", index=False)
    columns = ("--labels", "said_*", "--relevant", "is_*")
    shown = run("report", "photos.csv", *columns, "-m", "model")
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
    assert "yes rate" in text and "0.90" in text
    error = run("report", "none", "--examples", "3", code=1).stderr
    assert "--examples is for the page of a model" in error
