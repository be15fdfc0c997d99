"""Class priors and rates estimated in a few steps, for tests that are not about how well."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from comes.priors import rate_model


@contextmanager
def quick_priors(steps: int = 20) -> Iterator[None]:
    """Train the small models behind estimates for so many steps only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate_model, "MIN_STEPS", steps)
        patch.setattr(rate_model, "MIN_EPOCHS", 1)
        yield
