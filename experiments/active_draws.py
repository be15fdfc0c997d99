"""Questions that a model draws with known probabilities, against as many drawn at random.

    python experiments/active_draws.py

writes ``experiments/results/active_draws.json``. Of the training rows (80 %), a twentieth is drawn
for each label and answered: four of five answers are sure. Then as many questions more are asked,
in four rounds: drawn at random, or drawn by `draw_questions` with a model that is
trained on all answers before each round. The likelihood is trained on all answers, with the default
settings. Judged are the models, on test rows, and the share of yes and of no of each label over all
training rows, as `estimate_share` finds it: how far off it is, how wide its interval
is, and how often the interval holds what people would say if they were asked about everything.
The plain share among those asked is what somebody would report who ignores how they were drawn.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers import AnswerRates, Answers, State
from comes.answers.questions import Round, draw_questions, estimate_share
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import simulate_answers
from comes.metrics import average_precision, mean_average_precision

RESULT = Path(__file__).parent / "results" / "active_draws.json"
SHARE, ROUNDS = 0.05, 4
DATA = ("scenes", "scene", "yeast", "emotions")
WORDS = {"yes": State.YES, "no": State.NO}
Matrix = npt.NDArray[Any]


class Asked(NamedTuple):
    """What was asked, for each pair (n, q): the round, -1 where it was not; how it was drawn."""

    number: Matrix
    probability: Matrix
    relevance: Matrix  # as the model of the round saw it
    kept: dict[int, Any]  # for each round its spread, relevance and rates, by label


def load(name: str) -> Dataset:
    """Return a data set with true labels."""
    return make_scenes(n=4000) if name == "scenes" else open_dataset(name)


def fit(X: Matrix, codes: Matrix, asked: Asked, seed: int) -> CandidateClassifier:
    """Fit on the answers to what was asked; rates are estimated from the first round alone."""
    said = np.where(asked.number >= 0, codes, np.int8(State.NOT_ASKED))
    answers = Answers.from_codes(said, chosen=asked.number > 0 if asked.kept else None)
    return CandidateClassifier(random_state=seed, verbose=-1).fit(X, answers=answers)


def ask_first(shape: tuple[int, int], share: float, rng: np.random.Generator) -> Asked:
    """Draw a share of the items for each label."""
    n, q = shape
    count = round(share * n)
    number = np.full(shape, -1)
    for label in range(q):
        number[rng.choice(n, count, replace=False), label] = 0
    return Asked(number, np.where(number == 0, count / n, np.nan), np.full(shape, np.nan), {})


def ask_more(
    asked: Asked, classifier: CandidateClassifier, X: Matrix, count: int, seed: int
) -> None:
    """Let the model draw a round."""
    eta = np.asarray(classifier.predict_proba(X), dtype=float)
    assert classifier.no_rate_ is not None and classifier.yes_rate_ is not None
    rates = AnswerRates(classifier.no_rate_, classifier.yes_rate_)
    is_open, number = asked.number < 0, len(asked.kept) + 1
    drawn = draw_questions(eta, count, is_open=is_open, rates=rates, seed=1000 * seed + number)
    asked.kept[number] = {
        "spread": drawn.spread.sum(axis=0),
        "relevance": (eta * is_open).sum(axis=0),
        "open": is_open.sum(axis=0),
        "rates": rates,
    }
    asked.number[drawn.row, drawn.label] = number
    asked.probability[drawn.row, drawn.label] = drawn.probability
    asked.relevance[drawn.row, drawn.label] = eta[drawn.row, drawn.label]


def judge_shares(codes: Matrix, asked: Asked) -> list[dict[str, float]]:
    """Return for each label and answer the share, its estimate and interval, and the plain one."""
    rows = []
    for label in range(codes.shape[1]):
        number = asked.number[:, label]
        own = number >= 0
        for word, state in WORDS.items():
            values = (codes[:, label] == state).astype(float)
            is_first = number == 0
            rounds = [Round(values[is_first], asked.probability[is_first, label])]
            for k, how in asked.kept.items():
                is_k = number == k
                a, b = how["rates"].no_rate[label], how["rates"].yes_rate[label]
                eta, total = asked.relevance[is_k, label], how["relevance"][label]
                expected = b * eta if word == "yes" else a * (1 - eta)
                of_all = b * total if word == "yes" else a * (how["open"][label] - total)
                p, spread = asked.probability[is_k, label], how["spread"][label]
                rounds.append(Round(values[is_k], p, expected, of_all, spread))
            found = estimate_share(rounds, len(codes))
            truth = values.mean()
            rows.append(
                {
                    "error": found.share - truth,
                    "width": found.upper - found.lower,
                    "inside": float(found.lower <= truth <= found.upper),
                    "plain_error": values[own].mean() - truth,
                }
            )
    return rows


def summarise(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the root of the mean squared error, mean width, and how often the truth is inside."""
    squares = {name: np.mean([row[name] ** 2 for row in rows]) for name in ("error", "plain_error")}
    return {
        "intervals": len(rows),
        "inside": sum(row["inside"] for row in rows),
        "width": float(np.mean([row["width"] for row in rows])),
        "error": float(squares["error"] ** 0.5),
        "plain_error": float(squares["plain_error"] ** 0.5),
    }


def compare(name: str, seed: int) -> dict[str, Any]:
    """Return how good models and estimates are, with questions of either kind."""
    data, rng = load(name), np.random.default_rng(seed)
    X, relevant = np.asarray(data.known_features()), data.known_relevant()
    order = rng.permutation(len(X))
    train, test = order[len(X) // 5 :], order[: len(X) // 5]
    codes = simulate_answers(relevant[train], asked_rate=1.0, seed=seed).codes
    found: dict[str, Any] = {"data": name, "seed": seed}
    for way in ("random", "active"):
        chance = np.random.default_rng([seed, 1])
        share = SHARE if way == "active" else 2 * SHARE
        asked = ask_first(codes.shape, share, chance)
        classifier = fit(X[train], codes, asked, seed)
        if way == "active":
            n_more = round(2 * SHARE * len(train)) * codes.shape[1] - int((asked.number == 0).sum())
            for count in np.diff(np.linspace(0, n_more, ROUNDS + 1).round().astype(int)).tolist():
                ask_more(asked, classifier, X[train], count, seed)
                classifier = fit(X[train], codes, asked, seed)
        scores = classifier.decision_function(X[test])
        found[way] = {
            "questions": int((asked.number >= 0).sum()),
            "average_precision": float(average_precision(scores, relevant[test])),
            "mean_average_precision": float(mean_average_precision(scores, relevant[test])),
            **summarise(judge_shares(codes, asked)),
        }
        found[way] = {k: round(v, 4) for k, v in found[way].items()}
    return found


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser(description="Active draws against random ones.")
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows = []
    for name in options.data:
        for seed in options.seeds:
            rows.append(compare(name, seed))
            print(json.dumps(rows[-1]), flush=True)
    result = {"command": "python experiments/active_draws.py", "rows": rows}
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
