"""Multi-label classification from answers, candidate labels and complementary labels.

The names below are loaded on first use, so that importing `comes` stays cheap; those of a package
come from it: ``from comes.risks import hamming_risk``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.answers import AnswerRates, Answers
    from comes.errors import ComesError, ComesWarning
    from comes.estimator import (
        CandidateClassifier,
        CorrectedClassifier,
        choose_classifier,
        cross_fit,
    )
    from comes.images import ImageClassifier, load_model
    from comes.priors import CleanSample, estimate_answer_rates, estimate_class_prior

__version__ = "1.0.0"
__all__ = [
    "AnswerRates",
    "Answers",
    "CandidateClassifier",
    "CleanSample",
    "ComesError",
    "ComesWarning",
    "CorrectedClassifier",
    "ImageClassifier",
    "choose_classifier",
    "cross_fit",
    "estimate_answer_rates",
    "estimate_class_prior",
    "load_model",
]
PACKAGES = {
    "answers": ("AnswerRates", "Answers"),
    "errors": ("ComesError", "ComesWarning"),
    "estimator": ("CandidateClassifier", "CorrectedClassifier", "choose_classifier", "cross_fit"),
    "images": ("ImageClassifier", "load_model"),
    "priors": ("CleanSample", "estimate_answer_rates", "estimate_class_prior"),
}


def __getattr__(name: str) -> Any:
    for package, names in PACKAGES.items():
        if name in names:
            return getattr(import_module(f"comes.{package}"), name)
    raise AttributeError(f"module 'comes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
