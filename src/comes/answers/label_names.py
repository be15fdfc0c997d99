"""Names of labels: checked, and matched where two lists should agree."""

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from warnings import warn

from comes.errors import ComesError, ComesWarning, listed


def check_names(names: Sequence[str]) -> None:
    """Raise an error if a label name is empty or occurs more than once.

    Examples
    --------
    >>> check_names(["sea", "sky"])
    >>> check_names(["sea", "sky", "sea"])
    Traceback (most recent call last):
    comes.errors.ComesError: label names must differ; got 'sea' more than once.
    """
    if "" in names:
        raise ComesError(f"label names must not be empty; number {list(names).index('')} is.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ComesError(f"label names must differ; got {repeated[0]!r} more than once.")


def match_names(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the position of each wanted label among names.

    The same names in any order are matched by name; a prefix or suffix that a whole list shares is
    ignored. As many entirely different names are matched by position, with a warning. Names that
    agree only in part raise an error, since one of the two lists must be wrong.

    Examples
    --------
    >>> match_names(["sea", "sky"], ["sky", "sea"])
    [1, 0]
    >>> match_names(["is_sky", "is_sea"], ["has_sea", "has_sky"])
    [1, 0]
    """
    stripped = _strip_common_ends(names), _strip_common_ends(wanted)
    for these, those in ((names, wanted), stripped):
        if set(these) == set(those):
            place = {name: number for number, name in reversed(list(enumerate(these)))}
            return [place[name] for name in those]
    own, others = set(names), set(wanted)
    missing = [name for name in wanted if name not in own]
    if len(names) != len(wanted) or len(missing) < len(wanted):
        unknown = [name for name in names if name not in others]
        differing = {"missing": missing, "not among them": unknown}
        told = "; ".join(f"{what}: {listed(found)}" for what, found in differing.items() if found)
        raise ComesError(
            f"expected the labels {listed(wanted)}; got {listed(names)} ({told}). Give the same "
            "names, in any order, or as many different names in the same order."
        )
    numbers = [str(number) for number in range(len(names))]
    if list(names) != numbers and list(wanted) != numbers:
        pairs = [f"{a!r} for {b!r}" for a, b in zip(names, wanted, strict=True)]
        shown = ", ".join(pairs[:4]) + (" ..." if len(pairs) > 4 else "")
        message = f"labels are matched by position, as no name agrees: {shown}."
        warn(message, ComesWarning, stacklevel=2)
    return list(range(len(wanted)))


def _strip_common_ends(names: Sequence[str]) -> list[str]:
    """Return names without the prefix and suffix that all share: is_sky, is_sea are sky, sea."""
    if len(names) < 2:
        return list(names)
    start = _count_common_start(names)
    shorter = [name[start:] for name in names]
    end = _count_common_start([name[::-1] for name in shorter])
    return [name[: len(name) - end] for name in shorter]


def _count_common_start(names: Sequence[str]) -> int:
    """Return the length of the prefix that all names share: that of the first and last, sorted."""
    pairs = zip(min(names), max(names), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
