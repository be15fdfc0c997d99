"""The table that people try commands on says what its page says of it."""

from pathlib import Path

import pandas as pd
import pytest

from comes.datasets import Reading, open_dataset
from comes.demo import make_tickets, write_tickets
from comes.errors import ComesError


def test_the_written_table_is_read_as_answers_with_nothing_told_but_the_label_columns(
    tmp_path: Path,
) -> None:
    summary = write_tickets(tmp_path / "tickets.csv", n=300)
    _, relevant = make_tickets(300)
    tickets = open_dataset(str(tmp_path / "tickets.csv"), Reading(labels=["is_*"]))
    answers = tickets.known_answers()
    assert answers.kind == "answers"
    assert summary["tickets"] == len(relevant) == 300
    assert not (answers.excluded & relevant).any() and not (answers.confirmed & ~relevant).any()
    assert answers.asked is not None and 0.2 < answers.asked.mean() < 0.3
    assert tickets.items is not None and tickets.items[0] == "T-1000"


def test_tickets_of_a_seed_are_the_same_and_of_another_others() -> None:
    first, again, other = (make_tickets(50, seed)[0] for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert (first["body"] != other["body"]).any()


def test_a_table_is_not_written_to_a_folder_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="absent"):
        write_tickets(tmp_path / "absent" / "tickets.csv", n=10)
