"""X11, pausing EBR's claim: exact sums, an adversary that stays inside the event, plain counts."""

import math
from itertools import product

import numpy as np
import pytest
from compendium.sharp_racing import pausing_adversary, pausing_costs, pausing_guarantee
from scipy.stats import binom, norm

import ebr
from ebr.theory import pairs

PAUSING = ebr.PausingElasticBatchRacing
MEANS = [0.3, 0.62, 0.7, 0.55]


def grid(model, n_arms=4, deadline=3, epsilon=0.1, delta=0.3):
    return pausing_adversary.stages(PAUSING(deadline, epsilon, delta, rewards=model), n_arms, model)


@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("model", ["bounded", "Bernoulli"])
def test_what_is_spent_is_a_sum_over_all_pairs_of_sums(model, shift):
    stages, mean, total = grid(model, 3, 3, 0.3, 0.3), 0.4, 0.0
    p, q = (1 - shift) * mean, (1 - shift) * mean + shift
    top = len(stages.counts) - 1
    for u, s in ((high, low) for high in range(1, top + 1) for low in range(1, high + 1) if low < top):
        many, few = int(stages.counts[u]), int(stages.counts[s])
        for a, c in product(range(many + 1), range(few + 1)):
            one = pairs.Pairs(*(np.array([x]) for x in (float(a), many, float(c), few)))
            if speaks(model, one, shift, np.array([stages.miss[u, s]]))[0]:
                total += binom.pmf(a, many, p) * binom.pmf(c, few, q)
    if shift:
        last = int(stages.counts[-1])
        total += sum(binom.pmf(a, last, p) * binom.cdf(a, last, q) for a in range(last + 1))
    found = pausing_guarantee.spent(stages, 3, shift, [mean])
    assert found == pytest.approx(2 * total / 0.3, rel=1e-9)


def test_the_levels_are_shared_among_arms_stages_and_lags():
    stages = grid("sub-Gaussian")
    assert 3 * stages.miss.sum() == pytest.approx(0.3)
    assert stages.miss[2, 1] == pytest.approx(stages.miss[2, 2] / 3)
    # δ_u ∝ w_u^{−1/2}
    assert stages.miss[3].sum() / stages.miss[2].sum() == pytest.approx(math.sqrt(5 ** (1 / 3)))


@pytest.mark.parametrize("model", pausing_guarantee.MODELS)
def test_the_adversarys_tables_lie_inside_the_event_and_reach_its_limits(model):
    stages = grid(model)
    problem = ebr.Bernoulli(MEANS) if model in ("bounded", "Bernoulli") else ebr.Gaussian(MEANS, 0.5)
    table = pausing_adversary.attack(stages, problem, 60, seed=1)
    assert table.inside.all()
    tight = 0
    for u, s in [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]:
        for arm in (0, 1, 3):
            shift = 0.1 if 0.7 - MEANS[arm] >= 0.1 else 0.0
            for more in (0, 1):
                leader, other = table.sums[:, arm, u] + more, table.sums[:, 2, s]
                many, few = (np.full(60, stages.counts[stage]) for stage in (u, s))
                tested = pairs.Pairs(leader, many, other, few)
                refuted = speaks(model, tested, shift, np.full(60, stages.miss[u, s]))
                assert more or not refuted.any()
                tight += refuted.sum()
    assert tight > 100
    assert 0 < (table.sums[:, [2], 3] - table.sums[:, [0, 3], 3]).min() <= 1


def speaks(model, tested, shift, miss):
    if model == "Bernoulli":
        return pairs.binomial_refuted(tested, shift, miss)
    log_term = PAUSING(3, 0.1, 0.3).log_terms(miss, model)
    if model == "bounded":
        return pairs.bounded_refuted(tested, shift, log_term)
    return pairs.normal_refuted(tested, shift, log_term, 0.5)


@pytest.mark.parametrize("problem", [ebr.Bernoulli(MEANS), ebr.Gaussian(MEANS, 0.5)])
def test_means_are_near_their_expectation_if_asked_for(problem):
    stages = grid(problem.rewards)
    costs = pausing_costs.Costs(stages, 4)
    expected = 0.5 * math.sqrt(2 * math.log(2 * 4 * 3 / 0.3) / stages.counts[2])
    assert costs.near[2] == pytest.approx(expected)
    table = pausing_adversary.attack(stages, problem, 100, 1, costs.near)
    means = table.sums[table.inside][:, :, 1:] / stages.counts[1:]
    assert len(means) > 50
    assert (abs(means - np.array(MEANS)[:, None]) <= costs.near[1:] + 1e-9).all()
    assert ((means[:, 2] - 0.7) / costs.near[1:]).min() < -0.9  # the best arm is as unlucky as possible
    assert problem.rewards == "Gaussian" or (table.sums == np.round(table.sums)).all()


@pytest.mark.parametrize("model", ["sub-Gaussian", "bounded", "Bernoulli"])
def test_a_pair_is_refuted_beyond_its_width(model):
    stages = grid(model)
    costs = pausing_costs.Costs(stages, 4)
    generator = np.random.default_rng(1)
    for u, s in [(1, 1), (2, 1), (2, 2)]:
        many, few = int(stages.counts[u]), int(stages.counts[s])
        leader = generator.integers(0, many + 1, 300).astype(float)
        other = generator.integers(0, few + 1, 300).astype(float)
        tested = pairs.Pairs(leader, np.full(300, many), other, np.full(300, few))
        refuted = speaks(model, tested, 0.1, np.full(300, stages.miss[u, s]))
        beyond = leader / many - other / few + 0.1 > costs.width(u, s)
        assert refuted[beyond].all()
        assert beyond.any()


@pytest.mark.parametrize("model", ["sub-Gaussian", "Gaussian"])
def test_the_cost_theorems_gap_is_what_the_ends_of_c_leave_open_and_no_less_will_do(model, monkeypatch):
    stages = grid(model, deadline=5)
    costs, d = pausing_costs.Costs(stages, 4), pausing_costs.Costs(stages, 4).near
    right = costs.pulled
    assert pausing_costs.left_open(costs) == 0
    for part in (d[1], d[3], 0.01):
        monkeypatch.setattr(costs, "pulled", lambda t, s, part=part: right(t, s) - part)
        assert pausing_costs.left_open(costs) > 0
    # Round 3 has u = 3 + a, a = log 3 / log 25 · 5 = 1.7: stage 4. An arm at stage 2; d_{t−2} = d_1.
    L = -math.log(stages.miss[4, 2]) if model == "sub-Gaussian" else norm.isf(stages.miss[4, 2]) ** 2 / 2
    width = 0.5 * math.sqrt(2 * L * (1 / stages.counts[4] + 1 / stages.counts[2]))
    assert right(3, 2) == pytest.approx(6 * d[1] + width + d[4] + d[2])
    assert [costs.leads(t) for t in (1, 4, 5)] == pytest.approx([0.1 + 6 * d[s] for s in (1, 2, 3)])


def test_races_are_counted():
    problems = [("one", ebr.Bernoulli([0.5, 0.4, 0.4]), 0.1, 3, 0.1)]
    row = pausing_guarantee.races(problems, 200, 1, "Bernoulli", PAUSING).iloc[0]
    result = ebr.simulate(PAUSING(3, 0.1, 0.1, rewards="Bernoulli"), problems[0][1], 200, seed=1)
    assert row["pulls"] == pytest.approx(result.pulls.mean())
    assert row["wrong"] == (result.arm != 0).sum()
