"""What a risk is made of, beside scores and answers: what is known, and options."""

from dataclasses import dataclass
from typing import Any, Literal

from comes.answers import AnswerRates


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a method may know beyond scores and candidates; None means not given or not needed.

    It carries the parameters of an estimator into the first stage, and what is found there into the
    risk and the stored model.

    Examples
    --------
    >>> Knowledge(class_prior=[0.2, 0.4]).flip_rate is None
    True
    """

    class_prior: Any = None  # pi, (q,)
    flip_rate: Any = None  # rho, (q,); "class_prior" asks for the rates that the prior implies
    transition: Any = None  # T, (q, q)
    exclude_rate: Any = None  # p, (q,), given for candidates
    no_rate: Any = None  # a, or p for candidates, (q,)
    yes_rate: Any = None  # b, (q,); 0 where yes cannot be said
    mistake_rate: float = 0.0  # f
    # Standard error of an estimated class prior, (q,), NaN where it is not known; None if given.
    class_prior_error: Any = None
    people: Any = None  # a and b of every person who has their own, by name

    @property
    def rates(self) -> AnswerRates:
        """The rates of answers, where they are known."""
        people = self.people or {}
        return AnswerRates(self.no_rate, self.yes_rate, self.mistake_rate, people=people)


@dataclass(frozen=True, eq=False)
class RiskOptions:
    """How a risk is computed, apart from what it knows.

    Examples
    --------
    >>> RiskOptions(flood_level=0.5).corrected
    True
    """

    exclude_share: Any = None  # n_j / n of the data set, (q,); None for the batch's own
    asked_share: Any = None  # likewise of the rows that were asked about; None if not known
    label_weight: Any = None  # what the losses of a label are multiplied by, (q,)
    prior_weight: float = 0.0  # of the penalty that keeps mean probabilities near the class prior
    flood_level: float | Literal["auto"] = "auto"  # beta; auto is a rule of the class prior
    corrected: bool = True  # False: the estimate without the correction that training needs
