"""What the jobs on fitted models share: a model by its folder, and data in the model's terms."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import AnswerRates, Answers, State, choose_questions
from comes.datasets import Dataset, ReadOptions, open_dataset, read_features, read_images
from comes.datasets.predictions import (
    check_prediction_name,
    check_top,
    prediction_table,
    top_table,
    write_prediction_table,
)
from comes.datasets.table import check_ending, write_table
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator import CandidateClassifier
from comes.estimator.export import export_onnx, measure_onnx
from comes.files import check_file_target, check_folder_target, expanded, refuse_inputs, refuse_same
from comes.images import ImageClassifier, evidence_maps, load_model
from comes.images.maps import lay_over
from comes.report import write_predictions
from comes.workflows.data import open_if_project

Classifier = CandidateClassifier | ImageClassifier


def as_model(model: Classifier | str | Path) -> Classifier:
    """Return a fitted model as it is, or load it from its folder."""
    return load_model(model) if isinstance(model, str | Path) else model


def find_word_columns(classifier: Classifier) -> list[str] | None:
    """Return the columns of a table that are read as they are written; None if there are none."""
    encoder = getattr(classifier, "encoder_", None)
    return None if encoder is None else encoder.word_columns or None


def open_for_model(
    classifier: Classifier, data: Dataset | str | Path, reading: ReadOptions | None
) -> Dataset:
    """Return labelled data with the model's inputs, and with its labels in its order."""
    data = open_if_project(data)
    if isinstance(data, Dataset):
        return data.align_labels(classifier.label_names_)
    reading = reading or ReadOptions()
    if reading.label_names is not None:
        raise ComesError("the model knows its labels; leave label names (--label-names) out.")
    if reading.text or reading.category or reading.number or reading.date:
        raise ComesError(
            "the model knows its columns; leave --text, --category, --number and --date out."
        )
    if isinstance(classifier, CandidateClassifier):
        reading = replace(
            reading,
            feature_columns=classifier.feature_names,
            n_features=classifier.n_features_in_,
            category=find_word_columns(classifier),
        )
    elif os.path.isfile(expanded(data)) and reading.images is None:
        raise ComesError(
            f"this model was trained on images: name the folder of those in {data} (--images)."
        )
    return open_dataset(data, replace(reading, label_names=classifier.label_names_))


def score_dataset(classifier: Classifier, dataset: Dataset) -> npt.NDArray[np.floating]:
    """Return the scores of every row, (n_samples, n_labels)."""
    if isinstance(classifier, ImageClassifier):  # whose features `fit` may have kept
        return np.asarray(classifier.decision_function(dataset.known_images(), cache=True))
    return np.asarray(classifier.decision_function(dataset.known_features()))


def read_asked(
    asked: Dataset | str | Path | None, label_names: Sequence[str], items: Sequence[str] | None
) -> Answers | None:
    """Return what was said already about these items, (n_items, n_labels); None if not given.

    What was said about other items is left out.
    """
    if items is None:
        raise ComesError(
            "questions name their items, and these have no names. Add a column 'item' to the data."
        )
    if asked is None:
        return None
    if isinstance(asked, Dataset):
        said = asked.align_labels(label_names)
    else:
        said = _open_asked(asked, list(label_names))
    if said.items is None:
        raise ComesError(
            "what was asked is matched by the names of the items, and the answers have none. Give "
            "the table that 'comes annotate export' wrote."
        )
    place = {name: row for row, name in enumerate(said.items)}
    known = [row for row, name in enumerate(items) if name in place]
    if not known:
        raise ComesError(
            f"none of the items was asked about: the answers are about {listed(said.items, 3)}, "
            f"the items are {listed(items, 3)}. Name both in the same way."
        )
    answers = said.known_answers()
    codes = np.full((len(items), len(label_names)), State.NOT_ASKED, dtype=np.int8)
    codes[known] = answers.codes[[place[items[row]] for row in known]]
    return Answers.from_codes(codes, answers.kind, label_names)


def _open_asked(asked: str | Path, label_names: list[str]) -> Dataset:
    """Return answers from a file: one row per answer, or a column for each label of the model."""
    try:
        return open_dataset(asked, ReadOptions(label_names=label_names))
    except ComesError:
        try:
            return open_dataset(asked, ReadOptions(labels=label_names))
        except ComesError:
            pass  # the first error says more
        raise


