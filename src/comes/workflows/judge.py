"""How good a model is: against true labels, or estimated from candidates or answers alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.answers.matrix import Kind
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
from comes.report import KnownLabels, ReportedQuality, write_examples, write_row_report
from comes.selection import Estimate, check_ranking_risk, check_reliability, estimate_metrics
from comes.selection.checks import RankingFloor
from comes.selection.estimates import MetricEstimates
from comes.selection.intervals import OVER_LABELS, prior_error
from comes.workflows.data import reading_files
from comes.workflows.predict import (
    Classifier,
    as_model,
    open_for_model,
    score_dataset,
)

COUNTS = {"n_relevant": "relevant", "n_predicted": "predicted"}
SEEN_SHARE = 0.02  # of the rows: more are hardly equal by chance


@dataclass(frozen=True)
class JudgedMetric:
    """An estimated metric with a 95 % interval, or the reason why it is not known."""

    name: str
    value: float | None  # None, as the ends, if there is a reason
    low: float | None
    high: float | None
    n_labels: int  # that it is over
    reason: str | None = None
    true: float | None = None  # over the same labels, where true labels are known

    @classmethod
    def of(cls, name: str, estimate: Estimate, true: float | None) -> "JudgedMetric":
        """Return an estimate as it may be shown."""
        n_labels = len(estimate.labels)
        if estimate.reason is not None:
            return cls(name, None, None, None, n_labels, estimate.reason, true)
        low, high = estimate.low_with_prior, estimate.high_with_prior
        return cls(name, estimate.value, low, high, n_labels, true=true)

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        found: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        found |= {"labels": self.n_labels, "reason": self.reason}
        return found if self.true is None else found | {"true": self.true}


@dataclass(frozen=True)
class EstimatedQuality:
    """What candidates or answers tell about a model; no true label was used."""

    metrics: list[JudgedMetric]
    prior_source: str  # where the class prior comes from
    prior_error: str  # and its uncertainty
    left_out: list[str] = field(default_factory=list)  # labels that no row excludes
    n_labels: int = 0
    kind: Kind = "candidates"
    n_seen: int = 0  # rows with the features of a row that training saw
    floor: RankingFloor | None = None  # whether the ranking risk is possible
    by_label: list[LabelQuality] = field(default_factory=list)  # the worst first

    def reasons(self) -> dict[str, list[str]]:
        """Return why metrics are not known, each reason with the names of its metrics."""
        found: dict[str, list[str]] = {}
        for metric in self.metrics:
            if metric.reason is not None:
                found.setdefault(metric.reason, []).append(metric.name)
        return found

    @property
    def contradiction(self) -> str | None:
        """Why the assumption or the class priors cannot be right; None if nothing says so."""
        return None if self.floor is None or self.floor.is_possible else self.floor.conclusion

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        return {
            "metrics": {metric.name: metric.as_dict() for metric in self.metrics},
            "class_prior": self.prior_source,
            "prior_error": self.prior_error,
            "left_out": self.left_out,
            "labels": self.n_labels,
            "from": self.kind,
            "contradiction": self.contradiction,
            "rows_seen_in_training": self.n_seen,
            "by_label": [quality.as_dict() for quality in self.by_label],
        }


@dataclass(frozen=True)
class Judgement:
    """How good a model is on one data set.

    Attributes
    ----------
    n_rows : int
    method : str
    convention : str
        Convention of the metrics.
    metrics : dict of str to float, or None
        Metrics against true labels, if they are known.
    degenerate : dict of str to int
        Rows that the conventions treat differently.
    estimated : EstimatedQuality, or None
        Estimates from candidates or answers, if the data has any.
    by_label : list of LabelQuality
        Each label against true labels, if they are known, the worst first.
    n_seen : int
        Rows with the features of a row that training saw, for which all numbers are too good.
    """

    n_rows: int
    method: str
    convention: Convention
    metrics: dict[str, float] | None
    degenerate: dict[str, int]
    estimated: EstimatedQuality | None = None
    by_label: list[LabelQuality] = field(default_factory=list)
    n_seen: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        found: dict[str, Any] = {"rows_seen_in_training": self.n_seen} if self.n_seen else {}
        if self.metrics is not None:
            found |= self.metrics | self.degenerate | {"convention": self.convention}
        if self.by_label:
            found["by_label"] = [quality.as_dict() for quality in self.by_label]
        if self.estimated is not None:
            found["estimated"] = self.estimated.as_dict()
        return found


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
    scores = score_dataset(classifier, dataset)
    return judge_scores(classifier, dataset, scores, priors=priors, convention=convention)


def judge_scores(
    classifier: Classifier,
    dataset: Dataset,
    scores: npt.NDArray[np.floating],
    *,
    priors: str | Path | None = None,
    convention: Convention = "pml",
) -> Judgement:
    """Judge the scores, (n, q), that a model gave to the rows of a data set with its labels."""
    cut, n_seen = classifier.cut_scores(scores), count_seen(classifier, dataset)
    metrics, degenerate, estimated, by_label = None, {}, None, []
    if dataset.relevant is not None:
        relevant = dataset.known_relevant()
        metrics = evaluate(scores, relevant, cut, convention)
        degenerate = count_degenerate(relevant)
        table = measure_labels(scores, relevant, cut)
        by_label = list_qualities(table, dataset.label_names, COUNTS)
    if dataset.answers is not None:
        estimated = _estimate_quality(classifier, dataset, scores, cut, priors, n_seen)
    n, method = len(dataset), classifier.method_.name
    return Judgement(n, method, convention, metrics, degenerate, estimated, by_label, n_seen)


def count_seen(classifier: Classifier, dataset: Dataset) -> int:
    """Return how many rows training saw; 0 if so few that they may be equal by chance."""
    if isinstance(classifier, ImageClassifier):
        return 0
    n_seen = classifier.count_seen_rows(dataset.known_features())
    return n_seen if n_seen > SEEN_SHARE * len(dataset) else 0


def _estimate_quality(
    classifier: Classifier,
    dataset: Dataset,
    scores: npt.NDArray[np.floating],
    cut: npt.NDArray[np.int64],
    priors: str | Path | None,
    n_seen: int,
) -> EstimatedQuality:
    """Return what answers say about the scores, beside the truth where it is known."""
    assert dataset.answers is not None
    prior, error, source = _find_prior(classifier, dataset, priors)
    found = estimate_metrics(
        scores, dataset.answers, prior, class_prior_error=error, predictions=cut
    )
    true: dict[str, float] = {}
    if dataset.relevant is not None:
        true = _compute_true_values(found, scores, cut, dataset.known_relevant())
    floor = None
    if not n_seen and dataset.answers.kind != "positives":
        floor = check_ranking_risk(scores, dataset.answers, prior, class_prior_error=error)
    return EstimatedQuality(
        [JudgedMetric.of(name, e, true.get(name)) for name, e in found.metrics.items()],
        source,
        found.prior_error,
        [classifier.label_names_[label] for label in found.left_out],
        n_labels=scores.shape[1],
        kind=dataset.answers.kind,
        n_seen=n_seen,
        floor=floor,
        by_label=_estimate_labels(found, dataset.answers, cut, classifier.label_names_),
    )


def _estimate_labels(
    found: MetricEstimates, answers: Answers, cut: npt.NDArray[np.int64], names: list[str]
) -> list[LabelQuality]:
    """Return what answers say about each label, with how many there are."""
    table = found.per_label.assign(n_predicted=cut.sum(axis=0))
    counts = {"n_excluded": "no" if answers.kind == "answers" else "excluded"}
    if answers.kind != "candidates":
        table["n_confirmed"] = answers.without_chosen().confirmed.sum(axis=0)
        counts["n_confirmed"] = "yes" if answers.kind == "answers" else "ticked"
    counts |= {"n_predicted": "predicted", "class_prior": "class_prior"}
    return list_qualities(table, names, counts)


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
    X, source = dataset.known_features(), "estimated from these rows"
    assert dataset.answers is not None
    estimate = estimate_class_prior(X, dataset.answers)
    return estimate.class_prior, prior_error(estimate), source


def _compute_true_values(
    found: MetricEstimates,
    scores: npt.NDArray[np.floating],
    cut: npt.NDArray[np.int64],
    relevant: BoolMatrix,
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


COMPARED = (1, 3, 5)  # what the field prints


@dataclass(frozen=True)
class JudgedTop:
    """How good the best labels of a model are on one data set."""

    n_rows: int
    metrics: dict[str, float]
    n_empty: int  # rows without a relevant label, which count 0
    n_seen: int = 0  # rows with the features of a row that training saw

    def as_dict(self) -> dict[str, float]:
        """Return it for json."""
        seen = {"rows_seen_in_training": self.n_seen} if self.n_seen else {}
        return self.metrics | {"rows": self.n_rows, "rows_without_relevant": self.n_empty} | seen


def judge_top(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    top: int = 5,
    *,
    reading: ReadOptions | None = None,
) -> JudgedTop:
    """Compare the best labels of every row with the true labels, without a matrix of all scores.

    P@k and nDCG@k are computed for k = 1, 3 and 5 up to ``top``, and for itself.
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
    return JudgedTop(len(dataset), metrics, count_empty_rows(relevant), n_seen)


