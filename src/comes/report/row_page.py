"""A page about a model of a table: quality by label, calibration, what was said, and some rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup
from scipy import sparse

from comes.answers import Answers
from comes.answers.convert import BoolMatrix, as_indicators
from comes.files import expanded, replacing_folder
from comes.label_metrics import LABEL_METRICS, LabelQuality
from comes.plots import as_svg, plot_answers, plot_calibration, plot_label_quality, plot_risks
from comes.report.cards import Card, FloatArray, Label, check_page_inputs, render_page, sort_labels
from comes.report.predicted import GROUPS, Reasons, pick_pictures
from comes.report.said import count_answers, say_pairs, summarise_answers

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
        How often labels are relevant, as `comes.plots.plot_answers` takes it.

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
