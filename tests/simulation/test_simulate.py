"""The simulator against exact sums and a loop over single pulls.

A Monte Carlo mean passes within 5 standard errors of the truth. If it is correct, it fails with 5.7e-7.
Each such test also shows an error of plausible size that it catches.
"""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from oracles import Diary, elastic_batch_racing
from scipy.stats import binom

import ebr
from ebr.algorithms.game import Algorithm
from ebr.simulation import simulate


def agrees(sample, expected, extra_variance=0.0):
    error = math.sqrt(sample.var(ddof=1) / len(sample) + extra_variance)
    return abs(sample.mean() - expected) <= 5 * error


def exact_two_arms_two_rounds(means, epsilon, delta, slack_factor=1.0):
    """Expected pulls and P(arm 1 is recommended) for n = T = 2, summed over all outcomes of round 1."""
    log_term = math.log(4 / delta)
    first, total = (math.ceil(20 * log_term * epsilon**-t) for t in (1, 2))
    width = 0.5 * math.sqrt((4 + 2 * math.log(2)) * log_term / first)
    more = total - first
    p = [binom.pmf(np.arange(first + 1), first, mean) for mean in means]
    q = [binom.pmf(np.arange(more + 1), more, mean) for mean in means]
    lead = np.convolve(q[1], q[0][::-1])  # P(the second arm's later sum − the first arm's = k − more)
    pulls = second_wins = 0.0
    for x in range(first + 1):
        for y in range(first + 1):
            probability = p[0][x] * p[1][y]
            gap = abs(x - y) / first
            if gap > 2 * width - slack_factor * epsilon / 2:  # n∧T = 2
                pulls += probability * 2 * first
                second_wins += probability * (y > x)
            else:
                pulls += probability * 2 * total
                second_wins += probability * lead[max(0, x - y + more + 1) :].sum()
    return pulls, second_wins


def test_two_arms_two_rounds_have_the_exact_cost_and_error():
    means, epsilon, delta, runs = [0.55, 0.45], 0.4, 0.5, 100_000
    pulls, second_wins = exact_two_arms_two_rounds(means, epsilon, delta)
    result = ebr.simulate(ebr.ElasticBatchRacing(2, epsilon, delta), ebr.Bernoulli(means), runs, seed=7)
    assert agrees(result.pulls, pulls)
    assert agrees(result.arm == 1, second_wins)
    assert 0.001 < second_wins < 0.1  # so that there are errors to count
    # Planted: the elimination rule without its ε/(n∧T).
    wrong, _ = exact_two_arms_two_rounds(means, epsilon, delta, slack_factor=0.0)
    assert not agrees(result.pulls, wrong)


@pytest.mark.parametrize("kind", ["Bernoulli", "Gaussian"])
def test_small_problems_cost_what_a_loop_over_single_pulls_does(kind):
    means, deadline, epsilon, delta = [0.6, 0.5, 0.35, 0.1], 3, 0.5, 0.5
    generator = np.random.default_rng(11)
    problem, pull = {
        "Bernoulli": (ebr.Bernoulli(means), lambda arm: generator.random() < means[arm]),
        "Gaussian": (ebr.Gaussian(means, 0.5), lambda arm: generator.normal(means[arm], 0.5)),
    }[kind]
    loops = [elastic_batch_racing(pull, 4, deadline, epsilon, delta) for _ in range(1500)]
    result = ebr.simulate(ebr.ElasticBatchRacing(deadline, epsilon, delta), problem, 50_000, 11, per_arm=True)

    def compare(sample, loop, scale=1.0):
        return agrees(scale * sample, loop.mean(), loop.var(ddof=1) / len(loop))

    by_arm = np.array([pulls for pulls, _, _ in loops])
    for arm in range(1, 4):
        assert compare(result.arm_pulls[:, arm], by_arm[:, arm])
    assert compare(result.pulls, by_arm.sum(axis=1))
    assert compare(result.rounds, np.array([rounds for _, _, rounds in loops]))
    assert compare(result.arm == 1, np.array([arm == 1 for _, arm, _ in loops]))
    assert not compare(result.pulls, by_arm.sum(axis=1), scale=1.05)  # planted: 5 % more pulls


