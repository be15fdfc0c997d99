"""Train on more rows than memory holds: what ``comes fit --stream`` does."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comes.datasets import ReadOptions, ShardedDataset, open_shards
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.estimator.storage import FILES as MODEL_FILES
from comes.files import check_folder_target
from comes.flat_settings import from_flat
from comes.images import ImageClassifier
from comes.jobs.fit_jobs import train_together
from comes.jobs.model_keeping import name_checkpoint, name_partial
from comes.jobs.setting_checks import refuse_settings
from comes.training import History

BUFFER_ROWS = 2**17


@dataclass(frozen=True)
class FittedStream:
    """A classifier that was trained on shards.

    Parameters
    ----------
    classifier : CandidateClassifier
    shards : ShardedDataset
    path : Path, optional
        Where it was saved.
    is_leader : bool
        False in all but the first of several processes.

    Examples
    --------
    >>> from comes.jobs import fit_stream
    >>> fit_stream.__name__  # makes one
    'fit_stream'
    """

    classifier: CandidateClassifier
    shards: ShardedDataset
    path: Path | None = None
    is_leader: bool = True

    @property
    def history(self) -> History:
        """How the training went."""
        history: History = self.classifier.history_
        return history

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name."""
        return {
            "data": str(self.shards),
            "method": self.classifier.method_.name,
            "epochs": len(self.history.risk),
            "interrupted": self.history.interrupted,
            "seconds": round(self.history.seconds, 2),
            "risk": self.history.risk[-1],
            "model": None if self.path is None else str(self.path),
        }


def fit_stream(
    source: str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    reading: ReadOptions | None = None,
    buffer_rows: int = BUFFER_ROWS,
    output: str | Path | None = None,
    **unused: Any,
) -> FittedStream:
    """Train a classifier on rows in files that are read block by block; save it if asked.

    The state of a long training is kept in ``OUTPUT.checkpoint``, from which the same call goes on,
    also in the middle of an epoch. Processes that torchrun started train together.

    Parameters
    ----------
    source : path
        A folder, a file, a pattern or an address, as `comes.datasets.open_shards` takes it.
    settings : mapping, optional
        Parameters of `comes.CandidateClassifier`.
    reading : ReadOptions, optional
        What the columns mean.
    buffer_rows : int
        About how many rows are mixed; twice as many are in memory.
    output : path, optional
        Folder for the model.
    **unused
        What `fit_model` takes beside these; refused if it is given, as it needs all rows at once.

    Returns
    -------
    fitted : FittedStream

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    >>> table["is_right"] = table["a"] > 0
    >>> table.to_parquet(folder / "part.parquet")
    >>> reading = ReadOptions(labels=["is_right"])
    >>> fitted = fit_stream(folder, {"method": "bce", "epochs": 2}, reading=reading)
    >>> fitted.summary()["data"]
    '300 rows in 1 block of 1 file, 2 features, 1 label, candidates'
    """
    given = [name for name, value in unused.items() if value is not None and value is not False]
    if given:
        raise ComesError(
            f"{given[0]} (--{given[0]}) needs all rows at once, and a stream has some at a time. "
            "Leave it out, or leave out --stream."
        )
    chosen = dict(settings or {})
    refuse_settings(chosen, ImageClassifier, CandidateClassifier, False)
    checkpoint = None
    if output is not None:
        check_folder_target(output, MODEL_FILES)
        check_folder_target(name_partial(output), MODEL_FILES)
        checkpoint = name_checkpoint(output)
    shards, classifier = open_shards(source, reading), CandidateClassifier(**from_flat(chosen))

    def train() -> None:
        classifier.fit_stream(
            shards, buffer_rows=buffer_rows, checkpoint=checkpoint, is_shared=True
        )

    path, is_leader = train_together(train, classifier, output, checkpoint)
    return FittedStream(classifier, shards, path, is_leader)
