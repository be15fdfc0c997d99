"""What was asked and said about the pictures of a page: words by pair, counts by label."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix, as_indicators, check_names
from comes.answers.questions import spread_over_labels
from comes.errors import ComesError
from comes.files import expanded, replacing_folder
from comes.label_metrics import LABEL_METRICS, LabelQuality
from comes.report.plots import (
    as_svg,
    plot_answers,
    plot_calibration,
    plot_label_quality,
    plot_risks,
)

Counts = npt.NDArray[np.int64]
# How a page writes a state, by kind of answers: where only candidates or ticks are known, silence
# is no answer.
WORDS = {
    "answers": {state: state.word for state in State},
    "candidates": {state: "surely not" if state == State.NO else "candidate" for state in State},
    "positives": {state: "ticked" if state == State.YES else "not ticked" for state in State},
}
# What the rates of "no" and of "yes" are called.
RATES = {
    "answers": {"no": "no rate", "yes": "yes rate"},
    "candidates": {"no": "exclude rate"},
    "positives": {"yes": "tick rate"},
}


class Agreement(NamedTuple):
    """How far people agree about pairs that several of them answered, by label."""

    n_several: Counts  # (q,)
    n_disputed: Counts  # (q,)


def say_pairs(answers: Answers, row: int) -> list[tuple[str, str]]:
    """Return, for every label of a row, what was said, and how many said what if they disagree."""
    words = [WORDS[answers.kind][State(code)] for code in answers.codes[row]]
    voices = [""] * len(words)
    if answers.annotations is not None:
        own = answers.annotations.row == row
        heard: dict[int, Counter[State]] = {}
        for label, code in zip(
            answers.annotations.label[own], answers.annotations.code[own], strict=True
        ):
            heard.setdefault(int(label), Counter())[State(code)] += 1
        for label, counts in heard.items():
            if len(counts) > 1:
                voices[label] = ", ".join(
                    f"{counts[state]} {state.word}" for state in sorted(counts)
                )
    return list(zip(words, voices, strict=True))


def find_agreement(answers: Answers) -> Agreement | None:
    """Return how far people agree; None if no pair has several answers."""
    if answers.annotations is None:
        return None
    q = answers.shape[1]
    pair, place = np.unique(
        answers.annotations.row * q + answers.annotations.label, return_inverse=True
    )
    several = np.bincount(place, minlength=len(pair)) > 1
    lowest = np.full(len(pair), np.iinfo(np.int8).max, dtype=np.int8)
    highest = np.zeros(len(pair), dtype=np.int8)
    np.minimum.at(lowest, place, answers.annotations.code)
    np.maximum.at(highest, place, answers.annotations.code)
    label = pair % q
    if not several.any():
        return None
    return Agreement(
        np.bincount(label[several], minlength=q),
        np.bincount(label[lowest != highest], minlength=q),
    )


def count_answers(answers: Answers, rates: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return columns about what was said of every label, and the rates that a model found."""
    columns: dict[str, Any] = {}
    if answers.kind == "answers":
        counts = answers.count()
        columns = {name: counts[name] for name in ("asked", "no", "maybe", "yes")}
        agreement = find_agreement(answers)
        if agreement is not None:
            of_several = zip(agreement.n_disputed, agreement.n_several, strict=True)
            columns["disagree"] = [f"{k} of {n}" if n else "–" for k, n in of_several]
        if answers.chosen is not None and answers.chosen.any():
            columns["by model"] = (answers.chosen & (answers.codes != State.NOT_ASKED)).sum(axis=0)
    elif answers.kind == "candidates":
        columns["candidate"] = [f"{share:.1%}" for share in answers.candidates.mean(axis=0)]
    else:
        columns["ticked"] = answers.confirmed.sum(axis=0)
    for word, title in RATES[answers.kind].items():
        if rates.get(word) is not None:
            columns[title] = [f"{rate:.2f}" for rate in check_rates(rates[word], answers.shape[1])]
    return {name: [str(value) for value in values] for name, values in columns.items()}


def check_rates(rates: npt.ArrayLike, q: int) -> npt.NDArray[np.float64]:
    """Return one rate per label, or raise an error."""
    values = np.asarray(rates, dtype=float)
    if values.shape != (q,):
        raise ComesError(
            f"rates must hold a number for each of {q} labels; got shape {values.shape}. Pass "
            "no_rate_ and yes_rate_ of a fitted model."
        )
    return values


