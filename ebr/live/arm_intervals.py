"""Which intervals a race may report of its arms: by what is known of its rewards, and by its algorithm."""

from dataclasses import Field, fields, is_dataclass
from typing import Any

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination
from ebr.algorithms.game import Algorithm
from ebr.algorithms.passive import Passive
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.rewards import Support
from ebr.models import IN_UNIT
from ebr.theory.intervals import Simultaneous

# After a round an arm's count is one of T numbers that are fixed before the first reward; see Simultaneous.
ON_A_GRID = (
    AggressiveElimination,
    ElasticBatchRacing,
    Passive,
    PausingElasticBatchRacing,
    SharpElasticBatchRacing,
)
WORDS = {
    "exact": "exact (Clopper–Pearson) intervals",
    "KL": "Chernoff (KL) intervals",
    "normal": "normal intervals",
    "Hoeffding": "Hoeffding intervals",
}


def intervals_of(
    algorithm: Algorithm,
    n_arms: int,
    told: str | None,
    support: Support,
    width: float = 1.0,
    losses: bool = False,
) -> Simultaneous | None:
    """Choose the intervals of a race's arms; None if its algorithm has no δ to be shared among them.

    Parameters
    ----------
    algorithm, n_arms
        What is raced, and on how many arms.
    told
        What is known of the rewards, as the journal has it; None for journals that do not say.
    support
        The closed interval in which every reward lies, or None.
    width
        Of what is 1 to the algorithm, in the rewards' units.
    losses
        Whether rewards were lost for reasons that have nothing to do with them. Counts are then fixed given
        which, but for arms that pause: how often one was pulled depends on where it paused.
    """
    parameters, sigma = parameters_of(algorithm), algorithm.sigma * width
    if "delta" not in parameters:
        return None
    fixed = isinstance(algorithm, ON_A_GRID) and not (
        losses and isinstance(algorithm, PausingElasticBatchRacing)
    )
    method = _method(sigma, parameters.get("rewards"), told, support)
    looks = algorithm.deadline if fixed else None
    return Simultaneous(method, parameters["delta"], n_arms, looks, support, sigma)


def parameters_of(algorithm: Algorithm) -> dict[str, Any]:
    """The fields of the dataclass that an algorithm is, by custom."""
    known: tuple[Field[Any], ...] = fields(algorithm) if is_dataclass(algorithm) else ()
    return {each.name: getattr(algorithm, each.name) for each in known}


def in_unit(support: Support) -> bool:
    """Whether rewards lie in [0, 1], so that nothing that is made for normal ones is to be believed."""
    return support is not None and support[0] >= 0 and support[1] <= 1


def _method(sigma: float, assumed: str | None, told: str | None, support: Support) -> str:
    """By what is known: the journal has the last word, as what it says is enforced."""
    if told == "Bernoulli":
        return "exact"
    if "Gaussian" in (told, assumed) and told not in IN_UNIT and not in_unit(support):
        return "normal"
    # A smaller σ says more of the rewards than their support does.
    if support is not None and sigma >= (support[1] - support[0]) / 2:
        return "KL"
    return "Hoeffding"


def said(intervals: Simultaneous) -> str:
    """How the intervals are to be read, in a sentence or two."""
    if intervals.looks is None:
        share = "a union over all counts of pulls that there might be"
    else:
        each = intervals.delta / (intervals.n_arms * intervals.looks)
        share = f"{intervals.n_arms} arms × {intervals.looks} rounds, each at level 1 − {each:.2g}"
    return (
        f"{WORDS[intervals.method]}, which hold for all arms and all rounds at once with probability at"
        f" least {1 - intervals.delta:g} ({share}): also for the arm that was selected, and whenever the race"
        " is looked at"
    )
