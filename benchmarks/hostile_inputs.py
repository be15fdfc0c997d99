"""Bad inputs to commands and functions: how many are refused in clear words, and how many are not.

    python benchmarks/hostile_inputs.py          # all cases
    python benchmarks/hostile_inputs.py FILES    # those of one area, and writes nothing

writes ``benchmarks/results/hostile_inputs.json``: counts by area, and what is not ok. Every case is
run in its own temporary folder; `hostile.casework` says what the counts mean. ``found`` there is
what the cases found when they were written, before anything was mended, and is kept.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hostile.casework import all_cases
from hostile.casework import VERDICTS, Case, Judged, judge
from measuring import RESULTS, write

NAME = "hostile_inputs"


def count(judged: Mapping[Case, Judged]) -> dict[str, dict[str, int]]:
    """Return the number of cases and of each verdict by area, and of all."""
    counts: dict[str, dict[str, int]] = {}
    for area in [*dict.fromkeys(case.area for case in judged), "all"]:
        found = Counter(j.verdict for case, j in judged.items() if area in (case.area, "all"))
        counts[area] = {"cases": found.total()} | {verdict: found[verdict] for verdict in VERDICTS}
    return counts


def list_bad(judged: Mapping[Case, Judged]) -> list[dict[str, str]]:
    """Return the cases that are not ok, and what came."""
    return [
        {"area": case.area, "case": case.name, "verdict": j.verdict, "came": j.came[:300]}
        for case, j in judged.items()
        if j.verdict != "ok"
    ]


def main(arguments: Sequence[str]) -> None:
    """Judge every case, print what is not ok, and write the counts."""
    started = time.perf_counter()
    wanted = " ".join(arguments).lower()
    judged = {case: judge(case) for case in all_cases() if wanted in f"{case.area} {case.name}"}
    counts, bad = count(judged), list_bad(judged)
    for one in bad:
        print(f"{one['verdict']:9} {one['area']}: {one['case']}: {one['came']}")
    for area, numbers in counts.items():
        print(area, numbers)
    seconds = round(time.perf_counter() - started, 1)
    print(f"{seconds} s")
    if not wanted:
        stored = RESULTS / f"{NAME}.json"
        result: dict[str, Any] = {"seconds": seconds, "counts": counts, "bad": bad}
        found = json.loads(stored.read_text())["found"] if stored.exists() else {"counts": counts, "bad": bad}
        write(NAME, result | {"found": found})


if __name__ == "__main__":
    main(sys.argv[1:])
