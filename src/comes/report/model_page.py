"""The page about a model: a verdict, quality by label, the answers there are, and some rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix, as_indicators, as_relevant, check_names
from comes.answers.questions import spread_over_labels
from comes.errors import ComesError
from comes.files import expanded, replacing_folder
from comes.label_metrics import LABEL_METRICS
from comes.report.pictures import Picture, draw_overlay, shrink_image
from comes.report.plots import (
    as_svg,
    css_colours,
    plot_answers,
    plot_calibration,
    plot_quality,
    plot_risks,
)

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Maps = Callable[[Sequence[int], Sequence[int]], Sequence[npt.NDArray[np.floating]]]

# How a page writes a state, by kind of answers: where only candidates or ticks are known, silence
# is no answer. Below, the colour of each word: that of yes, no, maybe or not asked.
WORDS = {
    "answers": {state: state.word for state in State},
    "candidates": {state: "surely not" if state == State.NO else "candidate" for state in State},
    "positives": {state: "ticked" if state == State.YES else "not ticked" for state in State},
}
SIGNS = {
    "yes": "yes",
    "ticked": "yes",
    "no": "no",
    "surely not": "no",
    "maybe": "maybe",
    "not asked": "open",
    "candidate": "open",
    "not ticked": "open",
}
SURELY_NOT, SURELY_THERE = ("no", "surely not"), ("yes", "ticked")
# What the rates of "no" and of "yes" are called.
RATES = {
    "answers": {"no": "no rate", "yes": "yes rate"},
    "candidates": {"no": "exclude rate"},
    "positives": {"yes": "tick rate"},
}
GROUPS = {  # of rows: why they are shown, and what is on them
    "confident": "most confident",
    "doubtful": "most doubtful",
    "random": "drawn at random",
    "contradictions": "with contradictions",
    "answered": "with answers",
    "disputed": "where people disagree",
    "mistakes": "with mistakes",
}
# What a good number would be, for every column of the tables of labels.
HINTS = {
    "precision": "1 is best; guessing: the label's share",
    "recall": "1 is best; guessing: the share predicted",
    "f1": "1 is best; 0: never right",
    "auc": "1 is best; guessing: 0.5",
    "average_precision": "1 is best; guessing: the label's share",
    "predicted": "near the label's share is good",
    "contradictions": "0 is best",
    "disagree": "0 is best",
    "no rate": "1: a no to all it is not",
    "yes rate": "1: a yes to all it is",
    "exclude rate": "1: all it is not is excluded",
    "tick rate": "1: all it is is ticked",
    "doubtful": "few is good: 0.25 to 0.75",
}
N_BARS = 5  # labels that a card shows at least
N_MAPS = 3  # of a card at most
DOUBTFUL = (0.25, 0.75)
MOST_CELLS = 12  # columns that a card shows
MOST_LETTERS = 600  # of one of them


def write_model_page(
    X: Any,
    label_names: Sequence[str],
    probabilities: npt.ArrayLike,
    predictions: Any,
    folder: str | Path,
    *,
    title: str = "Model",
    verdict: str = "",
    steps: Sequence[tuple[str, str]] = (),
    facts: Mapping[str, str] | None = None,
    quality: Mapping[str, Mapping[str, Any]] | None = None,
    answers: Answers | None = None,
    relevant: npt.ArrayLike | None = None,
    rates: Mapping[str, npt.ArrayLike | None] | None = None,
    class_prior: Any = None,
    items: Sequence[str] | None = None,
    history: Any = None,
    maps: Maps | None = None,
    n_examples: int = 40,
    seed: int = 0,
) -> Path:
    """Write a page about a model and what it predicts, for a person to look at.

    Of many rows or pictures it shows half of ``n_examples`` as the most confident of every label, a
    quarter as the most doubtful, and a quarter drawn at random; its tables count all of them.

    Parameters
    ----------
    X : DataFrame, array or sparse matrix of shape (n_samples, n_features), or Images
        Tables are shown by column, and pictures (`comes.datasets.Images`, or any sequence of uint8
        arrays that has ``names``) as small copies.
    label_names : sequence of n_labels str
    probabilities : array of shape (n_samples, n_labels)
    predictions : bool or 0/1 array of shape (n_samples, n_labels)
    folder : path
        An existing page is replaced; a folder that holds anything else is refused.
    title : str
    verdict : str
        What the page says first: how good the model is, and how sure that is.
    steps : sequence of pairs of str
        What to do next, and the command for it, "" for none.
    facts : mapping of str to str, optional
        Such as the data and the method.
    quality : mapping of str to mapping, optional
        By where it is known from, such as "true labels": ``overall``, a list of (name, value, what
        would be good), all str; ``by_label``, a list of LabelQuality; ``calibration``, what
        `comes.selection.check_reliability` returns, or None; ``notes``, a list of str.
    answers : Answers of shape (n_samples, n_labels), optional
        Predictions that contradict them are marked.
    relevant : bool array of shape (n_samples, n_labels), optional
        The true labels.
    rates : mapping of "no" and "yes" to arrays of shape (n_labels,), optional
        ``no_rate_`` and ``yes_rate_`` of a fitted model.
    class_prior : array of shape (n_labels,), fitted classifier or estimate, optional
        As `comes.report.plot_answers` takes it.
    items : sequence of n_samples str, optional
        By default the names of the pictures, or the numbers of the rows.
    history : History, optional
        Such as ``history_`` of a fitted model; its risks are drawn.
    maps : callable (rows, labels) -> sequence of arrays of shape (height, width), optional
        Where in each of these pictures the evidence for the label is, such as `evidence_maps` of
        `comes.images`. What is above 0 is drawn over the picture when asked for.
    n_examples : int
        How many rows to show at most.
    seed : int
        Of the rows that are drawn. The same input gives the same bytes.

    Returns
    -------
    page : Path
        ``index.html`` in the folder, which needs nothing else.

    Examples
    --------
    >>> import tempfile
    >>> X = pd.DataFrame({"title": ["waves", "clouds"], "red": [0.1, 0.7]})
    >>> home = Path(tempfile.mkdtemp())
    >>> page = write_model_page(X, ["sky"], [[0.2], [0.9]], [[0], [1]], home / "page")
    >>> "clouds" in page.read_text(encoding="utf-8")
    True
    """
    scores = np.asarray(probabilities, dtype=float)
    predicted = as_indicators(predictions, "predictions")
    relevant = None if relevant is None else as_relevant(relevant)
    are_pictures = hasattr(X, "names")
    items = X.names if are_pictures and items is None else items
    names = [f"row {row}" for row in range(len(scores))] if items is None else list(items)
    codes = None if answers is None else answers.candidates
    given = {"predictions": predicted, "answers": codes, "relevant": relevant}
    check_page_inputs(names, label_names, scores, given, n_examples)
    picked = pick_rows(scores, n_examples, seed)
    pictures = {row: shrink_image(X, row) for row in picked} if are_pictures else {}
    evidence = {} if maps is None else _draw_maps(maps, picked, scores, pictures, label_names)
    cards = []
    for row, reasons in picked.items():
        labels = _list_labels(label_names, scores[row], predicted[row], answers, relevant, row)
        cells, n_more = ([], 0) if are_pictures else _read_cells(X, row)
        picture, drawn = pictures.get(row), evidence.get(row, [])
        cards.append(Card(names[row], labels, reasons, picture, drawn, cells, n_more))
    counts = {name: sum(name in card.groups for card in cards) for name in GROUPS}
    quality = quality or {}
    page = render_page(
        "model.html.jinja",
        title=title,
        verdict=verdict,
        steps=steps,
        facts=facts or {},
        quality=quality,
        calibrated=[source for source in quality if quality[source]["calibration"] is not None],
        plots=_draw_plots(quality, answers, class_prior, label_names, history),
        what="picture" if are_pictures else "row",
        n_rows=len(scores),
        cards=cards,
        label_names=label_names,
        kind=None if answers is None else answers.kind,
        summary="" if answers is None else summarise_answers(answers),
        columns=_count_labels(scores, predicted, answers, relevant, rates or {}),
        truth_known=relevant is not None,
        has_maps=maps is not None,
        filters=[(name, GROUPS[name], count) for name, count in counts.items() if count],
        signs=SIGNS,
        hints=HINTS,
        groups=GROUPS,
        metric_titles=LABEL_METRICS,
        colours=[Markup(css) for css in css_colours()],
    )
    with replacing_folder(folder, ("index.html",)) as temporary:
        # A file name may hold bytes that are no text.
        (temporary / "index.html").write_text(page, encoding="utf-8", errors="replace")
    return expanded(folder) / "index.html"


def render_page(template: str, **values: Any) -> str:
    """Return a page; names are data in it, never markup."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("comes.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values)


