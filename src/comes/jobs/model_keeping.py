"""A trained model is kept: signals wait while it is saved, and a full disk is not the end of it."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from warnings import warn

from comes.errors import ComesError, ComesWarning
from comes.files import deferring_interrupts
from comes.jobs.fitted_models import Classifier


def train_and_save(train: Callable[[], object], save: Callable[[], Path | None]) -> Path | None:
    """Train and save; a signal that comes when the epochs are over waits until both are done."""
    path = None
    try:
        with deferring_interrupts(at_once=False):
            train()
            path = save()
    except KeyboardInterrupt:
        if path is not None:
            warn(
                f"Interrupted when the training was done: the model is saved as {path}.",
                ComesWarning,
                stacklevel=3,
            )
        raise
    return path


def save_model(classifier: Classifier, output: str | Path | None) -> Path | None:
    """Save a model, beside the output if it is unfinished, and return the folder."""
    history = classifier.history_
    if not history.risk:
        raise KeyboardInterrupt  # before the first epoch: nothing to keep
    if output is None:
        return None
    path = name_partial(output) if history.interrupted else Path(output)
    keep_model(classifier, path)
    return path


def name_partial(output: str | Path) -> Path:
    """Return where an unfinished model is saved."""
    return Path(f"{output}.partial")


def name_checkpoint(output: str | Path) -> Path:
    """Return where the state of a long training is kept."""
    return Path(f"{Path(output)}.checkpoint")


def keep_model(classifier: Classifier, path: Path) -> None:
    """Save a model; where that fails, save it elsewhere and raise an error that says where."""
    with deferring_interrupts():
        try:
            classifier.save(path)
        except ComesError as error:
            place = _save_elsewhere(classifier, path)
            kept = "It could not be saved elsewhere, either, and is lost."
            if place is not None:
                kept = f"The trained model was saved as {place}: move it from there."
            raise ComesError(f"{error} {kept}") from None


def _save_elsewhere(classifier: Classifier, path: Path) -> Path | None:
    """Return where a model could be saved: among temporary files, at home or here; else None."""
    for home in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
        try:
            place = Path(tempfile.mkdtemp(prefix="comes-", dir=home)) / path.name
            classifier.save(place)
        except (ComesError, OSError):
            continue
        return place
    return None
