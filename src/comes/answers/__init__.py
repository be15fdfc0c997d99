"""What was said about pairs of item and label: answers, candidates, complementary labels.

An answer is "no" (surely irrelevant), "yes" (surely relevant) or "maybe"; about most pairs nobody
was asked. A *candidate matrix* is what is left where only the "no" is known: a bool array of shape
(n_samples, n_labels), True where a label is still possible, False where it is *excluded*.
Complementary labels state the same the other way round.

`BoolMatrix` is the type of matrices, `Kind` names what a pair without an answer means.
"""

from comes.answers.answer_matrix import Answers
from comes.answers.answer_views import Kind
from comes.answers.draws import Drawn, draw_questions, find_inclusion
from comes.answers.indicators import (
    BoolMatrix,
    as_candidates,
    as_indicators,
    as_relevant,
    check_relevant_inside,
    from_complementary,
    from_sets,
    keep_one_excluded,
    place_sets,
    refuse_outside,
    to_sets,
)
from comes.answers.label_names import check_names, match_names
from comes.answers.leanings import (
    AnswerRates,
    answer_evidence,
    posterior_probability,
    state_evidence,
)
from comes.answers.paired_frames import check_paired
from comes.answers.people import LongAnswers
from comes.answers.questions import (
    Questions,
    choose_questions,
    expected_bits,
    spread_over_labels,
)
from comes.answers.shares import Share, estimate_share, pool_shares
from comes.answers.states import State

__all__ = [
    "AnswerRates",
    "Answers",
    "BoolMatrix",
    "Drawn",
    "Kind",
    "LongAnswers",
    "Questions",
    "Share",
    "State",
    "answer_evidence",
    "as_candidates",
    "as_indicators",
    "as_relevant",
    "check_names",
    "check_paired",
    "check_relevant_inside",
    "choose_questions",
    "draw_questions",
    "estimate_share",
    "expected_bits",
    "find_inclusion",
    "from_complementary",
    "from_sets",
    "keep_one_excluded",
    "match_names",
    "place_sets",
    "pool_shares",
    "posterior_probability",
    "refuse_outside",
    "spread_over_labels",
    "state_evidence",
    "to_sets",
]
