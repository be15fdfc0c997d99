"""The plot of what was asked and said."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import Answers
from comes.errors import ComesError
from comes.plots import figure_of, plot_answers
from drawn_axes import points_of, rows_of, spans_of

NO = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]
YES = [[0, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]]
MAYBE = [[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
SAID = Answers(NO, YES, MAYBE, label_names=["sea", "sky", "cat"])


def widths(axes: Any) -> dict[str, list[float]]:
    return {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}


def test_the_shares_of_a_label_add_up_with_yes_at_the_left_and_no_at_the_right() -> None:
    axes = plot_answers(SAID)
    assert rows_of(axes) == ["sky", "sea", "cat"]  # the most yes first
    found = widths(axes)
    assert list(found) == ["yes", "maybe", "not asked", "no"]
    assert found["yes"] == [0.5, 0.25, 0] and found["no"] == [0.25, 0.5, 0]
    np.testing.assert_allclose(np.sum(list(found.values()), axis=0), 1)
    ends = [bar.get_x() + bar.get_width() for bar in axes.containers[-1]]
    np.testing.assert_allclose(ends, 1)


def test_hatches_tell_the_states_apart_in_grey() -> None:
    looks = [(bars[0].get_hatch(), bars[0].get_fill()) for bars in plot_answers(SAID).containers]
    faces = [bars[0].get_facecolor()[3] for bars in plot_answers(SAID).containers]
    assert len(set(zip(looks, faces, strict=True))) == 4


@pytest.mark.parametrize(
    ("answers", "states"),
    [
        (Answers(NO), ["still possible", "no"]),
        (Answers.from_positives(YES), ["ticked", "not ticked"]),
        (Answers(sparse.csr_array(NO), sparse.csr_array(YES)), ["yes", "maybe", "not asked", "no"]),
    ],
    ids=["candidates", "positives", "sparse"],
)
def test_every_kind_of_answers_has_its_states(answers: Answers, states: list[str]) -> None:
    found = widths(plot_answers(answers))
    assert list(found) == states
    np.testing.assert_allclose(np.sum(list(found.values()), axis=0), 1)


def test_class_priors_are_matched_by_name_and_drawn_with_their_bounds() -> None:
    names = ["cat", "sky", "sea"]
    table = pd.DataFrame({"label": names, "class_prior": [0.1, 0.5, 0.3]})
    axes = plot_answers(SAID, table.assign(lower=[0, 0.4, np.nan], upper=[0.2, 0.6, np.nan]))
    assert rows_of(axes) == ["sky", "sea", "cat"]
    assert points_of(axes, -1)[:, 0].tolist() == [0.5, 0.3, 0.1]
    assert spans_of(axes) == [[0.4, 0.6], [], [0.0, 0.2]]


def test_class_priors_of_other_labels_are_refused() -> None:
    with pytest.raises(ComesError, match="a number for each of 3 labels; got 2"):
        plot_answers(SAID, [0.1, 0.2])


def test_of_many_labels_those_with_the_most_answers_are_shown() -> None:
    codes = np.tril(np.ones((217, 217), dtype=np.int8))  # the first label has the most
    axes = plot_answers(Answers.of_codes(codes), most=5)
    assert sorted(rows_of(axes)) == ["0", "1", "2", "3", "4"]
    assert "5 of 217 labels: those with the most answers" in axes.get_xlabel()
    with pytest.raises(ComesError, match="most must be 1 or more"):
        plot_answers(SAID, most=0)


def test_a_plot_grows_with_its_labels_up_to_a_limit() -> None:
    heights = [
        figure_of(plot_answers(Answers(np.eye(q)))).get_size_inches()[1] for q in (1, 10, 40, 217)
    ]
    assert heights[0] < heights[1] < heights[2] == heights[3] < 11  # a page
