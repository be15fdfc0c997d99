"""Split a file into rows to train on and rows to test with."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from comes.datasets import ReadOptions
from comes.datasets.formats import FORMATS
from comes.datasets.split import RowFile, find_copies, open_row_file
from comes.errors import ComesError, listed
from comes.files import check_file_target, expanded, refuse_inputs
from comes.workflows.data import count_labels, reading_files

Rows = npt.NDArray[np.int64]
SIDES = ("train", "test")


def split_data(
    data: str | Path,
    output: str | Path | None = None,
    *,
    test_share: float = 0.2,
    groups: str | None = None,
    seed: int = 0,
    reading: ReadOptions | None = None,
) -> dict[str, Any]:
    r"""Split a file into rows to train on and rows to test with, in its own format.

    Rows of one group, and rows with the same features, go to the same file: else a model could be
    tested with what it knows by heart. Sets of rows are drawn at random; no label has a say.

    Parameters
    ----------
    data : path or name
        A .csv, .parquet, LIBSVM, .npz or .mat file, a table of answers, or the name of a data set.
        Lines of text are copied as they are.
    output : path, optional
        A folder, or how the names of the files begin: ``parts/photos`` for photos-train.csv and
        photos-test.csv in parts. By default they lie beside the file, and must not exist.
    test_share : float
        Share of the rows to test with.
    groups : str, optional
        A column of the table: rows with the same word there are kept together, and it is not a
        feature. Rows without a word are groups of their own.
    seed : int
    reading : ReadOptions, optional
        What the columns of the file mean.

    Returns
    -------
    split : dict
        ``train`` and ``test``: file, rows, and groups (sets of rows that were kept together).
        ``copies``: how many rows have the features of an earlier row. ``labels``: a dict per label
        with what is known of it in the two files, such as ``relevant in train``. ``absent``:
        sentences about labels of which one of the files says nothing.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> lines = [f"{k},{k * k},{k % 2}" for k in range(10)]
    >>> _ = path.write_text("\n".join(["red,blue,has_sky", *lines, "0,0,1"]))
    >>> split = split_data(path, test_share=0.3, reading=ReadOptions(labels=["has_sky"]))
    >>> split["train"]["rows"], split["test"]["rows"], split["copies"]
    (8, 3, 1)
    """
    if not 0 < test_share < 1:
        raise ComesError(f"test_share (--test-share) must lie between 0 and 1; got {test_share:g}.")
    file = open_row_file(data, reading, groups=groups)
    targets = dict(zip(SIDES, _name_targets(file, data, output), strict=True))
    for target in targets.values():
        check_file_target(target)
        refuse_inputs(target, data, *reading_files(reading))
    copies = find_copies(file.dataset)
    together = link_rows(copies, file.groups)
    is_test = np.isin(np.arange(len(together)), draw_test_rows(together, test_share, seed))
    rows = {"train": np.flatnonzero(~is_test), "test": np.flatnonzero(is_test)}
    whole = count_labels(file.dataset).set_index("label")
    counts, absent, found = pd.DataFrame(index=whole.index), [], {}
    for side in SIDES:
        part = count_labels(file.dataset.take(rows[side])).set_index("label")
        counts = counts.join(part.add_suffix(f" in {side}"))
        for state in whole.columns.drop(["no", "yes", "maybe"], errors="ignore"):
            names = whole.index[(whole[state] > 0) & (part[state] == 0)].tolist()
            if names:
                absent.append(
                    f"{state.capitalize()} in no row of the {side} file: {listed(names)}. Try "
                    "another seed (--seed) or share (--test-share)."
                )
    for side in SIDES:
        file.write(rows[side], targets[side])
        n_groups = len(np.unique(together[rows[side]]))
        found[side] = {"file": str(targets[side]), "rows": len(rows[side]), "groups": n_groups}
    return {
        **found,
        "copies": len(copies) - len(np.unique(copies)),
        "labels": counts.reset_index().to_dict("records"),
        "absent": absent,
    }


def link_rows(copies: Rows, pairs: Sequence[tuple[int, str]]) -> Rows:
    """Return a number for every row, (n,): equal where rows are linked, directly or by others.

    Rows are linked if they have the same number in ``copies``, or a word in common.
    """
    n = len(copies)
    rows = [*range(n), *(row for row, _ in pairs)]
    words, _ = pd.factorize(np.array([*copies, *(word for _, word in pairs)], dtype=object))
    size = n + int(words.max()) + 1
    graph = sparse.coo_array((np.ones(len(rows)), (rows, n + words)), shape=(size, size))
    _, parts = connected_components(graph, directed=False)
    return np.asarray(parts[:n], dtype=np.int64)


def draw_test_rows(together: Rows, test_share: float, seed: int) -> Rows:
    """Return the rows to test with: sets in random order, each that brings the share closer."""
    sizes = np.bincount(together)
    if len(sizes) < 2:
        raise ComesError(
            f"all {len(together)} rows belong together, and cannot be split. Choose another column "
            "for the groups (--groups)."
        )
    wanted = test_share * len(together)
    chosen, n_chosen = [], 0
    for one in np.random.default_rng(seed).permutation(len(sizes)):
        if abs(n_chosen + sizes[one] - wanted) < abs(n_chosen - wanted):
            chosen.append(one)
            n_chosen += sizes[one]
    if not chosen or len(chosen) == len(sizes):
        chosen = [int(sizes.argmin())]  # one set on either side, whatever their sizes
    return np.flatnonzero(np.isin(together, chosen))


def _name_targets(file: RowFile, data: str | Path, output: str | Path | None) -> list[Path]:
    """Return where the two parts go; raise if files would be replaced that nobody named."""
    source = Path(str(data).replace(":", "-")) if file.path is None else file.path
    start = source.with_name(source.name if file.path is None else source.name[: -len(file.ending)])
    if output is not None:
        named = expanded(output)
        into_folder = os.path.isdir(named) or str(output).endswith("/")
        start = named / start.name if into_folder else named
        if start.name.lower().endswith(file.ending):
            start = start.with_name(start.name[: -len(file.ending)])
        elif start.suffix.lower() in FORMATS:
            raise ComesError(
                f"{start.name} must end in {file.ending}, as the file that is split; or give the "
                "start of a name, or a folder (-o)."
            )
    targets = [start.with_name(f"{start.name}-{side}{file.ending}") for side in SIDES]
    for target in targets:
        if output is None and os.path.exists(target):
            raise ComesError(
                f"{target} exists already. Say where the two files go (-o), which replaces files "
                "that exist; or remove this one."
            )
    return targets
