"""What the commands do, as functions: they return values and print nothing.

The command line and notebooks call the same jobs. Data comes as a `comes.datasets.Dataset`, or as
a path or name with `comes.datasets.ReadOptions` that say what the columns mean. A job that writes
checks the target first, so that a mistyped path does not cost a training.

The jobs below are loaded on first use, and jobs that neither train nor predict do not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.workflows.annotate import (
        ActiveRound,
        add_questions,
        draw_round,
        learn_in_rounds,
        report_project,
    )
    from comes.workflows.data import (
        convert_dataset,
        describe_dataset,
        generate_answers,
        generate_candidates,
        list_datasets,
        summarise_dataset,
    )
    from comes.workflows.doctor import Installation, check_installation
    from comes.workflows.experiment import (
        ExperimentRun,
        WrittenReport,
        report_results,
        run_experiment,
    )
    from comes.workflows.features import ImageFeatures, compute_features
    from comes.workflows.fit import FittedModel, FittedStream, choose_model, fit_model, fit_stream
    from comes.workflows.judge import (
        EstimatedQuality,
        JudgedMetric,
        JudgedTop,
        Judgement,
        WrittenPage,
        judge_model,
        judge_top,
        report_model,
        report_rows,
        show_examples,
    )
    from comes.workflows.predict import (
        AskOptions,
        ExportedModel,
        PageOptions,
        Predicted,
        WrittenTop,
        export_model,
        predict_items,
        predict_more,
        write_top,
    )
    from comes.workflows.priors import check_assumption, estimate_priors
    from comes.workflows.split import Split, split_data

_MODULES = {
    "ActiveRound": "annotate",
    "AskOptions": "predict",
    "EstimatedQuality": "judge",
    "ExperimentRun": "experiment",
    "ExportedModel": "predict",
    "FittedModel": "fit",
    "FittedStream": "fit",
    "ImageFeatures": "features",
    "Installation": "doctor",
    "JudgedMetric": "judge",
    "JudgedTop": "judge",
    "Judgement": "judge",
    "PageOptions": "predict",
    "Predicted": "predict",
    "Split": "split",
    "WrittenPage": "judge",
    "WrittenReport": "experiment",
    "WrittenTop": "predict",
    "add_questions": "annotate",
    "check_assumption": "priors",
    "check_installation": "doctor",
    "choose_model": "fit",
    "compute_features": "features",
    "convert_dataset": "data",
    "describe_dataset": "data",
    "draw_round": "annotate",
    "estimate_priors": "priors",
    "export_model": "predict",
    "fit_model": "fit",
    "fit_stream": "fit",
    "generate_answers": "data",
    "generate_candidates": "data",
    "judge_model": "judge",
    "judge_top": "judge",
    "learn_in_rounds": "annotate",
    "list_datasets": "data",
    "predict_items": "predict",
    "predict_more": "predict",
    "report_model": "judge",
    "report_project": "annotate",
    "report_results": "experiment",
    "report_rows": "judge",
    "run_experiment": "experiment",
    "show_examples": "judge",
    "split_data": "split",
    "summarise_dataset": "data",
    "write_top": "predict",
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
        raise AttributeError(f"module 'comes.workflows' has no attribute {name!r}")
    return getattr(import_module(f"comes.workflows.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
