"""A clean sample: read, counted, and averaged with what was estimated."""

import numpy as np
import pandas as pd
import pytest

from comes.answers import AnswerRates, Answers, State
from comes.errors import ComesError
from comes.priors import CleanSample
from comes.priors.clean_sample import count_answer_rates, update_prior, update_rates

RNG = np.random.default_rng(0)
NAMES = ["sea", "sky", "sun"]
TRUTH = RNG.random((200, 3)) < [0.1, 0.3, 0.6]
POOLED = 10  # pairs of the mean over labels that join the count of a label


def test_a_prior_is_averaged_with_the_shares_by_precision() -> None:
    prior, error = np.array([0.2, 0.2, 0.2]), np.array([0.01, 0.1, np.nan])
    found, found_error = update_prior(prior, error, TRUTH)
    for j in range(3):
        share = (TRUTH[:, j].sum() + 0.5) / (len(TRUTH) + 1)
        variance = share * (1 - share) / len(TRUTH)
        precisions = np.array([0 if np.isnan(error[j]) else 1 / error[j] ** 2, 1 / variance])
        expected = precisions @ [prior[j], share] / precisions.sum()
        assert found[j] == pytest.approx(expected)
        assert found_error[j] == pytest.approx(1 / np.sqrt(precisions.sum()))


def test_a_prior_without_an_error_is_left_to_the_sample() -> None:
    found, _ = update_prior([0.9, 0.9, 0.9], None, TRUTH)
    np.testing.assert_allclose(found, (TRUTH.sum(axis=0) + 0.5) / (len(TRUTH) + 1))


def test_the_average_is_nearer_to_the_truth_than_either() -> None:
    """On average over draws, as the mean that is weighted by precision is."""
    rng, truth, error = np.random.default_rng(1), 0.3, 0.05
    guesses = truth + error * rng.normal(size=500)
    samples = rng.random((100, 500)) < truth
    sharp, _ = update_prior(guesses, np.full(500, error), samples)
    gap = abs(sharp - truth).mean()
    assert gap < abs(guesses - truth).mean()
    assert gap < abs(samples.mean(axis=0) - truth).mean()


def test_rates_are_counted_among_the_pairs_that_were_asked_at_random() -> None:
    codes = RNG.integers(0, 4, size=TRUTH.shape)
    chosen = RNG.random(TRUTH.shape) < 0.3
    answers = Answers.from_codes(codes, chosen=chosen)
    found = count_answer_rates(answers, TRUTH)
    for state, is_so, rates in (
        (State.NO, ~TRUTH, found.no_rate),
        (State.YES, TRUTH, found.yes_rate),
    ):
        among = is_so & (codes != State.NOT_ASKED) & ~chosen
        said = among & (codes == state)
        pooled = said.sum() / among.sum()
        for j in range(3):
            expected = (said[:, j].sum() + POOLED * pooled) / (among[:, j].sum() + POOLED)
            assert rates[j] == pytest.approx(expected)


def test_the_rate_of_candidates_is_the_exclude_rate() -> None:
    excluded = ~TRUTH & (RNG.random(TRUTH.shape) < 0.5)
    found = count_answer_rates(Answers.from_candidates(~excluded), TRUTH)
    assert abs(found.no_rate - excluded.sum() / (~TRUTH).sum()).max() < 0.1
    np.testing.assert_array_equal(found.yes_rate, 0)


def test_what_cannot_be_said_stays_so() -> None:
    half, zero = np.full(3, 0.5), np.zeros(3)
    rates = AnswerRates(half, zero, no_error=half / 10, yes_error=zero)
    counted = AnswerRates(half / 2, half, no_error=half / 10, yes_error=half / 10)
    sharp = update_rates(rates, counted)
    np.testing.assert_allclose(sharp.no_rate, 0.375)
    np.testing.assert_array_equal(sharp.yes_rate, 0)


def test_rates_without_an_error_are_left_to_the_count() -> None:
    half = np.full(3, 0.5)
    counted = AnswerRates(half / 2, half / 5, no_error=half / 10, yes_error=half / 10)
    sharp = update_rates(AnswerRates(half, half), counted)
    np.testing.assert_allclose(sharp.no_rate, half / 2)
    np.testing.assert_allclose(sharp.yes_rate, half / 5)


def test_nothing_to_count_leaves_the_estimate() -> None:
    half = np.full(3, 0.5)
    rates = AnswerRates(half, half, no_error=half / 10, yes_error=half / 10)
    nobody = Answers.from_codes(np.zeros(TRUTH.shape, dtype=int))
    sharp = update_rates(rates, count_answer_rates(nobody, TRUTH))
    np.testing.assert_array_equal(sharp.no_rate, half)
    np.testing.assert_array_equal(sharp.yes_rate, half)


def test_labels_are_matched_by_name() -> None:
    order = ["sun", "sea", "sky"]
    truth = pd.DataFrame(TRUTH, columns=NAMES)
    answers = Answers(no=~truth, yes=truth)
    sample = CleanSample.read((None, truth[order], answers), NAMES)
    np.testing.assert_array_equal(sample.relevant, TRUTH)
    assert sample.answers is not None
    np.testing.assert_array_equal(sample.answers.confirmed, TRUTH)
    as_named = CleanSample.read((None, truth[order], answers))
    assert as_named.answers is not None
    np.testing.assert_array_equal(as_named.relevant, truth[order])
    np.testing.assert_array_equal(as_named.answers.confirmed, truth[order])
    assert CleanSample.read(sample) is sample


def test_other_labels_are_refused() -> None:
    with pytest.raises(ComesError, match="clean must have the 2 labels of the answers; got 3"):
        CleanSample.read((None, TRUTH), NAMES[:2])
    with pytest.raises(ComesError, match="expected the labels 'sea', 'sky', 'rain'"):
        CleanSample.read((None, pd.DataFrame(TRUTH, columns=NAMES)), ["sea", "sky", "rain"])
