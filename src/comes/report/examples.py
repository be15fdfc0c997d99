"""A page of example predictions: pictures with scores, answers and what contradicts them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix, as_candidates, as_indicators, as_relevant
from comes.files import expanded, replacing_folder
from comes.report.cards import (
    Card,
    FloatArray,
    Label,
    NamedImages,
    check_page_inputs,
    render_page,
    shrink_image,
    sort_labels,
)
from comes.report.said import count_answers, find_agreement, say_pairs, summarise_answers


def write_examples(
    images: NamedImages,
    label_names: Sequence[str],
    scores: npt.ArrayLike,
    predictions: Any,
    folder: str | Path,
    *,
    candidates: Any = None,
    answers: Answers | None = None,
    relevant: Any = None,
    rates: Mapping[str, npt.ArrayLike | None] | None = None,
    title: str = "Example predictions",
    n_examples: int = 60,
    seed: int = 0,
) -> Path:
    """Write a page of pictures with what a model says about them, for a person to look at.

    The pictures are drawn at random; the table of labels counts all rows.

    Parameters
    ----------
    images : comes.datasets.Images
        Or any sequence of uint8 arrays of shape (height, width, 3) that has ``names``.
    label_names : sequence of n_labels str
    scores : array of shape (n_samples, n_labels)
        Probabilities in [0, 1].
    predictions : bool or 0/1 array of shape (n_samples, n_labels)
    folder : path
        An existing page is replaced; a folder that holds anything else is refused.
    candidates : bool array of shape (n_samples, n_labels), optional
        True where the label is still possible. A prediction elsewhere is a contradiction.
    answers : Answers, optional
        In place of candidates: what was said. A label that is surely there and not predicted is a
        contradiction, too.
    relevant : bool array of shape (n_samples, n_labels), optional
        The true labels, if they are known.
    rates : mapping of "no" and "yes" to arrays of shape (n_labels,), optional
        How often an irrelevant pair is called so, and a relevant one: ``no_rate_`` and
        ``yes_rate_`` of a fitted model.
    title : str
        Heading of the page.
    n_examples : int
        How many pictures to show at most.
    seed : int
        Seed of the draw. The same input gives the same bytes.

    Returns
    -------
    page : Path
        ``index.html`` in the folder, which needs nothing else.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from comes.datasets import Images
    >>> home = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (5, 4), "red").save(home / "rose.png")
    >>> images = Images(home, ["rose.png"])
    >>> page = write_examples(images, ["rose", "sky"], [[0.9, 0.2]], [[1, 0]], home / "page")
    >>> page.name, "rose.png" in page.read_text(encoding="utf-8")
    ('index.html', True)
    """
    scores = np.asarray(scores, dtype=float)
    predictions = as_indicators(predictions, "predictions")
    if answers is None and candidates is not None:
        answers = Answers.from_candidates(as_candidates(candidates))
    relevant = None if relevant is None else as_relevant(relevant)
    given = {
        "predictions": predictions,
        "candidates": None if answers is None else answers.candidates,
        "relevant": relevant,
    }
    check_page_inputs(images.names, label_names, scores, given, n_examples)
    n = len(scores)
    drawn = np.random.default_rng(seed).choice(n, min(n_examples, n), replace=False)
    cards = [
        Card(
            row,
            images.names[row],
            shrink_image(images, row),
            _list_labels(label_names, scores, predictions, row, answers, relevant),
        )
        for row in sorted(drawn.tolist())
    ]
    page = render_page(
        "examples.html.jinja",
        title=title,
        n_rows=n,
        cards=cards,
        label_names=label_names,
        columns=_count_labels(predictions, answers, relevant, rates or {}),
        kind=None if answers is None else answers.kind,
        summary=None if answers is None else summarise_answers(answers),
        truth_known=relevant is not None,
        filters=_list_filters(cards, answers, relevant is not None),
    )
    with replacing_folder(folder, ("index.html",)) as temporary:
        # A file name may hold bytes that are no text.
        (temporary / "index.html").write_text(page, encoding="utf-8", errors="replace")
    return expanded(folder) / "index.html"


def _list_labels(
    label_names: Sequence[str],
    scores: FloatArray,
    predictions: BoolMatrix,
    row: int,
    answers: Answers | None,
    relevant: BoolMatrix | None,
) -> list[Label]:
    """Return the labels of a row, the highest score first."""
    said = [(None, "")] * len(label_names) if answers is None else say_pairs(answers, row)
    truth = [None] * len(label_names) if relevant is None else relevant[row].tolist()
    columns = label_names, scores[row].tolist(), predictions[row].tolist(), said, truth
    return sort_labels(
        [
            Label(name, score, predicted, word, is_relevant, voices, number)
            for number, (name, score, predicted, (word, voices), is_relevant) in enumerate(
                zip(*columns, strict=True)
            )
        ]
    )


def _list_filters(
    cards: Sequence[Card], answers: Answers | None, truth_known: bool
) -> list[tuple[str, str, int]]:
    """Return the name of every filter, its words, and how many cards it leaves."""
    words = {"contradictions": "only with contradictions"} if answers is not None else {}
    if answers is not None and answers.kind == "answers":
        words["answered"] = "only with answers"
        if find_agreement(answers) is not None:
            words["disputed"] = "only where people disagree"
    if truth_known:
        words["mistakes"] = "only with mistakes"
    return [
        (id, text, sum(bool(getattr(card, id)) for card in cards)) for id, text in words.items()
    ]


def _count_labels(
    predictions: BoolMatrix,
    answers: Answers | None,
    relevant: BoolMatrix | None,
    rates: Mapping[str, Any],
) -> dict[str, list[str]]:
    """Return columns of shares and counts of every label, over all rows."""
    columns = {"predicted": _show_shares(predictions.mean(axis=0))}
    if answers is not None:
        columns |= count_answers(answers, rates)
        wrong = (predictions & (answers.codes == State.NO)).sum(axis=0)
        wrong += (~predictions & (answers.codes == State.YES)).sum(axis=0)
        columns["contradictions"] = [str(count) for count in wrong]
    if relevant is not None:
        hits = (predictions & relevant).sum(axis=0)
        with np.errstate(invalid="ignore"):
            columns["precision"] = _show_shares(hits / predictions.sum(axis=0))
            columns["recall"] = _show_shares(hits / relevant.sum(axis=0))
    return columns


def _show_shares(shares: npt.NDArray[np.floating]) -> list[str]:
    """Return shares as percents; NaN is a share of nothing."""
    return ["–" if np.isnan(share) else f"{share:.1%}" for share in shares]
