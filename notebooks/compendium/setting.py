"""Figure 1's caption: what a deadline does to an easy arm."""

import numpy as np

from compendium.findings import Finding
from ebr.simulation.simulate import Simulation

__all__ = ["c46"]


def c46(passive: Simulation, sequential: Simulation, deadline: Simulation, arm: int, rounds: int) -> Finding:
    """Check C46: the easy arm is pulled most with T = 1, least with T = ∞, and by the deadline in between.

    The three are simulations with pulls per arm; means must differ by five standard errors (a false alarm
    has probability below 10⁻⁶).
    """
    means, errors = [], []
    for result in (passive, deadline, sequential):
        pulls = result.by_arm()[0][:, arm]
        means.append(pulls.mean())
        errors.append(pulls.std(ddof=1) / np.sqrt(len(pulls)))
    steps = -np.diff(means) > 5 * np.hypot(errors[1:], errors[:-1])
    on_time = int(deadline.rounds.max()) <= rounds
    figures = zip(("T = 1", f"T = {rounds}", "T = ∞"), means, errors, strict=True)
    words = ", ".join(f"{name} {mean:.0f} ± {error:.1f}" for name, mean, error in figures)
    evidence = (
        f"pulls of arm {arm + 1} (mean ± s.e. of {len(deadline.pulls)} runs): {words}; "
        f"at most {deadline.rounds.max()} rounds by the deadline, {sequential.rounds.min()} at least without"
    )
    return Finding("C46", bool(steps.all() and on_time), evidence)
