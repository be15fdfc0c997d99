"""Warnings of labels whose estimates need a second look."""

import warnings
from collections.abc import Mapping, Sequence

from comes.errors import ComesWarning, listed


def warn_of_flags(
    subject: str, flags: Sequence[str], meanings: Mapping[str, str], names: Sequence[str] | None
) -> None:
    """Warn the caller's caller of every flag that is not "ok", with the names of its labels."""
    names = [str(j) for j in range(len(flags))] if names is None else names
    for flag, meaning in meanings.items():
        found = [name for name, other in zip(names, flags, strict=True) if other == flag]
        if found:
            warnings.warn(f"{subject} {listed(found)}: {meaning}.", ComesWarning, stacklevel=3)
