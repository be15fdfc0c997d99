"""Every method and variant on the demo scenes and on one fold of mirflickr5000.

    python experiments/methods.py

writes ``experiments/results/methods.json``: the metrics of the last epoch, trained as in the paper
(`CandidateClassifier.as_published`; on the scenes for 50 epochs). Methods that need class priors
get those counted on the training rows (estimated for the scenes). CCMN runs with estimated flip
rates and with those that the class prior implies, so that it knows what COMES knows; MLCL also runs
with Adam, as its authors train it. COMES-RL has no flood level, and the likelihood, which is not of
the paper, is left out. mirflickr5000 is read by its name, from ``$COMES_DATA``.
"""

import json
from pathlib import Path
from typing import Any

from sklearn.model_selection import KFold

from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.flat_settings import ONLY_VARIANTS, from_flat, frozen_settings
from comes.generation import case_b
from comes.methods import DEFAULT, METHODS
from comes.metrics import evaluate
from comes.priors import count_class_prior

RESULT = Path(__file__).parent / "results" / "methods.json"
PUBLISHED: dict[str, dict[str, Any]] = {"comes-rl": {"flood_level": 0.0}}
EXCLUDE_RATE = 0.1  # of the scenes: P(j excluded | j irrelevant)
SEED = 0


def runs() -> list[dict[str, Any]]:
    """Return the settings of every training: each variant, and some with other settings."""
    settings: list[dict[str, Any]] = [
        {"method": method, "variant": variant, **PUBLISHED.get(method, {})}
        for method, named in METHODS.items()
        for variant in named.variants or (ONLY_VARIANTS[method],)
        if method != DEFAULT  # is no method of the paper
    ]
    ccmn = [setting for setting in settings if setting["method"] == "ccmn"]
    of_prior = [{**setting, "flip_rate": "class_prior"} for setting in ccmn]
    adam = {"optimizer": "adam", "learning_rate": 1e-3}  # as its authors train it
    of_adam = [{**setting, **adam} for setting in settings if setting["method"] == "mlcl"]
    return settings + of_prior + of_adam


def compare(
    train: Dataset, test: Dataset, candidates: Any, class_prior: Any, epochs: int
) -> list[dict[str, Any]]:
    """Train with every setting on candidates and measure on the true labels of the test rows."""
    rows = []
    for setting in runs():
        known = {"class_prior": class_prior, "epochs": epochs, "random_state": SEED}
        settings = frozen_settings(setting["method"], None, None, {**setting, **known})
        classifier = CandidateClassifier(**from_flat(settings), verbose=-1)
        row: dict[str, Any] = dict(setting)
        try:
            classifier.fit(train.X, candidates)
            scores = classifier.decision_function(test.X)
            row["metrics"] = evaluate(scores, test.known_relevant(), classifier.cut_scores(scores))
            row["seconds"] = round(classifier.history_.seconds, 1)
        except ComesError as error:  # a risk without a lower bound may run away
            row["error"] = str(error)
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    """Run both comparisons and write them."""
    train, test = make_scenes("train", 10000, SEED), make_scenes("test", 2000, SEED)
    candidates = case_b(train.known_relevant(), EXCLUDE_RATE, SEED)
    result = {
        "command": "python experiments/methods.py",
        "scenes": compare(train, test, candidates, None, epochs=50),
    }
    flickr = open_dataset("mirflickr5000")
    seen, unseen = next(KFold(10, shuffle=True, random_state=SEED).split(flickr.known_relevant()))
    train, test = flickr.take(seen), flickr.take(unseen)
    prior = count_class_prior(train.known_relevant())
    result["mirflickr5000"] = compare(train, test, train.candidates, prior, epochs=200)
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
