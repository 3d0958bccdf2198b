"""A control arm and futility: whether any arm can still be better than the control by a margin.

In sharp EBR, with probability 1 − δ, no test of "the best arm is better than arm j by as much as it is" errs
in any round, whatever j. Futility is such a test, with j the control: it holds on the same event, and costs
nothing of δ. On the event the best arm is never dropped, so survivors alone need be tested.
"""

import numpy as np

from ebr.arrays import BoolArray, FloatArray
from ebr.theory.divergence import pair_divergence
from ebr.validation import in_unit_interval, whole


def checked_control(
    control: int | None, margin: float | None, epsilon: float, k: int
) -> tuple[int | None, float | None]:
    """Return the control's number and the margin, ε if left out; raise ValueError if they cannot be."""
    if control is None:
        if margin is not None:
            raise ValueError(f"margin must be left out where there is no control, got {margin!r}")
        return None, None
    if k > 1:
        raise ValueError(f"k must be 1 where there is a control, got {k}")
    margin = epsilon if margin is None else in_unit_interval("margin", margin)
    if margin < epsilon:
        raise ValueError(f"margin must be at least epsilon, {epsilon}, got {margin}")
    return whole("control", control, 0), margin


def check_control_among(control: int | None, n_arms: int) -> None:
    """Raise ValueError if there is a control that is none of n arms."""
    if control is not None and control >= n_arms:
        raise ValueError(f"control must lie in 0 … {n_arms - 1}, the arms' numbers, got {control}")


def futile(
    means: tuple[FloatArray, FloatArray],
    margin: float,
    ratio: float | None = None,
    width: float | None = None,
) -> BoolArray:
    """Whether no other survivor can be better than the control by the margin.

    Parameters
    ----------
    means
        The control's, −∞ if it was dropped, and the largest of the other survivors', of equally many rewards.
    margin
        What is tested: "the other is better by the margin, or more".
    ratio, width
        By which tests: the likelihood ratio of rewards in [0, 1] is above `ratio`, in nats for a pair of
        pulls; or the difference of the means and the margin together are above `width`.
    """
    control, other = means
    found = np.zeros(len(control), dtype=bool)
    going_on = np.isfinite(control)
    if ratio is not None:
        ahead = going_on & (control > other - margin)
        found |= ahead & (pair_divergence(control, other, margin) > ratio)
    if width is not None:
        behind = np.subtract(control, other, out=np.full(len(control), -np.inf), where=going_on)
        found |= behind > width - margin
    return found
