"""Plots of answers, class priors, quality, calibration, risks and ranks, all in one style."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from comes.answers import Answers
from comes.errors import ComesError, listed
from comes.files import replacing_file
from comes.label_metrics import LABEL_METRICS, LabelQuality, list_qualities
from comes.methods import METHODS, table_rank
from comes.significance import Ranks, rank_methods

# One colour for every answer, on light and on dark ground, in all plots and pages: apart from each
# other also for the colour-blind, and dark or light enough to be read as text.
ANSWER_COLOURS = {
    "yes": ("#0a567a", "#4db6e6"),
    "no": ("#7f260e", "#f0692c"),
    "maybe": ("#8e730f", "#f1e08a"),
    "not asked": ("#6d7783", "#7f888f"),
}
# Of middle lightness, three times as light or as dark as the ground, and apart from each other
# also without red or green; tests/test_plots_plot_style.py measures both.
COLOURS = (
    "#7d9998",
    "#239cda",
    "#c80d4b",
    "#4b6795",
    "#fd5758",
    "#d55e00",
    "#3f50ee",
    "#3273dc",
)
MARKERS = "sv^DPoXd"
# Of a few things that are no methods: first those that are farthest apart, also in grey.
BLUE, ORANGE = "#3273dc", "#d55e00"
FEW = ((BLUE, "o"), (ORANGE, "D"), ("#4b6795", "s"), ("#c80d4b", "^"))
INK = "#010203"  # stands for the colour of the text around a plot
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "figure.facecolor": "#ffffff",
    "axes.facecolor": "#ffffff",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "hatch.linewidth": 0.7,
}
LONGEST_NAME = 32  # of a label, in characters
WIDTH = 4.5  # of a plot, in inches: on a phone its letters can still be read
ROW, MARGINS = 0.22, 1.0  # height of a row of a plot by label, and of what surrounds them
SMALL = 7.5  # size of letters in notes


class Look:
    """One colour and marker for every method, the same in all plots of a report."""

    def __init__(self, methods: Sequence[str]) -> None:
        paper = sorted((m for m, f in METHODS.items() if f.paper_rank is not None), key=table_rank)
        others = sorted(set(methods) - set(paper), key=table_rank)
        self._place = {method: place for place, method in enumerate([*paper, *others])}

    def __call__(self, method: str) -> dict[str, Any]:
        """Return arguments of matplotlib's ``plot``."""
        place = self._place[method]
        marker = MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]
        return {"color": COLOURS[place % len(COLOURS)], "marker": marker}


def escape_name(name: str) -> str:
    """Return a name that matplotlib shows as it is: no mathematics, no hidden legend entry."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def shorten_name(name: str) -> str:
    """Return a name of a label as a plot shows it: of a long one, its beginning and its end."""
    flat = " ".join(name.split())
    if len(flat) > LONGEST_NAME:
        end = LONGEST_NAME // 3
        flat = f"{flat[: LONGEST_NAME - end - 1]}…{flat[-end:]}"
    return escape_name(flat)


@contextmanager
def drawing(axes: Axes | None, height: float, width: float = WIDTH) -> Iterator[Axes]:
    """Give axes to draw on: the caller's as they are, or new ones in the style of all plots."""
    if axes is not None:
        yield axes
        return
    with rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained").add_subplot()


def find_ink(axes: Axes) -> Any:
    """Return the colour of the text of axes: that of all lines that stand for nothing else."""
    return axes.xaxis.label.get_color()


def check_most(most: int) -> int:
    """Return how many labels get a row, or raise where that is none."""
    if most < 1:
        raise ComesError(f"most must be 1 or more, the labels that are drawn; got {most!r}.")
    return most


def guide_eyes(axes: Axes) -> None:
    """Draw faint lines down the plot, to read numbers by."""
    axes.grid(axis="x", color=find_ink(axes), alpha=0.15, lw=0.6)
    axes.set_axisbelow(True)