FloatArray = npt.NDArray[np.floating]


def list_reported(
    classifier: Classifier, dataset: Dataset, judged: Judgement, probabilities: FloatArray
) -> list[ReportedQuality]:
    """Return what is known of a model from the truth and from answers, whichever there are."""
    found = []
    if judged.metrics is not None and dataset.relevant is not None:
        overall = {METRICS[name].title: f"{value:.3f}" for name, value in judged.metrics.items()}
        truth = Answers(no=~dataset.known_relevant(), yes=dataset.known_relevant())
        bins = check_reliability(probabilities, truth, 1.0, 1.0)
        notes = [*warn_of_seen(judged.n_seen), *explain_missing(judged.by_label)]
        found.append(ReportedQuality("true labels", overall, judged.by_label, bins, notes))
    estimated = judged.estimated
    if estimated is not None and dataset.answers is not None:
        found.append(
            ReportedQuality(
                "ticked labels" if estimated.kind == "positives" else estimated.kind,
                {m.name.replace("_", " "): _write_estimate(m) for m in estimated.metrics},
                estimated.by_label,
                _calibrate(classifier, dataset.answers, probabilities),
                _explain_estimates(estimated),
            )
        )
    return found


def warn_of_seen(n_seen: int) -> list[str]:
    """Return a sentence about rows that training saw, if there are any."""
    if not n_seen:
        return []
    return [
        f"{counted(n_seen, 'row', 'have')} the features of rows that training saw: the numbers are "
        "too good for them. Take rows that were held out."
    ]