def ask_next(
    classifier: Classifier,
    scores: npt.NDArray[np.floating],
    items: Sequence[str],
    count: int,
    asked: Answers | None,
) -> pd.DataFrame:
    """Return a table of the pairs whose answers are expected to tell most."""
    probabilities = classifier.squash_scores(scores)
    questions = choose_questions(
        probabilities, count, answers=asked, rates=rates_of_people(classifier, asked)
    )
    if not len(questions.row):
        raise ComesError("nothing is left to ask: there is an answer about every pair.")
    return pd.DataFrame(
        {
            "item": [items[row] for row in questions.row],
            "label": [classifier.label_names_[label] for label in questions.label],
            "probability": probabilities[questions.row, questions.label].round(4),
            "bits": questions.bits.round(4),
        }
    )


def rates_of_people(classifier: Classifier, asked: Answers | None) -> AnswerRates | None:
    """Return how often people dare to answer, if the model learned it from answers of people.

    Rates of candidates and of ticked labels are not those of somebody who is asked: one of the two
    is 0 everywhere.
    """
    a, b = classifier.no_rate_, classifier.yes_rate_
    if a is None or b is None:
        return None
    is_of_people = a.any() and b.any() if asked is None else asked.kind == "answers"
    if not is_of_people:
        return None
    return AnswerRates(a, b, classifier.rates_.mistake_rate)


@dataclass(frozen=True)
class PageOptions:
    """A page of predictions to write beside their table; for images.

    Attributes
    ----------
    folder : path
        Folder for the page.
    n_examples : int
        How many pictures to show at most, however many there are.
    maps : bool
        Draw where in a picture the evidence for a label is.
    seed : int
        Of the pictures that are drawn at random.

    Examples
    --------
    >>> PageOptions("page").n_examples
    120
    """

    folder: str | Path
    n_examples: int = 120
    maps: bool = False
    seed: int = 0


@dataclass(frozen=True)
class AskOptions:
    """A table of pairs to ask about next, for ``comes annotate add --cards``.

    Attributes
    ----------
    file : path
        A .csv or .parquet file.
    count : int
        How many pairs at most.
    asked : Dataset or path, optional
        What was said already, by item: these pairs are left out.

    Examples
    --------
    >>> AskOptions("next.csv").count
    200
    """

    file: str | Path
    count: int = 200
    asked: Dataset | str | Path | None = None


@dataclass(frozen=True)
class Predicted:
    """What a model says of items, and what was written beside the table.

    Attributes
    ----------
    table : DataFrame
        item, predicted (names joined by ";"), and the probability of each label.
    n_labels : int
    page : Path, or None
    questions : DataFrame, or None
        item, label, probability and bits: what to ask next.

    Examples
    --------
    >>> Predicted(pd.DataFrame({"predicted": ["sky"]}), n_labels=1).page is None
    True
    """

    table: pd.DataFrame
    n_labels: int
    page: Path | None = None
    questions: pd.DataFrame | None = None


def predict_items(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
) -> pd.DataFrame:
    """Return predicted labels and probabilities for every row or image; write them if asked.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Features, a folder or .zip of images, or a table that names images.
    output : path, optional
        A table (.csv, .parquet and others), or lines of json (.jsonl).
    images : path, optional
        The folder or .zip of the images that a table names.
    skip_broken : bool
        Leave out images that cannot be read, with a warning.
    item : str, optional
        The column of a table that names the items. Without names, items are numbered from 0.
    scores : bool
        Add a column of scores for each label.

    Returns
    -------
    table : DataFrame
        item, predicted (names joined by ";"), and the probability of each label.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> list(predict_items(model, scenes).columns[:3])
    ['item', 'predicted', 'probability:0']
    """
    wanted: dict[str, Any] = {"item": item, "scores": scores}
    return predict_more(model, data, output, images=images, skip_broken=skip_broken, **wanted).table


