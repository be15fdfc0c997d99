"""Settings of a fit that are not those of its classifier."""

import difflib
from collections.abc import Mapping
from typing import Any

from comes.errors import ComesError, listed
from comes.estimator import CandidateClassifier
from comes.flat_settings import flat_names


def refuse_settings(
    settings: Mapping[str, Any], other: type[Any], own: type[Any], freeze: bool
) -> None:
    """Raise if a setting is not one of the classifier, but of the other kind or of neither."""
    known, foreign = (flat_names(kind().get_params(deep=False)) for kind in (own, other))
    for name in settings:
        if name not in known and name not in foreign:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ComesError(f"{own.__name__} has no setting {name!r}.{hint}")
    names = [name for name in settings if name not in known] + (["freeze"] if freeze else [])
    if not names:
        return
    if own is CandidateClassifier:
        raise ComesError(
            f"settings for images were given ({listed(names)}), and the data has no images: name "
            "their folder (--images), or leave the settings out."
        )
    raise ComesError(
        f"settings for tables were given ({listed(names)}), and the data has images. Leave the "
        "settings out."
    )
