"""What the commands do, called as a notebook would: values are returned, nothing is printed."""

import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.answers import Answers
from comes.datasets import Dataset, ReadOptions, make_scenes, open_dataset
from comes.datasets.matrices import write_npz
from comes.errors import ComesError, ComesWarning
from comes.experiment.results import read_results
from comes.generation import case_b, simulate_answers
from comes.methods import DEFAULT
from comes.metrics import evaluate
from comes.priors import estimate_class_prior
from comes.report.experiment_page import write_report
from comes.selection import estimate_metrics
from comes.workflows import fit as fit_jobs
from comes.workflows import judge as judge_jobs
from comes.workflows import priors as prior_jobs
from comes.workflows.annotate import report_project
from comes.workflows.data import (
    convert_dataset,
    list_datasets,
    simulate_labels,
    summarise_dataset,
)
from comes.workflows.experiment import run_experiment
from comes.workflows.fit import choose_model, fit_model
from comes.workflows.judge import judge_model, report_model
from comes.workflows.predict import predict_items
from comes.workflows.priors import estimate_priors
from results import skip_drawing

SCENES = make_scenes("train", n=150)
CANDIDATES = case_b(SCENES.known_relevant(), 0.5, seed=0)
NAMES = [f"digit {j}" for j in range(10)]
DATA = Dataset(SCENES.X, NAMES, CANDIDATES, SCENES.known_relevant())
PRIOR = SCENES.known_relevant().mean(axis=0)
SHORT: dict[str, Any] = {"method": "comes-hl", "epochs": 1, "hidden": 8, "random_state": 0}
QUICK: dict[str, Any] = {
    "hidden": 8,
    "n_networks": 1,
    "epochs": 4,
    "learning_rate": 1e-2,
    "class_prior": PRIOR,
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def silence(capsys: pytest.CaptureFixture[str]) -> Any:
    """No job prints."""
    yield
    assert capsys.readouterr().out == ""


@pytest.fixture(scope="module")
def model() -> CandidateClassifier:
    return CandidateClassifier(**QUICK).fit(DATA.X, pd.DataFrame(CANDIDATES, columns=NAMES))


def test_a_model_of_a_file_is_that_of_its_content(
    model: CandidateClassifier, tmp_path: Path
) -> None:
    write_npz(DATA, tmp_path / "scenes.npz")
    for data in (DATA, tmp_path / "scenes.npz"):
        fitted = fit_model(data, QUICK)
        np.testing.assert_array_equal(
            fitted.classifier.decision_function(DATA.X), model.decision_function(DATA.X)
        )
        assert fitted.classifier.label_names_ == NAMES
        assert fitted.path is None and fitted.choice is None


def test_the_summary_says_what_was_trained_and_where_it_is(tmp_path: Path) -> None:
    fitted = fit_model(DATA, QUICK | {"early_stopping": True}, output=tmp_path / "model")
    fitted.classifier.history_ = replace(fitted.history, risk=[3.0, 2.0], best_epoch=1)
    summary = fitted.summary()
    assert summary["model"] == str(tmp_path / "model") and summary["method"] == DEFAULT
    assert (summary["kept_epoch"], summary["risk"], summary["epochs"]) == (1, 3.0, 2)
    assert "compared" not in summary


def test_a_target_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    for name in ("taken", "model.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "letter.txt").touch()
    for job in (
        lambda: fit_model("none.npz", output=tmp_path / "taken"),
        lambda: fit_model("none.npz", output=tmp_path / "model"),
        lambda: predict_items("none", "none.npz", tmp_path / "taken" / "none" / "p.csv"),
        lambda: convert_dataset("none.npz", tmp_path / "none" / "p.csv"),
        lambda: estimate_priors("none.npz", tmp_path / "none" / "p.csv"),
        lambda: report_project(Mock(), tmp_path / "none" / "p.html"),
        lambda: report_model("none", "none.npz", tmp_path / "taken"),
    ):
        with pytest.raises(ComesError, match=r"would be lost|is not a folder"):
            job()


def test_a_table_of_priors_is_what_training_and_judging_use(tmp_path: Path) -> None:
    table = estimate_priors(DATA, tmp_path / "priors.csv", exclude_rate=0.5)
    path = tmp_path / "priors.csv"
    fitted = fit_model(DATA, SHORT, priors=path)
    prior: Any = fitted.classifier.class_prior_
    np.testing.assert_allclose(prior, table["class_prior"])
    judged = judge_model(fitted.classifier, DATA, priors=path)
    assert judged.estimated is not None and judged.estimated["class_prior"] == str(path)


def _width(metric: dict[str, float]) -> float:
    return metric["high"] - metric["low"]


def test_priors_of_a_table_count_as_estimated_if_it_has_standard_errors(tmp_path: Path) -> None:
    table = pd.DataFrame({"label": NAMES, "class_prior": PRIOR, "standard_error": 0.05})[::-1]
    table.to_csv(tmp_path / "estimated.csv", index=False)
    table.drop(columns="standard_error").to_csv(tmp_path / "known.csv", index=False)
    fitted: dict[str, Any] = {}
    judged = {}
    for way in ("estimated", "known"):
        path = tmp_path / f"{way}.csv"
        fitted[way] = fit_model(DATA, SHORT, priors=path).classifier
        np.testing.assert_allclose(fitted[way].class_prior_, PRIOR)
        quality = judge_model(fitted[way], DATA, priors=path).estimated
        own = judge_model(fitted[way], DATA).estimated
        assert quality is not None and own is not None
        assert quality["metrics"] == own["metrics"]
        judged[way] = quality
    np.testing.assert_allclose(fitted["estimated"].class_prior_error_, 0.05)
    assert fitted["known"].class_prior_error_ is None
    assert judged["known"]["prior_error"] == "none: the class prior is taken as known"
    wide, narrow = (judged[way]["metrics"]["hamming_loss"] for way in ("estimated", "known"))
    assert wide["value"] == narrow["value"]
    assert _width(wide) > _width(narrow)
    chosen: Any = fit_model(
        DATA, SHORT | {"epochs": 10}, priors=tmp_path / "estimated.csv", select=["epochs"]
    ).classifier
    np.testing.assert_allclose(chosen.class_prior_error_, 0.05)


def test_a_table_of_priors_does_not_replace_what_it_was_estimated_from(tmp_path: Path) -> None:
    for name in ("scenes.csv", "clean.csv"):
        convert_dataset(DATA, tmp_path / name)
    before = (tmp_path / "scenes.csv").read_bytes()
    for output in ("scenes.csv", "clean.csv"):
        with pytest.raises(ComesError, match=f"{output} is the file that is read"):
            estimate_priors(
                tmp_path / "scenes.csv", tmp_path / output, clean=tmp_path / "clean.csv"
            )
    assert (tmp_path / "scenes.csv").read_bytes() == before


def test_what_is_chosen_for_answers_is_trained_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    relevant = DATA.known_relevant()
    answers = simulate_answers(relevant, asked_rate=0.5, seed=2).rename_labels(NAMES)
    data = Dataset(DATA.X, NAMES, answers=answers)
    known: dict[str, Any] = {"class_prior": PRIOR, "rates": {"no": 0.8, "yes": 0.8}}
    start = CandidateClassifier(epochs=10, hidden=8, n_networks=1, random_state=0, **known)
    with warnings.catch_warnings():  # of rates that so few rows leave uncertain
        warnings.simplefilter("ignore", ComesWarning)
        best, choice = choose_model(data, start, ["epochs"])
    assert best.method == DEFAULT and set(choice.table["method"]) == {DEFAULT}
    start = CandidateClassifier("comes-hl", epochs=10, class_prior=PRIOR, random_state=0)
    assert choose_model(DATA, start, ["epochs"])[0].method == "comes-hl"


def test_settings_of_the_other_kind_are_refused() -> None:
    with pytest.raises(ComesError, match=r"no setting 'backbone'. It is for images, .*--images"):
        fit_model(DATA, {"backbone": "resnet50", "augment": "crop"})
    with pytest.raises(ComesError, match="no setting 'epoch'. Did you mean 'epochs'"):
        fit_model(DATA, {"epoch": 3})
    with pytest.raises(ComesError, match="flood_level is for comes-rl.*; got method bce. Leave it"):
        fit_model(DATA, {"method": "bce", "flood_level": 1.0})


def test_the_chosen_model_is_fitted_with_the_prior_that_it_was_chosen_by() -> None:
    fitted = fit_model(DATA, QUICK | {"epochs": 10}, select=["epochs"])
    assert fitted.choice is not None
    assert fitted.classifier.epochs == fitted.choice.classifier.epochs
    np.testing.assert_array_equal(fitted.classifier.class_prior_, PRIOR)
    assert len(fitted.choice.table) == 2


def test_all_variations_have_one_seed_and_one_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def estimate(X: Any, answers: Any, random_state: int) -> Any:
        seen.append(random_state)
        return PRIOR

    def choose(
        variations: Any, X: Any, candidates: Any, prior: Any, *, extend: bool, seed: int
    ) -> Any:
        seen.append(seed)
        assert extend  # a grid that was not written by hand need not end
        np.testing.assert_array_equal(prior, PRIOR)
        return SimpleNamespace(classifier=CandidateClassifier())

    monkeypatch.setattr(fit_jobs, "estimate_shared_prior", estimate)
    monkeypatch.setattr(fit_jobs, "choose_classifier", choose)
    by_name = pd.Series(PRIOR, NAMES)[::-1]
    for prior in (None, by_name):
        start = CandidateClassifier(class_prior=prior, random_state=7)
        best, _ = choose_model(DATA, start, ["lr"])
        np.testing.assert_array_equal(best.class_prior, PRIOR)
    assert seen == [7, 7, 7]


def test_ticked_labels_cannot_choose() -> None:
    ticked = Dataset(DATA.X, NAMES, answers=Answers.from_positives(CANDIDATES, NAMES))
    with pytest.raises(ComesError, match="ticked labels have none"):
        choose_model(ticked, CandidateClassifier(), ["lr"])


def test_auto_is_a_method_to_choose_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(data: Dataset, classifier: CandidateClassifier, varied: list[str]) -> Any:
        raise ComesError(f"{classifier.method}: {varied}")

    monkeypatch.setattr(fit_jobs, "choose_model", choose)
    for select in ([], ["method"]):
        with pytest.raises(ComesError, match=r"likelihood: \['method'\]"):
            fit_model(DATA, {"method": "auto"}, select=select)


def test_predictions_are_those_of_the_model(model: CandidateClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    table = predict_items(tmp_path / "model", DATA, tmp_path / "p.parquet", scores=True)
    np.testing.assert_allclose(table.filter(like="score:"), model.decision_function(DATA.X))
    shown = table.filter(like="probability:")
    np.testing.assert_allclose(shown, model.predict_proba(DATA.X), atol=1e-6)
    assert table["item"].tolist() == list(range(len(DATA)))
    assert len(pd.read_parquet(tmp_path / "p.parquet")) == len(DATA)
    items = [f"scene {row}" for row in range(len(DATA))]
    assert predict_items(model, replace(DATA, items=items))["item"].tolist() == items
    with pytest.raises(ComesError, match="p.parquet is the file that is read"):
        predict_items(model, tmp_path / "p.parquet", tmp_path / "p.parquet")


def test_judging_has_metrics_and_estimates() -> None:
    known: dict[str, Any] = {"class_prior": PRIOR, "random_state": 0}
    model = CandidateClassifier.as_published(epochs=2, **known)
    judged = judge_model(model.fit(DATA.X, pd.DataFrame(CANDIDATES, columns=NAMES)), DATA)
    scores, cut = model.decision_function(DATA.X), model.predict(DATA.X)
    assert judged.metrics == evaluate(scores, DATA.known_relevant(), cut)
    expected = estimate_metrics(scores, CANDIDATES, PRIOR, predictions=cut)
    assert judged.estimated is not None
    by_name = judged.estimated["metrics"]
    for name, estimate in expected.metrics.items():
        assert by_name[name]["value"] == pytest.approx(estimate.value)
    assert judged.as_dict()["estimated"]["class_prior"] == "of the model, given"


def test_judging_needs_no_truth_and_no_candidates(model: CandidateClassifier) -> None:
    blind = judge_model(model, Dataset(DATA.X, NAMES, CANDIDATES))
    assert blind.metrics is None and blind.estimated is not None
    assert set(blind.as_dict()) == {"estimated", "rows_seen_in_training"}
    clean = judge_model(model, Dataset(DATA.X, NAMES, relevant=DATA.relevant))
    assert clean.estimated is None and clean.as_dict()["convention"] == "pml"
    with pytest.raises(ComesError, match="the data has none"):
        judge_model(model, Dataset(DATA.X, NAMES, relevant=DATA.relevant), priors="priors.csv")


def test_labels_are_matched_by_name(model: CandidateClassifier, tmp_path: Path) -> None:
    order = np.arange(10)[::-1]
    turned = Dataset(DATA.X, [NAMES[j] for j in order], relevant=DATA.known_relevant()[:, order])
    write_npz(turned, tmp_path / "turned.npz")
    for data in (turned, tmp_path / "turned.npz"):
        assert judge_model(model, data).metrics == judge_model(model, DATA).metrics
    with pytest.raises(ComesError, match="the model knows its labels"):
        judge_model(model, "scenes.npz", reading=ReadOptions(label_names=NAMES))


def test_a_label_that_nothing_excludes_is_left_out_of_estimates(model: CandidateClassifier) -> None:
    candidates = CANDIDATES.copy()
    candidates[:, 3] = True
    judged = judge_model(
        model, replace(DATA, answers=Answers.from_candidates(candidates))
    ).estimated
    assert judged is not None and judged["left_out"] == ["digit 3"]
    assert judged["metrics"]["hamming_loss"]["labels"] == len(NAMES) - 1


def test_a_model_without_a_prior_is_judged_by_an_estimated_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = CANDIDATES[:, :3]
    naive = CandidateClassifier("bce", epochs=1, random_state=0).fit(DATA.X, few)
    blind = Dataset(DATA.X, ["0", "1", "2"], few)
    prior = estimate_class_prior(None, few, exclude_rate=0.5)
    monkeypatch.setattr(judge_jobs, "estimate_class_prior", lambda X, answers: prior)
    judged = judge_model(naive, blind).estimated
    assert judged is not None and judged["class_prior"] == "estimated from these rows"
    scores, cut = naive.decision_function(DATA.X), naive.predict(DATA.X)
    expected = estimate_metrics(scores, few, prior, predictions=cut).metrics
    assert expected["hamming_loss"].low_with_prior < expected["hamming_loss"].low
    for name, metric in judged["metrics"].items():  # which know that the prior is an estimate
        same = expected[name]
        interval = (same.low_with_prior, same.high_with_prior)
        known = (metric["low"], metric["high"])
        assert known == (interval if same.reason is None else (None, None))
        assert metric["reason"] == same.reason


def test_judging_says_why_an_estimated_prior_gives_no_interval(tmp_path: Path) -> None:
    few = CANDIDATES[:, :3]
    prior = estimate_class_prior(None, few, exclude_rate=0.5)
    fitted = CandidateClassifier("comes-hl", epochs=1, class_prior=prior, random_state=0)
    fitted.fit(DATA.X, few)
    blind = Dataset(DATA.X, fitted.label_names_, few)
    judged = judge_model(fitted, blind).estimated
    assert judged is not None and judged["class_prior"] == "of the model, estimated"
    assert "standard error of the estimated" in judged["prior_error"]
    fitted.rates_ = replace(fitted.rates_, class_prior_error=None)
    fitted.set_params(class_prior=None).save(tmp_path / "old")  # as an earlier version did
    old = judge_model(tmp_path / "old", blind).estimated
    assert old is not None
    (reason,) = {metric["reason"] for metric in old["metrics"].values()}
    assert "its standard error is not known; fit the model again" in reason
    first = old["metrics"]["hamming_loss"]
    assert (first["value"], first["low"], first["reason"]) == (None, None, reason)


def test_judging_by_answers_uses_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    relevant, names = DATA.known_relevant()[:, :3], NAMES[:3]
    heard = np.random.default_rng(5).random(relevant.shape) < 0.7
    answers = Answers(no=~relevant & heard, yes=relevant & heard, label_names=names)
    data = Dataset(DATA.X, names, relevant=relevant, answers=answers)
    model = CandidateClassifier.as_published("bce", epochs=2, random_state=0)
    prior = estimate_class_prior(None, ~answers.excluded, exclude_rate=0.7)
    monkeypatch.setattr(judge_jobs, "estimate_class_prior", lambda X, answers: prior)
    judged = judge_model(model.fit(DATA.X, answers), data).estimated
    assert judged is not None and judged["from"] == "answers"
    recall = judged["metrics"]["macro_recall"]
    scores, cut = model.decision_function(DATA.X), model.predict(DATA.X)
    counted = [cut[answers.confirmed[:, j], j].mean() for j in range(3)]
    assert recall["labels"] == 3 and recall["value"] == pytest.approx(np.mean(counted))
    assert judged["class_prior"] == "estimated from these rows" and len(scores) == 150


def test_judging_says_that_training_saw_the_rows(model: CandidateClassifier) -> None:
    judged = judge_model(model, DATA).estimated
    assert judged is not None and judged["rows_seen_in_training"] == len(DATA)
    others = make_scenes("test", n=50)
    new = Dataset(others.X, NAMES, case_b(others.known_relevant(), 0.5, seed=0))
    judged = judge_model(model, new).estimated
    assert judged is not None and judged["rows_seen_in_training"] == 0


def test_judging_says_that_the_assumption_or_the_priors_are_wrong(
    model: CandidateClassifier,
) -> None:
    """Where a row excludes what scores lowest; rows that training saw prove nothing."""
    others = make_scenes("test", n=50)
    scores = model.decision_function(others.X)
    lowest = scores.argsort(axis=1).argsort(axis=1) < 3
    broken, fair = (
        judge_model(model, Dataset(others.X, NAMES, candidates)).estimated
        for candidates in (~lowest, case_b(others.known_relevant(), 0.5, seed=0))
    )
    assert broken is not None and fair is not None and fair["contradiction"] is None
    assert "the class priors are wrong, or" in broken["contradiction"]
    seen = judge_model(model, DATA).estimated
    assert seen is not None and seen["contradiction"] is None


def test_data_is_listed_converted_and_given_candidates(tmp_path: Path) -> None:
    assert {"YeastBP", "scene:train"} <= {row["name"] for row in list_datasets()}
    convert_dataset(DATA, tmp_path / "scenes.csv")
    drawn: dict[str, Any] = {"simulate": "b", "rate": 0.5, "seed": 3}
    made = convert_dataset(tmp_path / "scenes.csv", tmp_path / "made.npz", **drawn)
    np.testing.assert_array_equal(made.candidates, case_b(DATA.known_relevant(), 0.5, seed=3))
    with pytest.raises(ComesError, match="made.npz is the file that is read, and would be"):
        convert_dataset(tmp_path / "made.npz", tmp_path / "made.npz")
    reading = ReadOptions(features=tmp_path / "made.npz")
    with pytest.raises(ComesError, match="is the file that is read"):
        convert_dataset("scene", tmp_path / "made.npz", reading=reading)
    again = open_dataset(tmp_path / "made.npz")
    np.testing.assert_array_equal(again.candidates, made.candidates)


def test_a_summary_counts_pairs_by_label() -> None:
    answers = Answers(no=[[1, 0], [0, 0]], yes=[[0, 1], [0, 1]], maybe=[[0, 0], [1, 0]])
    said = Dataset(None, ["a", "b"], answers=answers, relevant=np.eye(2, dtype=bool))
    summary = summarise_dataset(said)
    assert summary["data"] | {"rows": 2, "asked": 4, "yes": 2, "relevant": 2} == summary["data"]
    assert summary["data"]["features"] is None and summary["data"]["labels_are"] == "answers"
    assert summary["labels"][1] == {
        "label": "b",
        "asked": 2,
        "no": 0,
        "yes": 2,
        "maybe": 0,
        "relevant": 1,
    }
    ticked = Dataset(np.eye(2), ["a"], answers=Answers.from_positives([[1], [0]]))
    assert summarise_dataset(ticked)["labels"] == [{"label": "a", "ticked": 1}]
    surely_not = Dataset(np.eye(2), ["a"], np.array([[True], [False]]), from_complementary=True)
    summary = summarise_dataset(surely_not)
    assert summary["data"]["labels_are"] == "complementary" and summary["data"]["excluded"] == 1


def test_generated_candidates_replace_what_was_answered_before() -> None:
    said = Answers(no=~CANDIDATES, maybe=CANDIDATES & False)
    answered = replace(DATA, answers=said, from_complementary=True)
    made = simulate_labels(answered, "b", rate=0.5, seed=3)
    assert made.asked is None and not made.from_complementary


def test_answers_are_drawn_from_the_truth_and_survive_a_file(tmp_path: Path) -> None:
    rates: dict[str, Any] = {"asked_rate": 0.5, "yes_rate": 0.6}
    made = convert_dataset(DATA, tmp_path / "made.npz", simulate="answers", seed=3, **rates)
    expected = simulate_answers(DATA.known_relevant(), asked_rate=0.5, yes_rate=0.6, seed=3)
    assert made.answers is not None
    np.testing.assert_array_equal(made.answers.codes, expected.codes)
    again = open_dataset(tmp_path / "made.npz")
    assert again.answers is not None
    np.testing.assert_array_equal(again.answers.codes, expected.codes)


def test_the_seed_is_that_of_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def estimate(X: Any, answers: Any, method: str, *, random_state: int, **_: Any) -> Any:
        raise ComesError(f"{method} with seed {random_state}")

    monkeypatch.setattr(prior_jobs, "estimate_class_prior", estimate)
    with pytest.raises(ComesError, match="bbe with seed 3"):
        estimate_priors(DATA, method="bbe", seed=3)


def test_an_experiment_is_run_once_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    config = tmp_path / "tiny.toml"
    config.write_text(
        'name = "tiny"\nfolds = 2\n[settings]\nepochs = 1\nhidden = 4\n'
        '[[data]]\nname = "scenes"\nrows = 60\ncase = "b"\n[[methods]]\nmethod = "bce"\n'
    )
    first = run_experiment(config, tmp_path / "runs", workers=1)
    assert first.summary() == {"done": 1, "kept": 0, "missing": 0}
    assert first.page is not None and first.page.exists()
    again = run_experiment(config, tmp_path / "runs", workers=1)
    assert again.summary() == {"done": 0, "kept": 1, "missing": 0}
    written = write_report(read_results([tmp_path / "runs"]), tmp_path / "report")
    assert written.read_text() == first.page.read_text()


def test_clean_items_with_other_features_are_refused() -> None:
    relevant = DATA.known_relevant()
    answers = Answers(no=~relevant, yes=relevant, label_names=NAMES)
    items = [f"i{row}" for row in range(len(DATA))]
    data = Dataset(DATA.X, NAMES, answers=answers, items=items)
    turned = Dataset(DATA.X[::-1], NAMES, relevant=DATA.relevant, items=items)
    with pytest.raises(ComesError, match="clean items have other features.*first: 'i0'"):
        estimate_priors(data, clean=turned)


def test_priors_of_answers_need_sure_ones_and_no_method() -> None:
    doubt = np.ones(DATA.known_relevant().shape, dtype=bool)
    unsure = Dataset(DATA.X, NAMES, answers=Answers(no=~doubt, maybe=doubt))
    with pytest.raises(ComesError, match="nobody said no or yes about any pair"):
        estimate_priors(unsure)
    with pytest.raises(ComesError, match="is for candidates; got 'bbe'"):
        estimate_priors(unsure, method="bbe")
