"""All bad inputs of ``python benchmarks/hostile_inputs.py``; `test_hostile_inputs` has a few."""

import pytest
from hostile.casework import Case, all_cases, judge


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: f"{case.area}: {case.name}")
def test_a_bad_input_is_refused_in_clear_words_or_handled(case: Case) -> None:
    judged = judge(case)
    assert judged.verdict == "ok", judged.came
