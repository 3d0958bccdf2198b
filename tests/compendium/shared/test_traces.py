"""A trace of a race against the same race simulated."""

import pytest
from compendium.shared.traces import trace

import ebr


@pytest.mark.parametrize("problem", [ebr.Bernoulli([0.7, 0.6, 0.2]), ebr.Gaussian([0.9, 0.9, 0.1], 0.5)])
def test_a_trace_is_a_simulated_run_seen_round_by_round(problem):
    algorithm = ebr.ElasticBatchRacing(6, 0.05, 0.1)
    followed = trace(algorithm, problem, seed=4)
    run = ebr.simulate(algorithm, problem, runs=1, seed=4, per_arm=True)
    last = followed.groupby("arm").last()
    assert last["pulls"].tolist() == run.arm_pulls[0].tolist()
    assert (last["pulls"] * last["mean"]).to_numpy() == pytest.approx(run.arm_sums[0], rel=1e-12)
    assert (followed["round"].max(), followed["total"].iloc[-1]) == (run.rounds[0], run.pulls[0])
    assert set(followed.loc[followed["round"] == 1, "arm"]) == {0, 1, 2}
    half_width = (followed["upper"] - followed["lower"]) / 2
    assert half_width.to_numpy() == pytest.approx(algorithm.deviation(followed["pulls"].to_numpy(), 3))
