"""Results of experiments: what decides one, what it holds, and the files that they are kept in.

This room knows no metric by name: a result holds the metrics that were computed when it was made,
and one that it lacks is NaN.

A task keeps its result in `RESULT_FILE`, or its error in `ERROR_FILE`. `SearchCriterion` names what
a search chooses by, `SweepKey` what an experiment may vary, and `Sees` what a method may see of
answers.
"""

from comes.results.result import (
    Degenerate,
    HammingByCut,
    Names,
    RepeatResult,
    Result,
    Size,
    TrueRisk,
)
from comes.results.result_files import (
    ERROR_FILE,
    RESULT_FILE,
    read_errors,
    read_results,
    write_result,
)
from comes.results.task_spec import (
    AnswerSpec,
    DataSpec,
    SearchCriterion,
    SearchSpec,
    Sees,
    SweepKey,
    TaskSpec,
)

__all__ = [
    "ERROR_FILE",
    "RESULT_FILE",
    "AnswerSpec",
    "DataSpec",
    "Degenerate",
    "HammingByCut",
    "Names",
    "RepeatResult",
    "Result",
    "SearchCriterion",
    "SearchSpec",
    "Sees",
    "Size",
    "SweepKey",
    "TaskSpec",
    "TrueRisk",
    "read_errors",
    "read_results",
    "write_result",
]
