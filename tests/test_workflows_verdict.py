"""The verdict on a model and the advice after it: honest in every case."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from comes import CandidateClassifier
from comes.answers import Answers
from comes.datasets import Dataset, make_scenes, write_dataset
from comes.generation import simulate_answers
from comes.report import model_page
from comes.workflows import judge_model, report_model
from comes.workflows.judge import Judgement, chance_levels, grade
from command_line import command_runner

SCENES = make_scenes(n=900)
RELEVANT = SCENES.known_relevant()
NAMES = list(SCENES.label_names)
ASKED = simulate_answers(RELEVANT, asked_rate=0.6, no_rate=0.9, yes_rate=0.8, seed=0)
ANSWERS = ASKED.rename_labels(NAMES)
BOTH = replace(SCENES, answers=ANSWERS, items=[f"scene {row}" for row in range(900)])
HELD_OUT, BLIND = BOTH.take(range(600, 900)), replace(BOTH, relevant=None).take(range(600, 900))


@pytest.fixture(scope="module")
def model() -> CandidateClassifier:
    """A model that has learned something from the first 600 rows."""
    prior = RELEVANT.mean(axis=0)
    learning: dict[str, Any] = {"hidden": 32, "n_networks": 1, "epochs": 40, "learning_rate": 1e-2}
    rates = {"no": 0.9, "yes": 0.8}
    classifier = CandidateClassifier(
        class_prior=prior, rates=rates, random_state=0, verbose=-1, **learning
    )
    return classifier.fit(SCENES.X[:600], ANSWERS[:600])


@pytest.fixture(scope="module")
def estimated(model: CandidateClassifier) -> Judgement:
    return judge_model(model, BLIND)


def changed(judged: Judgement, **metrics: Any) -> Judgement:
    """Return estimates with other values of some metrics."""
    estimates: Any = copy.deepcopy(judged.estimated)
    for name, values in metrics.items():
        estimates["metrics"][name] |= values
    return replace(judged, estimated=estimates)


def test_a_grade_is_the_way_from_guessing_to_the_best() -> None:
    assert [grade(value, 0.5) for value in (0.95, 0.85, 0.7, 0.57, 0.51, 0.3)] == [
        "very good",
        "good",
        "fair",
        "weak",
        *["hardly better than guessing"] * 2,
    ]
    assert grade(0.02, 0.2, best=0.0) == "very good"  # of a loss
    assert grade(0.5, 1.0) == "hardly better than guessing"  # where guessing is perfect


def test_estimates_are_called_so_and_say_what_they_rest_on(estimated: Judgement) -> None:
    found: Any = estimated.estimated
    auc = found["metrics"]["macro_auc"]
    good = changed(estimated, macro_auc={"value": 0.95, "low": 0.93, "high": 0.97}).verdict()
    assert good.startswith("Estimated from answers alone, the model is very good: macro AUC 0.950")
    assert "95 % interval 0.930 to 0.970; 1 is best, guessing gives 0.5" in good
    assert "No true label was used" in good and "the class prior (of the model, given)" in good
    assert f"{auc['value']:.3f} (95 % interval {auc['low']:.3f}" in estimated.verdict()
    assert estimated.verdict().count(". ") == 1  # two sentences
    assert "macro AUC over 3 of 10 labels" in changed(estimated, macro_auc={"labels": 3}).verdict()


def test_a_wide_interval_is_a_wide_verdict(estimated: Judgement) -> None:
    unsure = changed(estimated, macro_auc={"value": 0.7, "low": 0.45, "high": 0.92})
    assert "is between hardly better than guessing and very good: macro AUC" in unsure.verdict()
    refused = {"value": None, "low": None, "high": None, "reason": "too few"}
    losses = {"value": 0.05, "low": 0.01, "high": 0.3}
    other = changed(
        estimated, macro_auc=refused, macro_f1=refused, macro_recall=refused, hamming_loss=losses
    )
    assert "hamming loss 0.050" in other.verdict() and "0 is best" in other.verdict()
    assert "between hardly better than guessing and very good" in other.verdict()


def test_what_cannot_be_estimated_is_not_judged(estimated: Judgement) -> None:
    refused = {"value": None, "low": None, "high": None, "reason": "only 1 of 9 labels"}
    names = ("macro_auc", "macro_f1", "macro_recall", "hamming_loss")
    none = changed(estimated, **dict.fromkeys(names, refused)).verdict()
    assert none == (
        "How good the model is cannot be estimated from these answers. "
        "The reason: only 1 of 9 labels."
    )
    assert "is unknown" in Judgement(3, "bce", "pml").verdict()


def test_a_contradiction_comes_before_all_numbers(estimated: Judgement) -> None:
    found: Any = estimated.estimated
    broken = replace(estimated, estimated=found | {"contradiction": "the priors are wrong."})
    assert broken.verdict() == "The estimates cannot be right: the priors are wrong."


def test_rows_that_training_saw_are_not_a_measure(model: CandidateClassifier) -> None:
    for data in (BOTH.take(range(300)), replace(BOTH, relevant=None).take(range(300))):
        verdict = judge_model(model, data).verdict()
        assert "The numbers are too good: training saw 300 of these 300 rows" in verdict


def test_true_labels_say_more_than_estimates(model: CandidateClassifier) -> None:
    judged = judge_model(model, HELD_OUT)
    assert judged.metrics is not None
    share = RELEVANT[600:].mean(axis=0).mean()
    value = judged.metrics["mean_average_precision"]
    assert judged.verdict().startswith(
        f"By true labels, the model is {grade(value, share)}: mAP {value:.3f}, where 1 is best and "
        f"guessing gives {share:.2f}. That is measured on 300 rows; the F1 of one label is known to"
    )


def test_guessing_gives_what_is_said_of_it(estimated: Judgement) -> None:
    """Scores and predictions that know nothing, measured against the truth."""
    found: Any = estimated.estimated
    chance = chance_levels(found["by_label"], 300)
    prior = RELEVANT.mean(axis=0)
    below = (1 - prior).sum() * (len(prior) - 1) / 2  # half of the others score below
    everything = 2 * prior / (1 + prior)
    assert chance["ranking_risk"] == pytest.approx(below)
    assert chance["macro_f1"] == pytest.approx(everything.mean())
    assert chance["hamming_loss"] == pytest.approx(RELEVANT.mean())


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page is given, once one is written."""
    given: dict[str, Any] = {}
    render = model_page.render_page
    monkeypatch.setattr(
        model_page,
        "render_page",
        lambda name, **values: given.update(values) or render(name, **values),
    )
    return given


