"""Methods by name, and by the labels of tables."""

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any

from comes.errors import ComesError
from comes.methods.families import METHODS
from comes.methods.knowledge import Knowledge, RiskOptions
from comes.methods.method import AS_PUBLISHED, Method, MethodFamily, Risk, Use


def find_method(method: str | Risk, variant: str | None = None, use: Use = "rows") -> Method:
    """Return the method of that name and variant, or a method made of the user's own risk.

    Parameters
    ----------
    method : str, or function (scores, candidates) -> scalar tensor
    variant : str, optional
        By default the first.
    use : {"rows", "images"}
        What the method is to be trained on.

    Returns
    -------
    method : Method

    Examples
    --------
    >>> find_method("ccmn", "ranking").needs_flip_rate
    True
    """
    if not isinstance(method, str):
        if not callable(method):
            raise ComesError(
                f"method must be a name or a function risk(scores, candidates); got {method!r}."
            )
        if variant is not None:
            raise ComesError(f"a risk of your own has no variants; got {variant!r}.")
        return Method(partial(_copy_risk, method), is_users_own=True)
    family = METHODS.get(method)
    if family is None or use not in family.uses:
        known = ", ".join(name for name, other in METHODS.items() if use in other.uses)
        raise ComesError(f"method must be one of {known}; got {method!r}.")
    if variant is None:
        return family.default
    if variant not in family.variants:
        names = " or ".join(family.variants)
        raise ComesError(f"variant of {method} must be {names}; got {variant!r}.")
    return family.variants[variant]


def family_of(label: Any) -> MethodFamily | None:
    """Return the family that a label in a table belongs to; None for a risk of the user's own.

    Labels begin with the name of their method; a space or a comma ends it.

    Examples
    --------
    >>> family_of("comes-rl per label").title, family_of("ccmn, ranking").title
    ('COMES-RL', 'CCMN')
    >>> family_of("my own risk") is None
    True
    """
    if not isinstance(label, str):
        return None
    return METHODS.get(label.split(",")[0].split(" ")[0])


def settings_of(method: Any) -> Mapping[str, Any]:
    """Return how a method is trained on rows by default; a risk of your own as the paper trains.

    Parameters
    ----------
    method : str, or function (scores, candidates) -> scalar tensor

    Returns
    -------
    settings : mapping
        optimizer, learning_rate, epochs, batch_size, dropout, n_networks and starts_at_prior.

    Examples
    --------
    >>> settings_of("comes-hl")["epochs"]
    200
    """
    family = METHODS.get(method) if isinstance(method, str) else None
    return AS_PUBLISHED if family is None else family.settings


def table_rank(label: str) -> tuple[int, str]:
    """Return a key that sorts labels as the paper's tables do: other methods first, COMES last.

    Examples
    --------
    >>> sorted(["comes-hl", "comes-hl, f1", "bce", "mine"], key=table_rank)
    ['mine', 'bce', 'comes-hl', 'comes-hl, f1']
    """
    family = family_of(label)
    return (-1 if family is None or family.place is None else family.place, label)


def title_of_label(label: str) -> str:
    """Return a label with the name of its method as papers write it.

    Examples
    --------
    >>> title_of_label("comes-rl per label"), title_of_label("mine")
    ('COMES-RL per label', 'mine')
    """
    family = family_of(label)
    return label if family is None else family.title + label.removeprefix(family.name)


def _copy_risk(risk: Risk, knowledge: Knowledge, options: RiskOptions) -> Risk:
    """Return a copy of the user's own module; a function is its own copy."""
    return copy.deepcopy(risk)
