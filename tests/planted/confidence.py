"""Notebook 02."""

import math
from functools import cache

from compendium import confidence

import ebr
from ebr.theory.confidence import sequential_deviation
from planted.algorithms import TooNarrow

PROBLEMS = {"Bernoulli": ebr.Bernoulli([0.5, 0.4]), "Gaussian": ebr.Gaussian([0.5, 0.5], 1.0)}


@cache
def exact(make=ebr.ElasticBatchRacing):
    return confidence.exact_misses(PROBLEMS, [1, 3], [0.1, 0.5], 0.2, make)


@cache
def measured(make=ebr.ElasticBatchRacing):
    return confidence.measured_misses(PROBLEMS, 2, 0.5, 0.3, 5000, 1, make)


PLANTED = {
    "C02": (
        lambda: confidence.coverage(exact(), measured()),
        lambda: confidence.coverage(exact(make=TooNarrow), measured()),
        lambda: confidence.coverage(exact(), measured(make=TooNarrow)),
        lambda: confidence.coverage(exact(), measured(), assumption=lambda n, t, d: math.log(n * t / d) >= 2),
    ),
    "C03": (
        lambda: confidence.concentration(1000),
        lambda: confidence.concentration(1000, factor=4 * (2 + math.log(2))),
        lambda: confidence.concentration(1000, factor=(2 + math.log(2)) / 4),
    ),
    "C36": (
        lambda: confidence.sequential_width(100, 15, 0.01),
        lambda: confidence.sequential_width(
            100, 15, 0.01, sequential=lambda *place: 0.8 * sequential_deviation(*place)
        ),
        lambda: confidence.sequential_width(
            100, 15, 0.01, sequential=lambda tau, *place: sequential_deviation(tau, *place) / tau**0.1
        ),
    ),
}
