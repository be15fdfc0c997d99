"""Choosing on candidates: scorers, comparisons, and whether the assumption holds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from comes import CandidateClassifier
from comes.cli import app
from comes.datasets import make_scenes, write_dataset
from comes.errors import ComesError
from comes.estimator import choose_classifier, vary_settings
from comes.generation import case_b
from comes.selection import candidate_scorer, check_constant_rate, estimate_metrics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(400, 3)) > 0
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5)
PRIOR = RELEVANT.mean(axis=0)


def classifier(method: str = "comes-hl", **settings: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"epochs": 10, "hidden": 8, "class_prior": PRIOR}
    return CandidateClassifier(method, random_state=0, progress=False, **defaults | settings)


@pytest.mark.parametrize(
    ("criterion", "metric", "sign"),
    [("hamming", "hamming_loss", -1), ("ranking", "ranking_risk", -1), ("auc", "macro_auc", 1)],
)
def test_a_scorer_is_the_estimate(criterion: Any, metric: str, sign: int) -> None:
    fitted = classifier("comes-rl").fit(X, CANDIDATES)
    scores = fitted.decision_function(X)
    found = estimate_metrics(scores, CANDIDATES, PRIOR, predictions=fitted.predict(X))
    assert candidate_scorer(criterion)(fitted, X, CANDIDATES) == pytest.approx(
        sign * found[metric].value
    )
    other = candidate_scorer(criterion, class_prior=PRIOR / 2)(fitted, X, CANDIDATES)
    assert other != pytest.approx(sign * found[metric].value)


def test_a_grid_search_in_a_pipeline_needs_no_true_label() -> None:
    pipeline = make_pipeline(StandardScaler(), classifier(epochs=60))
    grid = {"candidateclassifier__learning_rate": [1e-9, 1e-2]}
    search = GridSearchCV(pipeline, grid, scoring=candidate_scorer("auc"), cv=3)
    search.fit(X, CANDIDATES)
    assert search.best_params_ == {"candidateclassifier__learning_rate": 1e-2}
    assert 0.7 < search.best_score_ <= 1.2


def test_a_scorer_that_knows_no_prior_says_so() -> None:
    with pytest.raises(ComesError, match="has no class_prior_: give candidate_scorer"):
        candidate_scorer()(classifier("bce").fit(X, CANDIDATES), X, CANDIDATES)
    with pytest.raises(ComesError, match="criterion must be one of hamming, ranking, auc"):
        candidate_scorer("accuracy")  # type: ignore[arg-type]


@pytest.mark.parametrize("criterion", ["ranking", "hamming", "auc"])
def test_the_better_classifier_is_chosen_and_the_table_says_why(criterion: Any) -> None:
    models = [classifier(learning_rate=1e-9), classifier(epochs=40), classifier("bce", epochs=1)]
    choice = choose_classifier(models, X, CANDIDATES, PRIOR, criterion=criterion)
    assert choice.best == 1
    assert choice.classifier is models[1]
    table = choice.table
    assert table["behind"][1] == 0
    assert (table["behind"].drop(1) > 0).all()
    assert (table["behind_low"] <= table["behind"]).all()
    assert (table["behind"] <= table["behind_high"]).all()
    assert table["behind_low"][0] > 0  # one that learned nothing is surely worse


def test_variations() -> None:
    found = vary_settings(classifier(epochs=20, learning_rate=0.01), ["method", "lr", "epochs"])
    assert len(found) == 5 * 3 * 2
    assert {c.epochs for c in found} == {2, 20}
    assert sorted({c.learning_rate for c in found}) == pytest.approx([0.002, 0.01, 0.05])
    assert {c.flip_rate for c in found if c.method == "ccmn"} == {"class_prior"}
    assert {c.flip_rate for c in found if c.method != "ccmn"} == {None}
    assert [c.epochs for c in vary_settings(classifier(epochs=1), ["epochs"])] == [1]
    whole = [c.learning_rate for c in vary_settings(classifier(learning_rate=1), ["lr"])]
    assert whole == pytest.approx([0.2, 1, 5])
    with pytest.raises(ComesError, match="variant and flip_rate are of one method"):
        vary_settings(classifier("ccmn", flip_rate=0.3), ["method"])
    with pytest.raises(ComesError, match="what varies must be method, lr or epochs; got 'hidden'"):
        vary_settings(classifier(), ["hidden"])


def exclude(depends: bool, seed: int) -> Any:
    """Return candidates whose exclusion depends on the first feature, or on nothing."""
    rng = np.random.default_rng(seed)
    rate = np.where(X[:, :1] > 0, 0.8, 0.3) if depends else np.full((400, 1), 0.5)
    return RELEVANT | (rng.random(RELEVANT.shape) >= rate)


def test_a_rate_that_depends_on_the_row_is_found() -> None:
    check = check_constant_rate(X[:, ::-1], exclude(depends=True, seed=1), ~RELEVANT)
    assert (check.per_label["says"] == "not constant").sum() >= 2
    assert "assumption fails there" in check.conclusion
    assert check.per_label["rate"].between(0.3, 0.8).all()


def test_a_constant_rate_raises_few_alarms_and_is_not_called_proved() -> None:
    alarms = 0
    for seed in range(20):
        check = check_constant_rate(X, exclude(depends=False, seed=seed), ~RELEVANT)
        alarms += int((check.per_label["says"] == "not constant").any())
    assert alarms <= 4
    assert "does not prove a constant rate" in check.conclusion


def test_groups_are_tested_in_the_place_of_features() -> None:
    who = (X[:, 0] > 0).astype(int)
    found = check_constant_rate(X, exclude(depends=True, seed=1), ~RELEVANT, groups=who)
    assert (found.per_label["says"] == "not constant").sum() >= 2
    one = check_constant_rate(X, exclude(depends=True, seed=1), ~RELEVANT, groups=np.zeros(400))
    assert (one.per_label["says"] == "nothing found").all()


def test_too_few_rows_are_said_to_be_too_few() -> None:
    nothing = np.zeros_like(RELEVANT)
    check = check_constant_rate(X, CANDIDATES, nothing)
    assert (check.per_label["says"] == "too few rows").all()
    assert "nothing can be said" in check.conclusion
    with pytest.raises(ComesError, match="must have the same rows"):
        check_constant_rate(X[:5], CANDIDATES, nothing)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selection")
    for split, n in (("train", 400), ("test", 300)):
        scenes = make_scenes(split, n)  # type: ignore[arg-type]
        both = replace(scenes, candidates=case_b(scenes.known_relevant(), exclude_rate=0.5))
        write_dataset(both, folder / f"{split}.npz")
        write_dataset(replace(both, relevant=None), folder / f"{split}-blind.npz")
    return folder


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of priors, from few rows
def test_a_method_is_chosen_fitted_and_judged_without_a_true_label(files: Path) -> None:
    fit = ("fit", files / "train-blind.npz", "--epochs", 3, "-o", files / "model")
    shown = run(*fit, "--method", "auto", "--threshold", "risk")
    assert "Chosen: " in shown.stdout
    assert "may well be as good" in shown.stdout
    options = ("--select", "method,epochs", "--early-stopping", "--json")
    summary = json.loads(run(*fit, *options).stdout)
    assert len(summary["compared"]) == 10
    best = min(summary["compared"], key=lambda row: row["ranking_risk"])
    assert (best["behind"], best["method"]) == (0, summary["method"])
    evaluate = ("evaluate", "--model", files / "model")
    blind = run(*evaluate, files / "test-blind.npz")
    assert "No true label was used" in blind.stdout
    assert "average precision" not in blind.stdout.lower().replace("\n", " ")
    both = json.loads(run(*evaluate, files / "test.npz", "--json").stdout)
    alone = json.loads(run(*evaluate, files / "test-blind.npz", "--json").stdout)
    assert set(alone) == {"estimated"}
    loss = both["estimated"]["metrics"]["hamming_loss"]
    assert loss["true"] == pytest.approx(both["hamming_loss"])
    assert loss["low"] < loss["value"] < loss["high"]
    assert alone["estimated"]["metrics"]["hamming_loss"]["value"] == loss["value"]


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_priors_for_estimates_come_from_a_table_or_the_rows(files: Path) -> None:
    run("fit", files / "train.npz", "--method", "bce", "--epochs", 2, "-o", files / "bce")
    command = ("evaluate", files / "test-blind.npz", "--model", files / "bce", "--json")
    own = json.loads(run(*command).stdout)["estimated"]
    assert own["class_prior"] == "estimated from these rows"
    table = files / "priors.csv"
    names = make_scenes("test", 10).label_names
    table.write_text("label,class_prior\n" + "".join(f"{n},0.2\n" for n in reversed(names)))
    given = json.loads(run(*command, "--priors", table).stdout)["estimated"]
    assert given["class_prior"] == str(table)
    assert given["metrics"]["macro_f1"] != own["metrics"]["macro_f1"]