def check_page_inputs(
    names: Sequence[str],
    label_names: Sequence[str],
    scores: FloatArray,
    given: dict[str, BoolMatrix | None],
    n_examples: int,
) -> None:
    """Raise an error unless there are probabilities for every row and label."""
    check_names(label_names)
    n, q = shape = len(names), len(label_names)
    for name, values in {"scores": scores, **given}.items():
        if values is not None and values.shape != shape:
            raise ComesError(
                f"{n} rows and {q} label names need {name} of shape {shape}; got {values.shape}. "
                "Give a row for every row of X and a column for every label."
            )
    wrong = np.argwhere(~((scores >= 0) & (scores <= 1)))
    if len(wrong):
        row, label = wrong[0].tolist()
        raise ComesError(
            f"scores must be probabilities in [0, 1]; got {scores[row, label]:g} at row {row}, "
            f"label {label_names[label]!r}. Pass what predict_proba returns."
        )
    if n_examples < 1:
        raise ComesError(f"n_examples must be 1 or more; got {n_examples}.")


# Answers


def describe_row(answers: Answers, row: int) -> list[tuple[str, str]]:
    """Return the answer about every label of a row, and where people disagree, their votes."""
    words = [WORDS[answers.kind][State(code)] for code in answers.codes[row]]
    votes = [""] * len(words)
    if answers.annotations is not None:
        own = answers.annotations.row == row
        labels, codes = answers.annotations.label[own], answers.annotations.code[own]
        for label in np.unique(labels).tolist():
            states, n = np.unique(codes[labels == label], return_counts=True)
            if len(states) > 1:
                said = zip(n.tolist(), states.tolist(), strict=True)
                votes[label] = ", ".join(f"{k} {State(state).word}" for k, state in said)
    return list(zip(words, votes, strict=True))


