"""From questions to a model: what robots answer over HTTP, and what is learned from it.

    python experiments/circle.py

writes ``experiments/results/circle.json``: what ``comes annotate demo --robot 10 --scenes 10000
--json`` prints, for three seeds, with COMES trained on the same answers and candidates.
"""

import argparse
import json
from pathlib import Path

from comes.demo import annotate_by_robots
from comes.files import replacing_file

RESULT = Path(__file__).parent / "results" / "circle.json"
METHODS = ("likelihood", "comes-hl", "comes-rl")
LEARNERS = [(method, given) for given in ("answers", "candidates") for method in METHODS]


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
        circle = annotate_by_robots(
            options.robots, options.scenes, seed=seed, progress=False, learners=LEARNERS, tell=print
        )
        learned = [
            row._asdict()
            | {"average_precision": round(row.average_precision, 4), "seconds": round(row.seconds)}
            for row in circle.learned
        ]
        rows.append(
            {"seed": seed}
            | circle._asdict()
            | {"seconds": round(circle.seconds, 1), "prior_error": round(circle.prior_error, 4)}
            | {"learned": learned}
        )
        print(json.dumps(rows[-1]), flush=True)
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
