"""What a race's journal says of its rewards, in words."""

from itertools import pairwise

from ebr.algorithms.game import Algorithm
from ebr.live.arm_intervals import parameters_of
from ebr.live.journal import Line


def missing_in_words(lines: list[Line]) -> str:
    """How many rewards were missing, and why; nothing if none were."""
    short = [
        sum(ask["pulls"].values()) - sum(count for count, _ in tell["rewards"].values())
        for ask, tell in pairwise(lines)
        if "missing" in tell
    ]
    return f"{sum(short):,} rewards in {len(short)} round{'s'[: len(short) > 1]}, at random" if short else ""


def rewards_in_words(first: Line, algorithm: Algorithm, width: float) -> str:
    """What rewards are known or taken to be; `width` is what is 1 to the algorithm, in their units."""
    told, support, sigma = first.get("rewards"), first["support"], algorithm.sigma * width
    normal = "Gaussian" in (told, parameters_of(algorithm).get("rewards"))
    if first.get("blocks"):
        kind = f"normal with σ = {2**0.5 * sigma:g}" if normal else f"{2**0.5 * sigma:g}-sub-Gaussian"
        return f"in independent blocks; differences of arms within a block are {kind}"
    within = f"lies between {support[0]:g} and {support[1]:g}" if support else ""
    if told == "Bernoulli":
        each = f"{within} and is made 0 or 1 by lot" if first.get("rounding") else "is 0 or 1"
    elif support and sigma >= (support[1] - support[0]) / 2:
        each = within
    else:
        kind = f"is normal with σ = {sigma:g}" if normal else f"is {sigma:g}-sub-Gaussian"
        each = f"{kind} and {within}" if within else kind
    return f"independent; each {each}"