def predict_more(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
    page: PageOptions | None = None,
    ask: AskOptions | None = None,
) -> Predicted:
    """Predict as `predict_items` does; beside the table, write a page, or what to ask next.

    Parameters
    ----------
    model, data, output, images, skip_broken, item, scores
        As in `predict_items`.
    page : PageOptions, optional
        For images: a page of the most confident, the most doubtful and some other pictures.
    ask : AskOptions, optional
        A table of the pairs whose answers are expected to tell most (`choose_questions` of
        `comes.answers`), for ``comes annotate add --cards``. Items must have names.

    Returns
    -------
    predicted : Predicted

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = replace(make_scenes(n=100), items=[f"scene {k}" for k in range(100)])
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> ask = AskOptions(Path(tempfile.mkdtemp()) / "next.csv", count=30)
    >>> list(predict_more(model, scenes, ask=ask).questions.columns)
    ['item', 'label', 'probability', 'bits']
    """
    check_targets((data, images, model), output, page, ask)
    classifier = as_model(model)
    if page is not None and not isinstance(classifier, ImageClassifier):
        raise ComesError("a page shows images, and this model was trained on a table.")
    X, items = read_inputs(classifier, data, images, skip_broken, item)
    warn_of_repeated(items)
    asked = None if ask is None else read_asked(ask.asked, classifier.label_names_, items)
    found = np.asarray(classifier.decision_function(X))
    probabilities, predictions = classifier.squash_scores(found), classifier.cut_scores(found)
    table = prediction_table(
        probabilities,
        predictions,
        classifier.label_names_,
        items,
        scores=found if scores else None,
    )
    if output is not None:
        write_prediction_table(table, output)
    written = questions = None
    if page is not None:
        written = write_predictions(
            X,
            classifier.label_names_,
            probabilities,
            predictions,
            page.folder,
            maps=_make_maps(classifier, X) if page.maps else None,
            n_examples=page.n_examples,
            seed=page.seed,
        )
    if ask is not None:
        assert items is not None
        questions = ask_next(classifier, found, items, ask.count, asked)
        write_table(questions, ask.file)
    return Predicted(table, len(classifier.label_names_), written, questions)


def check_targets(
    inputs: Sequence[object],
    output: str | Path | None,
    page: PageOptions | None = None,
    ask: AskOptions | None = None,
) -> None:
    """Raise an error, before anything takes long, if something cannot be written."""
    asked = None if ask is None else ask.asked
    checks = (check_prediction_name, check_ending)
    for target, check_name in zip((output, None if ask is None else ask.file), checks, strict=True):
        if target is not None:
            check_name(target)
            check_file_target(target)
            refuse_inputs(target, *inputs, asked)
    refuse_same(output, None if ask is None else ask.file)
    if page is not None:
        check_folder_target(page.folder, ("index.html",))
        refuse_inputs(page.folder, *inputs)


def _make_maps(classifier: Classifier, images: Any) -> Any:
    """Return a function of rows and labels to maps of evidence."""
    assert isinstance(classifier, ImageClassifier)

    def find(rows: Sequence[int], labels: Sequence[int]) -> Sequence[npt.NDArray[np.float32]]:
        shown = images[rows]
        return lay_over(classifier, shown, evidence_maps(classifier, shown, labels))

    return find


def read_inputs(
    classifier: Classifier,
    data: Dataset | str | Path,
    images: str | Path | None,
    skip_broken: bool,
    item: str | None,
) -> tuple[Any, list[str] | None]:
    """Return what the model scores, and the names of the items where there are any."""
    if isinstance(classifier, ImageClassifier):
        pictures = (
            data.known_images()
            if isinstance(data, Dataset)
            else read_images(data, images, skip_broken)
        )
        if item is not None:
            raise ComesError("images are named by their files; leave item (--item) out.")
        return pictures, pictures.names
    if images is not None or skip_broken:
        raise ComesError(
            "this model was trained on a table, so the images and what to do with broken ones "
            "(--images, --skip-broken) do not apply. Leave them out."
        )
    data = open_if_project(data)
    if isinstance(data, Dataset):
        return data.known_features(), data.items
    return read_features(
        data,
        classifier.feature_names,
        classifier.n_features_in_,
        words=find_word_columns(classifier),
        item=item,
        usual_item=getattr(classifier, "item_column_", None),
    )


