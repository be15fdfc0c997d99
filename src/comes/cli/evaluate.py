"""``comes evaluate``: a model against true labels, or judged by candidates alone."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from comes.cli.images import open_with_images
from comes.cli.options import Data, Json, ModelFolder
from comes.cli.printing import lines, print_json, print_metrics, print_rows
from comes.cli.reading import reads_data
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import Dataset
    from comes.estimator import CandidateClassifier, ImageClassifier


@reads_data
def evaluate(
    data: Data,
    model: ModelFolder,
    reading: dict[str, Any],
    convention: Annotated[
        Literal["pml", "sklearn"], typer.Option(help="pml is the paper's.")
    ] = "pml",
    priors: Annotated[
        Path | None,
        typer.Option(help="A table of class priors for estimates; by default the model's own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare a model's scores with true labels, or judge them by candidates where there are none.

    Example: comes evaluate test.csv --relevant 'is_*' --model model/
    """
    from comes import metrics
    from comes.datasets import open_dataset
    from comes.estimator import CandidateClassifier, load_model

    classifier = load_model(model)
    if reading["label_names"]:
        raise ComesError("the model knows its labels; leave --label-names out.")
    reading["label_names"] = classifier.label_names_
    if isinstance(classifier, CandidateClassifier):
        reading["feature_columns"] = classifier.feature_names
        reading["n_features"] = classifier.n_features_in_
        dataset = open_dataset(data, **reading)
        scores = classifier.decision_function(dataset.known_features())
    else:
        dataset = open_with_images(data, reading, classifier)
        scores = classifier.decision_function(dataset.X)
    found: dict[str, Any] = {}
    if dataset.relevant is not None:
        cut = classifier.cut_scores(scores)
        found |= metrics.evaluate(scores, dataset.relevant, cut, convention)
        found |= metrics.count_degenerate(dataset.relevant) | {"convention": convention}
    elif dataset.candidates is None:
        raise ComesError(f"{data} has neither true labels nor candidates to judge a model by.")
    if priors is not None and dataset.candidates is None:
        raise ComesError("--priors is for estimates from candidates, and the data has none.")
    if dataset.candidates is not None:
        found["estimated"] = _estimates(classifier, dataset, scores, priors)
    if as_json:
        print_json(found)
        return
    if dataset.relevant is not None:
        print_metrics([(str(classifier.method), found)])
        degenerate = lines(metrics.count_degenerate(dataset.relevant), "; ")
        print(f"{len(dataset)} rows; convention: {convention}; {degenerate}")
    if dataset.candidates is not None:
        _print_estimates(found["estimated"])


def _estimates(
    classifier: "CandidateClassifier | ImageClassifier",
    dataset: "Dataset",
    scores: Any,
    priors: Path | None,
) -> dict[str, Any]:
    """Return what candidates say of the scores, and beside it the truth where it is known."""
    import numpy as np

    from comes.estimator import ImageClassifier, per_label
    from comes.priors import estimate_class_prior, read_priors
    from comes.selection import estimate_metrics

    assert dataset.candidates is not None
    prior: Any = classifier.class_prior_
    source = "of the model"
    if priors is not None:
        prior = per_label(read_priors(priors), "class_prior", classifier.label_names_)
        source = str(priors)
    elif prior is None:
        if isinstance(classifier, ImageClassifier):
            raise ComesError(
                "this model of images has no class prior to judge by candidates with; give one "
                "(--priors)."
            )
        prior = estimate_class_prior(dataset.known_features(), dataset.candidates)
        source = "estimated from these rows"
    cut = classifier.cut_scores(scores)
    found = estimate_metrics(scores, dataset.candidates, prior, predictions=cut)
    rows = {
        name: {"value": e.value, "low": e.low_with_prior, "high": e.high_with_prior}
        for name, e in found.metrics.items()
    }
    if dataset.relevant is not None:
        # With nothing but the truth for candidates, estimates are exact; of the same labels.
        truth = dataset.relevant | np.isin(np.arange(scores.shape[1]), found.left_out)
        share = truth.mean(axis=0)
        true = estimate_metrics(scores, truth, share, predictions=cut, n_resamples=0)
        for name, row in rows.items():
            row["true"] = true[name].value
    names = [classifier.label_names_[label] for label in found.left_out]
    return {
        "metrics": rows,
        "class_prior": source,
        "prior_error": found.prior_error,
        "left_out": names,
    }


def _print_estimates(estimates: dict[str, Any]) -> None:
    """Print estimates, clipped to where a metric can lie."""
    rows = []
    for name, row in estimates["metrics"].items():
        most = math.inf if name == "ranking_risk" else 1.0
        value, low, high = (min(max(row[key], 0), most) for key in ("value", "low", "high"))
        shown = {
            "estimated from candidates": name.replace("_", " "),
            "value": f"{value:.3f}",
            "95 % interval": f"{low:.3f} to {high:.3f}",
        }
        if "true" in row:
            shown["true"] = f"{row['true']:.3f}"
        rows.append(shown)
    print_rows(rows)
    print(
        "No true label was used for the estimates. They hold for rows that training did not see, "
        "if irrelevant labels are excluded at a constant rate and the class prior (here: "
        f"{estimates['class_prior']}) is right. Uncertainty of the prior in the intervals: "
        f"{estimates['prior_error']}. The ranking risk is known up to a constant."
    )
    if estimates["left_out"]:
        print(f"Nothing excludes {', '.join(estimates['left_out'])}: left out of the estimates.")
