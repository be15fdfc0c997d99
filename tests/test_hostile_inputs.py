"""Bad inputs of every kind: refused in clear words, or handled; never a traceback, never silent.

The cases are those of ``python benchmarks/hostile_inputs.py``.
"""

import pytest
from hostile.casework import Case, all_cases, judge

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.area}: {case.name}")
def test_a_bad_input_is_refused_in_clear_words_or_handled(case: Case) -> None:
    judged = judge(case)
    assert judged.verdict == "ok", judged.came


def test_cases_are_many_and_differ() -> None:
    assert len(CASES) >= 300
    assert len({(case.area, case.name) for case in CASES}) == len(CASES)
