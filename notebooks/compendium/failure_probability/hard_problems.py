"""Problems on which algorithms might fail often, and where a search looks for them (notebook 10)."""

import math
from typing import NamedTuple

import numpy as np

from compendium.shared import figures
from ebr.theory.problems import Bernoulli, Gaussian, Problem

JUST_ABOVE = 1 + 1e-6  # a gap of ε, not less by floating-point rounding
EDGE = 1e-4  # how close to 0 or 1 a mean may be


class Hard(NamedTuple):
    """A problem where failures might hide: the best arm, two groups of stepping stones, wrong arms at ε.

    The best arm is the last: most algorithms give a tie to the arm that comes first.

    Attributes
    ----------
    deadline, n_arms, epsilon
        T, n and ε.
    top
        The best arm's mean.
    first, first_gap, second, second_gap
        How many arms have this gap (in units of ε); all others have the gap ε, just wrong.
    """

    deadline: int
    n_arms: int
    epsilon: float
    top: float
    first: int = 0
    first_gap: float = 0.5
    second: int = 0
    second_gap: float = 0.5

    def problem(self, gaussian: bool = False) -> Problem:
        """The problem itself."""
        wrong = self.n_arms - 1 - self.first - self.second
        gaps = np.array([self.first_gap, self.second_gap, JUST_ABOVE, 0])
        means = self.top - gaps.repeat([self.first, self.second, wrong, 1]) * self.epsilon
        return Gaussian(means, 0.5) if gaussian else Bernoulli(means)

    def centred(self) -> "Hard":
        """The same gaps around ½: with Gaussian rewards only differences of means count."""
        return self._replace(top=0.5 + self.epsilon / 2).tidy()

    def tidy(self) -> "Hard":
        """The same place in a normal form: a group without arms has a gap of ½, all means lie in (0, 1).

        Numbers are rounded to digits on which all processors agree, since the problem seeds the races.
        """
        epsilon = figures.significant(self.epsilon)
        return self._replace(
            epsilon=epsilon,
            top=figures.significant(max(self.top, epsilon * JUST_ABOVE + EDGE)),
            first_gap=figures.significant(self.first_gap) if self.first else 0.5,
            second_gap=figures.significant(self.second_gap) if self.second else 0.5,
        )


class Space(NamedTuple):
    """Where a search looks: ε in a range, n from 2 to `most_arms` and T from 1 to `latest`."""

    least: float
    largest: float
    most_arms: int = 100
    latest: int = 15

    def fixed(self) -> list[Hard]:
        """Plain places: all other arms at ε; few arms and many, one round and many, ε large and small."""
        return [
            Hard(deadline, n_arms, epsilon, 0.5).centred()
            for n_arms in sorted({min(n, self.most_arms) for n in (2, 3, self.most_arms)})
            for deadline in sorted({1, min(2, self.latest), self.latest})
            for epsilon in sorted({self.least, self.largest})
        ]

    def anywhere(self, generator: np.random.Generator) -> Hard:
        """A random place: n and ε log-uniform, the means anywhere, often close to 0 or 1."""
        n_arms = int(np.exp(generator.uniform(math.log(2), math.log(self.most_arms + 1))))
        first, second, _ = generator.multinomial(n_arms - 2, generator.dirichlet([0.5, 0.5, 0.5]))
        first_gap, second_gap = generator.random(2)
        epsilon = math.exp(generator.uniform(math.log(self.least), math.log(self.largest)))
        # How far the worst arm is from 0, or the best from 1.
        edge = 10.0 ** generator.uniform(math.log10(EDGE), math.log10((1 - epsilon) / 2))
        top = float(generator.choice([epsilon * JUST_ABOVE + edge, 1 - edge]))
        deadline = int(generator.integers(1, self.latest + 1))
        return Hard(deadline, n_arms, epsilon, top, int(first), first_gap, int(second), second_gap).tidy()

    def near(self, place: Hard, generator: np.random.Generator) -> Hard:
        """A random change of a place: some of its numbers are taken from another place."""
        other = self.anywhere(generator)._asdict()
        changed = place._replace(**{name: value for name, value in other.items() if generator.random() < 0.3})
        room = changed.n_arms - 2
        first = min(changed.first, room)
        return changed._replace(first=first, second=min(changed.second, room - first)).tidy()
