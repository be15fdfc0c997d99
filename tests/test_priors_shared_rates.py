import math

import numpy as np
import pytest

from comes.priors.shared_rates import count_top, find_shared_rate, fit_line


def test_the_top_labels_of_a_half_are_counted_in_the_other_one() -> None:
    count = np.array([[5, 1, 2, 9], [3, 8, 6, 1]])
    asked = np.array([[10, 10, 10, 0], [20, 10, 30, 10]])
    said = total = 0
    for chosen, counted in ((0, 1), (1, 0)):
        labels = [j for j in range(4) if asked[chosen, j]]
        labels.sort(key=lambda j: -count[chosen, j] / asked[chosen, j])
        for j in labels[: math.ceil(len(labels) / 2)]:
            said += count[counted, j]
            total += asked[counted, j]
    assert count_top(count, asked, 1 / 2) == (said, total)


def test_the_rate_is_the_share_of_rare_labels_with_a_guess_of_their_relevant_rows() -> None:
    share = np.array([0.1, 0.2, 0.3, 0.4] * 10)
    asked = np.full((2, 40), 10**6)
    found = find_shared_rate((share * asked).astype(int), asked)
    np.testing.assert_allclose(found.rate, 0.4 / (1 - 1 / 41))
    np.testing.assert_allclose(found.lowest, 0.4, atol=0.001)
    assert not found.differs
    mean = (1 - 0.25 / found.rate[0]) / 2
    assert found.error == pytest.approx(found.rate[0] * math.hypot(1 / 41, mean), rel=1e-3)


def test_a_few_labels_far_above_the_others_make_rates_differ() -> None:
    share = np.array([0.2] * 60 + [0.3] * 4)
    asked = np.full((2, 64), 10**4)
    assert find_shared_rate((share * asked).astype(int), asked).differs


@pytest.mark.parametrize("given", [(None, None), (0.9, None), (None, 0.6)])
def test_labels_without_noise_lie_on_the_line_of_their_rates(
    given: tuple[float | None, float | None],
) -> None:
    prior, n = np.linspace(0.01, 0.9, 50), 10**7
    no = np.tile((0.9 * (1 - prior) * n).astype(int), (2, 1))
    yes = np.tile((0.6 * prior * n).astype(int), (2, 1))
    known = [None if rate is None else np.full(50, rate) for rate in given]
    line = fit_line(no, yes, n - no - yes, (known[0], known[1]))
    np.testing.assert_allclose(line.rates, [[0.9] * 50, [0.6] * 50], atol=1e-5)
    is_given = [rate is not None for rate in given]
    assert (np.diag(line.covariance)[is_given] == 0).all()
    assert not line.differs