def _write_estimate(metric: Any) -> str:
    """Return an estimated metric with its interval, or that it is not known."""
    if metric.value is None:
        return "not known"
    return f"{metric.value:.3f} ({metric.low:.3f} to {metric.high:.3f})"


def _explain_estimates(estimated: EstimatedQuality) -> list[str]:
    """Return what the estimates rely on, and what stands against them."""
    notes = [
        "No true label was used. The estimates hold for rows that training did not see, if the "
        f"rates are constant and the class prior (here: {estimated.prior_source}) is right; "
        f"uncertainty of the prior in the intervals: {estimated.prior_error}."
    ]
    notes += warn_of_seen(estimated.n_seen)
    if estimated.contradiction is not None:
        notes.append(estimated.contradiction)
    for reason, names in estimated.reasons().items():
        notes.append(f"Not known: {', '.join(names).replace('_', ' ')}: {reason}.")
    return notes + explain_missing(estimated.by_label)


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


class WrittenPage(NamedTuple):
    """A page about a model, and how much data it is about.

    Examples
    --------
    >>> WrittenPage(Path("page/index.html"), 100, "rows").what
    'rows'
    """

    page: Path
    n_rows: int
    what: str  # rows or images


def report_model(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
    n_examples: int | None = None,
    seed: int = 0,
) -> WrittenPage:
    """Write the page about a model of images (`show_examples`) or of a table (`report_rows`).

    Parameters
    ----------
    model, data, folder, reading, seed
        As in `show_examples`.
    n_examples : int, optional
        How many rows or images to show at most; by default 40 rows or 60 images.

    Returns
    -------
    written : WrittenPage

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> report_model(model, scenes, Path(tempfile.mkdtemp()) / "page", n_examples=8).n_rows
    100
    """
    classifier = as_model(model)
    shows_images = isinstance(classifier, ImageClassifier)
    refuse_inputs(folder, model)
    write = show_examples if shows_images else report_rows
    most = n_examples or (60 if shows_images else 40)
    page, n_rows = write(classifier, data, folder, reading=reading, n_examples=most, seed=seed)
    return WrittenPage(page, n_rows, "images" if shows_images else "rows")


