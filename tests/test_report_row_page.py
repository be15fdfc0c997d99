"""The page about a model of a table: what it says, that it needs nothing else, and on a phone."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from browser import launch_browser
from comes.answers import Answers
from comes.errors import ComesError
from comes.label_metrics import list_qualities, measure_labels
from comes.report import KnownLabels, ReportedQuality, write_row_report
from command_line import Run, command_runner

RNG = np.random.default_rng(0)
N, LABELS = 120, ["sky", "<b>sea</b>", "a label with quite a long name", "cat"]
SCORES = RNG.random((N, 4))
RELEVANT = RNG.random((N, 4)) < SCORES
TABLE = pd.DataFrame(
    {
        "title": [f"text <{k}> & more" for k in range(N)],
        "body": ["word " * 400] * N,
        "when": pd.to_datetime("2026-01-01") + pd.to_timedelta(range(N), unit="D"),
        "red": np.where(np.arange(N) % 3 == 0, np.nan, RNG.normal(size=N)),
        **{f"x{k}": RNG.normal(size=N) for k in range(20)},
    }
)
CODES = np.where(RNG.random((N, 4)) < 0.5, np.where(RELEVANT, 2, 1), 0).astype(np.int8)
SAID = Answers.of_codes(CODES, "answers", LABELS)


def write_page(folder: Path, known: KnownLabels | None = None, n_examples: int = 24) -> Path:
    table = measure_labels(SCORES - 0.5, RELEVANT)
    by_label = list_qualities(table, LABELS, {"n_relevant": "relevant", "n_predicted": "predicted"})
    bins = pd.DataFrame({"n_pairs": [5, 5], "predicted": [0.2, 0.7], "relevant": [0.3, 0.7]})
    bins["low"], bins["high"] = [0.25, 0.5], [0.4, 0.9]
    quality = ReportedQuality("true labels", {"mAP": "0.700"}, by_label, bins, ["A note."])
    return write_row_report(
        TABLE,
        LABELS,
        SCORES,
        SCORES > 0.5,
        folder,
        facts={"method": "likelihood"},
        qualities=[quality],
        known=known or KnownLabels(SAID, RELEVANT, {"no": np.full(4, 0.8), "yes": np.full(4, 0.7)}),
        n_examples=n_examples,
    )


def test_the_page_says_how_good_what_was_said_and_shows_rows(tmp_path: Path) -> None:
    text = write_page(tmp_path / "page").read_text(encoding="utf-8")
    assert "<b>sea</b>" not in text and "&lt;b&gt;sea&lt;/b&gt;" in text
    assert "in 1 of 2 ranges" in text and "<svg" in text
    assert "A note." in text and "no rate" in text and "0.80" in text
    assert "were asked about" in text and "pairs of row and label" in text
    cards = text.split('<li class="card')[1:]
    assert len(cards) <= 24
    assert any(" doubtful" in card for card in cards) and any(" mistakes" in card for card in cards)
    best = int(np.argmax(SCORES[:, 0]))
    (card,) = [card for card in cards if f"<bdi>row {best}</bdi>" in card]
    assert f"text &lt;{best}&gt; &amp; more" in card and "most confident: <bdi>sky</bdi>" in card
    assert "and 12 more columns" in card and " …" in card
    assert f"2026-{TABLE['when'][best]:%m-%d}" in card
    assert "nan" not in card.lower().replace("tenant", "")


def test_quality_has_a_bar_for_every_interval(tmp_path: Path) -> None:
    text = write_page(tmp_path / "page").read_text(encoding="utf-8")
    table = measure_labels(SCORES - 0.5, RELEVANT)
    for j in range(4):
        low, high = table["recall_low"][j], table["recall_high"][j]
        assert f"--low:{low:.3f};--high:{high:.3f}" in text
    assert len(re.findall('class="range"', text)) == 4 * 5


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_page(tmp_path / name).read_bytes() for name in ("one", "two"))
    assert first == second


@pytest.mark.parametrize("kind", ["matrix", "sparse"])
def test_rows_without_names_of_columns_are_shown(tmp_path: Path, kind: str) -> None:
    from scipy import sparse

    X = np.zeros((3, 40))
    X[1, 7] = 2.5
    rows = sparse.csr_array(X) if kind == "sparse" else X
    scores = np.array([[0.1], [0.9], [0.5]])
    text = write_row_report(rows, ["sky"], scores, scores > 0.6, tmp_path / "page").read_text()
    assert "2.5" in text and "neither true labels nor answers" in text
    assert ("and 28 more columns" in text) == (kind == "matrix")


def test_probabilities_are_needed(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="must be probabilities"):
        write_row_report(np.eye(2), ["sky"], [[2.0], [0.1]], [[1], [0]], tmp_path / "page")


def test_on_a_phone_tables_scroll_and_say_so(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page")
    with launch_browser() as browser:
        phone = browser.new_page(viewport={"width": 390, "height": 844})
        asked: list[str] = []
        phone.on("request", lambda request: asked.append(request.url))
        phone.goto(page.as_uri())
        assert asked == [page.as_uri()]  # nothing else is needed
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        assert phone.evaluate(
            "[...document.querySelectorAll('.scroll')].some(d => d.scrollWidth > d.clientWidth)"
        )
        assert phone.locator(".swipe").first.is_visible()
        wide = browser.new_page(viewport={"width": 1300, "height": 844})
        wide.goto(page.as_uri())
        assert not wide.locator(".swipe").first.is_visible()
        wide.locator("#doubtful").check()
        shown = wide.locator(".card:visible").count()
        assert 0 < shown < wide.locator(".card").count()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return command_runner(monkeypatch, capsys)


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_the_whole_road_on_the_command_line(run: Run, tmp_path: Path) -> None:
    X = RNG.normal(size=(300, 4))
    relevant = X[:, :3] > 0.3
    table = pd.DataFrame(X, columns=["red", "green", "blue", "noise"])
    table.insert(0, "photo", [f"{k:03}.jpg" for k in range(300)])
    whose, how = ("ann", "bob"), ("calm", "busy", "calm")
    table["note"] = [f"seen by {whose[k % 2]} on a {how[k % 3]} day, no {k}" for k in range(300)]
    table["country"] = [("de", "fr", None)[k % 3] for k in range(300)]
    for j, name in enumerate(("sky", "sea", "cat")):
        said = np.where(RNG.random(300) < 0.6, np.where(relevant[:, j], "yes", "no"), "")
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
    assert shown.stdout == "60 rows: report/index.html\n"
    text = Path("report/index.html").read_text(encoding="utf-8")
    assert "From true labels" in text and "From answers" in text
    named = (
        "F1 of every label",
        "What was said",
        "Risk of every epoch",
        "Calibration from answers",
    )
    assert all(f'aria-label="{name}' in text for name in named)
    assert text.count("<svg") == 5  # those, and the calibration from true labels
    assert "on a calm day" in text and "<dt><bdi>country</bdi></dt><dd>–</dd>" in text
    assert "yes rate" in text and "the model, estimated" in text
    assert (
        "--examples is for the page of a model"
        in run("report", "none", "--examples", "3", code=1).stderr
    )