def test_advice_names_weak_labels_and_a_command_that_works(
    model: CandidateClassifier,
    shown: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    model.save("model")
    write_dataset(BLIND, "new rows.npz")
    report_model("model", "new rows.npz", "page")
    assert shown["title"] == "model on new rows.npz: how good it is"
    weak, sparse, ask = shown["steps"]
    worst = judge_model(model, BLIND).qualities[0]
    assert worst.label in weak[0] and f"{worst.label}: {worst.metrics['f1']}" in weak[0]
    assert "the F1 is least sure" in sparse[0]
    label = ask[0].partition(": scene ")[2].split(": ")[1].split(" ")[0]
    row = int(ask[0].partition(": scene ")[2].split(": ")[0]) - 600
    assert ANSWERS.codes[600 + row, NAMES.index(label)] == 0  # nobody was asked
    run = command_runner(monkeypatch, capsys)
    words = ask[1].replace("'new rows.npz'", "new-rows").split()[1:]
    done = run(*(word.replace("new-rows", "new rows.npz") for word in words))
    assert "ask next: next.csv" in done.stdout


def test_advice_follows_the_verdict(
    model: CandidateClassifier, shown: dict[str, Any], tmp_path: Path
) -> None:
    report_model(model, BOTH.take(range(300)), tmp_path / "page")
    assert "Hold rows out" in shown["steps"][0][0]
    scores = model.decision_function(BLIND.known_features())
    lowest = scores.argsort(axis=1).argsort(axis=1) < 3  # each row excludes what is easy
    broken = Dataset(BLIND.X, NAMES, answers=Answers.from_candidates(~lowest, NAMES))
    report_model(model, broken, tmp_path / "page")
    assert shown["verdict"].startswith("The estimates cannot be right: ")
    assert "test the constant rate" in shown["steps"][0][0]


def test_every_number_of_the_page_says_what_is_good(
    model: CandidateClassifier, shown: dict[str, Any], tmp_path: Path
) -> None:
    report_model(model, HELD_OUT, tmp_path / "page")
    rows = [row for one in shown["quality"].values() for row in one["overall"]]
    assert len(rows) == 12
    hints = {name: hint for name, _, hint in rows}
    assert all("best" in hint or "better" in hint for hint in hints.values())
    assert hints["macro AUC"] == "1 is best; guessing gives 0.5"
    assert hints["ranking loss"].startswith(
        ("0 is best; guessing gives 0.5", "0 is best; guessing gives 0.4")
    )


def test_a_good_run_prints_at_most_twelve_lines(
    model: CandidateClassifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run = command_runner(monkeypatch, capsys)
    model.save("model")
    for name, data in {"both": HELD_OUT, "blind": BLIND}.items():
        write_dataset(data, f"{name}.npz")
        lines = run("evaluate", f"{name}.npz", "-m", "model").stdout.splitlines()
        assert len(lines) <= 12, "\n".join(lines)
        assert "worst of 10 labels" in "\n".join(lines)
