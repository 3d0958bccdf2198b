"""Sharp EBR's bounds on its pulls: by hand, by plain loops, and against one another."""

import numpy as np
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.sharp_racing.sharp_bounds import elimination_rounds, sharp_problem_bound
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr


def test_an_arm_is_gone_after_as_many_rounds_as_widths_are_too_wide_for_it():
    generator = np.random.default_rng(1)
    for k in (1, 1, 2, 3, 5) * 20:
        problem = ebr.Bernoulli(generator.choice([0.1, 0.3, 0.5, 0.9], 6))
        widths = np.sort(generator.choice([0.05, 0.1, 0.2, 0.3], 5))[::-1]
        ranked, best = sorted(problem.means)[::-1], problem.top(k)
        gaps = [m - ranked[k] if i in best else ranked[k - 1] - m for i, m in enumerate(problem.means)]
        found = elimination_rounds(problem, 0.1, widths, k).tolist()
        for gap, last in zip(gaps, found, strict=True):
            reach = max(gap, min(gaps) + 0.1)
            assert last == min(sum(2 * width > reach for width in widths), 4)


@settings(max_examples=120, deadline=None)
@given(
    gaps=st.lists(st.floats(0, 1) | st.integers(0, 8).map(lambda j: 0.1 ** (j / 8)), min_size=1, max_size=6),
    sigma=st.floats(0.001, 2),
    rules=st.tuples(st.integers(1, 8), st.floats(0.01, 0.6), st.floats(0.001, 0.999)),
    how=st.tuples(st.sampled_from([0.5, 1]), st.sampled_from(["late", "equal"]), st.integers(1, 6)),
    rewards=st.sampled_from(["sub-Gaussian", "Gaussian"]),
)
def test_the_terms_stay_below_the_bound_in_h(gaps, sigma, rules, how, rewards):
    problem, (start, split, k) = ebr.Gaussian(1 - np.array([0.0, *gaps]), sigma), how
    n_arms, k = problem.n_arms, min(k, len(gaps))
    race = SharpElasticBatchRacing(*rules, sigma, rewards, start, split, k)
    last = elimination_rounds(problem, race.epsilon, race.deciding_widths(n_arms), k)
    bound = sharp_problem_bound(problem, race.epsilon, race.deadline, race.longest(n_arms), start, k=k)
    assert race.pulls_by_round(n_arms)[last].sum() <= bound * (1 + 1e-12)
