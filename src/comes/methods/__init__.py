"""All methods: the risk of each, what it must know, where it may be used, its title.

`METHODS` holds a `MethodFamily` by name, and each family its variants. `DEFAULT` is the method of
the estimators and of the command line.
`SUPERVISED` is the one that takes its labels at their word: for true labels, and as the naive
baseline. `PUBLISHED` is the paper's, `AS_PUBLISHED` how it trains, and `PAPER_SETTINGS` all
settings of a classifier that trains so. No other room knows a method by name, and importing this
one does not import torch, so that the command line and reports can list the methods.
"""

from comes.methods.families import DEFAULT, METHODS, PUBLISHED, SUPERVISED
from comes.methods.knowledge import Knowledge, RiskOptions
from comes.methods.lookup import (
    family_of,
    find_method,
    settings_of,
    table_rank,
    title_of_label,
)
from comes.methods.method import AS_PUBLISHED, PAPER_SETTINGS, Method, MethodFamily

__all__ = [
    "AS_PUBLISHED",
    "DEFAULT",
    "METHODS",
    "PAPER_SETTINGS",
    "PUBLISHED",
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
