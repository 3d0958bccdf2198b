"""Notebook 02: the deviations and their coverage."""

import math
from functools import cache

from compendium.confidence import coverage

import ebr
from ebr.theory.confidence import half_width, sequential_deviation
from planted.algorithms import TooNarrow

PROBLEMS = {"Bernoulli": ebr.Bernoulli([0.5, 0.4]), "Gaussian": ebr.Gaussian([0.5, 0.5], 1.0)}


@cache
def exact(make=ebr.ElasticBatchRacing):
    return coverage.exact_misses(PROBLEMS, [1, 3], [0.1, 0.5], 0.2, make)


@cache
def measured(make=ebr.ElasticBatchRacing):
    return coverage.measured_misses(PROBLEMS, 2, 0.5, 0.3, 5000, 1, make)


PLANTED = {
    "C02": (
        lambda: coverage.coverage(exact(), measured()),
        lambda: coverage.coverage(exact(make=TooNarrow), measured()),
        lambda: coverage.coverage(exact(), measured(make=TooNarrow)),
        lambda: coverage.coverage(exact(), measured(), assumption=lambda n, t, d: math.log(n * t / d) >= 2),
    ),
    "C03": (
        lambda: coverage.concentration(1000),
        lambda: coverage.concentration(1000, factor=4 * (2 + math.log(2))),
        lambda: coverage.concentration(1000, factor=(2 + math.log(2)) / 4),
    ),
    "C36": (
        lambda: coverage.sequential_width(100, 15, 0.01),
        lambda: coverage.sequential_width(
            100, 15, 0.01, sequential=lambda *place: 0.8 * sequential_deviation(*place)
        ),
        lambda: coverage.sequential_width(
            100, 15, 0.01, sequential=lambda tau, *place: sequential_deviation(tau, *place) / tau**0.1
        ),
    ),
    "C54": (
        coverage.sequential_guarantee,
        lambda: coverage.sequential_guarantee(lambda *place: 0.5 * sequential_deviation(*place)),
        # A bound that holds at a single count only.
        lambda: coverage.sequential_guarantee(
            lambda tau, n, d, s: half_width("Hoeffding", tau, 2 * (d / (6 * n)) ** 2, s)
        ),
    ),
}
