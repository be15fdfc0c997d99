"""The share of a component in a mixture, by three estimators."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from comes.priors.mixtures import (
    _choose_kernel,
    _measure_distance,
    _project_on_simplex,
    bbe,
    dedpul,
    km2,
)

Sample = npt.NDArray[np.float64]


def samples(kappa: float, n: int = 4000, seed: int = 0, gap: float = 6.0) -> tuple[Sample, Sample]:
    """Return scores of the component, and of a mixture that it has a share in."""
    rng = np.random.default_rng(seed)
    is_component = rng.random(n) < kappa
    mixture = rng.normal(size=n) + gap * is_component
    return rng.normal(size=n // 2) + gap, mixture


def test_a_component_that_stands_apart_is_found() -> None:
    for kappa in (0.2, 0.5, 0.9):
        component, mixture = samples(kappa)
        assert bbe(component, mixture) == pytest.approx(kappa, abs=0.05)
        assert dedpul(component, mixture) == pytest.approx(kappa, abs=0.08)


def test_km2_finds_it_too() -> None:
    """With 80 and 160 points it is uncertain, hence the mean over three samples."""
    for kappa in (0.2, 0.8):
        drawn = [samples(kappa, n=160, seed=seed) for seed in range(3)]
        found = [km2(component, mixture) for component, mixture in drawn]
        assert np.mean(found) == pytest.approx(kappa, abs=0.12)


def test_km2_has_another_threshold_where_points_are_few() -> None:
    """The slope never passes 1 / sqrt(m) of three points; with twenty the rule KM1 is too low."""
    drawn = [samples(0.8, n=30, seed=seed) for seed in range(4)]
    assert max(km2(component[:3], mixture) for component, mixture in drawn) < 0.7
    drawn = [samples(0.5, n=40, seed=seed, gap=1.0) for seed in range(4)]
    assert np.mean([km2(component, mixture) for component, mixture in drawn]) > 0.4


def test_km2_cannot_go_beyond_seven_eighths() -> None:
    component, mixture = samples(0.98, n=120)
    assert km2(component, mixture) <= 7 / 8 + 0.01


def test_bbe_is_the_lowest_penalised_ratio_written_as_loops() -> None:
    component, mixture = samples(0.4, n=200, gap=2.0)
    noise = sum(np.sqrt(np.log(4 / 0.1) / (2 * len(x))) for x in (component, mixture))
    for gamma in (0.01, 5.0):
        best, ratio_at_best = np.inf, 1.0
        for c in component:
            inside, everything = np.mean(component >= c), np.mean(mixture >= c)
            value = everything / inside + (1 + gamma) / inside * noise
            if value < best:
                best, ratio_at_best = float(value), float(everything / inside)
        assert bbe(component, mixture, gamma=gamma) == pytest.approx(min(1, ratio_at_best))


def test_equal_samples_are_the_component() -> None:
    rng = np.random.default_rng(0)
    same = rng.normal(size=500)
    assert bbe(same, same) == pytest.approx(1, abs=0.05)
    assert dedpul(same, same) == pytest.approx(1, abs=0.15)
    assert dedpul(np.zeros(5), np.zeros(9)) == 1
    assert km2(np.zeros(5), np.zeros(9)) == 1


def test_the_kernel_is_the_gaussian_that_separates_the_samples_best_written_as_loops() -> None:
    points = np.array([[i, (5 * i) % 7] for i in range(9)], dtype=float)  # sums without rounding
    difference = np.repeat([1 / 5, -1 / 4], [5, 4])
    gaps = np.array([[((x - y) ** 2).sum() for y in points] for x in points])
    median = np.median([gaps[i, k] for i in range(9) for k in range(9) if i != k])
    best: tuple[float, Sample] = (-1.0, gaps)
    for factor in (10**-1, 10**-0.5, 1, 10**0.5, 10):
        kernel = np.exp(-gaps / (2 * factor**2 * median))
        distance = math.sqrt(
            sum(difference[i] * kernel[i, k] * difference[k] for i in range(9) for k in range(9))
        )
        best = max(best, (distance, kernel), key=lambda one: one[0])
    kernel, distance = _choose_kernel(points, difference)
    assert distance == pytest.approx(best[0])
    np.testing.assert_allclose(kernel, best[1])


def test_the_nearest_distribution() -> None:
    np.testing.assert_allclose(_project_on_simplex(np.array([0.2, 0.3, 0.5])), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(_project_on_simplex(np.array([5.0, 0.0, -3.0])), [1, 0, 0])
    np.testing.assert_allclose(_project_on_simplex(np.array([1.0, 1.0])), [0.5, 0.5])
    kernel = np.eye(3)
    target = np.array([1.5, -0.5, 0.0])
    assert _measure_distance(kernel, target, 1.0) == pytest.approx(np.sqrt(0.5))
