"""``comes fit --select`` and ``comes evaluate`` without a true label."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import comes
from comes.answers import Answers
from comes.cli import app
from comes.datasets import make_scenes, open_dataset, write_dataset
from comes.generation import case_b


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selection")
    for split, n in (("train", 160), ("test", 160)):
        scenes = make_scenes(split, n)  # type: ignore[arg-type]
        candidates = case_b(scenes.known_relevant(), exclude_rate=0.5)
        both = replace(scenes, answers=Answers.from_candidates(candidates))
        write_dataset(both, folder / f"{split}.npz")
        write_dataset(replace(both, relevant=None), folder / f"{split}-blind.npz")
    return folder


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def write_priors(path: Path, prior: float) -> Path:
    """Write a table of one prior for all labels, in another order."""
    names = make_scenes("test", 10).label_names
    path.write_text("label,class_prior\n" + "".join(f"{n},{prior}\n" for n in reversed(names)))
    return path


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of priors, from few rows
@pytest.mark.long
def test_a_method_is_chosen_fitted_and_judged_without_a_true_label(files: Path) -> None:
    priors = ("--priors", write_priors(files / "all.csv", 0.22))
    fit = ("fit", files / "train-blind.npz", "--epochs", 2, "-o", files / "model", *priors)
    shown = run(*fit, "--method", "auto", "--threshold", "risk")
    assert "Chosen: " in shown.stdout
    assert "may well be as good" in shown.stdout
    assert "comes-hl " in shown.stdout and "comes-rl " in shown.stdout  # names are whole
    assert "Nothing was tried beyond" not in shown.stdout  # neither rate nor epochs vary
    edge = run(*fit, "--method", "bce", "--select", "epochs").stdout
    assert "Nothing was tried beyond: epochs" in " ".join(edge.split())
    summary = json.loads(run(*fit, "--select", "method,epochs", "--json").stdout)
    assert len(summary["compared"]) == 12
    assert {row["method"] for row in summary["compared"]} >= {"likelihood", "comes-hl", "bce"}
    best = min(summary["compared"], key=lambda row: row["likelihood_loss"])
    assert (best["behind"], best["method"]) == (0, summary["method"])
    evaluate = ("evaluate", "--model", files / "model")
    blind = run(*evaluate, files / "test-blind.npz")
    assert "No true label was used" in blind.stdout
    assert "training saw" not in blind.stdout
    assert "training saw 160 of these 160 rows" in run(*evaluate, files / "train-blind.npz").stdout
    assert "mAP" not in blind.stdout
    both = json.loads(run(*evaluate, files / "test.npz", "--json").stdout)
    alone = json.loads(run(*evaluate, files / "test-blind.npz", "--json").stdout)
    assert set(alone) == {"estimated"}
    loss = both["estimated"]["metrics"]["hamming_loss"]
    assert loss["low"] < loss["value"] < loss["high"]
    assert alone["estimated"]["metrics"]["hamming_loss"]["value"] == loss["value"]


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_each_label_is_judged_by_the_truth_and_by_candidates(files: Path) -> None:
    priors = write_priors(files / "some.csv", 0.22)
    fit = ("fit", files / "train.npz", "--epochs", 2, "--priors", priors)
    run(*fit, "-o", files / "labels")
    evaluate = ("evaluate", files / "test.npz", "--model", files / "labels")
    found = json.loads(run(*evaluate, "--json").stdout)
    model, test = comes.CandidateClassifier.load(files / "labels"), open_dataset(files / "test.npz")
    predicted, relevant = model.predict(test.X).astype(bool), test.known_relevant()
    for by_label in (found["by_label"], found["estimated"]["by_label"]):
        assert sorted(row["label"] for row in by_label) == sorted(test.label_names)
        known = [f1 for row in by_label if (f1 := row["f1"]["value"]) is not None]
        assert known == sorted(known)  # the worst first, and what is not known last
        assert all(row["f1"]["value"] is not None for row in by_label[: len(known)])
        for metric in (row[name] for row in by_label for name in ("precision", "recall", "f1")):
            assert (metric["value"] is None) == (metric["reason"] is not None)
            if metric["value"] is not None:
                assert 0 <= metric["low"] <= metric["value"] <= metric["high"] <= 1
    for row in found["by_label"]:
        j = test.label_names.index(row["label"])
        assert row["relevant"] == relevant[:, j].sum()
        assert row["recall"]["value"] == pytest.approx(predicted[relevant[:, j], j].mean())
    shown = run(*evaluate).stdout
    assert shown.startswith("By true labels, the model is") and "macro F1" in shown
    low = run(*evaluate, "--priors", write_priors(files / "low.csv", 0.001), "--json").stdout
    assert "too uncertain (few informative rows" in low


def test_priors_for_estimates_come_from_a_table(files: Path) -> None:
    run("fit", files / "train.npz", "--method", "bce", "--epochs", 2, "-o", files / "bce")
    command = ("evaluate", files / "test-blind.npz", "--model", files / "bce")
    wrong = run(*command, "--priors", write_priors(files / "low.csv", 0.001)).stdout
    assert "Cannot be estimated: " in wrong and "macro recall" in wrong
    found = []
    for prior in (0.2, 0.3):
        table = write_priors(files / "priors.csv", prior)
        given = json.loads(run(*command, "--priors", table, "--json").stdout)["estimated"]
        assert given["class_prior"] == str(table)
        found.append(given["metrics"]["macro_f1"])
    assert found[0] != found[1]


def test_a_flood_level_is_an_option_and_a_contradiction_is_printed(files: Path) -> None:
    """Priors of 0.001 leave hardly a label whose rank could be better than chance."""
    priors = write_priors(files / "some.csv", 0.22)
    fit = ["fit", files / "train.npz", "--method", "comes-rl", "--priors", priors]
    fit += ["--learning-rate", 0.05, "-o", files / "rl"]
    flooded, usual = ("--epochs", 1, "--set", "flood_level=0.5"), ("--epochs", 60)
    for options, stored in ((flooded, 0.5), (usual, "auto")):
        run(*fit, *options)
        described = json.loads((files / "rl" / "model.json").read_text())
        assert described["parameters"]["method"]["flood_level"] == stored
    evaluate = ("evaluate", files / "test-blind.npz", "--model", files / "rl")
    assert "cannot be right" not in run(*evaluate).stdout
    low = run(*evaluate, "--priors", write_priors(files / "low.csv", 0.001)).stdout
    low = " ".join(low.split())
    assert "cannot be right: the estimated ranking risk of held-out rows is" in low
    assert "the class priors are wrong, or" in low
