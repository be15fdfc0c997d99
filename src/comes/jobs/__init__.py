"""What the commands do, as functions: they return values and print nothing.

The command line and notebooks call the same jobs. Data comes as a `comes.datasets.Dataset`, or as
a path or name with `comes.datasets.ReadOptions` that say what the columns mean. A job that writes
checks the target first, so that a mistyped path does not cost a training.

The jobs below are loaded on first use, and jobs that neither train nor predict do not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.jobs.active_jobs import ActiveRound, draw_round, learn_in_rounds
    from comes.jobs.annotate_jobs import (
        ProjectReport,
        add_questions,
        export_project,
        report_project,
    )
    from comes.jobs.check_jobs import check_assumption
    from comes.jobs.data_jobs import (
        convert_dataset,
        describe_dataset,
        generate_candidates,
        list_datasets,
        summarise_dataset,
    )
    from comes.jobs.doctor_jobs import Installation, check_installation
    from comes.jobs.experiment_jobs import ExperimentRun, run_experiment
    from comes.jobs.export_jobs import ExportedModel, export_model
    from comes.jobs.feature_jobs import ImageFeatures, compute_features
    from comes.jobs.fit_jobs import FittedModel, choose_model, fit_model
    from comes.jobs.generate_jobs import generate_answers
    from comes.jobs.judge_jobs import EstimatedQuality, JudgedMetric, Judgement, judge_model
    from comes.jobs.page_jobs import WrittenPage, report_model, report_rows, show_examples
    from comes.jobs.predict_jobs import (
        AskOptions,
        PageOptions,
        Predicted,
        predict_items,
        predict_more,
    )
    from comes.jobs.prior_jobs import estimate_priors
    from comes.jobs.report_jobs import WrittenReport, report_results
    from comes.jobs.split_jobs import Split, split_data
    from comes.jobs.stream_jobs import FittedStream, fit_stream
    from comes.jobs.top_jobs import JudgedTop, WrittenTop, judge_top, write_top

_MODULES = {
    "ActiveRound": "active_jobs",
    "AskOptions": "predict_jobs",
    "EstimatedQuality": "judge_jobs",
    "ExperimentRun": "experiment_jobs",
    "ExportedModel": "export_jobs",
    "FittedModel": "fit_jobs",
    "FittedStream": "stream_jobs",
    "ImageFeatures": "feature_jobs",
    "Installation": "doctor_jobs",
    "JudgedMetric": "judge_jobs",
    "JudgedTop": "top_jobs",
    "Judgement": "judge_jobs",
    "PageOptions": "predict_jobs",
    "Predicted": "predict_jobs",
    "ProjectReport": "annotate_jobs",
    "Split": "split_jobs",
    "WrittenPage": "page_jobs",
    "WrittenReport": "report_jobs",
    "WrittenTop": "top_jobs",
    "add_questions": "annotate_jobs",
    "check_assumption": "check_jobs",
    "check_installation": "doctor_jobs",
    "choose_model": "fit_jobs",
    "compute_features": "feature_jobs",
    "convert_dataset": "data_jobs",
    "describe_dataset": "data_jobs",
    "draw_round": "active_jobs",
    "estimate_priors": "prior_jobs",
    "export_model": "export_jobs",
    "export_project": "annotate_jobs",
    "fit_model": "fit_jobs",
    "fit_stream": "stream_jobs",
    "generate_answers": "generate_jobs",
    "generate_candidates": "data_jobs",
    "judge_model": "judge_jobs",
    "judge_top": "top_jobs",
    "learn_in_rounds": "active_jobs",
    "list_datasets": "data_jobs",
    "predict_items": "predict_jobs",
    "predict_more": "predict_jobs",
    "report_model": "page_jobs",
    "report_project": "annotate_jobs",
    "report_results": "report_jobs",
    "report_rows": "page_jobs",
    "run_experiment": "experiment_jobs",
    "show_examples": "page_jobs",
    "split_data": "split_jobs",
    "summarise_dataset": "data_jobs",
    "write_top": "top_jobs",
}

__all__ = [
    "ActiveRound",
    "AskOptions",
    "EstimatedQuality",
    "ExperimentRun",
    "ExportedModel",
    "FittedModel",
    "FittedStream",
    "ImageFeatures",
    "Installation",
    "JudgedMetric",
    "JudgedTop",
    "Judgement",
    "PageOptions",
    "Predicted",
    "ProjectReport",
    "Split",
    "WrittenPage",
    "WrittenReport",
    "WrittenTop",
    "add_questions",
    "check_assumption",
    "check_installation",
    "choose_model",
    "compute_features",
    "convert_dataset",
    "describe_dataset",
    "draw_round",
    "estimate_priors",
    "export_model",
    "export_project",
    "fit_model",
    "fit_stream",
    "generate_answers",
    "generate_candidates",
    "judge_model",
    "judge_top",
    "learn_in_rounds",
    "list_datasets",
    "predict_items",
    "predict_more",
    "report_model",
    "report_project",
    "report_results",
    "report_rows",
    "run_experiment",
    "show_examples",
    "split_data",
    "summarise_dataset",
    "write_top",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'comes.jobs' has no attribute {name!r}")
    return getattr(import_module(f"comes.jobs.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
