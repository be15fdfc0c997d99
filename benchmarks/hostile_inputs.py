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

from hostile.casework import VERDICTS, Case, Judged, all_cases, judge
from measuring import RESULTS, write

NAME = "hostile_inputs"
Counts = dict[str, dict[str, int]]


def count(judged: Mapping[Case, Judged]) -> Counts:
    """Return the number of cases and of each verdict by area, and of all."""
    counts: Counts = {}
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
    judged = {case: judge(case) for case in all_cases() if wanted in case.area}
    counts, bad = count(judged), list_bad(judged)
    for one in bad:
        print(f"{one['verdict']:9} {one['area']}: {one['case']}: {one['came']}")
    for area, numbers in counts.items():
        print(area, numbers)
    seconds = round(time.perf_counter() - started, 1)
    print(f"{seconds} s")
    if not wanted:
        write(NAME, {"seconds": seconds, "counts": counts, "bad": bad, "found": keep(counts, bad)})


def keep(counts: Counts, bad: list[dict[str, str]]) -> dict[str, Any]:
    """Return what was found when an area was first judged; of a new area, what is found now."""
    stored = RESULTS / f"{NAME}.json"
    found: dict[str, Any] = {"counts": {}, "bad": []}
    if stored.exists():
        found = json.loads(stored.read_text())["found"]
    new = [area for area in counts if area not in found["counts"] and area != "all"]
    by_area: Counts = {
        area: found["counts"].get(area, counts[area]) for area in counts if area != "all"
    }
    by_area["all"] = {key: sum(c[key] for c in by_area.values()) for key in counts["all"]}
    return {"counts": by_area, "bad": found["bad"] + [one for one in bad if one["area"] in new]}


if __name__ == "__main__":
    main(sys.argv[1:])
