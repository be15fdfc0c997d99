"""From questions to a model: what robots answer over HTTP, and what is learned from it.

    python experiments/circle.py

writes ``experiments/results/circle.json``: what ``comes annotate demo --robot 10 --seed 0 --json``
prints, and for two more seeds.
"""

import argparse
import json
from pathlib import Path

from comes.demo import annotate_by_robots
from comes.files import replacing_file

RESULT = Path(__file__).parent / "results" / "circle.json"


def main() -> None:
    """Run the whole circle once per seed, and write what came of it."""
    parser = argparse.ArgumentParser(description="What is learned from the answers of robots.")
    parser.add_argument("--robots", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows = []
    for seed in options.seeds:
        circle = annotate_by_robots(options.robots, seed=seed)._asdict()
        rows.append({"seed": seed} | {name: round(value, 4) for name, value in circle.items()})
        print(json.dumps(rows[-1]), flush=True)
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
