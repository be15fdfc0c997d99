"""What the commands do, as functions for notebooks: they return values and print nothing.

Data is a `comes.datasets.Dataset`, or a path or name with `ReadOptions` for what columns mean. A
function that writes checks the target first, so that a mistyped path does not cost a training.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.workflows.data import convert_dataset
    from comes.workflows.experiment import run_experiment
    from comes.workflows.fit import fit_model
    from comes.workflows.judge import judge_model, report_model
    from comes.workflows.predict import export_model, predict_items
    from comes.workflows.priors import estimate_priors
    from comes.workflows.split import split_data

__all__ = [
    "convert_dataset",
    "estimate_priors",
    "export_model",
    "fit_model",
    "judge_model",
    "predict_items",
    "report_model",
    "run_experiment",
    "split_data",
]
MODULES = {
    "convert_dataset": "data",
    "estimate_priors": "priors",
    "export_model": "predict",
    "fit_model": "fit",
    "judge_model": "judge",
    "predict_items": "predict",
    "report_model": "judge",
    "run_experiment": "experiment",
    "split_data": "split",
}  # each is imported on first use: only some need torch


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'comes.workflows' has no attribute {name!r}")
    return getattr(import_module(f"comes.workflows.{MODULES[name]}"), name)
