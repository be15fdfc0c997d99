"""From answers about pictures to a model and a page: a table, and an annotation project."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from robots import run_robots
from typer.testing import CliRunner

from comes.annotate import open_project, serve_in_thread
from comes.cli import app
from comes.errors import ComesError
from comes.images import ImageClassifier, make_backbone
from pictures import LABELS, pictures, write_pictures
from report_pages import rows_of

BACKBONE = "timm:resnet10t"
N = 150
NO_RATE, YES_RATE = 0.7, 0.9


@pytest.fixture(scope="module", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Features are computed once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/, photos.csv, classes.txt and weights.pth, which no test changes."""
    folder = tmp_path_factory.mktemp("home")
    write_pictures(folder, n=N)
    (folder / "classes.txt").write_text("\n".join(LABELS))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.save(make_backbone(BACKBONE).network.state_dict(), folder / "weights.pth")
    return folder


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def fit(home: Path, answers: Path, output: Path) -> Any:
    network = ["--backbone", BACKBONE, "--set", f"weights={home / 'weights.pth'}"]
    network += ["--set", "image_size=32"]
    return run("fit", answers, "--images", home / "photos", *network, "-o", output)


def truth_of(home: Path) -> dict[tuple[str, str], bool]:
    """Return whether a picture has a label."""
    table = pd.read_csv(home / "photos.csv").set_index("image")
    return {
        (name, label): bool(table[f"is_{label}"][name]) for name in table.index for label in LABELS
    }


def test_generated_answers_lead_to_rates_and_a_page(home: Path, tmp_path: Path) -> None:
    rates = {"asked_rate": 0.6, "no_rate": NO_RATE, "yes_rate": YES_RATE}
    asked = ["--simulate", "answers"]
    asked += [part for name, rate in rates.items() for part in ("--set", f"{name}={rate}")]
    read = ["--relevant", "is_*", "--images", home / "photos"]
    run("datasets", "convert", home / "photos.csv", *read, *asked, "-o", tmp_path / "answers.csv")
    fitted = fit(home, tmp_path / "answers.csv", tmp_path / "model")
    assert fitted["method"] == "likelihood"
    model = ImageClassifier.load(tmp_path / "model")
    assert model.no_rate_ is not None and model.yes_rate_ is not None
    np.testing.assert_allclose(model.no_rate_, NO_RATE, atol=0.12)
    np.testing.assert_allclose(model.yes_rate_, YES_RATE, atol=0.15)
    options = ["--images", home / "photos", "-m", tmp_path / "model", "-o", tmp_path / "page"]
    page = Path(run("report", tmp_path / "answers.csv", *options)["page"])
    table = rows_of(page)
    heads = ["predicted", "relevant", "asked", "no", "maybe", "yes", "no rate", "yes rate"]
    assert table["label"][: len(heads)] == heads  # the file has the true labels, too
    said = pd.read_csv(tmp_path / "answers.csv")
    for number, label in enumerate(f"is_{name}" for name in LABELS):
        words = said[f"answer:{label}"]
        counts = [int((words == word).sum()) for word in ("no", "maybe", "yes")]
        assert table[label][2:6] == [str(count) for count in (sum(counts), *counts)]
        assert table[label][6:8] == [
            f"{model.no_rate_[number]:.2f}",
            f"{model.yes_rate_[number]:.2f}",
        ]


def test_an_annotation_project_leads_to_a_model_and_a_page(home: Path, tmp_path: Path) -> None:
    """Robots say no or maybe on the page, some pairs twice; another tool knows yes, too."""
    truth, project, table = truth_of(home), tmp_path / "project", tmp_path / "answers.parquet"
    items = ["--items", home / "photos", "--classes", home / "classes.txt"]
    run("annotate", "init", project, *items, "--rate", 0.5, "--overlap", 0.3)
    opened = open_project(project)
    rng = np.random.default_rng(0)

    def say(item: str, label: str) -> str:
        return "maybe" if truth[item, label] or rng.random() > NO_RATE else "no"

    with serve_in_thread(opened) as address:
        reports = run_robots(address, 2, say)
    opened.engine.dispose()
    assert all(report.error is None for report in reports)
    sure = [(*pair, "yes" if is_there else "no") for pair, is_there in truth.items()][::5]
    pd.DataFrame(sure, columns=["item", "label", "answer"]).to_csv(tmp_path / "sure.csv")
    run("annotate", "import", project, tmp_path / "sure.csv")
    run("annotate", "export", project, "-o", table)
    fitted = fit(home, table, tmp_path / "model")
    assert fitted["method"] == "likelihood" and "; 3 people" in fitted["data"]
    options = ["--images", home / "photos", "-m", tmp_path / "model", "-o", tmp_path / "page"]
    page = Path(run("report", table, *options, "--examples", N)["page"])
    labels = rows_of(page)
    assert labels["label"][1:6] == ["asked", "no", "maybe", "yes", "disagree"]
    assert sum(int(labels[name][2]) for name in LABELS) > 0  # no
    assert sum(int(labels[name][4]) for name in LABELS) > 0  # yes
    text = page.read_text(encoding="utf-8")
    assert "people disagree: 1 no, 1 maybe" in text
    assert re.search(r'open">not asked</dt><dd>\d of 3 labels', text)


