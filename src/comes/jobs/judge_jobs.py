"""How good a model is: against true labels, or estimated from candidates alone."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import BoolMatrix
from comes.datasets import Dataset, Reading
from comes.errors import ComesError
from comes.estimator import ImageClassifier, per_label
from comes.jobs.fitted_models import Classifier, as_model, open_for_model, score_dataset
from comes.metrics import Convention, count_degenerate, evaluate
from comes.priors import estimate_class_prior, read_priors
from comes.selection import MetricEstimates, estimate_metrics


@dataclass(frozen=True)
class JudgedMetric:
    """A metric estimated from candidates, with a 95 % interval.

    Examples
    --------
    >>> JudgedMetric("macro_auc", 0.97, 0.93, 1.02).clipped()
    JudgedMetric(name='macro_auc', value=0.97, low=0.93, high=1.0, true=None)
    """

    name: str
    value: float
    low: float
    high: float
    true: float | None = None  # where true labels are known

    def clipped(self) -> "JudgedMetric":
        """Return it with its numbers moved into the range of the metric."""
        most = math.inf if self.name == "ranking_risk" else 1.0
        value, low, high = (min(max(x, 0.0), most) for x in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        found = {"value": self.value, "low": self.low, "high": self.high}
        return found if self.true is None else found | {"true": self.true}


@dataclass(frozen=True)
class EstimatedQuality:
    """What candidates say about a model; no true label was used.

    Attributes
    ----------
    metrics : list of JudgedMetric
    prior_source, prior_error : str
        Where the class prior and its uncertainty come from.
    left_out : list of str
        Labels that no row excludes: the estimates say nothing about them.

    Examples
    --------
    >>> EstimatedQuality([JudgedMetric("macro_auc", 0.9, 0.8, 1.0)], "of the model", "none", [])
    ...     # doctest: +ELLIPSIS
    EstimatedQuality(metrics=[JudgedMetric(name='macro_auc', value=0.9, ...
    """

    metrics: list[JudgedMetric]
    prior_source: str
    prior_error: str
    left_out: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        return {
            "metrics": {metric.name: metric.as_dict() for metric in self.metrics},
            "class_prior": self.prior_source,
            "prior_error": self.prior_error,
            "left_out": self.left_out,
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
        Estimates from candidates, if the data has any.

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

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        found: dict[str, Any] = {}
        if self.metrics is not None:
            found |= self.metrics | self.degenerate | {"convention": self.convention}
        if self.estimated is not None:
            found["estimated"] = self.estimated.as_dict()
        return found


def judge_model(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    *,
    reading: Reading | None = None,
    priors: str | Path | None = None,
    convention: Convention = "pml",
) -> Judgement:
    """Judge a model by true labels, by candidates, or by both, as the data has them.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Rows that training did not see.
    reading : Reading, optional
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
    if priors is not None and dataset.candidates is None:
        raise ComesError("priors (--priors) are for estimates from candidates; the data has none.")
    scores = score_dataset(classifier, dataset)
    cut = classifier.cut_scores(scores)
    metrics, degenerate, estimated = None, {}, None
    if dataset.relevant is not None:
        metrics = evaluate(scores, dataset.relevant, cut, convention)
        degenerate = count_degenerate(dataset.relevant)
    if dataset.candidates is not None:
        estimated = _estimate_quality(classifier, dataset, scores, cut, priors)
    method = str(classifier.method_)
    return Judgement(len(dataset), method, convention, metrics, degenerate, estimated)


def _estimate_quality(
    classifier: Classifier,
    dataset: Dataset,
    scores: npt.NDArray[np.floating],
    cut: npt.NDArray[np.int64],
    priors: str | Path | None,
) -> EstimatedQuality:
    """Return what candidates say about the scores, beside the truth where it is known."""
    assert dataset.candidates is not None
    prior, source = _find_prior(classifier, dataset, priors)
    found = estimate_metrics(scores, dataset.candidates, prior, predictions=cut)
    true: dict[str, float] = {}
    if dataset.relevant is not None:
        true = _compute_true_values(found, scores, cut, dataset.relevant)
    return EstimatedQuality(
        [
            JudgedMetric(name, e.value, e.low_with_prior, e.high_with_prior, true.get(name))
            for name, e in found.metrics.items()
        ],
        source,
        found.prior_error,
        [classifier.label_names_[label] for label in found.left_out],
    )


def _find_prior(
    classifier: Classifier, dataset: Dataset, priors: str | Path | None
) -> tuple[Any, str]:
    """Return the class prior to judge with, and where it comes from."""
    if priors is not None:
        prior = per_label(read_priors(priors), "class_prior", classifier.label_names_)
        return prior, str(priors)
    if classifier.class_prior_ is not None:
        return classifier.class_prior_, "of the model"
    if isinstance(classifier, ImageClassifier):
        raise ComesError(
            "this image model has no class prior, and judging by candidates needs one: give it "
            "(--priors)."
        )
    estimate = estimate_class_prior(dataset.known_features(), dataset.known_candidates())
    return estimate, "estimated from these rows"


def _compute_true_values(
    found: MetricEstimates,
    scores: npt.NDArray[np.floating],
    cut: npt.NDArray[np.int64],
    relevant: BoolMatrix,
) -> dict[str, float]:
    """Return the true values of the estimated metrics, over the same labels.

    With the true labels as candidates and their shares as prior, the estimates are exact.
    """
    truth = relevant | np.isin(np.arange(scores.shape[1]), found.left_out)
    share = truth.mean(axis=0)
    exact = estimate_metrics(scores, truth, share, predictions=cut, n_resamples=0)
    return {name: estimate.value for name, estimate in exact.metrics.items()}