@pytest.mark.parametrize("problem", [ebr.setup_2(40), ebr.Gaussian([0.2, 0.5, 0.6], 0.5)])
def test_blocks_and_seeds_have_streams_of_their_own_however_many_there_are(problem, monkeypatch):
    monkeypatch.setattr(simulate, "CELLS_PER_BLOCK", 400)
    block, algorithm = 400 // problem.n_arms, ebr.ElasticBatchRacing(8, 0.1, 0.1)
    few = ebr.simulate(algorithm, problem, 2 * block + 1, seed=3, per_arm=True)
    many = ebr.simulate(algorithm, problem, 5 * block, seed=3, per_arm=True)
    for name in ("arm_pulls", "arm_sums", "arm", "rounds"):
        assert (getattr(few, name)[: 2 * block] == getattr(many, name)[: 2 * block]).all()
    other = ebr.simulate(algorithm, problem, 5 * block, seed=4, per_arm=True)
    assert (many.arm_sums[:block] != many.arm_sums[block : 2 * block]).any()
    assert (many.arm_sums != other.arm_sums).any()
    same = ebr.ElasticBatchRacing(np.int64(8), np.float64(0.1), np.float64(0.1))
    assert (ebr.simulate(same, problem, 5 * block, seed=3).pulls == many.pulls).all()


def test_a_simulation_says_in_three_lines_what_it_found():
    result = ebr.simulate(ebr.Passive(0.2, 0.1), ebr.setup_1(50), runs=200)
    pulls = f"{result.pulls[0]:,}"
    assert repr(result).splitlines() == [
        "Simulation of 200 runs on 50 Bernoulli arms",
        f"pulls: {pulls} on average (95 % interval {pulls} to {pulls}), {pulls} to {pulls}",
        "rounds: 1.0 on average, 1 to 1",
    ]
    assert "interval -inf to inf" in repr(ebr.simulate(ebr.Passive(0.2, 0.1), ebr.setup_1(50), runs=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("race", "runs", "kibibytes"), [("Elastic", 50, 2**20), ("PausingElastic", 10, 2**19)]
)
def test_races_of_a_hundred_thousand_arms_stay_under_a_gibibyte_or_half_of_it(race, runs, kibibytes):
    # On Linux a child's ru_maxrss starts from its parent's. VmHWM does not.
    program = (
        "import ebr, pathlib, resource, sys\n"
        f"r = ebr.simulate(ebr.{race}BatchRacing(15, .01, .01), ebr.setup_1(100_000), {runs})\n"
        "status = pathlib.Path('/proc/self/status')\n"
        "peak = int(status.read_text().split('VmHWM:')[1].split()[0]) if status.exists() else"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == 'darwin' else 1)\n"
        "print(r.correct(.01).all(), peak)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    correct, peak = run.stdout.split()
    assert correct == "True"
    assert float(peak) < kibibytes


def test_a_sigma_below_the_problems_is_warned_of():
    algorithm = ebr.ElasticBatchRacing(2, 0.3, 0.1, sigma=0.5)
    with pytest.warns(UserWarning, match=r"sigma, 0\.5, is below the problem's, 1\.0: its guarantee is void"):
        ebr.simulate(algorithm, ebr.Gaussian([0.2, 0.8], 1.0), runs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ebr.simulate(algorithm, ebr.Gaussian([0.2, 0.8], 0.5), runs=1)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"runs": 0}, r"runs .* at least 1, got 0"),
        ({"runs": 1.5}, r"runs .* got 1\.5"),
        ({"seed": -1}, r"seed .* at least 0, got -1"),
        ({"problem": "setup_1"}, r"problem must be Bernoulli or Gaussian, got 'setup_1'"),
        ({"algorithm": "EBR"}, r"^algorithm must be an ebr\.algorithms\.game\.Algorithm, .* got 'EBR'$"),
        (
            {"algorithm": ebr.Passive},
            r"^algorithm must be an .*, made with its parameters, got <class '.*Passive'>$",
        ),
        # Results that do not fit into memory.
        ({"runs": 10**8 + 1}, r"^runs must be an integer of at most 100,000,000, got 100000001$"),
        (
            {"problem": ebr.setup_1(100), "runs": 10**6 + 1, "per_arm": True},
            r"^runs must be an integer of at most 1,000,000, got 1000001$",
        ),
    ],
)
def test_bad_input_is_named_before_anything_runs(arguments, names):
    good = {"algorithm": ebr.ElasticBatchRacing(2, 0.3, 0.1), "problem": ebr.setup_1(3)}
    with pytest.raises(ValueError, match=names):
        ebr.simulate(**good | arguments)


