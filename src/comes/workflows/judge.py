"""How good a model is: against true labels, or estimated from candidates or answers alone."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers
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
    evaluate,
    evaluate_top,
)
from comes.priors import estimate_class_prior, read_priors
from comes.selection import check_ranking_risk, check_reliability, estimate_metrics
from comes.selection.intervals import prior_error
from comes.workflows.data import reading_files
from comes.workflows.predict import (
    Classifier,
    as_model,
    inputs_of,
    list_questions,
    name_source,
    open_for_model,
    score_dataset,
)

FloatArray = npt.NDArray[np.floating]
SEEN_SHARE = 0.02  # of the rows: more are hardly equal by chance
GOOD_F1 = 0.9  # labels below may be called weak
N_NAMED = 3  # labels or pairs that advice names
# What the verdict is about: how far this metric is from guessing (0) to the best (1).
HEADLINES = ("macro_auc", "macro_f1", "macro_recall", "hamming_loss")
GRADES = {0.8: "very good", 0.6: "good", 0.3: "fair", 0.1: "weak"}
# What estimates are from, and what they assume of it.
SOURCES = {
    "candidates": ("candidates", "irrelevant labels are excluded at a constant rate"),
    "answers": ("answers", "no and yes come at constant rates, about pairs asked at random"),
    "positives": ("ticked labels", "relevant labels are ticked at a constant rate"),
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

    Of what is estimated, ``metrics`` has value, low and high, labels (how many it is over), and
    reason (why it is not known).
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
            good, sure = self._judge_estimates(self.estimated)
        if self.n_seen:
            sure = (
                f"The numbers are too good: training saw {self.n_seen} of these {self.n_rows} rows;"
                " judge the model by rows that were held out."
            )
        return f"{good} {sure}"

    def _judge_estimates(self, estimated: dict[str, Any]) -> tuple[str, str]:
        """Return how good the model is by estimates, and how sure that is."""
        source, assumed = SOURCES[estimated["from"]]
        if estimated["contradiction"] is not None:
            return "The estimates cannot be right:", estimated["contradiction"]
        metrics = estimated["metrics"]
        name = next((name for name in HEADLINES if metrics[name]["reason"] is None), None)
        if name is None:
            return (
                f"How good the model is cannot be estimated from these {source}.",
                f"The reason: {metrics[HEADLINES[0]]['reason']}.",
            )
        found, chance = metrics[name], chance_levels(estimated["by_label"], self.n_rows)[name]
        best = 0.0 if name == "hamming_loss" else 1.0
        worse, better = ("high", "low") if name == "hamming_loss" else ("low", "high")
        grades = dict.fromkeys(grade(found[end], chance, best) for end in (worse, better))
        how_good = f"between {' and '.join(grades)}" if len(grades) > 1 else next(iter(grades))
        n_labels, n_judged = estimated["labels"], found["labels"]
        over = f" over {n_judged} of {n_labels} labels" if n_judged < n_labels else ""
        return (
            f"Estimated from {source} alone, the model is {how_good}: {title_of(name)}{over} "
            f"{found['value']:.3f} (95 % interval {found['low']:.3f} to {found['high']:.3f}; "
            f"{best:g} is best, guessing gives {chance:.2g}).",
            f"No true label was used: that holds if {assumed}, and the class prior "
            f"({estimated['class_prior']}) is right.",
        )


def width_of_f1(quality: LabelQuality) -> float:
    """Return how wide the interval of the F1 of a label is; 1 where nothing is known of it."""
    low, high = quality.metrics["f1"].low, quality.metrics["f1"].high
    return 1.0 if low is None or high is None else high - low


def grade(value: float, chance: float, best: float = 1.0) -> str:
    """Return a word for how far a metric is from guessing to the best."""
    skill = (value - chance) / (best - chance) if best != chance else 0.0
    return next(
        (word for least, word in GRADES.items() if skill >= least), "hardly better than guessing"
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
    found: dict[str, Any] = {"n_seen": n_seen}
    if dataset.relevant is not None:
        relevant = dataset.known_relevant()
        table = measure_labels(scores, relevant, cut)
        counts = {"n_relevant": "relevant", "n_predicted": "predicted"}
        found |= {
            "metrics": evaluate(scores, relevant, cut, convention),
            "degenerate": count_degenerate(relevant),
            "by_label": list_qualities(table, dataset.label_names, counts),
        }
    if dataset.answers is not None:
        found["estimated"] = _estimate_quality(classifier, dataset, scores, cut, priors, n_seen)
    return Judgement(len(dataset), classifier.method_.name, convention, **found)


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
    """Return what answers say about the scores."""
    answers, names = dataset.known_answers(), classifier.label_names_
    prior, error, source = _find_prior(classifier, dataset, priors)
    found = estimate_metrics(scores, answers, prior, class_prior_error=error, predictions=cut)
    metrics: dict[str, dict[str, Any]] = {}
    for name, one in found.metrics.items():
        metrics[name] = dict.fromkeys(("value", "low", "high"))
        if one.reason is None:
            ends = {"low": one.low_with_prior, "high": one.high_with_prior}
            metrics[name] = {"value": one.value, **ends}
        metrics[name] |= {"labels": len(one.labels), "reason": one.reason}
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
    prior, error = classifier.class_prior_, classifier.class_prior_error_
    if priors is not None:
        given = read_priors(priors, classifier.label_names_)
        prior = per_label(given, "class_prior", classifier.label_names_)
        return prior, prior_error(given), str(priors)
    if prior is not None:
        return prior, error, f"of the model, {'given' if error is None else 'estimated'}"
    if isinstance(classifier, ImageClassifier):
        raise ComesError(
            "this image model has no class prior, and judging by candidates needs one: give it "
            "(--priors)."
        )
    estimate = estimate_class_prior(dataset.known_features(), dataset.known_answers())
    return estimate.class_prior, prior_error(estimate), "estimated from these rows"


def judge_top(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    top: int = 5,
    *,
    reading: ReadOptions | None = None,
) -> dict[str, float]:
    """Compare the best labels of every row with the true labels, without a matrix of all scores.

    P@k and nDCG@k are computed for k = 1, 3 and 5 up to ``top``, and for itself.
    """
    classifier = as_model(model)
    check_top(top, len(classifier.label_names_))
    dataset = open_for_model(classifier, data, reading)
    relevant = dataset.known_relevant()
    best = classifier.predict_top(inputs_of(classifier, dataset), top).labels
    found = evaluate_top(best, relevant, sorted({k for k in (1, 3, 5) if k < top} | {top}))
    n_empty = int((relevant.sum(axis=1) == 0).sum())
    found |= {"rows": len(dataset), "rows_without_relevant": n_empty}
    n_seen = count_seen(classifier, dataset)
    return found | ({"rows_seen_in_training": n_seen} if n_seen else {})


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
    scores = score_dataset(classifier, dataset)
    judged = _judge(classifier, dataset, scores, priors)
    probabilities = classifier.squash_scores(scores)
    return write_model_page(
        inputs_of(classifier, dataset),
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
    steps = []

    def advise(text: str, command: str = "") -> None:
        steps.append((text, command if model and data else ""))

    if judged.n_seen:
        text = "Hold rows out, train on the others, and judge the model again."
        advise(text, f"comes split {data}")
    if judged.estimated is not None and judged.estimated["contradiction"] is not None:
        text = "Have a few rows labelled with care, and test the constant rate on them."
        advise(text, f"comes priors {data} --check --clean CLEAN.csv")
    by_label = judged.qualities
    weak = [q for q in by_label if (f1 := q.metrics["f1"].value) is not None and f1 < GOOD_F1]
    if weak:
        named = "; ".join(f"{quality.label}: {quality.metrics['f1']}" for quality in weak[:N_NAMED])
        advise(f"Look at the weakest labels by F1, and at their rows below: {named}.")
    unsure = sorted(by_label, key=width_of_f1, reverse=True)
    if unsure and judged.estimated is not None:
        named = ", ".join(quality.label for quality in unsure[:N_NAMED])
        advise(f"Ask more about {named}: of these the F1 is least sure.")
    if dataset.items is not None and judged.metrics is None:
        asked = list_questions(classifier, probabilities, dataset.items, N_NAMED, dataset.answers)
        rows = asked.itertuples()
        pairs = ", ".join(f"{row.item}: {row.label} ({row.probability:.2f})" for row in rows)
        if pairs:
            advise(
                f"Of what nobody was asked here, these pairs would tell the model most: {pairs}.",
                f"comes predict {data} --model {model} -o predictions.csv --ask-next next.csv "
                f"--asked {data}",
            )
    return steps


def _list_quality(
    classifier: Classifier, dataset: Dataset, judged: Judgement, probabilities: FloatArray
) -> dict[str, dict[str, Any]]:
    """Return what is known of a model from the truth and from answers, as a page shows it."""
    found: dict[str, dict[str, Any]] = {}
    overall = []
    if judged.metrics is not None:
        relevant = dataset.known_relevant()
        guess = np.random.default_rng(0).random(relevant.shape)
        chance = evaluate(guess, relevant, np.zeros_like(relevant))
        n_present = relevant.any(axis=0).sum() * len(relevant)
        chance["mean_average_precision"] = relevant.sum() / max(n_present, 1)
        for name, metric in METRICS.items():
            guessing = "predicting nothing" if name == "hamming_loss" else "guessing"
            hint = f"{metric.higher_is_better:d} is best; {guessing} gives {chance[name]:.2f}"
            overall.append((metric.title, f"{judged.metrics[name]:.3f}", hint))
        truth = Answers(no=~relevant, yes=relevant)
        found["true labels"] = {
            "overall": overall,
            "by_label": judged.by_label,
            "calibration": check_reliability(probabilities, truth, 1.0, 1.0),
            "notes": explain_missing(judged.by_label),
        }
    estimated = judged.estimated
    if estimated is not None and dataset.answers is not None:
        chance, overall = chance_levels(estimated["by_label"], judged.n_rows), []
        for name, one in estimated["metrics"].items():
            shown, hint = "not known", one["reason"]
            if hint is None:
                shown = f"{one['value']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
                hint = HINTS[name].format(chance[name])
            overall.append((title_of(name), shown, hint))
        found[SOURCES[estimated["from"]][0]] = {
            "overall": overall,
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
