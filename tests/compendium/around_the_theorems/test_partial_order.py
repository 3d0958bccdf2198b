"""Notebook 18: random problems of each P_γ, and pairs in which the harder problem costs less."""

import numpy as np
from compendium.around_the_theorems import partial_order
from compendium.around_the_theorems.partition import easiest_complexity
from compendium.shared.cost_bounds import hardest_complexity, partition
from compendium.shared.problem_sets import inside_partition, nonempty_partitions
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(deadline=None)
@given(st.integers(2, 4), st.integers(1, 5), st.floats(0.01, 0.5), st.integers(0, 2**32))
def test_a_problem_drawn_inside_a_partition_has_its_index_and_a_complexity_between_its_ends(
    n_arms, deadline, epsilon, seed
):
    generator = np.random.default_rng(seed)
    for gamma in nonempty_partitions(n_arms, deadline):
        problem = inside_partition(gamma, epsilon, deadline, generator)
        assert tuple(partition(problem, epsilon, deadline)) == gamma
        ends = [end(gamma, epsilon, deadline) for end in (easiest_complexity, hardest_complexity)]
        assert ends[0] < problem.complexity(epsilon) <= ends[1] * (1 + 1e-12)  # attained below ε


def test_in_the_examples_the_harder_problem_costs_less_though_its_index_is_larger():
    (low, high), strict = (
        [partition(problem, *place) for problem in pair] for _, pair, *place in partial_order.overtaken()
    )
    assert (low <= high).all()
    assert (low < high).any()
    assert (strict[0] < strict[1]).all()
