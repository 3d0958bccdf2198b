"""The race that is planned: the smallest ε, or δ, that a budget of pulls buys; with a control or without."""

from bisect import bisect_left
from dataclasses import replace

from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.typical import Planned, pulls_so_far
from ebr.validation import positive, shown, whole

LARGEST = 0.999  # ε or δ that a budget may buy
DECADES = 9  # of ε or δ below 1 among which is sought what a budget buys
MOST_BUDGET = 10**12  # all counts that a search comes to are exact


def check_budget(budget: int, n_arms: int, deadline: int) -> None:
    """Raise ValueError unless the budget is a number of pulls that can feed every arm in every round."""
    if not whole("budget", budget, 1) <= MOST_BUDGET:
        raise ValueError(f"budget must be at most {MOST_BUDGET}, got {shown(budget)}")
    if budget < n_arms * deadline:
        rounds = f"{deadline} rounds" if deadline > 1 else "one round"
        raise ValueError(
            f"budget must be at least {n_arms * deadline} for {rounds} on {n_arms} arms, got {budget}"
        )


def affordable(race: Planned, bought: str, n_arms: int, budget: int) -> Planned:
    """The race with the smallest ε (or δ) of three digits that costs no more than the budget.

    What is returned was seen to fit, and the next smaller value not to, be the cost monotone or not.
    """

    def at(value: float) -> Planned:
        return replace(race, epsilon=value) if bought == "epsilon" else replace(race, delta=value)

    def most(value: float) -> int:
        return n_arms * int(pulls_so_far(at(value), n_arms)[-1])

    def fits(value: float) -> bool:
        return most(value) <= budget

    if (least := most(LARGEST)) > budget:
        raise ValueError(f"budget must be at least {least} for {bought} = {LARGEST}, got {budget}")
    decade = 1
    while decade < DECADES and fits(float(f"1e-{decade}")):
        decade += 1
    # The last is the decade before's first, which fits; or 1, for which LARGEST before it fits.
    values = [float(f"{digits}e-{decade + 2}") for digits in range(100, 1001)]
    return at(values[bisect_left(values, True, key=fits)])


def guarded(race: Planned, control: int | None, margin: float | None, width: float) -> Planned:
    """The race with a control, if there is one; the margin is in units of which `width` are 1 inside."""
    if control is None and margin is None:
        return race
    if not isinstance(race, SharpElasticBatchRacing):
        raise ValueError("algorithm must be 'sharp' where there is a control, got 'pausing'")
    inside = None if margin is None else positive("margin", margin) / width
    return replace(race, control=control, margin=inside)
