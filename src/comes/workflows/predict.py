"""Use a fitted model: predict, choose what to ask next, export."""

import os
from collections.abc import Sequence
from dataclasses import replace
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
from comes.workflows.data import open_if_project

Classifier = CandidateClassifier | ImageClassifier
UNJUDGED = (
    "These are predictions alone, which do not say how good the model is. To know it, have some "
    "rows labelled (comes predict --ask-next chooses them), and judge the model by them (comes "
    "report --model)."
)
LARGEST_DIFFERENCE = 1e-5  # of a probability of an exported model, by rounding


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


def inputs_of(classifier: Classifier, dataset: Dataset) -> Any:
    """Return what the model scores: the images of a data set, or its features."""
    is_of_images = isinstance(classifier, ImageClassifier)
    return dataset.known_images() if is_of_images else dataset.known_features()


def score_dataset(classifier: Classifier, dataset: Dataset) -> npt.NDArray[np.floating]:
    """Return the scores of every row, (n_samples, n_labels)."""
    kept = {"cache": True} if isinstance(classifier, ImageClassifier) else {}  # as `fit` may do
    return np.asarray(classifier.decision_function(inputs_of(classifier, dataset), **kept))


def read_asked(
    asked: Dataset | str | Path | None, label_names: list[str], items: Sequence[str] | None
) -> Answers | None:
    """Return the answers so far about these items, (n_items, n_labels), and no others'."""
    if items is None:
        raise ComesError(
            "questions name their items, and these have no names. Add a column 'item' to the data."
        )
    if asked is None:
        return None
    if isinstance(asked, Dataset):
        past = asked.align_labels(label_names)
    else:  # a row per answer, or a column per label of the model
        try:
            past = open_dataset(asked, ReadOptions(label_names=label_names))
        except ComesError as error:  # which says more than another one
            try:
                past = open_dataset(asked, ReadOptions(labels=label_names))
            except ComesError:
                raise error from None
    if past.items is None:
        raise ComesError(
            "what was asked is matched by the names of the items, and the answers have none. Give "
            "the table that 'comes annotate export' wrote."
        )
    place = {name: row for row, name in enumerate(past.items)}
    rows = np.array([place.get(name, -1) for name in items])
    if rows.max(initial=-1) < 0:
        raise ComesError(
            f"none of the items was asked about: the answers are about {listed(past.items, 3)}, "
            f"the items are {listed(items, 3)}. Name both in the same way."
        )
    answers = past.known_answers()
    codes = np.where(rows[:, None] >= 0, answers.codes[rows], State.NOT_ASKED)
    return Answers.from_codes(codes, answers.kind, label_names)


def list_questions(
    classifier: Classifier,
    probabilities: npt.NDArray[np.floating],
    items: Sequence[str],
    count: int,
    asked: Answers | None,
) -> pd.DataFrame:
    """Return a table of the pairs whose answers are expected to tell most."""
    rates = rates_of_people(classifier, asked)
    questions = choose_questions(probabilities, count, answers=asked, rates=rates)
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

    Of rates of candidates and of ticked labels, one is 0 everywhere.
    """
    no, yes = classifier.no_rate_, classifier.yes_rate_
    if no is None or yes is None:
        return None
    is_of_people = no.any() and yes.any() if asked is None else asked.kind == "answers"
    return AnswerRates(no, yes, classifier.rates_.mistake_rate) if is_of_people else None


def predict_items(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
    top: int | None = None,
    page: str | Path | None = None,
    n_examples: int = 120,
    maps: bool = False,
    ask_next: str | Path | None = None,
    n_questions: int = 200,
    asked: Dataset | str | Path | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return predicted labels and probabilities of every row or image; write them if asked.

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
    top : int, optional
        Only so many labels of each item, without a matrix of all scores.
    page : path, optional
        A folder for a page of the most confident rows or images, the most doubtful and others.
    n_examples : int
        How many rows or images that page shows at most.
    maps : bool
        Draw on that page where in an image the evidence for a label is.
    ask_next : path, optional
        A table of the pairs whose answers are expected to tell most (item, label, probability and
        bits), for ``comes annotate add --cards``. Items must have names.
    n_questions : int
        How many pairs at most.
    asked : Dataset or path, optional
        Answers so far, by item: these pairs are not asked again.
    seed : int
        Of the images that are drawn at random.

    Returns
    -------
    table : DataFrame
        item, predicted (names joined by ";"), and the probability of each label. With ``top`` a
        row for each of these labels, the best of an item first: item, rank, label, probability.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> list(predict_items(model, scenes).columns[:3])
    ['item', 'predicted', 'probability:0']
    """
    refuse_same(output, ask_next)
    for target, check_name in ((output, check_prediction_name), (ask_next, check_ending)):
        if target is not None:
            check_name(target)
            check_file_target(target)
            refuse_inputs(target, data, images, model, asked)
    if page is not None:
        check_folder_target(page, ("index.html",))
        refuse_inputs(page, data, images, model)
    if top is not None and (page or ask_next) is not None:
        raise ComesError(
            "a page (--page) and questions (--ask-next) need the scores of all labels: leave top "
            "(--top) out."
        )
    classifier = as_model(model)
    names = classifier.label_names_
    check_top(1 if top is None else top, len(names))
    if maps and not isinstance(classifier, ImageClassifier):
        raise ComesError("maps (--maps) are of images, and this model was trained on a table.")
    X, items = read_inputs(classifier, data, images, skip_broken, item)
    if top is not None:
        best = classifier.predict_top(X, top)
        table = top_table(
            best.labels,
            best.probabilities,
            np.array(names, dtype=object),
            range(len(best)) if items is None else items,
            scores=best.scores if scores else None,
        )
        if output is not None:
            write_prediction_table(table, output)
        return table
    answers = None if ask_next is None else read_asked(asked, names, items)
    found = np.asarray(classifier.decision_function(X))
    probabilities, predictions = classifier.squash_scores(found), classifier.cut_scores(found)
    shown = found if scores else None
    table = prediction_table(probabilities, predictions, names, items, scores=shown)
    if output is not None:
        write_prediction_table(table, output)
    if page is not None:
        from comes.report import write_model_page  # which draws plots

        def draw_maps(rows: Sequence[int], labels: Sequence[int]) -> Any:
            return lay_over(classifier, X[rows], evidence_maps(classifier, X[rows], labels))

        write_model_page(
            X,
            names,
            probabilities,
            predictions,
            page,
            title=f"Predictions of {name_source(model, 'a model')} on {name_source(data, 'data')}",
            verdict=UNJUDGED,
            items=items,
            maps=draw_maps if maps else None,
            n_examples=n_examples,
            seed=seed,
        )
    if ask_next is not None and items is not None:
        questions = list_questions(classifier, probabilities, items, n_questions, answers)
        if questions.empty:
            raise ComesError("nothing is left to ask: there is an answer about every pair.")
        write_table(questions, ask_next)
    return table


