"""The dilemma against plain loops, the steps of the proof by hand, the slope of a known power."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium.two_rounds import randomised_rounds, two_round_price
from compendium.two_rounds.policies import Policy, complexity, pac_policy, worst_ratio

EPSILON, DELTA = 0.1, 0.05


def test_more_pulls_in_the_first_round_cost_easy_problems_and_spare_middling_ones():
    firsts, gaps = np.geomspace(5, 200, 5), np.append(0, np.linspace(EPSILON, 0.5, 200))
    table = two_round_price.horns(firsts, EPSILON, DELTA)
    assert table["easy"].to_numpy() == pytest.approx(firsts * (0.5 + EPSILON) ** 2, rel=1e-4)
    assert (np.diff(table["middling"]) < 0).all()
    for first, found in table[["first", "middling"]].itertuples(index=False):
        family = [pac_policy(first, share, EPSILON, DELTA) for share in np.linspace(0.01, 0.99, 50)]
        worst = [(2 * p.second * p.continues(gaps) / complexity(gaps, EPSILON)).max() for p in family]
        assert found == pytest.approx(min(worst), rel=0.02)


def test_the_steps_of_the_proof_by_hand():
    steps = two_round_price.proof_steps([0.01]).set_index("step")
    # On the middling problem H = 2/(0.11 + 0.01)², with a gap of ε + √ε; 1/50ε² = 200 pulls.
    middling = steps.loc["part 3: middling horn ≥ σ²/100ε"]
    assert middling["value"] == pytest.approx(200 * 0.12**2 / 2)
    assert middling["needed"] == pytest.approx(1)
    # On the easy one the gap is ½; 2 log 2/ε pulls.
    easy = steps.loc["part 3: easy horn ≥ σ²/100ε"]
    assert easy["value"] == pytest.approx(200 * math.log(2) * 0.51**2 / 2)
    assert steps.loc["part 2: log 2 ≥ KL of the first round", "margin"] == 0
    assert (steps["margin"] >= 0).all()
    assert len(two_round_price.proof_steps([0.1, 0.01])) == 3 + 2 * 4


def test_a_power_law_has_its_exponent():
    table = pd.DataFrame({"epsilon": [0.1, 0.01, 0.001]})
    table["ratio"] = 5 * table["epsilon"] ** -1.5 * table["epsilon"]  # `scaling` multiplies ratios by ε
    assert two_round_price.exponent(table, "ratio") == pytest.approx(-1.5)


def test_scaling_tells_of_the_policy_that_the_search_finds():
    policy = Policy(50.0, 600.0, 0.3)
    table = two_round_price.scaling(
        [EPSILON],
        DELTA,
        search=lambda e, d, chance: (policy, worst_ratio(policy, e, chance)),
        outcome=lambda e, d, ceiling: {"outcome": ceiling},
    )
    (row,) = table.to_dict("records")
    assert (row["first"], row["second"]) == (50, 600)
    assert row["best"] == pytest.approx(EPSILON * worst_ratio(policy, EPSILON), rel=1e-4)
    assert row["best_chance"] == pytest.approx(EPSILON * worst_ratio(policy, EPSILON, 1 / 8), rel=1e-4)
    assert row["error"] == pytest.approx(policy.error(EPSILON), rel=1e-4)
    assert row["outcome"] == pytest.approx(worst_ratio(policy, EPSILON), rel=1e-4)


def test_the_steps_for_a_randomised_first_round_by_hand():
    steps = randomised_rounds.randomised_steps([0.01]).set_index("step")
    assert (steps["margin"] >= 0).all()
    # (2/7)(7/8) − 1/8, and on the easy problem 200 log(7/4) pulls over H = 2/0.51².
    assert steps["value"].iloc[1] == pytest.approx(2 / 7 * 7 / 8 - 1 / 8)
    easy = steps.loc["easy: N_11/H ≥ σ²/100ε on Gᶜ"]
    assert easy["value"] == pytest.approx(200 * math.log(7 / 4) * 0.51**2 / 2)
    # With the printed cut, log 2, the middling problem costs with probability 3/32 only.
    printed = randomised_rounds.randomised_steps([0.01], first_round=2 * math.log(2), cut=math.log(2))
    assert printed["value"].iloc[1] == pytest.approx(3 / 32)