@contextmanager
def label_rows(
    axes: Axes | None, names: Sequence[str], across: str, n_labels: int, which: str, room: float = 0
) -> Iterator[Axes]:
    """Give axes with a row for each name, the first at the top.

    Below them stands what goes across and, where labels are left out, which are shown.
    """
    with drawing(axes, MARGINS + ROW * len(names) + room) as axes:
        yield axes
        axes.set_yticks(range(len(names)), [shorten_name(name) for name in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        shown = f"\n{len(names)} of {n_labels} labels: {which}" if len(names) < n_labels else ""
        axes.set_xlabel(across + shown)


def put_legend_above(axes: Axes, columns: int = 5) -> None:
    """Write a legend above the plot, where it covers nothing: bars first, then marks."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: isinstance(handles[k], Line2D))
    axes.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=columns,
        borderaxespad=0.2,
        handletextpad=0.5,
        columnspacing=1.2,
    )


# What is not written, so that the same plot gives the same bytes.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    ".svg": ("Date", "Creator", "Format", "Type"),
    ".png": ("Software",),
    ".pdf": ("CreationDate", "Creator", "Producer"),
}
DOTS_PER_INCH = 200


def check_plot_name(path: str | Path) -> None:
    """Raise unless a plot can be written under this name."""
    path = Path(path)
    if path.suffix.lower() not in LEFT_OUT:
        raise ComesError(
            f"{path.name} should end in .png, .pdf or .svg; got {path.suffix or 'no ending'}."
        )


def figure_of(axes: Axes) -> Figure:
    """Return the figure that axes belong to."""
    figure: Any = axes.figure
    return figure if isinstance(figure, Figure) else figure.figure  # the whole of a part


def save_plot(axes: Axes, path: str | Path, *, transparent: bool = False) -> Path:
    """Write the figure that axes belong to, whole or not at all.

    The ground is white, for print, and text stays text that can be searched and edited. The same
    plot gives the same bytes.

    Parameters
    ----------
    axes : Axes
        As the plot functions return them.
    path : path
        A .svg, .pdf or .png file.
    transparent : bool
        Leave out the ground, for slides and pages that have their own.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> from comes import Answers
    >>> from comes.report import plot_answers
    >>> axes = plot_answers(Answers(no=[[1, 0], [0, 1]], yes=[[0, 1], [0, 0]]))
    >>> save_plot(axes, Path(tempfile.mkdtemp()) / "answers.svg").name
    'answers.svg'
    """
    check_plot_name(path)
    path = Path(path)
    kind = path.suffix.lower()
    with rc_context(STYLE | {"svg.hashsalt": "comes"}), replacing_file(path) as temporary:
        figure_of(axes).savefig(
            temporary,
            format=kind[1:],
            dpi=DOTS_PER_INCH,
            transparent=transparent,
            metadata=dict.fromkeys(LEFT_OUT[kind]),
        )
    return path


def as_svg(plot: Axes | Figure, name: str) -> str:
    """Return a plot as a part of a page, in the page's colours of text and answers.

    Ids in the plot begin with the name, which must be unique in the page.
    """
    figure = plot if isinstance(plot, Figure) else figure_of(plot)
    buffer = io.StringIO()
    with rc_context(STYLE | {"svg.hashsalt": name}):  # so that ids are the same in every run
        nothing = dict.fromkeys(LEFT_OUT[".svg"])
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    for answer, (light, _) in ANSWER_COLOURS.items():
        svg = svg.replace(light, f"var({css_name(answer)})")
    svg = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', svg)  # each once in a page
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img"', svg, count=1)


def css_name(answer: str) -> str:
    """Return the CSS variable that holds the colour of an answer."""
    return f"--{answer.replace(' ', '-')}"


def css_colours() -> tuple[str, str]:
    """Return CSS that sets the colours of all answers, on light and on dark ground."""
    light, dark = (
        " ".join(f"{css_name(answer)}: {pair[k]};" for answer, pair in ANSWER_COLOURS.items())
        for k in (0, 1)
    )
    return light, dark


YES, NO, MAYBE, NOT_ASKED = (light for light, _ in ANSWER_COLOURS.values())
OPEN: dict[str, Any] = {"facecolor": "none", "edgecolor": NOT_ASKED}
SURELY: dict[str, Any] = {"facecolor": YES, "edgecolor": YES}
NEVER: dict[str, Any] = {"facecolor": "none", "edgecolor": NO, "hatch": "//////"}
UNSURE: dict[str, Any] = {"facecolor": "none", "edgecolor": MAYBE, "hatch": "xxxxxx"}
# From left to right: what a label has, and last what it has not, so that the class prior lies
# between them. The hatches tell them apart in grey.
BARS: dict[str, dict[str, dict[str, Any]]] = {
    "answers": {"yes": SURELY, "maybe": UNSURE, "not asked": OPEN, "no": NEVER},
    "candidates": {"still possible": OPEN, "no": NEVER},
    "positives": {"ticked": SURELY, "not ticked": OPEN},
}


def plot_answers(
    answers: Answers,
    class_prior: Any = None,
    *,
    most: int = 40,
    axes: Axes | None = None,
) -> Axes:
    """Draw what was said about every label: shares of rows with yes, maybe, nothing and no.

    Class priors, if they are given, are marks in the same bars: how often the label is relevant
    lies right of what was called so, and left of what was called irrelevant.

    Parameters
    ----------
    answers : Answers of shape (n_samples, n_labels)
        Of any kind: of candidates, what is excluded and what is still possible; of ticked labels,
        what is ticked and what is not.
    class_prior : array of shape (n_labels,), or as in `plot_priors`, optional
        Drawn with its bounds, where there are any.
    most : int
        How many labels get a row; of more, those with the most answers.
    axes : Axes, optional
        By default those of a new figure, as high as the labels need.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> answers = Answers(no=[[1, 0], [0, 1]], yes=[[0, 1], [0, 0]], label_names=["sea", "sky"])
    >>> axes = plot_answers(answers, class_prior=[0.3, 0.6])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['yes', 'maybe', 'not asked', 'no', 'class prior']
    """
    bars, counts, n = BARS[answers.kind], answers.count(), max(len(answers), 1)
    shares = {name: counts[name] / n for name in ("yes", "maybe", "no")}
    shares |= {"ticked": shares["yes"]}
    shares |= dict.fromkeys(("not asked", "still possible", "not ticked"), 1 - counts["asked"] / n)
    table = pd.DataFrame({"label": counts["label"], "n_said": counts["asked"]})
    table = table.assign(**{name: shares[name] for name in bars})
    if class_prior is not None:
        table = _add_priors(table, class_prior)
    chosen = table["n_said"].sort_values(ascending=False, kind="stable").index[: check_most(most)]
    by = next(iter(bars)) if class_prior is None else "class_prior"
    shown = table.loc[chosen].sort_values(by, ascending=False, kind="stable")
    across, which = f"share of {len(answers)} rows", "those with the most answers"
    with label_rows(axes, list(shown["label"]), across, len(table), which, 0.2) as axes:
        left = np.zeros(len(shown))
        rows = np.arange(len(shown))
        for name, look in bars.items():
            share = shown[name].to_numpy()
            axes.barh(rows, share, left=left, height=0.7, linewidth=0.7, label=name, **look)
            left += share
        if class_prior is not None:
            ink, priors = find_ink(axes), shown["class_prior"]
            axes.hlines(rows, shown["lower"], shown["upper"], color=ink, lw=1.5, zorder=4)
            axes.plot(priors, rows, "D", color=ink, ms=5, label="class prior", zorder=5)
        axes.set_xlim(0, 1)
        put_legend_above(axes)
    return axes


def _add_priors(table: pd.DataFrame, class_prior: Any) -> pd.DataFrame:
    """Return the table with class priors and their bounds, matched by name where names agree."""
    priors = read_priors_of(class_prior)
    if set(priors["label"]) == set(table["label"]):
        priors = priors.set_index("label").loc[list(table["label"])].reset_index()
    if len(priors) != len(table):
        raise ComesError(
            f"class_prior must have a number for each of {len(table)} labels; got {len(priors)}. "
            "Pass the estimate that was made from these answers."
        )
    return table.join(priors[["class_prior", "lower", "upper"]])


LINES = ("-", ":", "-.", (0, (5, 1)))  # apart in grey, and from the dashes of the diagonal


def plot_calibration(found: Any, *, axes: Axes | None = None) -> Axes:
    """Draw how often pairs are relevant over how often they should be, with intervals.

    Probabilities are right where the dashed line runs through the intervals.

    Parameters
    ----------
    found : DataFrame, or mapping of str to DataFrame
        What `comes.selection.check_reliability` makes of probabilities and answers, or of the
        truth as answers. Several are drawn by name.
    axes : Axes, optional
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> from comes.selection import check_reliability
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.random((500, 3))
    >>> relevant = rng.random((500, 3)) < eta
    >>> truth = Answers(no=~relevant, yes=relevant)
    >>> axes = plot_calibration(check_reliability(eta, truth, 1.0, 1.0))
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('predicted probability', 'share of relevant pairs')
    """
    named = dict(found) if isinstance(found, Mapping) else {"": found}
    needed = {"predicted", "relevant", "low", "high"}
    is_right = (isinstance(one, pd.DataFrame) and needed <= set(one) for one in named.values())
    if not named or not all(is_right):
        raise ComesError(
            f"found must be a table with {listed(sorted(needed))}, or tables by name; got a "
            f"{type(found).__name__} without. Pass what comes.selection.check_reliability returns."
        )
    with drawing(axes, 3.4, width=3.6) as axes:
        axes.plot([0, 1], [0, 1], color=find_ink(axes), linewidth=0.8, linestyle="dashed")
        for k, (name, bins) in enumerate(named.items()):
            colour, marker = FEW[k % len(FEW)]
            bins = bins.dropna(subset="relevant")
            axes.vlines(bins["predicted"], bins["low"], bins["high"], color=colour, lw=1.5)
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4}
            look["linestyle"] = LINES[k % len(LINES)]
            axes.plot(bins["predicted"], bins["relevant"], label=escape_name(name), **look)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set_xlabel("predicted probability")
        axes.set_ylabel("share of relevant pairs")
        if isinstance(found, Mapping):
            axes.legend(loc="upper left")
    return axes


HOLLOW: dict[str, Any] = {"marker": "D", "ms": 5, "mfc": "none", "mew": 1.2, "ls": "", "zorder": 4}
TWO_SIDED = 1.96  # standard errors on either side of an estimate: 95 %


def plot_priors(
    estimate: Any,
    true_prior: npt.ArrayLike | None = None,
    *,
    label_names: Sequence[str] | None = None,
    most: int = 40,
    axes: Axes | None = None,
) -> Axes:
    """Draw estimated class priors with their bounds, beside the true ones where they are known.

    Labels are rows, the most frequent first.

    Parameters
    ----------
    estimate : ClassPriorEstimate, RatesEstimate, DataFrame or fitted classifier
        What `comes.priors.estimate_class_prior` or `comes.priors.estimate_answer_rates` returns,
        the table that `comes.priors.prior_table` makes, or a classifier with ``class_prior_``.
        Where only a standard error is known, the bounds are those of 95 %.
    true_prior : array of shape (n_labels,), optional
        By default the column ``true_prior`` of a table that has it.
    label_names : sequence of n_labels str, optional
        By default those of the table or classifier, or the numbers of the labels.
    most : int
        How many labels get a row; of more, those with the widest bounds.
    axes : Axes, optional
        By default those of a new figure, as high as the labels need.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> table = pd.DataFrame({"label": ["sky"], "class_prior": [0.2], "lower": 0.1, "upper": 0.3})
    >>> axes = plot_priors(table, true_prior=[0.25])
    >>> axes.get_xlabel()
    'class prior, with bounds'
    """
    table = read_priors_of(estimate, label_names)
    if true_prior is not None:
        truth = np.asarray(true_prior, dtype=np.float64)
        if truth.shape != (len(table),):
            raise ComesError(
                f"true_prior must have a number for each of {len(table)} labels; got shape "
                f"{truth.shape}. Pass what comes.priors.count_class_prior returns."
            )
        table["true_prior"] = truth
    width = (table["upper"] - table["lower"]).fillna(np.inf)
    shown = table.loc[width.sort_values(ascending=False, kind="stable").index[: check_most(most)]]
    shown = shown.sort_values("class_prior", ascending=False, kind="stable")
    across, which = "class prior, with bounds", "those with the widest bounds"
    with label_rows(axes, list(shown["label"]), across, len(table), which) as axes:
        guide_eyes(axes)
        rows = np.arange(len(shown))
        axes.hlines(rows, shown["lower"], shown["upper"], color=BLUE, lw=1.5)
        axes.plot(shown["class_prior"], rows, "o", color=BLUE, ms=4.5, label="estimated", zorder=3)
        if shown["true_prior"].notna().any():
            axes.plot(shown["true_prior"], rows, **HOLLOW, color=ORANGE, label="true")
            put_legend_above(axes)
        axes.set_xlim(-0.02, 1.02)
    return axes


def read_priors_of(estimate: Any, label_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return label, class_prior, lower, upper and true_prior, NaN where nothing is known."""
    columns = ["label", "class_prior", "lower", "upper", "true_prior"]
    if isinstance(estimate, pd.DataFrame):
        table = estimate.reindex(columns=columns).reset_index(drop=True)
    else:
        end = "_" if hasattr(estimate, "class_prior_") else ""  # of a classifier
        given = getattr(estimate, f"class_prior{end}", estimate)
        if given is None:
            raise ComesError(
                "the classifier has no class prior (class_prior_ is None): its method needs none. "
                "Pass what comes.priors.estimate_class_prior returns."
            )
        prior = np.asarray(given, dtype=np.float64)
        error = getattr(estimate, f"class_prior_error{end}", None)
        margin = TWO_SIDED * np.asarray(np.nan if error is None else error, dtype=np.float64)
        table = pd.DataFrame(
            {
                "label": getattr(estimate, "label_names_", [str(k) for k in range(len(prior))]),
                "class_prior": prior,
                "lower": getattr(estimate, "lower", np.clip(prior - margin, 0, 1)),
                "upper": getattr(estimate, "upper", np.clip(prior + margin, 0, 1)),
            }
        ).reindex(columns=columns)
    if label_names is None:
        return table
    if len(label_names) != len(table):
        raise ComesError(
            f"label_names must name each of {len(table)} labels; got {len(label_names)} names."
        )
    return table.assign(label=list(label_names))


APART = 0.3  # between the dots of several sources in one row


def plot_quality(
    quality: Any,
    *,
    metric: str = "f1",
    label_names: Sequence[str] | None = None,
    most: int = 40,
    axes: Axes | None = None,
) -> Axes:
    """Draw a metric of every label as a dot with its interval, the worst label first.

    Parameters
    ----------
    quality : list of LabelQuality, DataFrame, estimated metrics, or mapping of str to these
        ``by_label`` of what `comes.workflows.judge_model` returns, a table of
        `comes.label_metrics.measure_labels`, or what `comes.selection.estimate_metrics` finds
        without the truth. Several, such as the truth and an estimate, are drawn by name.
    metric : {"precision", "recall", "f1", "auc", "average_precision"}
    label_names : sequence of n_labels str, optional
        Of tables; by default the numbers of the labels.
    most : int
        How many labels are drawn; of more, the worst.
    axes : Axes, optional
        By default those of a new figure, as high as the labels need.

    Returns
    -------
    axes : Axes
        Where a metric cannot be estimated, the row says why.

    Examples
    --------
    >>> from comes.label_metrics import measure_labels
    >>> table = measure_labels([[2.0, -1.0], [1.0, -2.0]], [[1, 0], [1, 1]])
    >>> axes = plot_quality(table, metric="recall", label_names=["sky", "sea"])
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['sea', 'sky']
    """
    if metric not in LABEL_METRICS:
        raise ComesError(f"metric must be one of {listed(list(LABEL_METRICS))}; got {metric!r}.")
    named = dict(quality) if isinstance(quality, Mapping) else {"": quality}
    sources = {name: _read_metric(one, metric, label_names) for name, one in named.items()}
    joined = pd.concat(sources.values()) if sources else pd.DataFrame(columns=["value"])
    if not len(joined):
        raise ComesError("there is nothing to draw: no label is given. Judge a model first.")
    first = joined["value"].astype(float).groupby(level=0).first()  # of the first that knows it
    order = sorted(first.index, key=lambda label: (np.isnan(first[label]), first[label], label))
    shown = order[: check_most(most)]
    across, room = f"{LABEL_METRICS[metric]}, with intervals", 0.2 * (len(sources) > 1)
    with label_rows(axes, shown, across, len(order), "the worst", room) as axes:
        guide_eyes(axes)
        for k, (name, table) in enumerate(sources.items()):
            own, (colour, marker) = table.reindex(shown), FEW[k % len(FEW)]
            rows = np.arange(len(shown)) + APART * (k - (len(sources) - 1) / 2)
            value, low, high = own[["value", "low", "high"]].to_numpy(np.float64).T  # None is NaN
            axes.hlines(rows, low, high, color=colour, lw=1.5)
            look: dict[str, Any] = {"color": colour, "ms": 4.5, "zorder": 3}
            axes.plot(value, rows, marker, label=escape_name(name), **look)
        for row, label in enumerate(shown):
            if np.isnan(first[label]):
                reason = joined.loc[[label], "reason"].dropna()
                text = escape_name(reason.iloc[0] if len(reason) else "not known")
                axes.text(0.0, row, text, va="center", fontsize=SMALL, style="italic")
        first_x, last_x = axes.get_xlim()
        axes.set_xlim(min(-0.02, first_x), max(1.02, last_x))
        if isinstance(quality, Mapping):
            put_legend_above(axes)
    return axes


def _read_metric(quality: Any, metric: str, label_names: Sequence[str] | None) -> pd.DataFrame:
    """Return value, low, high and reason of a metric by label, from whatever it was found by."""
    table = getattr(quality, "per_label", quality)
    if isinstance(table, pd.DataFrame):
        names = [str(k) for k in range(len(table))] if label_names is None else list(label_names)
        if len(names) != len(table):
            raise ComesError(
                f"label_names must name each of {len(table)} labels; got {len(names)} names."
            )
        quality = list_qualities(table, names, {})
    for one in quality:
        if not isinstance(one, LabelQuality):
            raise ComesError(
                "quality must be a list of LabelQuality or a table with a row per label; got a "
                f"{type(one).__name__}. Pass what comes.label_metrics.measure_labels returns."
            )
        if metric not in one.metrics:
            raise ComesError(
                f"the quality of {one.label!r} has no {metric}; it has {listed(list(one.metrics))}."
                " Choose one of them."
            )
    found = {one.label: asdict(one.metrics[metric]) for one in quality}
    return pd.DataFrame.from_dict(found, orient="index", columns=["value", "low", "high", "reason"])


def plot_ranks(
    scores: pd.DataFrame | Ranks,
    *,
    higher_is_better: bool = True,
    look: Look | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw mean ranks beside the names; a bar joins methods within the critical difference.

    Methods that one bar joins cannot be told apart by Nemenyi's test at the level 0.05.

    Parameters
    ----------
    scores : DataFrame of shape (n_sets, n_methods), or Ranks
        A metric of every method (columns) on every data set (rows); data sets that miss a method
        are left out. Or what `comes.significance.rank_methods` made of it.
    higher_is_better : bool
        Of the metric; not used where ranks are given.
    look : Look, optional
        Colours and markers of the methods.
    axes : Axes, optional
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    References
    ----------
    Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006.

    Examples
    --------
    >>> scores = pd.DataFrame({"bce": [0.7, 0.6, 0.8], "mine": [0.8, 0.7, 0.9]})
    >>> axes = plot_ranks(scores)
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['mine  1.00', 'bce  2.00']
    """
    if isinstance(scores, Ranks):
        ranks: Ranks | None = scores
    else:
        names, values = [str(name) for name in scores.columns], scores.to_numpy(float).T
        ranks = rank_methods(names, values, higher_is_better=higher_is_better)
        n_full = int(scores.notna().all(axis=1).sum())
    if ranks is None:
        raise ComesError(
            "scores must have two methods (columns) or more, with numbers on two data sets (rows) "
            f"or more; got {len(names)} methods, and {n_full} of {values.shape[1]} data sets with "
            "all of them. Add results, or leave out methods that miss many."
        )
    look = look or Look(ranks.methods)
    k, bars, gap = len(ranks.methods), ranks.alike(), ranks.critical_difference
    with drawing(axes, 0.9 + 0.22 * k + 0.14 * len(bars), width=4.2) as axes:
        ink = find_ink(axes)
        for place, (method, rank) in enumerate(zip(ranks.methods, ranks.mean_rank, strict=True)):
            axes.plot([1, rank], [-place, -place], color=ink, lw=0.5)
            axes.plot([rank], [-place], **look(method) | {"ms": 6, "linestyle": ""}, zorder=3)
        for bar, (first, last) in enumerate(bars):
            ends = [ranks.mean_rank[first] - 0.04, ranks.mean_rank[last] + 0.04]
            axes.plot(ends, [-k - 0.6 * bar] * 2, color=ink, lw=3, solid_capstyle="butt")
        axes.plot([1, 1 + gap], [1.2, 1.2], color=ink, lw=1.5, marker="|", ms=7)
        axes.text(1, 1.5, f"critical difference {gap:.2f}", va="bottom")
        axes.set_xlim(0.8, max(k + 0.2, 1.2 + gap))
        axes.set_ylim(-k - 0.6 * len(bars), 2.9)
        pairs = zip(ranks.methods, ranks.mean_rank, strict=True)
        titles = [f"{escape_name(method)}  {rank:.2f}" for method, rank in pairs]
        axes.set_yticks([-place for place in range(k)], titles)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_ticks_position("top")
        axes.set_xticks(range(1, k + 1))
        axes.spines[["left", "bottom", "right"]].set_visible(False)
        axes.spines["top"].set_visible(True)
        axes.spines["top"].set_bounds(1, k)
    return axes


ONE: dict[str, Any] = {"color": BLUE, "marker": "o"}


def plot_risks(
    trained: Any,
    *,
    relative: bool = False,
    look: Look | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the risk of every epoch, and dashed that of rows that were held out.

    A ring marks the epoch whose weights were kept.

    Parameters
    ----------
    trained : fitted classifier, History, or mapping of str to these
        Several trainings are drawn by name.
    relative : bool
        Divide each curve by its first value: risks of different methods have different scales.
    look : Look, optional
        Colours and markers of the names.
    axes : Axes, optional
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> from comes.training import History
    >>> history = History(risk=[0.7, 0.5, 0.4], validation=[0.7, 0.6, 0.65], best_epoch=2)
    >>> axes = plot_risks(history)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['training', 'held-out rows', 'kept']
    """
    is_named = isinstance(trained, Mapping)
    named = dict(trained) if is_named else {"": trained}
    histories = {name: getattr(one, "history_", one) for name, one in named.items()}
    if not any(history.risk for history in histories.values()):
        raise ComesError("there is nothing to draw: no epoch was trained. Fit a classifier first.")
    look = look or Look(list(histories))
    with drawing(axes, 2.8, width=4.8) as axes:
        for name, history in histories.items():
            own = (look(name) if is_named else ONE) | {"ms": 4, "lw": 1.2}
            own = own | {"markevery": max(1, len(history.risk) // 6)}
            names = [escape_name(name)] if is_named else []
            for values, words, style in (
                (history.risk, names or ["training"], {}),
                (history.validation, [*names, "held-out rows"], {"ls": "--", "mfc": "none"}),
            ):
                curve = np.asarray(values, dtype=np.float64)
                if relative and len(curve):
                    curve = curve / (abs(curve[0]) or 1.0)
                if len(curve):
                    epochs = np.arange(1, len(curve) + 1)
                    axes.plot(epochs, curve, label=", ".join(words), **own | style)
            if len(curve) and (best := history.best_epoch) is not None:  # of held-out rows
                kept = None if "kept" in axes.get_legend_handles_labels()[1] else "kept"
                ring = own | {"marker": "o", "ms": 9, "mfc": "none", "ls": ""}
                axes.plot([best], [curve[best - 1]], label=kept, **ring)
        axes.set_xlabel("epoch")
        axes.set_ylabel("risk / risk of epoch 1" if relative else "risk")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if is_named or axes.get_legend_handles_labels()[1][1:]:
            axes.legend()
    return axes
