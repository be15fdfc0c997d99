"""A file of true labels that comes beside the data, and is read as the data is."""

from dataclasses import fields, replace
from pathlib import Path

from comes.datasets.column_roles import ITEM_COLUMNS
from comes.datasets.dataset import Dataset
from comes.datasets.formats import FORMATS, SHARED_FIELDS, TABLE
from comes.datasets.label_columns import RELEVANT
from comes.datasets.opening import open_dataset
from comes.datasets.reading import Reading
from comes.datasets.tables import find_ending, read_columns

OF_ANSWERS = ("labels", "words", "long", "labels_are")  # what says what was said, not what is true


def open_truth(which: str | Path, reading: Reading | None = None) -> Dataset:
    r"""Open a file of true labels, given how the data beside it are read.

    Parameters
    ----------
    which : str or Path
    reading : Reading, optional
        Of the data. Columns that hold labels there hold true labels here, unless a table says
        itself which do ("relevant", "relevant:sky"); fields that do not apply are left out.

    Returns
    -------
    dataset : Dataset
        With ``relevant``, if the file has true labels.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "clean.csv")
    >>> _ = path.write_text("sea,sky,x\n1,0,0.5\n")
    >>> open_truth(path, Reading(labels=["s*"], words={"1": "yes", "0": "no"})).relevant
    array([[ True, False]])
    """
    path = Path(which)
    found = FORMATS.get(find_ending(path))
    if reading is None or found is None or not path.is_file():
        return open_dataset(which)
    known = {*found.fields, *SHARED_FIELDS} - {*OF_ANSWERS}
    own = Reading(**{f.name: getattr(reading, f.name) for f in fields(Reading) if f.name in known})
    if "relevant" in known and own.relevant is None:
        own = replace(own, relevant=reading.labels)
    if found is TABLE:
        own = _fit_columns(own, read_columns(path))
    return open_dataset(path, own)


def _fit_columns(reading: Reading, columns: list[str]) -> Reading:
    """Return the reading, without what a table that we wrote says itself."""
    if any(name == "relevant" or name.startswith(RELEVANT) for name in columns):
        reading = replace(reading, relevant=None, ignore=None)
    if reading.item not in columns and ITEM_COLUMNS[0] in columns:
        reading = replace(reading, item=None)
    return reading
