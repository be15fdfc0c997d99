"""Bad inputs of every kind: refused in clear words, or handled; never a traceback, never silent.

The cases are those of ``python benchmarks/hostile_inputs.py``: here those that once failed and a
few more of every area, in `system/test_hostile_corpus` all.
"""

import json
from pathlib import Path

import pytest
from hostile.casework import Case, all_cases, judge

STORED = Path(__file__).parents[1] / "benchmarks" / "results" / "hostile_inputs.json"
CASES = all_cases()
AREAS = list(dict.fromkeys(case.area for case in CASES))
MORE = 2  # cases of every area that never failed


def chosen_cases(area: str) -> list[Case]:
    """Return the cases of an area that were not ok when first judged, and a few others."""
    found = json.loads(STORED.read_text(encoding="utf-8"))["found"]["bad"]
    failed = {one["case"] for one in found if one["area"] == area}
    cases = [case for case in CASES if case.area == area]
    others = [case for case in cases if case.name not in failed]
    return [case for case in cases if case.name in failed] + others[:: len(others) // MORE][:MORE]


@pytest.mark.parametrize("area", AREAS)
def test_bad_inputs_are_refused_in_clear_words_or_handled(area: str) -> None:
    judged = {case.name: judge(case) for case in chosen_cases(area)}
    assert not {name: found for name, found in judged.items() if found.verdict != "ok"}


def test_cases_are_many_and_differ_and_those_that_failed_are_among_them() -> None:
    names = {(case.area, case.name) for case in CASES}
    assert len(names) == len(CASES) >= 300
    found = json.loads(STORED.read_text(encoding="utf-8"))["found"]["bad"]
    # Functions that are gone or internal: experiments refuse the first number, and no user counts
    # hits.
    gone = ("noise below zero", "more hits than there are")
    found = [one for one in found if one["case"] not in gone]
    assert ("experiments", "noise below zero") in names
    assert {(one["area"], one["case"]) for one in found} <= names
    assert 100 <= sum(len(chosen_cases(area)) for area in AREAS) <= 150
