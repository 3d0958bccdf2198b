"""Elastic Batch Racing: PAC best arm identification under a deadline.

>>> import ebr
>>> race = ebr.ElasticBatchRacing(deadline=15, epsilon=0.01, delta=0.01)
>>> result = ebr.simulate(race, ebr.setup_1(), runs=100, seed=1)
>>> bool(result.correct(epsilon=0.01).all())
True
"""

from importlib import import_module
from importlib.util import find_spec

TYPE_CHECKING = False  # as typing has it, which takes half as long to load as all else: an interrupt before
# `ebr.__main__` has begun ends in a traceback
if TYPE_CHECKING:  # for whoever reads types; everybody else loads what is used, when it is used
    from ebr.algorithms.certified import CertifiedElasticBatchRacing
    from ebr.algorithms.elastic import ElasticBatchRacing
    from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
    from ebr.algorithms.passive import Passive
    from ebr.algorithms.pausing import PausingElasticBatchRacing
    from ebr.algorithms.sequential import SequentialRacing
    from ebr.algorithms.sharp import SharpElasticBatchRacing
    from ebr.algorithms.staked import StakedElasticBatchRacing
    from ebr.live.journal import JournalError
    from ebr.live.plan import plan
    from ebr.live.race import Race
    from ebr.live.search import RacingSearchCV
    from ebr.simulation.designs import certified_design
    from ebr.simulation.simulate import simulate, trace
    from ebr.simulation.sweep import Point, sweep
    from ebr.theory.problems import Bernoulli, Gaussian, setup_1, setup_2

__all__ = [
    "AggressiveElimination",
    "Bernoulli",
    "CertifiedElasticBatchRacing",
    "DeltaElimination",
    "ElasticBatchRacing",
    "Gaussian",
    "JournalError",
    "Passive",
    "PausingElasticBatchRacing",
    "Point",
    "Race",
    "RacingSearchCV",
    "SequentialRacing",
    "SharpElasticBatchRacing",
    "StakedElasticBatchRacing",
    "certified_design",
    "plan",
    "setup_1",
    "setup_2",
    "simulate",
    "sweep",
    "trace",
]

# Where each public name is from. Loading all of them takes ten times as long as loading numpy.
_HOMES = {
    "ebr.algorithms.certified": "CertifiedElasticBatchRacing",
    "ebr.algorithms.elastic": "ElasticBatchRacing",
    "ebr.algorithms.elimination": "AggressiveElimination, DeltaElimination",
    "ebr.algorithms.passive": "Passive",
    "ebr.algorithms.pausing": "PausingElasticBatchRacing",
    "ebr.algorithms.sequential": "SequentialRacing",
    "ebr.algorithms.sharp": "SharpElasticBatchRacing",
    "ebr.algorithms.staked": "StakedElasticBatchRacing",
    "ebr.live.journal": "JournalError",
    "ebr.live.plan": "plan",
    "ebr.live.race": "Race",
    "ebr.live.search": "RacingSearchCV",
    "ebr.simulation.designs": "certified_design",
    "ebr.simulation.simulate": "simulate, trace",
    "ebr.simulation.sweep": "Point, sweep",
    "ebr.theory.problems": "Bernoulli, Gaussian, setup_1, setup_2",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split(", ")}

if not TYPE_CHECKING:  # where a misspelt name is an error
    if find_spec("sklearn") is None:  # without which `from ebr import *` is to work
        __all__.remove("RacingSearchCV")

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return globals()[name]


def __dir__() -> list[str]:
    """The public names, loaded or not, beside what every module has."""
    return sorted({*globals(), *__all__})