def summarise_answers(answers: Answers, item: str = "picture") -> str:
    """Return in a sentence or two how much was asked, and what was said."""
    n, q = answers.shape
    no, yes, maybe = (
        int((answers.codes == state).sum()) for state in (State.NO, State.YES, State.MAYBE)
    )
    if answers.kind == "candidates":
        return f"Of {n * q} pairs, {no} are surely not; who was asked is not known."
    if answers.kind == "positives":
        return f"Of {n * q} pairs, {yes} are ticked; nobody says no."
    asked = no + yes + maybe
    found = (
        f"Of {n * q} pairs of {item} and label {asked} were asked about: {no} no, {maybe} maybe, "
        f"{yes} yes. {n * q - asked} were not asked."
    )
    agreement = find_agreement(answers)
    if agreement is not None:
        found += (
            f" Several people answered about {agreement.n_several.sum()} pairs, and disagree about "
            f"{agreement.n_disputed.sum()} of them, {_count_disagreements(answers)} times yes "
            "against no."
        )
    return found


def _count_disagreements(answers: Answers) -> int:
    """Return about how many pairs somebody said yes and somebody no."""
    return (
        0 if answers.annotations is None else answers.annotations.count_disagreements(answers.shape)
    )


FloatArray = npt.NDArray[np.float64]
N_BARS, MOST_BARS = 5, 8  # labels that a card shows at least, and, of new pictures, at most
# How a page writes what is known of a pair, and the sign before it.
SIGNS = {
    "no": "never",
    "yes": "right",
    "maybe": "candidate",
    "not asked": "unasked",
    "surely not": "never",
    "candidate": "candidate",
    "ticked": "right",
    "not ticked": "unasked",
}
SURELY_NOT, SURELY_THERE = ("no", "surely not"), ("yes", "ticked")


@dataclass(frozen=True)
class Label:
    """What is known about one label of one picture."""

    name: str
    score: float
    predicted: bool
    said: str | None = None  # a key of SIGNS; None where nothing is known of any pair
    relevant: bool | None = None  # where the truth is known
    voices: str = ""  # where people disagree, how many said what: "1 no, 2 yes"
    number: int = 0  # its column

    @property
    def contradiction(self) -> str | None:
        """What is wrong if the prediction is not what somebody said; None if nothing is."""
        if self.predicted and self.said in SURELY_NOT:
            return "predicted, but surely not"
        if not self.predicted and self.said in SURELY_THERE:
            return f"{'ticked' if self.said == 'ticked' else 'surely there'}, but not predicted"
        return None

    @property
    def verdict(self) -> str | None:
        """What the truth says of it; None where there is nothing to say."""
        if self.relevant is None or not (self.predicted or self.relevant):
            return None
        if not self.predicted:
            return "missed"
        return "right" if self.relevant else "false positive"

    @property
    def is_answered(self) -> bool:
        """Whether somebody was asked about it, and answered."""
        return self.said in ("no", "yes", "maybe")


@dataclass(frozen=True)
class Picture:
    """A small copy of an image, as a page holds it."""

    uri: str
    width: int
    height: int


@dataclass(frozen=True)
class Card:
    """One picture of the page, with its labels."""

    row: int
    name: str
    picture: Picture | None  # none where the image cannot be read
    labels: list[Label]  # the highest score first

    @property
    def top(self) -> list[Label]:
        """Labels with something to see: the first few, all predicted, missed or answered ones."""
        return [
            label
            for place, label in enumerate(self.labels)
            if place < N_BARS
            or label.predicted
            or label.relevant
            or label.contradiction
            or label.is_answered
        ]

    @property
    def first(self) -> list[Label]:
        """The labels of the highest scores: a few, or more if more are predicted."""
        n_predicted = sum(label.predicted for label in self.labels)
        return self.labels[: min(max(N_BARS, n_predicted), MOST_BARS)]

    def said(self, word: str) -> list[Label]:
        """Return the labels of which this was said, and agreed on."""
        return [label for label in self.labels if label.said == word and not label.voices]

    @property
    def answered(self) -> list[Label]:
        """Labels that somebody was asked about."""
        return [label for label in self.labels if label.is_answered]

    @property
    def marked(self) -> list[int]:
        """Columns of the labels that a filter by label shows this picture for."""
        return [
            label.number
            for label in self.labels
            if label.predicted or label.relevant or label.said in ("yes", "no", "maybe", "ticked")
        ]

    @property
    def disputed(self) -> list[Label]:
        """Labels of which people said different things."""
        return [label for label in self.labels if label.voices]

    @property
    def contradictions(self) -> list[Label]:
        """Labels whose prediction is not what somebody said."""
        return [label for label in self.labels if label.contradiction]

    @property
    def mistakes(self) -> list[Label]:
        """Labels that are missed or false positives."""
        return [label for label in self.labels if label.verdict in ("missed", "false positive")]


