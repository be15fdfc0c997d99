"""How good a model is: against true labels, or estimated from candidates or answers alone."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers, choose_questions
from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, ReadOptions
from comes.datasets.predictions import check_top
from comes.errors import ComesError, counted
from comes.estimator.inputs import per_label
from comes.files import check_folder_target, refuse_inputs
from comes.images import ImageClassifier
from comes.label_metrics import LabelQuality, explain_missing, list_qualities, measure_labels
from comes.metrics import (
    METRICS,
    Convention,
    count_degenerate,
    count_empty_rows,
    evaluate,
    evaluate_top,
)
from comes.priors import estimate_class_prior, read_priors
from comes.selection import check_ranking_risk, check_reliability, estimate_metrics
from comes.selection.estimates import MetricEstimates
from comes.selection.intervals import OVER_LABELS, prior_error
from comes.workflows.data import reading_files
from comes.workflows.predict import (
    Classifier,
    as_model,
    name_source,
    open_for_model,
    rates_of_people,
    score_dataset,
)

FloatArray = npt.NDArray[np.floating]
SEEN_SHARE = 0.02  # of the rows: more are hardly equal by chance
COMPARED = (1, 3, 5)  # labels of a row, as the field prints it
GOOD_F1 = 0.9  # labels below may be called weak
N_NAMED = 3  # labels or pairs that advice names
# What the verdict is about: how far this metric is from guessing (0) to the best (1).
HEADLINES = ("macro_auc", "macro_f1", "macro_recall", "hamming_loss")
GRADES = {0.8: "very good", 0.6: "good", 0.3: "fair", 0.1: "weak"}
NO_BETTER = "hardly better than guessing"
SOURCES = {"candidates": "candidates", "answers": "answers", "positives": "ticked labels"}
ASSUMED = {
    "candidates": "irrelevant labels are excluded at a constant rate",
    "answers": "no and yes come at constant rates, about pairs asked at random",
    "positives": "relevant labels are ticked at a constant rate",
}
# What would be good of an estimated metric, and what a model gets that guesses.
HINTS = {
    "hamming_loss": "0 is best; predicting nothing gives {:.2f}",
    "macro_recall": "1 is best; guessing gives {:.2f}, the share that is predicted",
    "macro_precision": "1 is best; guessing gives {:.2f}",
    "macro_f1": "1 is best; predicting every label gives {:.2f}",
    "macro_auc": "1 is best; guessing gives {}",
    "ranking_risk": "lower is better; guessing gives {:.2f}",
}


@dataclass(frozen=True)
class Judgement:
    """How good a model is on one data set: by true labels, estimated without them, or both.

    Of what is estimated, ``metrics`` has value, low and high, labels (how many it is over), reason
    (why it is not known) and, where true labels are known, true.
    """

    n_rows: int
    method: str
    convention: Convention
    metrics: dict[str, float] | None = None
    degenerate: dict[str, int] = field(default_factory=dict)  # rows that conventions differ on
    by_label: list[LabelQuality] = field(default_factory=list)  # by true labels, the worst first
    estimated: dict[str, Any] | None = None  # what answers tell
    n_seen: int = 0  # rows that training saw, for which all numbers are too good

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        found: dict[str, Any] = {"rows_seen_in_training": self.n_seen} if self.n_seen else {}
        if self.metrics is not None:
            found |= self.metrics | self.degenerate | {"convention": self.convention}
        if self.by_label:
            found["by_label"] = [quality.as_dict() for quality in self.by_label]
        if self.estimated is not None:
            by_label = [quality.as_dict() for quality in self.estimated["by_label"]]
            found["estimated"] = self.estimated | {"by_label": by_label}
        return found

    @property
    def qualities(self) -> list[LabelQuality]:
        """Each label by the best source there is, the worst first."""
        return self.by_label or (self.estimated or {}).get("by_label", [])

    def verdict(self) -> str:
        """Return in two sentences how good the model is, and how sure that is."""
        good, sure = "No row has a relevant label:", "how good the model is, is unknown."
        shares = [quality.counts["relevant"] / self.n_rows for quality in self.by_label]
        if self.metrics is not None and any(shares):
            value = self.metrics["mean_average_precision"]
            chance = float(np.mean([share for share in shares if share]))
            half = np.median([width_of_f1(quality) for quality in self.by_label]) / 2
            good = (
                f"By true labels, the model is {grade(value, chance)}: mAP {value:.3f}, where 1 is "
                f"best and guessing gives {chance:.2f}."
            )
            sure = (
                f"That is measured on {counted(self.n_rows, 'row')}; the F1 of one label is known "
                f"to about ± {half:.2f}."
            )
        elif self.estimated is not None:
            good, sure = _judge_estimates(self.estimated, self.n_rows)
        if self.n_seen:
            sure = (
                f"The numbers are too good: training saw {self.n_seen} of these {self.n_rows} rows;"
                " judge the model by rows that were held out."
            )
        return f"{good} {sure}"


def width_of_f1(quality: LabelQuality) -> float:
    """Return how wide the interval of the F1 of a label is; 1 where nothing is known of it."""
    low, high = quality.metrics["f1"].low, quality.metrics["f1"].high
    return 1.0 if low is None or high is None else high - low


def grade(value: float, chance: float, best: float = 1.0) -> str:
    """Return a word for how far a metric is from guessing to the best."""
    skill = (value - chance) / (best - chance) if best != chance else 0.0
    return next((word for least, word in GRADES.items() if skill >= least), NO_BETTER)


def _judge_estimates(estimated: Mapping[str, Any], n_rows: int) -> tuple[str, str]:
    """Return how good a model is by estimates, and how sure that is, a sentence each."""
    source, assumed = SOURCES[estimated["from"]], ASSUMED[estimated["from"]]
    if estimated["contradiction"] is not None:
        return "The estimates cannot be right:", estimated["contradiction"]
    metrics = estimated["metrics"]
    name = next((name for name in HEADLINES if metrics[name]["reason"] is None), None)
    if name is None:
        return (
            f"How good the model is cannot be estimated from these {source}.",
            f"The reason: {metrics[HEADLINES[0]]['reason']}.",
        )
    found, chance = metrics[name], chance_levels(estimated["by_label"], n_rows)[name]
    best = 0.0 if name == "hamming_loss" else 1.0
    low, high = (grade(found[end], chance, best) for end in ("low", "high"))
    low, high = (high, low) if best == 0 else (low, high)
    between = low if low == high else f"between {low} and {high}"
    ends = f"{found['low']:.3f} to {found['high']:.3f}"
    n_labels, n_judged = estimated["labels"], found["labels"]
    over = f" over {n_judged} of {n_labels} labels" if n_judged < n_labels else ""
    return (
        f"Estimated from {source} alone, the model is {between}: {title_of(name)}{over} "
        f"{found['value']:.3f} (95 % interval {ends}; {best:g} is best, guessing gives "
        f"{chance:.2g}).",
        f"No true label was used: that holds if {assumed}, and the class prior "
        f"({estimated['class_prior']}) is right.",
    )


def chance_levels(by_label: list[LabelQuality], n_rows: int) -> dict[str, float]:
    """Return what estimated metrics are of a model that guesses, by class priors (see HINTS)."""
    prior = np.array([quality.counts["class_prior"] for quality in by_label], dtype=float)
    return {
        "hamming_loss": float(prior.mean()),
        "macro_precision": float(prior.mean()),
        "macro_f1": float((2 * prior / (1 + prior)).mean()),
        "macro_auc": 0.5,
        "macro_recall": float(np.mean([q.counts["predicted"] for q in by_label]) / n_rows),
        "ranking_risk": float((1 - prior).sum() * (len(prior) - 1) / 2),
    }


def title_of(name: str) -> str:
    """Return the name of an estimated metric as it is printed."""
    return name.replace("_", " ").replace("auc", "AUC").replace("f1", "F1")


def judge_model(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    *,
    reading: ReadOptions | None = None,
    priors: str | Path | None = None,
    convention: Convention = "pml",
) -> Judgement:
    """Judge a model by true labels, by candidates or answers, or by both, as the data has them.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Rows that training did not see.
    reading : ReadOptions, optional
        What the columns of a file mean.
    priors : path, optional
        A table of class priors for the estimates; by default the model's own.
    convention : {"pml", "sklearn"}

    Returns
    -------
    judgement : Judgement
        ``verdict()`` says it in two sentences, and ``as_dict()`` has all numbers.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=300)
    >>> model = CandidateClassifier("bce", epochs=2, random_state=0)
    >>> judged = judge_model(model.fit(scenes.X, scenes.relevant), scenes)
    >>> judged.method, judged.metrics["average_precision"] > 0.3
    ('bce', True)
    """
    classifier = as_model(model)
    dataset = open_for_model(classifier, data, reading)
    if priors is not None and dataset.answers is None:
        raise ComesError("priors (--priors) are for estimates from candidates; the data has none.")
    return _judge(classifier, dataset, score_dataset(classifier, dataset), priors, convention)


def _judge(
    classifier: Classifier,
    dataset: Dataset,
    scores: FloatArray,
    priors: str | Path | None = None,
    convention: Convention = "pml",
) -> Judgement:
    """Judge the scores, (n, q), that a model gave to the rows of a data set with its labels."""
    cut, n_seen = classifier.cut_scores(scores), count_seen(classifier, dataset)
    truth: dict[str, Any] = {}
    if dataset.relevant is not None:
        relevant = dataset.known_relevant()
        table = measure_labels(scores, relevant, cut)
        counts = {"n_relevant": "relevant", "n_predicted": "predicted"}
        truth = {
            "metrics": evaluate(scores, relevant, cut, convention),
            "degenerate": count_degenerate(relevant),
            "by_label": list_qualities(table, dataset.label_names, counts),
        }
    estimated = None
    if dataset.answers is not None:
        estimated = _estimate_quality(classifier, dataset, scores, cut, priors, n_seen)
    method = classifier.method_.name
    return Judgement(len(dataset), method, convention, **truth, estimated=estimated, n_seen=n_seen)


def count_seen(classifier: Classifier, dataset: Dataset) -> int:
    """Return how many rows training saw; 0 if so few that they may be equal by chance."""
    if isinstance(classifier, ImageClassifier):
        return 0
    n_seen = classifier.count_seen_rows(dataset.known_features())
    return n_seen if n_seen > SEEN_SHARE * len(dataset) else 0


def _estimate_quality(
    classifier: Classifier,
    dataset: Dataset,
    scores: FloatArray,
    cut: npt.NDArray[np.int64],
    priors: str | Path | None,
    n_seen: int,
) -> dict[str, Any]:
    """Return what answers say about the scores, beside the truth where it is known."""
    assert dataset.answers is not None
    answers, names = dataset.answers, classifier.label_names_
    prior, error, source = _find_prior(classifier, dataset, priors)
    found = estimate_metrics(scores, answers, prior, class_prior_error=error, predictions=cut)
    true: dict[str, float] = {}
    if dataset.relevant is not None:
        true = _compute_true_values(found, scores, cut, dataset.known_relevant())
    metrics: dict[str, dict[str, Any]] = {}
    for name, one in found.metrics.items():
        known = one.reason is None
        metrics[name] = {
            "value": one.value if known else None,
            "low": one.low_with_prior if known else None,
            "high": one.high_with_prior if known else None,
            "labels": len(one.labels),
            "reason": one.reason,
        } | ({"true": true[name]} if name in true else {})
    floor = None
    if not n_seen and answers.kind != "positives":
        floor = check_ranking_risk(scores, answers, prior, class_prior_error=error)
    table = found.per_label.assign(n_predicted=cut.sum(axis=0))
    counts = {"n_excluded": "no" if answers.kind == "answers" else "excluded"}
    if answers.kind != "candidates":
        table["n_confirmed"] = answers.without_chosen().confirmed.sum(axis=0)
        counts["n_confirmed"] = "yes" if answers.kind == "answers" else "ticked"
    counts |= {"n_predicted": "predicted", "class_prior": "class_prior"}
    return {
        "metrics": metrics,
        "class_prior": source,
        "prior_error": found.prior_error,
        "left_out": [names[label] for label in found.left_out],
        "labels": len(names),
        "from": answers.kind,
        "contradiction": None if floor is None or floor.is_possible else floor.conclusion,
        "rows_seen_in_training": n_seen,
        "by_label": list_qualities(table, names, counts),
    }


def _find_prior(
    classifier: Classifier, dataset: Dataset, priors: str | Path | None
) -> tuple[Any, Any, str]:
    """Return the class prior to judge with, its standard error, and where it comes from."""
    if priors is not None:
        names = classifier.label_names_
        given = read_priors(priors, names)
        return per_label(given, "class_prior", names), prior_error(given), str(priors)
    if classifier.class_prior_ is not None:
        error = classifier.class_prior_error_
        way = "given" if error is None else "estimated"
        return classifier.class_prior_, error, f"of the model, {way}"
    if isinstance(classifier, ImageClassifier):
        raise ComesError(
            "this image model has no class prior, and judging by candidates needs one: give it "
            "(--priors)."
        )
    estimate = estimate_class_prior(dataset.known_features(), dataset.known_answers())
    return estimate.class_prior, prior_error(estimate), "estimated from these rows"


def _compute_true_values(
    found: MetricEstimates, scores: FloatArray, cut: npt.NDArray[np.int64], relevant: BoolMatrix
) -> dict[str, float]:
    """Return the true values of the estimated metrics, each over the labels of its estimate.

    With the true labels as candidates and their shares as prior, the estimates are exact.
    """
    exact = estimate_metrics(
        scores, relevant, relevant.mean(axis=0), predictions=cut, n_resamples=0
    ).per_label
    true = {}
    for name, estimate in found.metrics.items():
        values = exact[OVER_LABELS[name]].iloc[list(estimate.labels)]
        if len(values):
            true[name] = float(values.sum() if name == "ranking_risk" else values.mean())
    return true


def judge_top(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    top: int = 5,
    *,
    reading: ReadOptions | None = None,
) -> dict[str, float]:
    """Compare the best labels of every row with the true labels, without a matrix of all scores.

    P@k and nDCG@k are computed for k = 1, 3 and 5 up to ``top``, and for itself. Rows without a
    relevant label, which count 0, are counted, as are those that training saw, if there are any.
    """
    classifier = as_model(model)
    check_top(top, len(classifier.label_names_))
    dataset = open_for_model(classifier, data, reading)
    relevant = dataset.known_relevant()
    is_of_images = isinstance(classifier, ImageClassifier)
    X = dataset.known_images() if is_of_images else dataset.known_features()
    ks = sorted({k for k in COMPARED if k < top} | {top})
    metrics = evaluate_top(classifier.predict_top(X, top).labels, relevant, ks)
    n_seen = count_seen(classifier, dataset)
    seen = {"rows_seen_in_training": n_seen} if n_seen else {}
    n_empty = count_empty_rows(relevant)
    return metrics | {"rows": len(dataset), "rows_without_relevant": n_empty} | seen


def report_model(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
    priors: str | Path | None = None,
    n_examples: int | None = None,
    seed: int = 0,
) -> Path:
    """Write a page about a model: how good it is, how sure that is, what to do next, and some rows.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Rows or images that training did not see, with true labels, candidates or answers.
    folder : path
        Folder for the page.
    reading : ReadOptions, optional
        What the columns of a file mean.
    priors : path, optional
        A table of class priors for the estimates; by default the model's own.
    n_examples : int, optional
        How many rows or images to show at most: the most confident, the most doubtful, and some
        others. By default 40 rows or 60 images.
    seed : int
        Of the others.

    Returns
    -------
    page : Path

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> page = report_model(model, scenes, Path(tempfile.mkdtemp()) / "page", n_examples=8)
    >>> "mAP" in page.read_text(encoding="utf-8")
    True
    """
    from comes.report import write_model_page  # which draws plots

    check_folder_target(folder, ("index.html",))
    refuse_inputs(folder, model, data, priors, *reading_files(reading))
    classifier = as_model(model)
    dataset = open_for_model(classifier, data, reading)
    are_images = isinstance(classifier, ImageClassifier)
    X = dataset.known_images() if are_images else dataset.known_features()
    scores = score_dataset(classifier, dataset)
    judged = _judge(classifier, dataset, scores, priors)
    probabilities = classifier.squash_scores(scores)
    return write_model_page(
        X,
        classifier.label_names_,
        probabilities,
        classifier.cut_scores(scores),
        folder,
        title=f"{name_source(model, 'A model')} on {name_source(data, 'data')}: how good it is",
        verdict=judged.verdict(),
        steps=_advise(classifier, dataset, judged, probabilities, (model, data)),
        facts={"data": str(dataset), "method": judged.method},
        quality=_list_quality(classifier, dataset, judged, probabilities),
        answers=dataset.answers,
        relevant=None if dataset.relevant is None else dataset.known_relevant(),
        rates={"no": classifier.no_rate_, "yes": classifier.yes_rate_},
        class_prior=None if classifier.class_prior_ is None else classifier,
        items=None if are_images else dataset.items,
        history=classifier.history_,
        n_examples=n_examples or (60 if are_images else 40),
        seed=seed,
    )


def _advise(
    classifier: Classifier,
    dataset: Dataset,
    judged: Judgement,
    probabilities: FloatArray,
    paths: tuple[Any, Any],
) -> list[tuple[str, str]]:
    """Return what to do next, and a command for it where model and data are files."""
    model, data = (shlex.quote(str(p)) if isinstance(p, str | Path) else "" for p in paths)
    has_files = bool(model and data)
    steps = []
    if judged.n_seen:
        command = f"comes split {data}" if has_files else ""
        steps.append(("Hold rows out, train on the others, and judge the model again.", command))
    if judged.estimated is not None and judged.estimated["contradiction"] is not None:
        command = f"comes priors {data} --check --clean CLEAN.csv" if has_files else ""
        text = "Have a few rows labelled with care, and test the constant rate on them."
        steps.append((text, command))
    by_label = judged.qualities
    weak = [q for q in by_label if (f1 := q.metrics["f1"].value) is not None and f1 < GOOD_F1]
    if weak:
        named = "; ".join(f"{quality.label}: {quality.metrics['f1']}" for quality in weak[:N_NAMED])
        steps.append((f"Look at the weakest labels by F1, and at their rows below: {named}.", ""))
    unsure = sorted(by_label, key=width_of_f1, reverse=True)
    if unsure and judged.estimated is not None:
        named = ", ".join(quality.label for quality in unsure[:N_NAMED])
        steps.append((f"Ask more about {named}: of these the F1 is least sure.", ""))
    questions = choose_questions(
        probabilities,
        N_NAMED,
        answers=dataset.answers,
        rates=rates_of_people(classifier, dataset.answers),
    )
    if dataset.items is not None and len(questions.row) and judged.metrics is None:
        pairs = ", ".join(
            f"{dataset.items[i]}: {classifier.label_names_[j]} ({probabilities[i, j]:.2f})"
            for i, j in zip(questions.row, questions.label, strict=True)
        )
        command = (
            f"comes predict {data} --model {model} -o predictions.csv --ask-next next.csv "
            f"--asked {data}"
        )
        text = f"Of what nobody was asked here, these pairs would tell the model most: {pairs}."
        steps.append((text, command if has_files else ""))
    return steps


def _list_quality(
    classifier: Classifier, dataset: Dataset, judged: Judgement, probabilities: FloatArray
) -> dict[str, dict[str, Any]]:
    """Return what is known of a model from the truth and from answers, as a page shows it."""
    found: dict[str, dict[str, Any]] = {}
    if judged.metrics is not None:
        relevant = dataset.known_relevant()
        guess = np.random.default_rng(0).random(relevant.shape)
        chance = evaluate(guess, relevant, np.zeros_like(relevant))
        n_present = relevant.any(axis=0).sum() * len(relevant)
        chance["mean_average_precision"] = relevant.sum() / max(n_present, 1)
        overall = [
            (
                metric.title,
                f"{judged.metrics[name]:.3f}",
                f"{int(metric.higher_is_better)} is best; "
                f"{'predicting nothing' if name == 'hamming_loss' else 'guessing'} gives "
                f"{chance[name]:.2f}",
            )
            for name, metric in METRICS.items()
        ]
        truth = Answers(no=~relevant, yes=relevant)
        found["true labels"] = {
            "overall": overall,
            "by_label": judged.by_label,
            "calibration": check_reliability(probabilities, truth, 1.0, 1.0),
            "notes": explain_missing(judged.by_label),
        }
    estimated = judged.estimated
    if estimated is not None and dataset.answers is not None:
        chances = chance_levels(estimated["by_label"], judged.n_rows)
        found[SOURCES[estimated["from"]]] = {
            "overall": [
                (
                    title_of(name),
                    f"{one['value']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
                    if one["reason"] is None
                    else "not known",
                    one["reason"] or HINTS[name].format(chances[name]),
                )
                for name, one in estimated["metrics"].items()
            ],
            "by_label": estimated["by_label"],
            "calibration": _calibrate(classifier, dataset.answers, probabilities),
            "notes": [
                f"Uncertainty of the class prior in the intervals: {estimated['prior_error']}.",
                *explain_missing(estimated["by_label"]),
            ],
        }
    return found


def _calibrate(
    classifier: Classifier, answers: Answers, probabilities: FloatArray
) -> pd.DataFrame | None:
    """Return how far probabilities are right by answers; None where their rates are not known."""
    no_rate, yes_rate = classifier.no_rate_, classifier.yes_rate_
    if no_rate is None and answers.kind == "candidates" and classifier.class_prior_ is not None:
        irrelevant = np.clip(1 - np.asarray(classifier.class_prior_), 1e-6, None)
        no_rate = np.clip(answers.excluded.mean(axis=0) / irrelevant, 0, 1)
    if no_rate is None or (yes_rate is None and answers.kind != "candidates"):
        return None
    yes = np.zeros_like(no_rate) if yes_rate is None else yes_rate
    return check_reliability(probabilities, answers, no_rate, yes)
