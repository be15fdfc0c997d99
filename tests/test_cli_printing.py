"""What commands print: numbers aligned, a dash for a missing one, and json without NaN."""

import json
import math

import pytest

from comes.cli.printing import print_json, print_rounded


def test_a_missing_number_is_a_dash_among_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_rounded([{"data": "a", "mean_rank": math.nan}, {"data": "b", "mean_rank": 1 / 3}])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]
    assert [line.split() for line in lines] == [
        ["data", "mean", "rank"],
        ["a", "–"],
        ["b", "0.333"],
    ]
    assert len({len(line.rstrip()) for line in lines}) == 1  # right-aligned


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"values": [math.nan, math.inf, 0.5], "inner": {"x": math.nan}})
    found = json.loads(capsys.readouterr().out)
    assert found == {"values": [None, None, 0.5], "inner": {"x": None}}


def test_brackets_in_a_table_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_rounded([{"label [x]": "comes[chem]", "other": "[bold]"}])
    told = capsys.readouterr().out
    assert "label [x]" in told and "comes[chem]" in told and "[bold]" in told
