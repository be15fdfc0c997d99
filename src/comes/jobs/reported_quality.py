"""What a page says of the quality of a model: by label, in words, and how far it is calibrated."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers
from comes.datasets import Dataset
from comes.errors import counted
from comes.jobs.fitted_models import Classifier
from comes.jobs.judge_jobs import EstimatedQuality, Judgement
from comes.label_metrics import explain_missing
from comes.metrics import METRICS
from comes.report import ReportedQuality
from comes.selection import check_reliability

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
