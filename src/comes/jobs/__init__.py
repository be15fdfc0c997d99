"""What the commands do, as functions: they return values and print nothing.

The command line and notebooks call the same jobs. Data comes as a `comes.datasets.Dataset`, or as
a path or name with a `comes.datasets.Reading` that says what the columns mean. A job that writes
checks the target first, so that a mistyped path does not cost a training.

The jobs below are loaded on first use: listing data sets does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.jobs.annotating import ProjectReport, add_questions, report_project
    from comes.jobs.benchmarking import ExperimentRun, WrittenReport, report_results, run_experiment
    from comes.jobs.data import (
        convert_dataset,
        describe_dataset,
        generate_candidates,
        list_datasets,
    )
    from comes.jobs.fitting import FittedModel, choose_model, fit_model
    from comes.jobs.judging import EstimatedQuality, JudgedMetric, Judgement, judge_model
    from comes.jobs.predicting import predict_items, show_examples
    from comes.jobs.prior_estimation import estimate_priors

_MODULES = {
    "EstimatedQuality": "judging",
    "ExperimentRun": "benchmarking",
    "FittedModel": "fitting",
    "JudgedMetric": "judging",
    "Judgement": "judging",
    "ProjectReport": "annotating",
    "WrittenReport": "benchmarking",
    "add_questions": "annotating",
    "choose_model": "fitting",
    "convert_dataset": "data",
    "describe_dataset": "data",
    "estimate_priors": "prior_estimation",
    "fit_model": "fitting",
    "generate_candidates": "data",
    "judge_model": "judging",
    "list_datasets": "data",
    "predict_items": "predicting",
    "report_project": "annotating",
    "report_results": "benchmarking",
    "run_experiment": "benchmarking",
    "show_examples": "predicting",
}

__all__ = [
    "EstimatedQuality",
    "ExperimentRun",
    "FittedModel",
    "JudgedMetric",
    "Judgement",
    "ProjectReport",
    "WrittenReport",
    "add_questions",
    "choose_model",
    "convert_dataset",
    "describe_dataset",
    "estimate_priors",
    "fit_model",
    "generate_candidates",
    "judge_model",
    "list_datasets",
    "predict_items",
    "report_project",
    "report_results",
    "run_experiment",
    "show_examples",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'comes.jobs' has no attribute {name!r}")
    return getattr(import_module(f"comes.jobs.{_MODULES[name]}"), name)