def find_agreement(answers: Answers) -> tuple[Counts, Counts] | None:
    """Return how many pairs of each label several people answered, and disagree about.

    None if no pair has several answers.
    """
    if answers.annotations is None:
        return None
    q = answers.shape[1]
    pairs = pd.Series(answers.annotations.code).groupby(
        answers.annotations.row * q + answers.annotations.label
    )
    about = pairs.agg(["size", "min", "max"])
    label = about.index.to_numpy() % q
    several, disputed = about["size"] > 1, about["min"] != about["max"]
    if not several.any():
        return None
    n_several, n_disputed = (np.bincount(label[rows], minlength=q) for rows in (several, disputed))
    return n_several, n_disputed


def count_answers(answers: Answers, rates: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return columns of counts of the answers about every label, and of the rates of a model."""
    columns: dict[str, Any] = {}
    if answers.kind == "answers":
        counts = answers.count()
        columns = {name: counts[name] for name in ("asked", "no", "maybe", "yes")}
        agreement = find_agreement(answers)
        if agreement is not None:
            pairs = zip(*agreement, strict=True)
            columns["disagree"] = [f"{k} of {n}" if n else "–" for n, k in pairs]
        if answers.chosen is not None and answers.chosen.any():
            columns["by model"] = (answers.chosen & (answers.codes != State.NOT_ASKED)).sum(axis=0)
    elif answers.kind == "candidates":
        columns["candidate"] = [f"{share:.1%}" for share in answers.candidates.mean(axis=0)]
    else:
        columns["ticked"] = answers.confirmed.sum(axis=0)
    shape = answers.shape[1:]
    for word, title in RATES[answers.kind].items():
        if rates.get(word) is not None:
            if np.shape(rates[word]) != shape:
                raise ComesError(
                    f"rates must hold a number for each of {shape[0]} labels; got shape "
                    f"{np.shape(rates[word])}. Pass no_rate_ and yes_rate_ of a fitted model."
                )
            columns[title] = [f"{rate:.2f}" for rate in rates[word]]
    return {name: [str(value) for value in values] for name, values in columns.items()}


def summarise_answers(answers: Answers) -> str:
    """Return in a sentence or two how much was asked, and what the answers are."""
    n, q = answers.shape
    no, yes, maybe = ((answers.codes == s).sum() for s in (State.NO, State.YES, State.MAYBE))
    if answers.kind == "candidates":
        return f"Of {n * q} pairs, {no} are surely not; who was asked is not known."
    if answers.kind == "positives":
        return f"Of {n * q} pairs, {yes} are ticked; nobody says no."
    asked = no + yes + maybe
    text = (
        f"Of {n * q} pairs {asked} were asked about: {no} no, {maybe} maybe, {yes} yes. "
        f"{n * q - asked} were not asked."
    )
    agreement = find_agreement(answers)
    if agreement is not None and answers.annotations is not None:
        n_several, n_disputed = agreement
        n_opposed = answers.annotations.count_disagreements(answers.shape)
        text += (
            f" Several people answered about {n_several.sum()} pairs, and disagree about "
            f"{n_disputed.sum()} of them, {n_opposed} times yes against no."
        )
    return text


# Cards


@dataclass(frozen=True)
class Label:
    """What is known about one label of one row."""

    name: str
    score: float
    predicted: bool
    answer: str | None = None  # a key of SIGNS; None where nothing is known of any pair
    relevant: bool | None = None  # where the truth is known
    votes: str = ""  # where people disagree, how many answered what: "1 no, 2 yes"
    number: int = 0  # its column

    @property
    def contradiction(self) -> str | None:
        """What is wrong if the prediction is not what somebody answered; None if nothing is."""
        if self.predicted and self.answer in SURELY_NOT:
            return "predicted, but surely not"
        if not self.predicted and self.answer in SURELY_THERE:
            return f"{'ticked' if self.answer == 'ticked' else 'surely there'}, but not predicted"
        return None

    @property
    def verdict(self) -> str | None:
        """What the truth says of it; None where there is nothing to say."""
        words = {(True, True): "right", (True, False): "false positive", (False, True): "missed"}
        return None if self.relevant is None else words.get((self.predicted, self.relevant))

    @property
    def is_answered(self) -> bool:
        """Whether somebody was asked about it, and answered."""
        return self.answer in ("no", "yes", "maybe")

    @property
    def is_marked(self) -> bool:
        """Whether something is said of it, or predicted."""
        return bool(
            self.predicted or self.relevant or self.is_answered or self.answer in SURELY_THERE
        )


@dataclass(frozen=True)
class Card:
    """One row or picture of the page, its labels, and why it is shown."""

    name: str
    labels: list[Label]  # the highest score first
    reasons: dict[str, list[int]]  # keys of GROUPS with the labels for which it is among the first
    picture: Picture | None  # none where the image cannot be read
    maps: list[tuple[str, Picture]]  # of evidence, with their labels
    cells: list[tuple[str, str]]
    n_more: int  # columns that are not shown

    @property
    def top(self) -> list[Label]:
        """Labels with something to see: the first few, and those that are marked."""
        return [*self.labels[:N_BARS], *(k for k in self.labels[N_BARS:] if k.is_marked)]

    def answered_with(self, word: str) -> list[Label]:
        """Return the labels with this answer, agreed on."""
        return [label for label in self.labels if label.answer == word and not label.votes]

    @property
    def groups(self) -> dict[str, list[Label]]:
        """Keys of GROUPS that this card is in, with the labels of those that are about some."""
        mistakes = ("missed", "false positive")
        found = {
            "contradictions": [label for label in self.labels if label.contradiction],
            "answered": [label for label in self.labels if label.is_answered],
            "disputed": [label for label in self.labels if label.votes],
            "mistakes": [label for label in self.labels if label.verdict in mistakes],
        }
        reasons: dict[str, list[Label]] = {reason: [] for reason in self.reasons}
        return reasons | {name: labels for name, labels in found.items() if labels}

    @property
    def marked(self) -> list[int]:
        """Columns of the labels that a filter by label shows this card for."""
        own = [label.number for label in self.labels if label.is_marked]
        return list(dict.fromkeys([*own, *(k for of in self.reasons.values() for k in of)]))


def pick_rows(scores: FloatArray, n_examples: int, seed: int) -> dict[int, dict[str, list[int]]]:
    """Return which rows to show, at most so many, and why, in the order of the page.

    The reasons are keys of GROUPS, with the labels that they are about.
    """
    n_shown = min(n_examples, len(scores))
    n_doubtful = n_random = n_shown // 4
    reasons: dict[int, dict[str, list[int]]] = {}
    confident = spread_over_labels(scores, n_shown - n_doubtful - n_random)
    doubtful = spread_over_labels(-np.abs(scores - 0.5), n_doubtful)
    for name, (row, label) in {"confident": confident, "doubtful": doubtful}.items():
        by_label = np.argsort(label, kind="stable")
        for one, of in zip(row[by_label].tolist(), label[by_label].tolist(), strict=True):
            reasons.setdefault(one, {}).setdefault(name, []).append(of)
    if n_shown == len(scores):  # all, in their order
        return {row: reasons.get(row, {}) for row in range(n_shown)}
    for row in sorted(np.random.default_rng(seed).choice(len(scores), n_random, False).tolist()):
        reasons.setdefault(row, {})["random"] = []
    return reasons


def _list_labels(
    label_names: Sequence[str],
    scores: FloatArray,
    predicted: npt.NDArray[np.bool_],
    answers: Answers | None,
    relevant: BoolMatrix | None,
    row: int,
) -> list[Label]:
    """Return the labels of a row, the highest probability first."""
    about = [(None, "")] * len(label_names) if answers is None else describe_row(answers, row)
    truth = [None] * len(label_names) if relevant is None else relevant[row].tolist()
    labels = [
        Label(name, float(scores[j]), bool(predicted[j]), about[j][0], truth[j], about[j][1], j)
        for j, name in enumerate(label_names)
    ]
    return sorted(labels, key=lambda label: -label.score)


def _read_cells(X: Any, row: int) -> tuple[list[tuple[str, str]], int]:
    """Return the columns of a row as they are shown, and how many others there are.

    Words come first: a person reads them sooner than numbers. Of a sparse matrix, zeros are left
    out.
    """
    if sparse.issparse(X):
        own = sparse.csr_array(X[[row]])
        pairs = [(f"x{j}", value) for j, value in zip(own.indices, own.data, strict=True)]
    elif isinstance(X, pd.DataFrame):
        pairs = [(str(name), X.iloc[row, j]) for j, name in enumerate(X.columns)]
    else:
        pairs = [(f"x{j}", value) for j, value in enumerate(np.asarray(X[row]).tolist())]
    in_words = [isinstance(value, str) for _, value in pairs]
    order = sorted(range(len(pairs)), key=lambda k: not in_words[k])[:MOST_CELLS]
    shown = [(pairs[k][0], _write_cell(pairs[k][1])) for k in sorted(order)]
    return shown, len(pairs) - len(order)


def _write_cell(value: Any) -> str:
    """Return a cell as text; what is missing is a dash, and a long text is cut."""
    if value is None or value is pd.NaT or value is pd.NA or (value != value):
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value).strip() or "–"
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} …"


def _draw_maps(
    maps: Maps,
    picked: dict[int, dict[str, list[int]]],
    scores: FloatArray,
    pictures: dict[int, Picture | None],
    label_names: Sequence[str],
) -> dict[int, list[tuple[str, Picture]]]:
    """Return names of labels and maps by row: why a picture is shown, and its highest score."""
    wanted = []
    for row, why in picked.items():
        labels = [*why.get("confident", ()), *why.get("doubtful", ()), int(scores[row].argmax())]
        wanted += [(row, label) for label in list(dict.fromkeys(labels))[:N_MAPS]]
    found: dict[int, list[tuple[str, Picture]]] = {}
    every = maps([row for row, _ in wanted], [label for _, label in wanted])
    for (row, label), evidence in zip(wanted, every, strict=True):
        picture = pictures.get(row)
        overlay = None if picture is None else draw_overlay(evidence, picture[1:])
        if overlay is not None:
            found.setdefault(row, []).append((label_names[label], overlay))
    return found


def _count_labels(
    scores: FloatArray,
    predicted: BoolMatrix,
    answers: Answers | None,
    relevant: BoolMatrix | None,
    rates: Mapping[str, Any],
) -> dict[str, list[str]]:
    """Return columns of shares and counts of every label, over all rows."""
    columns = {"predicted": [f"{share:.1%}" for share in predicted.mean(axis=0)]}
    if relevant is not None:
        columns["relevant"] = [f"{share:.1%}" for share in relevant.mean(axis=0)]
    if answers is not None:
        columns |= count_answers(answers, rates)
        wrong = (predicted & (answers.codes == State.NO)).sum(axis=0)
        wrong += (~predicted & (answers.codes == State.YES)).sum(axis=0)
        columns["contradictions"] = [str(count) for count in wrong]
    if relevant is None and answers is None:
        low, high = DOUBTFUL
        columns["mean probability"] = [f"{mean:.3f}" for mean in scores.mean(axis=0)]
        doubtful = ((scores > low) & (scores < high)).sum(axis=0)
        columns["doubtful"] = [str(count) for count in doubtful]
    return columns


def _draw_plots(
    quality: Mapping[str, Mapping[str, Any]],
    answers: Answers | None,
    class_prior: Any,
    label_names: Sequence[str],
    history: Any,
) -> dict[str, Markup | None]:
    """Return the plots by name, None where there is nothing to draw."""
    axes: dict[str, Any] = {"quality": None, "answers": None, "risks": None}
    by_label = {source: one["by_label"] for source, one in quality.items() if one["by_label"]}
    if by_label:
        axes["quality"] = plot_quality(by_label)
    for source, one in quality.items():
        if one["calibration"] is not None:
            axes[f"calibration-{source}"] = plot_calibration(one["calibration"])
    if answers is not None:
        axes["answers"] = plot_answers(answers.rename_labels(list(label_names)), class_prior)
    if history and history.risk:
        axes["risks"] = plot_risks(history)
    return {
        name: None if drawn is None else Markup(as_svg(drawn, name.replace(" ", "-")))
        for name, drawn in axes.items()
    }
