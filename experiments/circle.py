"""From questions to a model: what robots answer over HTTP, and what is learned from it.

    python experiments/circle.py

writes ``experiments/results/circle.json``: for three seeds, ten robots answer a tenth of all
questions about 10 000 scenes of digits; the likelihood and COMES are trained on their answers, and
on the candidates that these leave. Four of five times a robot is sure, and right; else it says
maybe.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from comes import CandidateClassifier
from comes.annotate import (
    Project,
    create_project,
    export_answers,
    run_robots,
    serve_in_thread,
)
from comes.answers import Answers, State
from comes.datasets import Dataset, join_features, make_scenes, open_dataset
from comes.files import replacing_file
from comes.generation import simulate_answers
from comes.priors import count_class_prior

RESULT = Path(__file__).parent / "results" / "circle.json"
METHODS = ("likelihood", "comes-hl", "comes-rl")
ASKED_RATE, SURE_RATE = 0.1, 0.8


def main() -> None:
    """Run the whole circle once per seed, and write what came of it."""
    parser = argparse.ArgumentParser(description="What is learned from the answers of robots.")
    parser.add_argument("--robots", type=int, default=10)
    parser.add_argument("--scenes", type=int, default=10000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows = []
    for seed in options.seeds:
        rows.append({"seed": seed} | run_circle(options.robots, options.scenes, seed))
        print(json.dumps(rows[-1]), flush=True)
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(rows, indent=1) + "\n")


def run_circle(robots: int, n_scenes: int, seed: int) -> dict[str, Any]:
    """Let robots answer, and train on what they said."""
    scenes, test = make_scenes("train", n_scenes, seed), make_scenes("test", 2000, seed)
    items = [f"scene-{number:05}.png" for number in range(n_scenes)]
    with tempfile.TemporaryDirectory() as name:
        project = make_project(Path(name), scenes, items, seed)
        n_answers, seconds = answer_cards(project, scenes, items, robots, seed)
        export_answers(project, Path(name, "answers.parquet"))
        project.engine.dispose()
        said = open_dataset(Path(name, "answers.parquet"))
    data = join_features(said, scenes.X, items)
    answers = data.known_answers()
    learned, priors = [], []
    for given, labels in (
        ("answers", answers),
        ("candidates", Answers.from_candidates(answers.candidates)),
    ):
        for method in METHODS:
            started = time.perf_counter()
            classifier = CandidateClassifier(method, random_state=seed, verbose=-1)
            classifier.fit(data.X, labels)
            taken = time.perf_counter() - started
            found = classifier.score(test.X, test.known_relevant())
            row = {"method": method, "given": given, "average_precision": round(found, 4)}
            learned.append(row | {"seconds": round(taken)})
            priors.append(np.asarray(classifier.class_prior_))
    codes = answers.codes
    error = np.abs(priors[0] - count_class_prior(scenes.known_relevant())).mean()
    return {
        "robots": robots,
        "answers": n_answers,
        "seconds": round(seconds, 1),
        "said": {s.word: int((codes == s).sum()) for s in (State.NO, State.YES, State.MAYBE)},
        "prior_error": round(float(error), 4),
        "learned": learned,
    }


def make_project(home: Path, scenes: Dataset, items: list[str], seed: int) -> Project:
    """Return a project of small pictures, since robots do not look."""
    (home / "pictures").mkdir()
    for name, pixels in zip(items, scenes.X, strict=True):
        picture = (255 * pixels).astype(np.uint8).reshape(16, 16)
        Image.fromarray(picture).save(home / "pictures" / name)
    (home / "classes.txt").write_text("\n".join(scenes.label_names))
    sources = home / "pictures", home / "classes.txt"
    return create_project(home / "digits", *sources, rate=ASKED_RATE, seed=seed)


def answer_cards(
    project: Project, scenes: Dataset, items: list[str], robots: int, seed: int
) -> tuple[int, float]:
    """Have robots answer every card; return how many answers there are, and the seconds."""
    codes = simulate_answers(
        scenes.known_relevant(), asked_rate=1, no_rate=SURE_RATE, yes_rate=SURE_RATE, seed=seed
    ).codes
    row = {item: number for number, item in enumerate(items)}
    column = {label: number for number, label in enumerate(scenes.label_names)}

    def say(item: str, label: str) -> str:
        return State(codes[row[item], column[label]]).word

    started = time.perf_counter()
    with serve_in_thread(project) as address:
        reports = run_robots(address, robots, say)
    seconds = time.perf_counter() - started
    for report in reports:
        if report.error or report.refused:
            raise RuntimeError(f"a robot could not answer: {report.error or report.refused}")
    return sum(len(report.acknowledged) for report in reports), seconds


if __name__ == "__main__":
    main()