@pytest.mark.parametrize("problem", [ebr.Gaussian([0.5, 0.3, 0.9], 2.0), ebr.Bernoulli([0.5, 0.3, 0.9])])
def test_a_simulation_keeps_every_arms_pulls_and_rewards(problem):
    diary = Diary(([3, 0, 4], [1, 2, 0]))
    result = ebr.simulate(diary, problem, runs=7, seed=12, per_arm=True)
    pulls, sums = result.arm_pulls, result.arm_sums
    assert (pulls.tolist(), sums.tolist()) == ([[4, 2, 4]] * 7, diary.sent.tolist())
    assert (result.pulls.tolist(), result.arm.tolist()) == ([10] * 7, sums.argmax(axis=1).tolist())
    assert ebr.simulate(diary, problem, runs=7, seed=12).arm_pulls.shape == (7, 0)


class Greedy(Algorithm):
    """Asks for the same pulls of every arm in each round, and recommends arm 0."""

    epsilon, delta, sigma, deadline = 0.1, None, 0.5, None

    def __init__(self, pulls, rounds):
        self.pulls, self.rounds = pulls, rounds

    def __repr__(self):
        return f"Greedy({self.pulls}, {self.rounds})"

    def deviation(self, pulls, n_arms):
        return np.zeros(np.shape(pulls))

    def play(self, n_arms, replicates=1, *, rewards=None, generator=None):
        for _ in range(self.rounds):
            yield np.full((replicates, n_arms), self.pulls)
        return np.zeros(replicates, dtype=np.int64)


def test_a_total_that_is_too_large_for_an_integer_is_refused_and_the_largest_is_counted():
    arms = ebr.Gaussian([0.5, 0.4, 0.3, 0.2], 0.5)
    largest = Greedy(2**53, 255)  # 4 · 255 · 2^53 < 2^63
    assert ebr.simulate(largest, arms).pulls[0] == 4 * 255 * 2**53
    for asked in (Greedy(2**53, 256), Greedy(2**61, 1), Greedy(2**62 - 1, 1), Greedy(2**62, 2)):
        with pytest.raises(ValueError, match=r"^algorithm must ask for at most 2\^63 - 1 pulls .*Greedy"):
            ebr.simulate(asked, arms)


@pytest.mark.parametrize(
    "algorithm",
    [ebr.ElasticBatchRacing(2, 1e-6, 0.1), ebr.SharpElasticBatchRacing(2, 3e-7, 0.1), ebr.Passive(1e-6, 0.1)],
)
def test_totals_that_a_schedule_says_in_advance_are_refused_before_anything_runs(algorithm, monkeypatch):
    monkeypatch.setattr("ebr.simulation.simulate.draw_sums", None)  # nothing can be drawn
    monkeypatch.setattr("ebr.simulation.simulate.check", lambda *_: None)
    with pytest.raises(ValueError, match=r"^epsilon .* at most 2\^63 - 1 pulls of n_arms = 200000 together"):
        ebr.simulate(algorithm, ebr.setup_1(200_000))