def warn_of_repeated(items: Sequence[str] | None) -> None:
    """Warn if names of items do not tell which row a prediction is of."""
    names = pd.Series(list(items or ()), dtype=object)
    repeated = names[names.duplicated()]
    if len(repeated):
        shown = listed(list(map(str, repeated.unique())), 3)
        warn(
            f"items should have different names; {shown} occurs more than once, and predictions "
            "cannot be told apart by it. Name another column (--item).",
            ComesWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class WrittenTop:
    """How much was written.

    Examples
    --------
    >>> WrittenTop(n_items=200, n_labels=10).n_items
    200
    """

    n_items: int
    n_labels: int


def write_top(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path,
    top: int,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
) -> WrittenTop:
    """Write the labels of highest score of every row or image, with their probabilities.

    Items are scored and written in parts, so that memory does not grow with the number of items
    times the number of labels, as that of `predict_items` does.

    Parameters
    ----------
    model, data, images, skip_broken, item
        As in `predict_items`.
    output : path
        A table with the columns item, rank, label and probability (.csv, .parquet and others), or
        lines of json (.jsonl).
    top : int
        How many labels of each item.
    scores : bool
        Add a column of scores.

    Returns
    -------
    written : WrittenTop

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> path = Path(tempfile.mkdtemp()) / "top.csv"
    >>> write_top(model, scenes, path, top=3).n_items
    100
    >>> list(pd.read_csv(path).columns), len(pd.read_csv(path))
    (['item', 'rank', 'label', 'probability'], 300)
    """
    check_targets((data, images, model), output)
    classifier = as_model(model)
    names = np.array(classifier.label_names_, dtype=object)
    check_top(top, len(names))
    X, items = read_inputs(classifier, data, images, skip_broken, item)
    warn_of_repeated(items)
    n_items = 0

    def make_tables() -> Iterator[pd.DataFrame]:
        nonlocal n_items
        for part in classifier.stream_top(X, top):
            rows = range(n_items, n_items + len(part))
            own = rows if items is None else items[rows.start : rows.stop]
            found = part.scores if scores else None
            yield top_table(part.labels, part.probabilities, names, own, scores=found)
            n_items = rows.stop

    write_prediction_table(make_tables(), output)
    return WrittenTop(n_items, len(names))


LARGEST_DIFFERENCE = 1e-5  # of a probability, by rounding


@dataclass(frozen=True)
class ExportedModel:
    """A model as a file.

    Attributes
    ----------
    path : Path
    input : str
        What the file takes, in words.
    n_labels : int
    difference : float or None
        How far its probabilities are from those of the model, at most, on rows that are drawn;
        None where onnxruntime is not installed.

    Examples
    --------
    >>> ExportedModel(Path("model.onnx"), "features: float32 (n, 4)", 3).n_labels
    3
    """

    path: Path
    input: str
    n_labels: int
    difference: float | None = None

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name."""
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "input": self.input,
            "outputs": f"scores and probabilities: float32 (n, {self.n_labels})",
            "largest difference": "not checked: install onnxruntime"
            if self.difference is None
            else f"{self.difference:.1e} of a probability, on rows that were drawn",
        }


def export_model(model: Classifier | str | Path, output: str | Path) -> ExportedModel:
    """Write a fitted model as an ONNX file: scaling, network and head in one graph.

    The file is run on rows that are drawn, and compared with ``predict_proba``.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    output : path
        An .onnx file.

    Returns
    -------
    exported : ExportedModel

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> export_model(model, Path(tempfile.mkdtemp()) / "model.onnx").input
    'features: float32 (n, 1)'
    """
    if Path(output).suffix.lower() != ".onnx":
        raise ComesError(f"{output} should end in .onnx; a model is written there.")
    check_file_target(output)
    refuse_inputs(output, model)
    classifier = as_model(model)
    path = export_onnx(classifier, output)
    if isinstance(classifier, ImageClassifier):
        size = classifier.network_.backbone.preprocessing.size
        taken = f"pixels: uint8 (n, 3, {size}, {size})"
    else:
        encoder = getattr(classifier, "encoder_", None)
        n = classifier.n_features_in_ if encoder is None else encoder.n_features
        encoded = "" if encoder is None else f", encoded from {classifier.n_features_in_} columns"
        taken = f"features: float32 (n, {n}){encoded}"
    difference = _check_file(classifier, path)
    return ExportedModel(path, taken, len(classifier.label_names_), difference)


def _check_file(classifier: Classifier, path: Path) -> float | None:
    """Return how far the file is from the model; warn where that is too much."""
    if find_spec("onnxruntime") is None:
        return None
    difference = measure_onnx(classifier, path)
    if not difference <= LARGEST_DIFFERENCE:
        warnings.warn(
            f"{path} gives probabilities up to {difference:.2g} away from those of the model, more "
            f"than {LARGEST_DIFFERENCE:g}. Half precision on a GPU differs so much; else compare "
            "the two on rows of yours before you rely on the file.",
            ComesWarning,
            stacklevel=3,
        )
    return difference
