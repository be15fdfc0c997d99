"""The default, its blend with trees and the default of 1.0.0, beside BCE, on many sets and draws.

    python experiments/recipes.py

writes ``experiments/results/recipes.json``, a row per (set, draw, seed, learner): average precision
over the rows, mAP and macro F1 over the labels of a fifth of the rows, and the CPU seconds of the
fit. The sets are the development sets of `defaults.py`, mirflickr5000, the Yeast sets, Corel5k,
GoEmotions and the two of ``sparse/``: 300 and 1000 rows of each (NAME:300), and all rows where
these are few. Draws are one irrelevant pair in ten or in two excluded, and one pair in ten asked,
80 % of the answers sure; "real" are the candidates that four sets come with. Everything is
estimated, once for all learners, the default's seconds with it. BCE is trained as the default, and
as published. "trees" are those of the blend alone, their seconds the blend's less the default's.
Trees on answers about more than 30 labels, which are grown label by label, are left out. What the
result holds already is not run again.
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from defaults import DEVELOPMENT, OTHERS, WITH_CANDIDATES, load, say
from joblib import Parallel, delayed
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from comes.answers import Answers
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.metrics import average_precision, mean_average_precision

RESULT = Path(__file__).parent / "results" / "recipes.json"
SETS = tuple(name for name in (*DEVELOPMENT, *OTHERS) if name != "delicious")
SPARSE = ("medical", "yahoo-arts")
SMALLER = {"emotions": (300,), "medical": (300,)}  # of the others, 300 and 1000 rows
WHOLE = ("emotions", "medical", "scene", "yeast", "enron", "mirflickr5000", "yahoo-arts")
DRAWS = ("0.1", "0.5", "answers", "real")
MOST_LABELS = 30  # whose answers trees are grown for
OF_1_0_0: dict[str, Any] = {"model": "mlp", "scale": "columns", "n_networks": 4}
LEARNERS: dict[str, dict[str, Any]] = {
    "default": {},
    "blend": {"model": "blend"},
    "1.0.0": OF_1_0_0 | {"threshold": "half"},
    "BCE": {"method": "bce"},
    "BCE, as published": {"method": "bce"},
}


def run(name: str, draw: str, seed: int, titles: list[str], device: str) -> list[dict[str, Any]]:
    """Return what the learners make of one draw."""
    warnings.simplefilter("ignore", ComesWarning)
    dataset = load(name, None)
    X, relevant, said = dataset.X, dataset.known_relevant(), say(dataset, draw, seed)
    X = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    answers = said if isinstance(said, Answers) else Answers.from_candidates(said)
    train, test = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    shared: dict[str, Any] = {"random_state": seed, "verbose": -1, "device": device}
    known: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for title in titles:
        if title == "blend" and draw == "answers" and relevant.shape[1] > MOST_LABELS:
            continue
        own = {**shared, **known, **LEARNERS[title]}
        if own.get("method") == "bce":
            own.pop("rates", None)
        published = title == "BCE, as published"
        make: Any = CandidateClassifier.as_published if published else CandidateClassifier
        started = time.process_time()
        classifier = make(**own).fit(X[train], answers=answers[train])
        seconds = time.process_time() - started
        if not known:
            names = {"no": "no_rate_", "yes": "yes_rate_"}
            if answers.kind == "candidates":
                names = {"exclude": "no_rate_"}
            known["class_prior"] = classifier.class_prior_
            known["rates"] = {key: getattr(classifier, value) for key, value in names.items()}
        scores = classifier.decision_function(X[test])
        found = {title: (scores, classifier.predict(X[test]), seconds)}
        if classifier.trees_ is not None:
            alone = classifier.trees_.score_rows(X[test])
            found["trees"] = alone, (alone > 0).astype(int), seconds - rows[0]["seconds"]
        for learner, (scores, predicted, took) in found.items():
            values = {
                "average_precision": average_precision(scores, relevant[test]),
                "mean_average_precision": mean_average_precision(scores, relevant[test]),
                "macro_f1": f1_score(relevant[test], predicted, average="macro", zero_division=0),
            }
            row = {"set": name, "draw": draw, "seed": seed, "learner": learner}
            row |= {key: round(float(value), 4) for key, value in values.items()}
            rows.append(row | {"seconds": round(took, 2), "device": device})
    return rows


def main() -> None:
    """Run what is missing, and write the result after every task."""
    parser = argparse.ArgumentParser(description="The default beside that of 1.0.0.")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sizes", nargs="+", type=int, default=[300, 1000, 0], help="0: all rows")
    parser.add_argument("--sets", nargs="+", default=[*SETS, *SPARSE])
    parser.add_argument("--draws", nargs="+", default=DRAWS)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=2, help="tasks at a time")
    parser.add_argument("--limit", type=float, default=np.inf, help="start nothing after seconds")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(row["set"], row["draw"], row["seed"]) for row in rows}
    tasks = []
    for seed, n, draw, name in itertools.product(
        options.seeds, options.sizes, options.draws, options.sets
    ):
        title = f"{name}:{n}" if n else name
        sizes = (*SMALLER.get(name, (300, 1000)), *((0,) if name in WHOLE else ()))
        if draw == "real":  # of all rows
            sizes = (0,) if name in WITH_CANDIDATES else ()
        if n in sizes and (title, draw, seed) not in done:
            tasks.append((title, draw, seed, options.learners, options.device))
    started = time.monotonic()
    work = Parallel(
        n_jobs=options.workers, return_as="generator_unordered", pre_dispatch="1*n_jobs"
    )
    todo = (task for task in tasks if time.monotonic() - started < options.limit)
    for found in work(delayed(run)(*task) for task in todo):
        rows += found
        rows.sort(
            key=lambda r: (r["set"], r["draw"], r["seed"], [*LEARNERS, "trees"].index(r["learner"]))
        )
        result = {"command": "python experiments/recipes.py", "rows": rows}
        with replacing_file(options.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{time.monotonic() - started:.0f}", json.dumps(found[0]), flush=True)
    print(summarise(pd.DataFrame(rows)))


def summarise(table: pd.DataFrame) -> str:
    """Return means over sets, and the worst and best set, against 1.0.0 and against BCE."""
    metrics = ["average_precision", "mean_average_precision", "macro_f1", "seconds"]
    by_set = table.groupby(["draw", "set", "learner"])[metrics].mean().unstack()
    found = []
    for draw, part in by_set.groupby(level=0):
        precision: Any = part["average_precision"]
        bce = precision.filter(like="BCE").max(axis=1)
        for learner in precision:
            both = precision[learner].notna()
            own: Any = cast(Any, part).xs(learner, axis=1, level=1)[both]
            change: Any = own - cast(Any, part).xs("1.0.0", axis=1, level=1)[both]
            row = {"draw": draw, "learner": learner, "sets": len(own), **own.mean()}
            row |= {f"{name} - 1.0.0": change[name].mean() for name in metrics[:2]}
            row["least"] = change["average_precision"].min()
            row["least - BCE"] = (own["average_precision"] - bce[both]).min()
            found.append(row)
    return str(pd.DataFrame(found).round(3).to_string())


if __name__ == "__main__":
    main()