def show_examples(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
    n_examples: int = 60,
    seed: int = 0,
) -> tuple[Path, int]:
    """Write a page of images with their predictions, what was said, and contradictions.

    Parameters
    ----------
    model : fitted ImageClassifier, or the folder of one
    data : Dataset, path or name
        Must have images.
    folder : path
        Folder for the page.
    reading : ReadOptions, optional
        What the columns of a file mean.
    n_examples : int
        How many images to show at most.
    seed : int

    Returns
    -------
    page : Path
    n_images : int
        Number of images in the data.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from PIL import Image
    >>> from comes.datasets import Images
    >>> from torch import nn
    >>> home, names = Path(tempfile.mkdtemp()), ["one.png", "two.png"]
    >>> for name in names:
    ...     Image.new("RGB", (32, 32)).save(home / name)
    >>> data = Dataset(Images(home, names), ["sky"], np.array([[True], [False]]))
    >>> model = ImageClassifier(
    ...     backbone=nn.Conv2d(3, 8, 5), weights=None, image_size=32, class_prior=[0.5]
    ... )
    >>> page, n_images = show_examples(model.fit(data.X, data.candidates), data, home / "page")
    >>> page.name, n_images
    ('index.html', 2)
    """
    check_folder_target(folder, ("index.html",))
    refuse_inputs(folder, model, data, *reading_files(reading))
    classifier = as_model(model)
    if not isinstance(classifier, ImageClassifier):
        raise ComesError("examples are shown for images, and this model was trained on a table.")
    dataset = open_for_model(classifier, data, reading)
    scores = score_dataset(classifier, dataset)
    page = write_examples(
        dataset.known_images(),
        classifier.label_names_,
        classifier.squash_scores(scores),
        classifier.cut_scores(scores),
        folder,
        answers=dataset.answers,
        relevant=None if dataset.relevant is None else dataset.known_relevant(),
        rates={"no": classifier.no_rate_, "yes": classifier.yes_rate_},
        n_examples=n_examples,
        seed=seed,
    )
    return page, len(dataset)


def report_rows(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
    priors: str | Path | None = None,
    n_examples: int = 40,
    seed: int = 0,
) -> tuple[Path, int]:
    """Write a page about a model of a table: quality by label, calibration, and rows of the data.

    Parameters
    ----------
    model : fitted CandidateClassifier, or the folder of one
    data : Dataset, path or name
        Rows that training did not see, with true labels, candidates or answers.
    folder : path
        Folder for the page.
    reading : ReadOptions, optional
        What the columns of a file mean.
    priors : path, optional
        A table of class priors for the estimates; by default the model's own.
    n_examples : int
        How many rows to show at most: the most confident, the most doubtful, and some others.
    seed : int
        Of the others.

    Returns
    -------
    page : Path
    n_rows : int

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> page, n_rows = report_rows(model, scenes, Path(tempfile.mkdtemp()) / "page")
    >>> page.name, n_rows
    ('index.html', 100)
    """
    check_folder_target(folder, ("index.html",))
    refuse_inputs(folder, model, data, priors, *reading_files(reading))
    classifier = as_model(model)
    if isinstance(classifier, ImageClassifier):
        raise ComesError("a report of rows is for tables; show_examples is for images.")
    dataset = open_for_model(classifier, data, reading)
    scores = score_dataset(classifier, dataset)
    judged = judge_scores(classifier, dataset, scores, priors=priors)
    probabilities = classifier.squash_scores(scores)
    rates = {"no": classifier.no_rate_, "yes": classifier.yes_rate_}
    relevant = None if dataset.relevant is None else dataset.known_relevant()
    prior = None if classifier.class_prior_ is None else classifier
    page = write_row_report(
        dataset.known_features(),
        classifier.label_names_,
        probabilities,
        classifier.cut_scores(scores),
        folder,
        facts=_list_facts(classifier, dataset, data),
        qualities=list_reported(classifier, dataset, judged, probabilities),
        items=dataset.items,
        known=KnownLabels(dataset.answers, relevant, rates, prior),
        history=classifier.history_,
        n_examples=n_examples,
        seed=seed,
    )
    return page, len(dataset)


def _list_facts(
    classifier: Classifier, dataset: Dataset, data: Dataset | str | Path
) -> dict[str, str]:
    """Return what the page says first."""
    named = {} if isinstance(data, Dataset) else {"file": Path(data).name}
    return {**named, "data": str(dataset), "method": classifier.method_.name}
