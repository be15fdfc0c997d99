"""What others must know about a model before they use it, as the card of a model hub."""

from typing import TYPE_CHECKING, Any

import numpy as np

import comes
from comes.methods import SUPERVISED, find_method, method_of_label

if TYPE_CHECKING:
    from comes.estimator.predictions import PredictsFromScores

MARK = "<!-- Written by comes; remove this line to keep your own text. -->"
ASSUMED = {
    "candidates": (
        "Every relevant label of a row was among its candidates.",
        "An irrelevant label was excluded with a probability that depends on the label alone.",
    ),
    "answers": (
        "Whether somebody was asked about a pair of row and label did not depend on its truth, "
        "given the features.",
        'Who said "no" or "yes" was right, but for the rate of mistakes below.',
        'A true "no", and a true "yes", were said at the rates below, whatever the row.',
    ),
    "positives": (
        "A label that was ticked is relevant.",
        "A relevant label was ticked with a probability that depends on the label alone.",
    ),
}
CANDIDATES_ONLY = "What was not excluded counted as possible; who was asked, and a yes, did not."
INSTANCE = "Labels were excluded less often where they are likely; the class priors say how much."


def write_card(classifier: "PredictsFromScores", name: str = "this model") -> str:
    """Return the card of a fitted model, in Markdown: what it assumes, knows and was trained on.

    Parameters
    ----------
    classifier : CandidateClassifier or ImageClassifier
        Fitted.
    name : str
        Where it can be loaded from: the name of a repository, or a folder.

    Returns
    -------
    card : str

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> "## Assumptions" in write_card(model, "me/photos")
    True
    """
    parts = [
        _head(classifier),
        MARK,
        f"# {name}",
        _introduce(classifier),
        _show_loading(classifier, name),
        "## Assumptions",
        _listed(_assume(classifier)),
        "## Labels, class priors and rates",
        _explain_known(classifier),
        _tabulate(classifier),
        "## Training",
        _listed(_describe_training(classifier)),
        "## Limits",
        _listed(_limit(classifier)),
    ]
    return "\n\n".join(parts) + "\n"


def _head(classifier: Any) -> str:
    """Return what a hub sorts models by."""
    task = "image-classification" if _reads_images(classifier) else "tabular-classification"
    tags = ["multi-label-classification", "weak-supervision", "safetensors"]
    listed = "\n".join(f"- {tag}" for tag in tags)
    return f"---\nlibrary_name: comes\npipeline_tag: {task}\ntags:\n{listed}\n---"


def _reads_images(classifier: Any) -> bool:
    return hasattr(classifier, "network_")


def _introduce(classifier: Any) -> str:
    what = "pictures" if _reads_images(classifier) else "rows of a table"
    n = len(classifier.label_names_)
    return (
        f"Says which of {n} labels are relevant for {what}. Written by comes {comes.__version__} "
        "as `model.json` and `model.safetensors`, without pickle."
    )


def _show_loading(classifier: Any, name: str) -> str:
    kind, given = type(classifier).__name__, "images" if _reads_images(classifier) else "X"
    return (
        "```python\n"
        f"from comes import {kind}\n\n"
        f'model = {kind}.from_pretrained("{name}")\n'
        f"probabilities = model.predict_proba({given})  # (n, {len(classifier.label_names_)})\n"
        "```"
    )


def _listed(sentences: list[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _assume(classifier: Any) -> list[str]:
    """Return what must hold for the probabilities to be right."""
    method = find_method(classifier.method_, getattr(classifier, "variant", None))
    kind = (classifier.trained_on_ or {}).get("kind")
    if method.is_custom:
        return ["The risk is the author's own, and so are its assumptions."]
    if classifier.method_ == SUPERVISED:
        return ["Labels were taken at their word: what was not excluded counted as relevant."]
    said = list(ASSUMED.get(kind or "candidates", ()))
    if isinstance(getattr(classifier, "exclude_rate", None), str):
        said[-1] = INSTANCE
    if kind == "answers" and method.uses_only_candidates:
        said = [*ASSUMED["candidates"], CANDIDATES_ONLY]
    if not method.has_zero:
        said.append(
            "The risk ranks labels; the level of its scores was set so that mean probabilities "
            "of the training rows are the class priors."
        )
    if kind is None:
        said.append("What it was trained on is not recorded (an earlier version of comes).")
    return said


def _explain_known(classifier: Any) -> str:
    """Return where class priors and rates come from."""
    if classifier.class_prior_ is None and classifier.no_rate_ is None:
        return "The method needs neither class priors nor rates."
    given = "given" if classifier.class_prior is not None else "estimated from what was said"
    names = ("exclude_rate", "no_rate", "yes_rate", "flip_rate")
    rates = [name for name in names if getattr(classifier, name, None) is not None]
    known = f"; {' and '.join(rates)} given" if rates else "; rates estimated or implied"
    mistakes = f" Rate of mistakes: {classifier.mistake_rate:g}."
    return f"Class priors {given}{known}.{mistakes}"


def _tabulate(classifier: Any) -> str:
    """Return labels with what is known about each, as a table."""
    columns = {
        "class prior": classifier.class_prior_,
        "standard error": classifier.class_prior_error_,
        "rate of no": classifier.no_rate_,
        "rate of yes": classifier.yes_rate_,
        "flip rate": classifier.flip_rate_,
        "threshold of the score": classifier.threshold_,
    }
    shown = {
        head: values
        for head, values in columns.items()
        if values is not None and not np.isnan(np.asarray(values, dtype=float)).all()
    }
    lines = ["| label | " + " | ".join(shown) + " |", "|" + " --- |" * (len(shown) + 1)]
    for number, name in enumerate(classifier.label_names_):
        cells = " | ".join(f"{values[number]:.3f}" for values in shown.values())
        lines.append(f"| {_escape(name)} | {cells} |")
    return "\n".join(lines)


def _escape(name: str) -> str:
    """Return a name that cannot break a table."""
    return " ".join(name.replace("|", "\\|").split())


def _describe_training(classifier: Any) -> list[str]:
    about, history = classifier.trained_on_ or {}, classifier.history_
    named = method_of_label(classifier.method_)
    title = "a risk of the author's own" if named is None else named.title
    found = [f"Method: {title}, {len(history.risk)} epochs in {history.seconds:.0f} s."]
    if about:
        found.append(f"Trained on {about['rows']:,} rows with {about['kind']}.")
    if not _reads_images(classifier):
        found.append(f"{classifier.n_features_in_} features{_name_features(classifier)}.")
    how = "no" if classifier.calibration_ is None else "yes, on rows that training did not see"
    found.append(f"Calibrated afterwards: {how}.")
    return found


def _name_features(classifier: Any) -> str:
    names = [_escape(name) for name in classifier.feature_names or []]
    return ": " + ", ".join(names[:20]) + (" ..." if len(names) > 20 else "") if names else ""


def _limit(classifier: Any) -> list[str]:
    """Return what the model was found not to do well, and what nobody looked at."""
    found = [f"Found in training: {message}" for message in classifier.history_.warnings]
    return [
        *found,
        "Quality on true labels is not part of this card: add what you measured, and on what.",
        "A label that was never excluded, or never said anything about, has scores that mean "
        "nothing.",
    ]