def test_what_to_ask_next_becomes_cards_in_one_command(home: Path, tmp_path: Path) -> None:
    """Nothing is asked twice, and the answers are known to be to questions of a model."""
    truth, project, table = truth_of(home), tmp_path / "project", tmp_path / "answers.parquet"
    items = ["--items", home / "photos", "--classes", home / "classes.txt"]
    run("annotate", "init", project, *items, "--rate", 0.5)

    def let_robot_answer() -> None:
        opened = open_project(project)
        with serve_in_thread(opened) as address:
            run_robots(address, 1, lambda item, label: "maybe" if truth[item, label] else "no")
        opened.engine.dispose()
        run("annotate", "export", project, "-o", table)

    let_robot_answer()
    fit(home, table, tmp_path / "model")
    chosen, output = tmp_path / "next.csv", tmp_path / "predictions.csv"
    options = ["-m", tmp_path / "model", "-o", output, "--asked", table]
    run("predict", home / "photos", *options, "--ask-next", chosen, "--questions", 30)
    pairs = pd.read_csv(chosen)
    assert pairs["label"].value_counts().to_dict() == dict.fromkeys(LABELS, 10)
    so_far = pd.read_parquet(table).query("answer != 'not asked'")
    before = set(so_far[["item", "label"]].itertuples(index=False, name=None))
    assert len(before) == round(0.5 * N) * 3
    assert not before & set(pairs[["item", "label"]].itertuples(index=False, name=None))
    scores: Any = pd.read_csv(output).set_index("item")
    for pair in pairs.to_dict("records"):
        expected = scores.at[pair["item"], f"probability:{pair['label']}"]
        assert pair["probability"] == pytest.approx(expected, abs=1e-4)
    assert run("annotate", "add", project, "--cards", chosen)["cards_added"] == 30
    let_robot_answer()
    answered = pd.read_parquet(table)
    assert (answered["source"] == "model").sum() == 30
    fitted = fit(home, table, tmp_path / "again")
    assert fitted["method"] == "likelihood"


def test_a_page_and_a_file_come_of_a_model(home: Path, tmp_path: Path) -> None:
    asked = ["--simulate", "answers", "--set", "asked_rate=0.6"]
    read = ["--relevant", "is_*", "--images", home / "photos"]
    run("datasets", "convert", home / "photos.csv", *read, *asked, "-o", tmp_path / "answers.csv")
    fit(home, tmp_path / "answers.csv", tmp_path / "model")
    options = ["-m", tmp_path / "model", "-o", tmp_path / "predictions.csv"]
    page = tmp_path / "page"
    shown = ["--page", page, "--maps", "--examples", 20]
    made = run("predict", home / "photos", *options, *shown, "--scores")
    assert made["page"] == str(page / "index.html") and made["rows"] == N
    text = (page / "index.html").read_text(encoding="utf-8")
    assert f"of {N} are shown" in text and 'alt="evidence for is_' in text
    exported = run("export", tmp_path / "model", "-o", tmp_path / "model.onnx")
    assert exported["input"] == "pixels: uint8 (n, 3, 32, 32)"
    session = onnxruntime.InferenceSession(exported["file"])
    pixels = np.ascontiguousarray(pictures(N)[0].transpose(0, 3, 1, 2))
    scores = pd.read_csv(tmp_path / "predictions.csv").filter(like="score:").to_numpy()
    np.testing.assert_allclose(session.run(None, {"pixels": pixels})[0], scores, atol=1e-3)
    with pytest.raises(ComesError, match="--maps needs a page"):
        run("predict", home / "photos", *options, "--maps")
    for option, value in (("--asked", tmp_path / "answers.csv"), ("--questions", 5)):
        with pytest.raises(ComesError, match=f"{option} needs --ask-next"):
            run("predict", home / "photos", *options, option, value)
    with pytest.raises(ComesError, match="--examples needs a page"):
        run("predict", home / "photos", *options, "--examples", 5)
    with pytest.raises(ComesError, match="images are named by their files"):
        run("predict", home / "photos", *options, "--item", "image")
    with pytest.raises(ComesError, match="holds something else"):
        run("predict", home / "photos", *options, "--page", home)
