"""How well counts alone tell rates that all labels share, and class priors.

    python experiments/pooled_rates.py

writes ``experiments/results/pooled_rates.json``. Its ``rows`` have a data set and how answers were
drawn, independently for every pair:

- an exclude rate for all labels, or ``0.5 by label``: normal, with a tenth of it as deviation,
- ``answers``: a pair in ten is asked about, and eight of ten answers are sure (a = b = 0.8).

They have means over seeds of ``rate_error``, relative, of the exclude rate (or of a, with
``yes_error`` of b), of ``prior_error``, absolute and over labels, how many priors are within two
standard errors (``inside``), and the seconds of the estimate from counts; ``flags`` counts the
flags that most labels have. ``features`` has the same errors of the estimators that see X, on the
sets for which they take less than a minute. The last rows are synthetic, with 10^5 labels: label k
has the class prior 10^-5 (k / 10^5)^-0.8, at most 0.3, so a row has 4.6 labels, and ten or a
hundred pairs of each row have an answer.
"""

import json
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import Answers
from comes.datasets import open_dataset
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.generation import case_a, simulate_answers
from comes.priors import RatesEstimate, estimate_answer_rates
from comes.priors.pooled import AnswerCounts, pool_rates

RESULT = Path(__file__).parent / "results" / "pooled_rates.json"
SETS = ("enron", "bibtex", "Corel5k", "delicious", "yeast", "scene", "emotions")
SEEN_WITH_FEATURES = ("enron", "bibtex", "yeast", "scene", "emotions")
RATES = (0.01, 0.1, 0.5)
BY_LABEL, ANSWERS = "0.5 by label", "answers"
ASKED, SURE = 0.1, 0.8
N_SEEDS, N_SEEDS_WITH_FEATURES, N_SEEDS_OF_MANY = 10, 2, 3
N_MANY, Q_MANY = 1_000_000, 100_000

FloatArray = npt.NDArray[np.float64]


def draw(relevant: Any, how: float | str, seed: int) -> tuple[Answers, float | FloatArray]:
    """Return answers about a set, and the rate of "no"."""
    if how == ANSWERS:
        answers = simulate_answers(
            relevant, asked_rate=ASKED, no_rate=SURE, yes_rate=SURE, seed=seed
        )
        return answers, SURE
    rng = np.random.default_rng(1000 + seed)
    spread = np.clip(rng.normal(0.5, 0.05, relevant.shape[1]), 0, 1)
    rate = spread if isinstance(how, str) else how
    candidates = case_a(relevant, flip_rate=1 - rate, seed=seed)
    return Answers.from_candidates(candidates), rate


def estimate(answers: Answers, X: Any = None, seed: int = 0) -> RatesEstimate:
    """Return an estimate from counts, or from X too if it is given."""
    if X is None:
        return pool_rates(AnswerCounts.of(answers), answers.kind)
    return estimate_answer_rates(X, answers, random_state=seed)


def judge(found: RatesEstimate, rate: float | FloatArray, truth: FloatArray) -> dict[str, float]:
    """Return the errors of an estimate."""
    no, yes, gap = found.rates.no_rate, found.rates.yes_rate, np.abs(found.class_prior - truth)
    more = {"yes_error": float(np.abs(yes / SURE - 1).mean())} if yes.any() else {}
    return {
        "rate_error": float(np.abs(no / rate - 1).mean()),
        **more,
        "prior_error": float(gap.mean()),
        "inside": float((gap <= 2 * found.class_prior_error).mean()),
    }


def find_flag(found: RatesEstimate) -> str:
    """Return the flag that most labels have."""
    return Counter(found.flags).most_common(1)[0][0]


def average(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return means over runs."""
    return {key: float(f"{np.mean([run[key] for run in runs]):.3g}") for key in runs[0]}


def judge_set(name: str, how: float | str) -> dict[str, Any]:
    """Return the errors on a data set."""
    data = open_dataset(name)
    relevant = data.known_relevant()
    truth, pooled, with_features = relevant.mean(axis=0), [], []
    flags: Counter[str] = Counter()
    for seed in range(N_SEEDS):
        answers, rate = draw(relevant, how, seed)
        start = time.perf_counter()
        found = estimate(answers)
        seconds = time.perf_counter() - start
        pooled.append({**judge(found, rate, truth), "seconds": seconds})
        flags.update([find_flag(found)])
        if name in SEEN_WITH_FEATURES and seed < N_SEEDS_WITH_FEATURES:
            with_features.append(judge(estimate(answers, data.X, seed), rate, truth))
    row = {"data": name, "n": len(relevant), "q": len(truth), "drawn": how, "flags": dict(flags)}
    row |= average(pooled)
    return {**row, "features": average(with_features)} if with_features else row


def judge_many(per_row: int, how: str) -> dict[str, Any]:
    """Return the errors on drawn counts of very many labels, with so many answers a row."""
    truth = np.minimum(0.3, (np.arange(1, Q_MANY + 1) / Q_MANY) ** -0.8 / Q_MANY)
    share, pooled = per_row / Q_MANY, []
    flags: Counter[str] = Counter()
    for seed in range(N_SEEDS_OF_MANY):
        rng = np.random.default_rng(seed)
        relevant = rng.binomial(N_MANY // 2, truth, size=(2, Q_MANY))
        irrelevant, maybe = N_MANY // 2 - relevant, np.zeros_like(relevant)
        if how == ANSWERS:
            asked = [rng.binomial(pairs, share) for pairs in (irrelevant, relevant)]
            no, yes = (rng.binomial(pairs, SURE) for pairs in asked)
            maybe = asked[0] + asked[1] - no - yes
        else:
            no, yes = rng.binomial(irrelevant, share), maybe
        counts = AnswerCounts(np.array([N_MANY // 2] * 2), no, yes, maybe)
        start = time.perf_counter()
        found = pool_rates(counts, "answers" if how == ANSWERS else "candidates")
        seconds = time.perf_counter() - start
        rate = SURE if how == ANSWERS else share
        flags.update([find_flag(found)])
        pooled.append({**judge(found, rate, truth), "seconds": seconds})
    drawn = f"{how}, {per_row} a row" if how == ANSWERS else share
    row = {"data": "synthetic", "n": N_MANY, "q": Q_MANY, "drawn": drawn, "flags": dict(flags)}
    return row | average(pooled)


def rows() -> Iterator[dict[str, Any]]:
    """Yield the errors on every set and the synthetic counts."""
    for name in SETS:
        for how in (*RATES, BY_LABEL, ANSWERS):
            yield judge_set(name, how)
    for per_row in (10, 100):
        for how in ("exclusions", ANSWERS):
            yield judge_many(per_row, how)


def main() -> None:
    """Judge the estimates and write the means."""
    warnings.simplefilter("ignore", ComesWarning)  # labels that are uncertain, by design
    made = []
    for row in rows():
        made.append(row)
        print(row, flush=True)
    result = {"command": "python experiments/pooled_rates.py", "rows": made}
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