def sort_labels(labels: Sequence[Label]) -> list[Label]:
    """Return the labels of a picture, the highest score first."""
    return sorted(labels, key=lambda label: -label.score)


def check_page_inputs(
    image_names: Sequence[str],
    label_names: Sequence[str],
    scores: FloatArray,
    given: dict[str, BoolMatrix | None],
    n_examples: int,
) -> None:
    """Raise an error unless there are probabilities for every picture and label."""
    check_names(label_names)
    n, q = shape = len(image_names), len(label_names)
    for name, values in {"scores": scores, **given}.items():
        if values is not None and values.shape != shape:
            raise ComesError(
                f"{n} images and {q} label names need {name} of shape {shape}; got "
                f"{values.shape}. Give a row for every image and a column for every label."
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


def render_page(template: str, **values: Any) -> str:
    """Return a page; names are data in it, never markup."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["signs"] = SIGNS
    return environment.get_template(template).render(values)


def _read_template(name: str) -> str:
    return files("comes.report").joinpath(name).read_text(encoding="utf-8")


GROUPS = {
    "confident": "most confident",
    "doubtful": "most doubtful",
    "random": "drawn at random",
}


@dataclass(frozen=True)
class Reasons:
    """Why a picture is shown: for which labels it is among the first, or by chance."""

    confident: list[int] = field(default_factory=list)
    doubtful: list[int] = field(default_factory=list)
    random: list[int] = field(default_factory=list)  # of one entry if so, which is no label


def pick_pictures(scores: FloatArray, n_examples: int, seed: int) -> dict[int, Reasons]:
    """Return which rows to show, at most so many, and why, in the order of the page."""
    n_doubtful = n_random = n_examples // 4
    reasons: dict[int, Reasons] = {}
    confident = spread_over_labels(scores, n_examples - n_doubtful - n_random)
    doubtful = spread_over_labels(-np.abs(scores - 0.5), n_doubtful)
    for name, (row, label) in {"confident": confident, "doubtful": doubtful}.items():
        by_label = np.argsort(label, kind="stable")
        for one, of in zip(row[by_label].tolist(), label[by_label].tolist(), strict=True):
            getattr(reasons.setdefault(one, Reasons()), name).append(of)
    drawn = np.random.default_rng(seed).choice(len(scores), min(n_random, len(scores)), False)
    for row in sorted(drawn.tolist()):
        reasons.setdefault(row, Reasons()).random.append(1)
    return reasons


MOST_CELLS = 12  # columns that a card shows
MOST_LETTERS = 600  # of one of them


@dataclass(frozen=True)
class ReportedQuality:
    """How good a model is, as a page shows it, from one source.

    Attributes
    ----------
    source : str
        "true labels", "candidates" or "answers".
    overall : dict of str to str
        Metrics over all labels, as they are written.
    by_label : list of LabelQuality
    calibration : DataFrame, or None
        Predicted probabilities, the shares that were relevant, and low and high: ``bins`` of
        `comes.selection.Calibration`.
    notes : list of str
        Sentences about what the numbers rely on, and what cannot be estimated.

    Examples
    --------
    >>> ReportedQuality("true labels", {"one-error": "0.100"}).by_label
    []
    """

    source: str
    overall: dict[str, str]
    by_label: list[LabelQuality] = field(default_factory=list)
    calibration: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def metrics(self) -> dict[str, str]:
        """Names and titles of the metrics of labels."""
        known = self.by_label[0].metrics if self.by_label else {}
        return {name: title for name, title in LABEL_METRICS.items() if name in known}

    @property
    def n_held(self) -> int:
        """In how many ranges of probabilities their mean lies in the interval."""
        bins = self.calibration
        return (
            0 if bins is None else int(bins["predicted"].between(bins["low"], bins["high"]).sum())
        )

    @property
    def counts(self) -> list[str]:
        """Names of what is counted of labels."""
        return list(self.by_label[0].counts) if self.by_label else []


@dataclass(frozen=True)
class KnownLabels:
    """What is known of the labels of the rows; nothing by default.

    Attributes
    ----------
    answers : Answers of shape (n_samples, n_labels), or None
        What was said. A prediction that somebody contradicts is marked.
    relevant : bool array of shape (n_samples, n_labels), or None
        The true labels.
    rates : mapping of "no" and "yes" to arrays of shape (n_labels,)
        ``no_rate_`` and ``yes_rate_`` of a fitted model.
    class_prior : array of shape (n_labels,), fitted classifier or estimate, or None
        How often labels are relevant, as `comes.report.plot_answers` takes it.

    Examples
    --------
    >>> KnownLabels(relevant=np.array([[True]])).answers is None
    True
    """

    answers: Answers | None = None
    relevant: BoolMatrix | None = None
    rates: Mapping[str, npt.ArrayLike | None] = field(default_factory=dict)
    class_prior: Any = None


@dataclass(frozen=True)
class ShownRow:
    """A row of the table, its labels, and why it is shown."""

    card: Card
    reasons: Reasons
    cells: list[tuple[str, str]]
    n_more: int  # columns that are not shown

    @property
    def groups(self) -> list[str]:
        """Names of the filters that leave this row."""
        found = [name for name in GROUPS if getattr(self.reasons, name)]
        found += ["contradictions"] if self.card.contradictions else []
        return found + (["mistakes"] if self.card.mistakes else [])

    @property
    def marked(self) -> list[int]:
        """Columns of the labels that a filter by label shows this row for."""
        chosen = [*self.reasons.confident, *self.reasons.doubtful]
        return list(dict.fromkeys([*self.card.marked, *chosen]))


def write_row_report(
    X: Any,
    label_names: Sequence[str],
    probabilities: npt.ArrayLike,
    predictions: Any,
    folder: str | Path,
    *,
    facts: Mapping[str, str] | None = None,
    qualities: Sequence[ReportedQuality] = (),
    items: Sequence[str] | None = None,
    known: KnownLabels | None = None,
    history: Any = None,
    n_examples: int = 40,
    seed: int = 0,
) -> Path:
    """Write a page about a model of a table, for a person to look at.

    Parameters
    ----------
    X : DataFrame, array or sparse matrix of shape (n_samples, n_features)
        Shown as it is: text and numbers by column.
    label_names : sequence of n_labels str
    probabilities : array of shape (n_samples, n_labels)
    predictions : bool or 0/1 array of shape (n_samples, n_labels)
    folder : path
        An existing page is replaced; a folder that holds anything else is refused.
    facts : mapping of str to str, optional
        What the page says first, such as the method.
    qualities : sequence of ReportedQuality
    items : sequence of n_samples str, optional
        By default the numbers of the rows.
    known : KnownLabels, optional
    history : History, optional
        Of the training, such as ``history_`` of a fitted model; its risks are drawn.
    n_examples : int
        How many rows to show at most: half of them the most confident of every label, a quarter
        the most doubtful, a quarter drawn at random.
    seed : int
        Seed of the draw. The same input gives the same bytes.

    Returns
    -------
    page : Path
        ``index.html`` in the folder, which needs nothing else.

    Examples
    --------
    >>> import tempfile
    >>> X = pd.DataFrame({"title": ["waves", "clouds"], "red": [0.1, 0.7]})
    >>> home = Path(tempfile.mkdtemp())
    >>> page = write_row_report(X, ["sky"], [[0.2], [0.9]], [[0], [1]], home / "page")
    >>> "clouds" in page.read_text(encoding="utf-8")
    True
    """
    scores = np.asarray(probabilities, dtype=float)
    predicted = as_indicators(predictions, "predictions")
    known = known or KnownLabels()
    answers, relevant = known.answers, known.relevant
    names = [str(row) for row in range(len(scores))] if items is None else list(items)
    codes = None if answers is None else answers.candidates
    given = {"predictions": predicted, "answers": codes, "relevant": relevant}
    check_page_inputs(names, label_names, scores, given, n_examples)
    shown = []
    for row, reasons in pick_pictures(scores, n_examples, seed).items():
        labels = _list_labels(label_names, scores[row], predicted[row], answers, relevant, row)
        cells, n_more = _read_cells(X, row)
        shown.append(ShownRow(Card(row, names[row], None, labels), reasons, cells, n_more))
    page = render_page(
        "rows.html.jinja",
        title="Report",
        n_rows=len(scores),
        facts=facts or {},
        qualities=qualities,
        plots=_draw_plots(qualities),
        quality_plot=_draw_quality(qualities),
        answers_plot=_draw_answers(known, label_names),
        risk_plot=_draw_risks(history),
        shown=shown,
        label_names=label_names,
        kind=None if answers is None else answers.kind,
        said=None if answers is None else summarise_answers(answers, "row"),
        columns=_count_labels(predicted, answers, relevant, known.rates),
        has_items=items is not None,
        truth_known=relevant is not None,
        filters=_list_filters(shown, answers is not None, relevant is not None),
    )
    with replacing_folder(folder, ("index.html",)) as temporary:
        (temporary / "index.html").write_text(page, encoding="utf-8", errors="replace")
    return expanded(folder) / "index.html"


def _list_labels(
    label_names: Sequence[str],
    scores: FloatArray,
    predicted: npt.NDArray[np.bool_],
    answers: Answers | None,
    relevant: BoolMatrix | None,
    row: int,
) -> list[Label]:
    """Return the labels of a row, the highest probability first."""
    said = [(None, "")] * len(label_names) if answers is None else say_pairs(answers, row)
    truth = [None] * len(label_names) if relevant is None else relevant[row].tolist()
    columns = zip(label_names, scores.tolist(), predicted.tolist(), said, truth, strict=True)
    return sort_labels(
        [
            Label(name, score, is_predicted, word, is_relevant, voices, number)
            for number, (name, score, is_predicted, (word, voices), is_relevant) in enumerate(
                columns
            )
        ]
    )


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
    texts = [(name, _write_cell(value)) for name, value in pairs]
    in_words = [isinstance(value, str) for _, value in pairs]
    order = sorted(range(len(pairs)), key=lambda k: not in_words[k])[:MOST_CELLS]
    return [texts[k] for k in sorted(order)], len(pairs) - len(order)


def _write_cell(value: Any) -> str:
    """Return a cell as text; what is missing is a dash, and a long text is cut."""
    if value is None or value is pd.NaT or value is pd.NA or (value != value):
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value).strip() or "–"
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} …"


def _count_labels(
    predictions: BoolMatrix,
    answers: Answers | None,
    relevant: BoolMatrix | None,
    rates: Mapping[str, Any],
) -> dict[str, list[str]]:
    """Return columns of what is predicted and was said of every label, over all rows."""
    columns = {"predicted": [f"{share:.1%}" for share in predictions.mean(axis=0)]}
    if relevant is not None:
        columns["relevant"] = [f"{share:.1%}" for share in relevant.mean(axis=0)]
    return columns if answers is None else columns | count_answers(answers, rates)


def _list_filters(
    shown: Sequence[ShownRow], has_answers: bool, truth_known: bool
) -> list[tuple[str, str, int]]:
    """Return the name of every filter, its words, and how many rows it leaves."""
    words = dict(GROUPS)
    if has_answers:
        words["contradictions"] = "with contradictions"
    if truth_known:
        words["mistakes"] = "with mistakes"
    return [(name, text, sum(name in r.groups for r in shown)) for name, text in words.items()]


def _draw_plots(qualities: Sequence[ReportedQuality]) -> list[Markup | None]:
    """Return the plot of the calibration from every source, None where there is none."""
    return [
        None
        if quality.calibration is None
        else Markup(as_svg(plot_calibration(quality.calibration), f"calibration-{k}"))
        for k, quality in enumerate(qualities)
    ]


def _draw_quality(qualities: Sequence[ReportedQuality]) -> Markup | None:
    """Return the plot of the F1 of every label by all sources, None where there is none."""
    sources = {quality.source: quality.by_label for quality in qualities if quality.by_label}
    return Markup(as_svg(plot_label_quality(sources), "by-label")) if sources else None


def _draw_answers(known: KnownLabels, label_names: Sequence[str]) -> Markup | None:
    """Return the plot of what was said about every label, None where nothing was."""
    if known.answers is None:
        return None
    said = known.answers.rename_labels(list(label_names))
    return Markup(as_svg(plot_answers(said, known.class_prior), "said"))


def _draw_risks(history: Any) -> Markup | None:
    """Return the plot of a training, None where no epoch is known."""
    return Markup(as_svg(plot_risks(history), "risks")) if history and history.risk else None
