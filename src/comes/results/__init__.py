"""Results of experiments: what decides one, what it holds, and the files that they are kept in.

This room knows no metric by name: a result holds the metrics that were computed when it was made,
and one that it lacks is NaN.

A task keeps its result in `RESULT_FILE`, or its error in `ERROR_FILE`. `SweepKey` names what an
experiment may vary.
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
from comes.results.task_spec import DataSpec, SearchSpec, SweepKey, TaskSpec

__all__ = [
    "ERROR_FILE",
    "RESULT_FILE",
    "DataSpec",
    "Degenerate",
    "HammingByCut",
    "Names",
    "RepeatResult",
    "Result",
    "SearchSpec",
    "Size",
    "SweepKey",
    "TaskSpec",
    "TrueRisk",
    "read_errors",
    "read_results",
    "write_result",
]
