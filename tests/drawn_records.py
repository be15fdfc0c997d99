"""Answers one by one, drawn with rates that are known."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from comes.priors.answer_rates import Records


def draw_records(
    seed: int,
    a: npt.ArrayLike = 0.8,
    b: npt.ArrayLike = 0.8,
    n: int = 2000,
    signal: float = 2.0,
) -> Records:
    """Return n answers for each group, with the rates a and b by group, and the true evidence."""
    rng = np.random.default_rng(seed)
    a, b = np.broadcast_arrays(np.atleast_1d(a).astype(float), np.atleast_1d(b).astype(float))
    group = np.repeat(np.arange(len(a)), n)
    score = signal * rng.normal(size=len(group)) - 1
    relevant = rng.random(len(group)) < expit(score)
    is_sure = rng.random(len(group)) < np.where(relevant, b[group], a[group])
    evidence = score + np.log(b / a)[group]
    row = np.tile(np.arange(n), len(a))
    offset = np.zeros((len(group), 2))
    return Records(is_sure & ~relevant, is_sure & relevant, evidence, group, row, offset, len(a))


def mistake_evidence(records: Records) -> Records:
    """Return records whose evidence are too sure, and shifted."""
    return replace(records, evidence=2 * records.evidence + 1)
