"""All methods: the risk of each, what it must know, where it may be used, its title.

`METHODS` holds a `MethodFamily` by name, and each family its variants. `DEFAULT` is the method of
the estimators and of the command line for candidates, `FOR_ANSWERS` for answers. `SUPERVISED` is
the one that takes its labels at their word: for true labels, and as the naive baseline. No other
room knows a method by name, and importing this one does not import torch, so that the command line
and reports can list the methods.
"""

from comes.methods.families import DEFAULT, FOR_ANSWERS, METHODS, SUPERVISED
from comes.methods.knowledge import Knowledge, RiskOptions
from comes.methods.lookup import (
    family_of,
    find_method,
    settings_of,
    table_rank,
    title_of_label,
)
from comes.methods.method import Method, MethodFamily

__all__ = [
    "DEFAULT",
    "FOR_ANSWERS",
    "METHODS",
    "SUPERVISED",
    "Knowledge",
    "Method",
    "MethodFamily",
    "RiskOptions",
    "family_of",
    "find_method",
    "settings_of",
    "table_rank",
    "title_of_label",
]
