"""Is it worth asking what a model finds most doubtful? Chosen questions against drawn ones.

    python experiments/ask_next.py

writes ``experiments/results/ask_next.json``. Of the training rows (80 %), a twentieth of the pairs
is drawn and answered (80 % of the answers are sure). Then as many more are asked about: drawn at
random, or chosen with `comes.answers.choose_questions` by the model that was fitted so far, marked
as chosen, so that rates are estimated from drawn pairs alone. The likelihood is trained on all
answers, with the default settings; the truth of the test rows only judges.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State, choose_questions
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import simulate_answers
from comes.metrics import average_precision, mean_average_precision

RESULT = Path(__file__).parent / "results" / "ask_next.json"
SHARE = 0.05  # of the pairs, drawn first, and asked about afterwards
DATA = ("scenes", "scene", "yeast", "emotions")


def load(name: str) -> Dataset:
    """Return a data set with true labels."""
    return make_scenes(n=4000) if name == "scenes" else open_dataset(name)


def judge(X: Any, relevant: Any, answers: Answers, test: Any, seed: int) -> tuple[Any, Any]:
    """Fit on answers; return the classifier, and how good it is on test rows."""
    classifier = CandidateClassifier(random_state=seed, verbose=-1).fit(X, answers=answers)
    scores = classifier.decision_function(test[0])
    return classifier, {
        "average_precision": average_precision(scores, test[1]),
        "mean_average_precision": mean_average_precision(scores, test[1]),
    }


def reveal(
    codes: npt.NDArray[np.int8], drawn: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]
) -> Answers:
    """Return the answers to questions that were drawn or chosen."""
    asked = drawn | chosen
    return Answers.from_codes(np.where(asked, codes, np.int8(State.NOT_ASKED)), chosen=chosen)


def compare(name: str, seed: int) -> dict[str, Any]:
    """Return how good the models are after the first questions, and after more of either kind."""
    data, rng = load(name), np.random.default_rng(seed)
    X, relevant = np.asarray(data.known_features()), data.known_relevant()
    order = rng.permutation(len(X))
    train, test = order[len(X) // 5 :], order[: len(X) // 5]
    held_out = X[test], relevant[test]
    X, relevant = X[train], relevant[train]
    codes = simulate_answers(relevant, asked_rate=1.0, seed=seed).codes
    n_asked, nobody = round(SHARE * codes.size), np.zeros(codes.shape, dtype=bool)
    places = rng.permutation(codes.size)
    first, more = nobody.copy(), nobody.copy()
    first.ravel()[places[:n_asked]] = True
    more.ravel()[places[: 2 * n_asked]] = True
    start = reveal(codes, first, nobody)
    classifier, at_first = judge(X, relevant, start, held_out, seed)
    questions = choose_questions(classifier.predict_proba(X), n_asked, answers=start)
    chosen = nobody.copy()
    chosen[questions.row, questions.label] = True
    _, by_chance = judge(X, relevant, reveal(codes, more, nobody), held_out, seed)
    _, by_model = judge(X, relevant, reveal(codes, first, chosen), held_out, seed)
    found = {"first": at_first, "more drawn": by_chance, "more chosen": by_model}
    rounded = {k: {m: round(float(v), 4) for m, v in row.items()} for k, row in found.items()}
    return {"data": name, "seed": seed, "questions": n_asked, **rounded}


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser(description="Chosen questions against drawn ones.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows = []
    for name in DATA:
        for seed in options.seeds:
            rows.append(compare(name, seed))
            print(json.dumps(rows[-1]), flush=True)
    result = {"command": "python experiments/ask_next.py", "rows": rows}
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
