"""Elastic Batch Racing: PAC best arm identification under a deadline."""

from importlib import import_module
from importlib.util import find_spec

TYPE_CHECKING = False  # not typing's: an interrupt before `ebr.__main__` has begun ends in a traceback
if TYPE_CHECKING:  # for whoever reads types; everybody else loads what is used, when it is used
    from ebr.algorithms.baselines import AggressiveElimination, DeltaElimination, Passive, SequentialRacing
    from ebr.algorithms.certified import CertifiedElasticBatchRacing
    from ebr.algorithms.elastic import ElasticBatchRacing
    from ebr.algorithms.pausing import PausingElasticBatchRacing
    from ebr.algorithms.sharp import SharpElasticBatchRacing
    from ebr.algorithms.staked import StakedElasticBatchRacing
    from ebr.live.journal import JournalError
    from ebr.live.plan import plan
    from ebr.live.race import Race
    from ebr.live.search import RacingSearchCV
    from ebr.simulation.designs import certified_design
    from ebr.simulation.simulate import simulate
    from ebr.simulation.sweep import Point, sweep
    from ebr.theory.problems import Bernoulli, Gaussian, setup_1, setup_2

# Where each public name is from. Loading all of them takes ten times as long as loading numpy.
_HOMES = """
algorithms.baselines.AggressiveElimination algorithms.baselines.DeltaElimination algorithms.baselines.Passive
algorithms.baselines.SequentialRacing algorithms.certified.CertifiedElasticBatchRacing
algorithms.elastic.ElasticBatchRacing algorithms.pausing.PausingElasticBatchRacing
algorithms.sharp.SharpElasticBatchRacing algorithms.staked.StakedElasticBatchRacing live.journal.JournalError
live.plan.plan live.race.Race live.search.RacingSearchCV simulation.designs.certified_design
simulation.simulate.simulate simulation.sweep.Point simulation.sweep.sweep theory.problems.Bernoulli
theory.problems.Gaussian theory.problems.setup_1 theory.problems.setup_2
"""
_HOME_OF = {name: f"ebr.{home}" for home, _, name in (path.rpartition(".") for path in _HOMES.split())}
__all__ = sorted(_HOME_OF)

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
