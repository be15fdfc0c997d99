"""How many terms of texts to count, judged by what was said about held-out comments.

    python experiments/text_terms.py

writes ``experiments/results/text_terms.json``. 20000 comments of GoEmotions, a fifth of them held
out, with candidates (half of the irrelevant pairs excluded) and with answers (a tenth of the pairs
asked, four fifths of the answers sure). For each way to make TF-IDF features, one network is
trained by likelihood, with rates known, and judged as ``comes fit --select`` judges: by the
likelihood of what was said about the held-out rows, of scores that are calibrated first. No true
label is used but to draw what is said. What the result holds already is not run again.
"""

import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from comes.answers import Answers
from comes.datasets import open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import independent, simulate_answers
from comes.selection import likelihood_losses

RESULT = Path(__file__).parent / "results" / "text_terms.json"
N_ROWS, N_HELD = 20_000, 4_000
KINDS = ("candidates", "answers")


class Way(NamedTuple):
    """Settings of TF-IDF: the longest run of words that is a term, and the most terms."""

    longest: int
    most_terms: int


WAYS = [
    Way(*both)
    for both in (
        (1, 500),
        (1, 1000),
        (1, 2000),
        (1, 5000),
        (2, 500),
        (2, 1000),
        (2, 2000),
        (2, 5000),
        (2, 10000),
    )
]


def draw(kind: str, relevant: Any) -> tuple[Answers, dict[str, Any]]:
    """Return what is said about the labels, and the rates, which all know."""
    if kind == "candidates":
        drawn = independent(relevant, exclude_rate=0.5, seed=0)
        return Answers.from_candidates(drawn), {"exclude": 0.5}
    said = simulate_answers(relevant, asked_rate=0.1, no_rate=0.8, yes_rate=0.8, seed=0)
    return said, {"no": 0.8, "yes": 0.8}


def count_prior(said: Answers, rates: dict[str, Any]) -> Any:
    """Return class priors from what is said, given the rates: pi = 1 - share / p, or share / b."""
    if "exclude" in rates:
        return np.clip(1 - said.excluded.mean(axis=0) / rates["exclude"], 1e-3, 1)
    asked = said.asked
    assert asked is not None
    return np.clip(said.confirmed.sum(axis=0) / asked.sum(axis=0) / rates["yes"], 1e-3, 1)


def run(kind: str, way: Way, texts: list[str], relevant: Any) -> dict[str, Any]:
    """Return the likelihood loss on held-out rows, and what training costs."""
    said, rates = draw(kind, relevant)
    train, held = slice(None, N_ROWS - N_HELD), slice(N_ROWS - N_HELD, None)
    numbers = np.arange(N_ROWS)
    vectorizer = TfidfVectorizer(
        ngram_range=(1, way.longest),
        max_features=way.most_terms,
        min_df=2,
        sublinear_tf=True,
        token_pattern=r"(?u)\b\w+\b",
        dtype=np.float32,
    )
    X = vectorizer.fit_transform(texts[train])
    classifier = CandidateClassifier(
        "likelihood", n_networks=1, rates=rates, random_state=0, verbose=-1, device="cpu"
    )
    started = time.perf_counter()
    classifier.fit(X, answers=said[numbers[train]])
    seconds = time.perf_counter() - started
    scores, own = classifier.decision_function(vectorizer.transform(texts[held])), numbers[held]
    prior = count_prior(said[numbers[train]], rates)
    losses = likelihood_losses(scores, said[own], prior, calibration="slope")
    return {
        "labels": kind,
        "longest": way.longest,
        "most_terms": way.most_terms,
        "terms": X.shape[1],
        "held_out_loss": round(float(losses.mean()), 5),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """Run what is missing, and write the result after every training."""
    warnings.simplefilter("ignore", ComesWarning)
    rows = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    done = {(row["labels"], row["longest"], row["most_terms"]) for row in rows}
    dataset = open_dataset("GoEmotions:train")
    chosen = np.random.default_rng(0).permutation(len(dataset))[:N_ROWS]
    texts = [dataset.X["text"].iloc[row] for row in chosen]
    relevant = dataset.known_relevant()[chosen]
    for kind, way in itertools.product(KINDS, WAYS):
        if (kind, *way) in done:
            continue
        rows.append(run(kind, way, texts, relevant))
        print(json.dumps(rows[-1]), flush=True)
        rows.sort(key=lambda row: (row["labels"], row["longest"], row["most_terms"]))
        result = {"command": "python experiments/text_terms.py", "rows": rows}
        with replacing_file(RESULT) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
