"""What it costs if an assumption fails: one at a time, on the scenes of the demo.

    python experiments/broken_assumptions.py

writes ``experiments/results/broken_assumptions.json``, a row for every draw and seed. The default
learns from candidates, or from answers about a fifth of the pairs, with everything estimated. The
row says what true labels show (average precision, Hamming loss), what is estimated without them
(the class priors, the Hamming loss on held-out rows), and what `check_constant_rate` finds on 500
rows with true labels.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from comes import Answers, CandidateClassifier
from comes.answers.convert import BoolMatrix
from comes.datasets import make_scenes
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.generation import independent, instance_dependent, one_uniform
from comes.metrics import average_precision, hamming_loss
from comes.selection import check_constant_rate, estimate_metrics

RESULT = Path(__file__).parent / "results" / "broken_assumptions.json"
N_ROWS, N_UNSEEN, N_CHECKED, SEEDS = 4000, 2000, 500, (0, 1, 2)
RATE, ASKED_RATE, MISTAKE_RATE, SUSPICION = 0.5, 0.2, 0.1, 0.1
Draw = Callable[[Any, BoolMatrix, np.random.Generator], Answers]


def exclude_constantly(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Exclude irrelevant labels at one rate: all assumptions hold."""
    return Answers.from_candidates(independent(relevant, RATE, seed=rng))


def exclude_by_item(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Exclude them at a rate that depends on the item."""
    return Answers.from_candidates(instance_dependent(relevant, X, RATE, 2.0, seed=rng))


def exclude_few(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Exclude one label of each item on average, at one rate."""
    rate = len(relevant) / (~relevant).sum()
    return Answers.from_candidates(independent(relevant, rate, seed=rng))


def exclude_one(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Exclude one label of each item: more often each, the fewer are irrelevant."""
    return Answers.from_candidates(one_uniform(relevant, seed=rng))


def exclude_by_mistake(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Exclude relevant labels, too, at a tenth of the time."""
    candidates = independent(relevant, RATE, seed=rng)
    mistaken = relevant & (rng.random(relevant.shape) < MISTAKE_RATE)
    return Answers.from_candidates(candidates & ~mistaken)


def ask_at_random(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Ask about a fifth of the pairs; all assumptions about answers hold."""
    return answer(relevant, rng.random(relevant.shape) < ASKED_RATE)


def ask_on_suspicion(X: Any, relevant: BoolMatrix, rng: np.random.Generator) -> Answers:
    """Ask about as many pairs, but irrelevant ones at half the rate, and more relevant ones."""
    rate = np.where(relevant, 0.0, SUSPICION)
    left = ASKED_RATE - rate.mean(axis=0)
    rate = np.where(relevant, left / relevant.mean(axis=0), rate)
    return answer(relevant, rng.random(relevant.shape) < rate)


def answer(relevant: BoolMatrix, asked: BoolMatrix) -> Answers:
    """Return true answers about the pairs that are asked."""
    return Answers(no=asked & ~relevant, yes=asked & relevant)


DRAWS: dict[str, Draw] = {
    "candidates, constant rate": exclude_constantly,
    "candidates, rate depends on the item": exclude_by_item,
    "candidates, constant rate, one excluded on average": exclude_few,
    "candidates, one excluded for every item": exclude_one,
    "candidates, one relevant label in ten excluded": exclude_by_mistake,
    "answers, asked at random": ask_at_random,
    "answers, asked on suspicion": ask_on_suspicion,
}


def measure(title: str, seed: int) -> dict[str, Any]:
    """Draw, train, and return what is true beside what is estimated."""
    rows, unseen = make_scenes("train", n=N_ROWS, seed=seed), make_scenes("test", n=N_UNSEEN)
    relevant, truth = rows.known_relevant(), unseen.known_relevant()
    everything = np.concatenate([rows.X, unseen.X]), np.concatenate([relevant, truth])
    drawn = DRAWS[title](*everything, np.random.default_rng(seed))
    said, held_out = drawn[:N_ROWS], drawn[N_ROWS:]
    model = CandidateClassifier(n_networks=1, random_state=seed, verbose=-1)
    model.fit(rows.X, said)
    prior, scores = np.asarray(model.class_prior_), model.decision_function(unseen.X)
    predictions = model.cut_scores(scores)
    estimated = estimate_metrics(scores, held_out, prior, predictions=predictions)
    found = {
        "average_precision": average_precision(scores, truth),
        "hamming_loss": hamming_loss(predictions, truth),
        "estimated_hamming_loss": estimated["hamming_loss"].value,
        "class_prior": relevant.mean(),
        "estimated_class_prior": prior.mean(),
        "mean_probability": model.predict_proba(unseen.X).mean(),
    }
    row: dict[str, Any] = {"draw": title, "seed": seed}
    row |= {key: round(float(value), 4) for key, value in found.items()}
    if title.startswith("candidates"):
        few = slice(0, N_CHECKED)
        check = check_constant_rate(rows.X[few], said.candidates[few], ~relevant[few])
        row["labels_not_constant"] = int((check.per_label["says"] == "not constant").sum())
    print(row, flush=True)
    return row


def main() -> None:
    """Run all and write the result."""
    warnings.simplefilter("ignore", ComesWarning)
    rows = [measure(title, seed) for title in DRAWS for seed in SEEDS]
    result = {"command": "python experiments/broken_assumptions.py", "rows": rows}
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
