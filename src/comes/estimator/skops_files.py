"""A `CorrectedClassifier` as a file of skops: no pickle, and no type that could run code.

skops writes objects as json and arrays, and restores only types that are trusted: those of numpy
and scikit-learn that it knows to be harmless, those of `comes` below, and scikit-learn's trees,
whose nodes are checked here, as a tree that leads out of itself would end the process.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comes.errors import ComesError, first_line, listed
from comes.files import expanded, replacing_file

TRUSTED = (
    "comes.answers.evidence.AnswerRates",
    "comes.estimator.corrected.CorrectedClassifier",
    "comes.methods.Likelihood",
    "comes.methods.Rates",
    "comes.priors.answer_rates.RatesEstimate",
    "comes.priors.class_prior.ClassPriorEstimate",
    "comes.selection.calibration.Calibration",
    "comes.tables.columns.Column",
    "comes.tables.encoder.ColumnEncoder",
    "comes.tables.encoder._CategoryPart",
    "comes.tables.encoder._DatePart",
    "comes.tables.encoder._EmbeddingPart",
    "comes.tables.encoder._FlagPart",
    "comes.tables.encoder._NumberPart",
    "comes.tables.encoder._TfidfPart",
    "comes.tables.texts.Embedding",
    "sklearn.tree._tree.Tree",
)


def save(classifier: Any, path: str | Path) -> None:
    """Write a fitted classifier to a file, whole or not at all."""
    skops = import_skops()
    with replacing_file(path) as temporary:
        skops.dump(classifier, temporary)


def load(cls: type, path: str | Path, trusted: Sequence[str]) -> Any:
    """Read a fitted classifier of a class; raise an error unless all types are trusted."""
    skops, path = import_skops(), expanded(path)
    if not path.is_file():
        raise ComesError(f"{path} is no file. Give the file that {cls.__name__}.save wrote.")
    try:
        unknown = sorted({*skops.get_untrusted_types(file=path)} - {*TRUSTED, *trusted})
        if not unknown:
            model = skops.load(path, trusted=[*TRUSTED, *trusted])
            if not isinstance(model, cls):
                raise TypeError(f"it holds a {type(model).__name__}")
            for tree in _find_trees(vars(model)):
                _check_tree(tree)
    except Exception as error:  # of zip, of json, or of a type that is restored
        raise ComesError(
            f"{path} is not a saved model, or a damaged one ({first_line(error)}). Take another "
            "copy, or fit it again."
        ) from None
    if unknown:
        raise ComesError(
            f"{path} holds types that may do harm when they are loaded: {listed(unknown)}. If you "
            f"know who wrote the file, pass {cls.__name__}.load(path, trusted={unknown})."
        )
    return model


def _find_trees(value: Any) -> Iterator[Any]:
    """Give every tree of scikit-learn in an object."""
    if type(value).__module__ == "sklearn.tree._tree":
        yield value
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        yield from _find_trees(value.tolist())
    elif isinstance(value, dict | list | tuple | set):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _find_trees(part)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from _find_trees(vars(value))


def _check_tree(tree: Any) -> None:
    """Raise an error unless both children of a node come after it and its feature exists."""
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = np.flatnonzero(left != -1)
    children = np.stack([left, right])[:, inner]
    is_sound = (children > inner).all() and (children < tree.node_count).all()
    if not (is_sound and ((feature[inner] >= 0) & (feature[inner] < tree.n_features)).all()):
        raise ValueError("a tree leads out of itself")


def import_skops() -> Any:
    """Return skops.io; raise an error if it is not installed."""
    try:
        from skops import io
    except ImportError as error:
        raise ComesError(
            f"files of a CorrectedClassifier need {error.name}, which is not installed: pip "
            "install 'comes[trees]'."
        ) from None
    return io
