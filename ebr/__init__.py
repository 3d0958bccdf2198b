"""Elastic Batch Racing: PAC best arm identification under a deadline.

>>> import ebr
>>> race = ebr.ElasticBatchRacing(deadline=15, epsilon=0.01, delta=0.01)
>>> result = ebr.simulate(race, ebr.setup_1(), runs=100, seed=1)
>>> bool(result.correct(epsilon=0.01).all())
True
"""

from ebr.algorithms.budgeted import BudgetedElimination, SequentialHalving, SuccessiveRejects
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
from ebr.algorithms.pair import ElasticPair
from ebr.algorithms.passive import Passive
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.journal import JournalError
from ebr.live.operating_characteristics import operating_characteristics
from ebr.live.plan import plan
from ebr.live.race import Race
from ebr.simulation.simulate import simulate, trace
from ebr.simulation.sweep import Point, sweep
from ebr.theory.problems import Bernoulli, Gaussian, setup_1, setup_2
from ebr.theory.schedules import minimax_overpull, minimax_schedule, overpull

__all__ = [
    "AggressiveElimination",
    "Bernoulli",
    "BudgetedElimination",
    "DeltaElimination",
    "ElasticBatchRacing",
    "ElasticPair",
    "Gaussian",
    "JournalError",
    "Passive",
    "PausingElasticBatchRacing",
    "Point",
    "Race",
    "SequentialHalving",
    "SequentialRacing",
    "SharpElasticBatchRacing",
    "SuccessiveRejects",
    "minimax_overpull",
    "minimax_schedule",
    "operating_characteristics",
    "overpull",
    "plan",
    "setup_1",
    "setup_2",
    "simulate",
    "sweep",
    "trace",
]