def name_source(source: object, otherwise: str) -> str:
    """Return what a page calls a model or data: the name of its file, or else something."""
    return Path(source).name if isinstance(source, str | Path) else otherwise


def read_inputs(
    classifier: Classifier,
    data: Dataset | str | Path,
    images: str | Path | None,
    skip_broken: bool,
    item: str | None,
) -> tuple[Any, list[str] | None]:
    """Return what the model scores, and the names of the items where there are any."""
    data = open_if_project(data)
    are_images = isinstance(classifier, ImageClassifier)
    if are_images and item is not None:
        raise ComesError("images are named by their files; leave item (--item) out.")
    if not are_images and (images is not None or skip_broken):
        raise ComesError(
            "this model was trained on a table, so the images and what to do with broken ones "
            "(--images, --skip-broken) do not apply. Leave them out."
        )
    if isinstance(data, Dataset):
        X, items = inputs_of(classifier, data), data.items
    elif isinstance(classifier, ImageClassifier):
        X, items = read_images(data, images, skip_broken), None
    else:
        X, items = read_features(
            data,
            classifier.feature_names,
            classifier.n_features_in_,
            words=find_word_columns(classifier),
            item=item,
            usual_item=classifier.item_column_,
        )
    items = X.names if are_images else items
    names = pd.Index([] if items is None else items)
    if names.has_duplicates:
        repeated = [str(name) for name in names[names.duplicated()].unique()]
        warn(
            f"items should have different names; {listed(repeated, 3)} occurs more than once, and "
            "predictions cannot be told apart by it. Name another column (--item).",
            ComesWarning,
            stacklevel=3,
        )
    return X, items


def export_model(model: Classifier | str | Path, output: str | Path) -> dict[str, Any]:
    """Write a fitted model as an ONNX file: scaling, network and head in one graph.

    The file is run on rows that are drawn, and compared with ``predict_proba``.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    output : path
        An .onnx file.

    Returns
    -------
    facts : dict
        file, bytes, input and outputs in words, and difference: how far its probabilities are from
        those of the model, at most; None where onnxruntime is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> export_model(model, Path(tempfile.mkdtemp()) / "model.onnx")["input"]
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
        n, encoder = classifier.n_features_in_, getattr(classifier, "encoder_", None)
        taken = f"features: float32 (n, {n})"
        if encoder is not None:
            taken = f"features: float32 (n, {encoder.n_features}), encoded from {n} columns"
    difference = None if find_spec("onnxruntime") is None else measure_onnx(classifier, path)
    if difference is not None and not difference <= LARGEST_DIFFERENCE:
        warn(
            f"{path} gives probabilities up to {difference:.2g} away from those of the model, more "
            f"than {LARGEST_DIFFERENCE:g}. Half precision on a GPU differs so much; else compare "
            "the two on rows of yours before you rely on the file.",
            ComesWarning,
            stacklevel=2,
        )
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "input": taken,
        "outputs": f"scores and probabilities: float32 (n, {len(classifier.label_names_)})",
        "difference": difference,
    }
