"""Multi-label data sets of OpenML, by number or name; kept in the cache once fetched.

OpenML's description says which attributes are the targets, and its ARFF file is read as any other.
(scikit-learn's `fetch_openml` fills the targets of sparse files from memory that it never set,
seen in 1.9, and so is not used.)
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comes.datasets.arff import read_arff
from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.errors import ComesError
from comes.files import download

ADDRESS = "https://www.openml.org/api/v1/json/data/"


def read_openml(which: str, cache: Path) -> Dataset:
    """Fetch a data set from OpenML, or take it from the cache.

    Parameters
    ----------
    which : str
        The number of a data set ("41465"), or its name ("emotions"): the active version.
    cache : Path
        The folder that downloads are kept in.

    Returns
    -------
    dataset : Dataset
        The targets that OpenML names are the truth.
    """
    number = which if which.isdigit() else _find_number(which, cache)
    folder = cache / number
    found = _fetch_page(f"{number}", folder / "description.json")["data_set_description"]
    features = _fetch_page(f"features/{number}", folder / "features.json")["data_features"][
        "feature"
    ]
    targets = _find_marked(features, "is_target")
    if len(targets) < 2:
        raise ComesError(
            f"OpenML's data set {which!r} has {len(targets)} targets; expected several labels."
        )
    file = download(found["url"], f"md5:{found['md5_checksum']}", folder / "data.arff")
    ignored = [
        *_find_marked(features, "is_ignore"),
        *_find_marked(features, "is_row_identifier"),
    ]
    return read_arff(file, Reading(relevant=targets, ignore=ignored))


def _find_marked(features: Sequence[Any], mark: str) -> list[str]:
    """Return the names of the features that OpenML marks."""
    return [str(feature["name"]) for feature in features if feature.get(mark) == "true"]


def _find_number(name: str, cache: Path) -> str:
    """Return the number of the active data set of that name."""
    if not re.fullmatch(r"[\w.()+-]+", name):
        raise ComesError(
            f"{name!r} cannot be the name of a data set of OpenML; letters, digits and .()+- were "
            "wanted."
        )
    page = f"list/data_name/{name.lower()}/limit/2/status/active/"
    found = _fetch_page(page, cache / "names" / f"{name.lower()}.json")["data"]["dataset"]
    return str(found[0]["did"])


def _fetch_page(page: str, path: Path) -> Any:
    """Return a page of OpenML's interface, from the cache if it is there."""
    try:
        return json.loads(download(ADDRESS + page, None, path).read_bytes())
    except ComesError as error:
        raise ComesError(f"OpenML has no such data set, or does not answer: {error}") from None
    except ValueError as error:
        path.unlink()
        raise ComesError(f"the answer of OpenML is not JSON: {error}. Try again later.") from None
