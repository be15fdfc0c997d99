"""Multi-label classification from candidate labels and complementary labels.

The rooms are public: ``from comes.risks import hamming_risk``. The names below are
loaded on first use, so that importing `comes` stays cheap.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.answers import Answers
    from comes.estimator import CandidateClassifier, ImageClassifier
    from comes.priors import estimate_class_prior

__version__ = "1.0.0"
__all__ = ["Answers", "CandidateClassifier", "ImageClassifier", "estimate_class_prior"]


def __getattr__(name: str) -> Any:
    if name == "Answers":
        from comes.answers import Answers

        return Answers
    if name in ("CandidateClassifier", "ImageClassifier"):
        from comes import estimator

        return getattr(estimator, name)
    if name == "estimate_class_prior":
        from comes.priors import estimate_class_prior

        return estimate_class_prior
    raise AttributeError(f"module 'comes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
