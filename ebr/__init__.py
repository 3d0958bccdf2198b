"""Elastic Batch Racing: PAC best arm identification under a deadline.

>>> import ebr
>>> race = ebr.ElasticBatchRacing(deadline=15, epsilon=0.01, delta=0.01)
>>> result = ebr.simulate(race, ebr.setup_1(), runs=100, seed=1)
>>> bool(result.correct(epsilon=0.01).all())
True
"""

from ebr.baselines import AggressiveElimination, DeltaElimination, Passive, SequentialRacing
from ebr.journal import JournalError
from ebr.planning import plan
from ebr.problems import Bernoulli, Gaussian, setup_1, setup_2
from ebr.race import Race
from ebr.racing import ElasticBatchRacing
from ebr.scheduling import minimax_overpull, minimax_schedule, overpull
from ebr.sharp import SharpElasticBatchRacing
from ebr.simulation import simulate, trace
from ebr.sweeps import Point, sweep

__all__ = [
    "AggressiveElimination",
    "Bernoulli",
    "DeltaElimination",
    "ElasticBatchRacing",
    "Gaussian",
    "JournalError",
    "Passive",
    "Point",
    "Race",
    "SequentialRacing",
    "SharpElasticBatchRacing",
    "minimax_overpull",
    "minimax_schedule",
    "overpull",
    "plan",
    "setup_1",
    "setup_2",
    "simulate",
    "sweep",
    "trace",
]
