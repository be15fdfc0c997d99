import numpy as np
import pytest

from comes.priors import add_prior_noise, count_class_prior


def test_the_prior_is_the_share_of_rows_that_a_label_is_relevant_to() -> None:
    relevant = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 1]])
    assert count_class_prior(relevant).tolist() == [0.25, 0.25, 1.0]


def test_noise_is_gaussian_and_clipped() -> None:
    noisy = add_prior_noise(np.full(20000, 0.5), sigma=0.1, seed=1)
    assert noisy.mean() == pytest.approx(0.5, abs=0.005)
    assert noisy.std() == pytest.approx(0.1, abs=0.005)
    wild = add_prior_noise(np.full(1000, 0.5), sigma=5.0)
    assert wild.min() == 0 and wild.max() == 0.999
