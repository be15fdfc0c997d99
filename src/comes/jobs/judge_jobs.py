"""How good a model is: against true labels, or estimated from candidates or answers alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.answers.matrix import Kind
from comes.datasets import Dataset, ReadOptions
from comes.errors import ComesError
from comes.estimator.inputs import per_label
from comes.images import ImageClassifier
from comes.jobs.fitted_models import Classifier, as_model, open_for_model, score_dataset
from comes.label_metrics import LabelQuality, list_qualities, measure_labels
from comes.metrics import Convention, count_degenerate, evaluate
from comes.priors import estimate_class_prior, read_priors
from comes.selection import Estimate, check_ranking_risk, estimate_metrics
from comes.selection.checks import RankingFloor
from comes.selection.estimates import MetricEstimates
from comes.selection.intervals import OVER_LABELS, prior_error

COUNTS = {"n_relevant": "relevant", "n_predicted": "predicted"}
SEEN_SHARE = 0.02  # of the rows: more are hardly equal by chance


@dataclass(frozen=True)
class JudgedMetric:
    """An estimated metric with a 95 % interval, or the reason why it is not known.

    Examples
    --------
    >>> JudgedMetric("macro_auc", 0.97, 0.93, 1.0, 10).as_dict()
    {'value': 0.97, 'low': 0.93, 'high': 1.0, 'labels': 10, 'reason': None}
    """

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
    """What candidates or answers say about a model; no true label was used.

    Attributes
    ----------
    metrics : list of JudgedMetric
    prior_source, prior_error : str
        Where the class prior and its uncertainty come from.
    left_out : list of str
        Labels that no row excludes: the estimates say nothing about them.
    n_labels : int
    kind : {"candidates", "answers", "positives"}
        What the estimates are from, as in `Answers`.
    n_seen : int
        Rows with the features of a row that training saw, for which the estimates are too good.
    floor : RankingFloor, or None
        Whether the ranking risk of the rows is possible, given the class priors and a constant
        rate, as `comes.selection.check_ranking_risk` returns it; None where training saw rows, or
        labels were only ticked.
    by_label : list of LabelQuality
        The same for each label, the worst first.

    Examples
    --------
    >>> EstimatedQuality([JudgedMetric("macro_auc", 0.9, 0.8, 1.0, 3)], "of the model", "none", [])
    ...     # doctest: +ELLIPSIS
    EstimatedQuality(metrics=[JudgedMetric(name='macro_auc', value=0.9, ...
    """

    metrics: list[JudgedMetric]
    prior_source: str
    prior_error: str
    left_out: list[str] = field(default_factory=list)
    n_labels: int = 0
    kind: Kind = "candidates"
    n_seen: int = 0
    floor: RankingFloor | None = None
    by_label: list[LabelQuality] = field(default_factory=list)

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

    Examples
    --------
    >>> judged = Judgement(10, "bce", "pml", {"one_error": 0.1}, {"rows_all_relevant": 0})
    >>> judged.as_dict()
    {'one_error': 0.1, 'rows_all_relevant': 0, 'convention': 'pml'}
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
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=300), rate=0.5)
    >>> model = CandidateClassifier(class_prior=[0.22] * 10, epochs=2, random_state=0)
    >>> judged = judge_model(model.fit(scenes.X, scenes.candidates), scenes)
    >>> judged.estimated.metrics[0].name, judged.metrics["average_precision"] > 0.3
    ('hamming_loss', True)
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
