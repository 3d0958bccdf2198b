"""The policy that solves two arms, raced on real rewards and continued by other processes."""

import numpy as np

import ebr

MEANS = {"A": 0.6, "B": 0.4}


def test_an_elastic_pair_is_raced_reopened_and_replayed(tmp_path):
    algorithm, journal = ebr.ElasticPair(3, 0.1, 0.05), tmp_path / "pair.jsonl"
    ebr.Race(algorithm, list(MEANS), journal, support=None, rewards="Gaussian").close()
    draws, asked = np.random.default_rng(1), []
    while True:
        with ebr.Race.open(journal) as race:
            if race.recommendation is not None:
                break
            asked.append(race.ask())
            assert len(set(asked[-1].values())) == 1  # both arms equally often
            noise = draws.standard_normal(2)
            race.tell(
                {
                    arm: (n, n * MEANS[arm] + 0.5 * n**0.5 * z)
                    for (arm, n), z in zip(asked[-1].items(), noise, strict=True)
                }
            )
    assert 1 <= len(asked) <= 3
    with ebr.Race.open(journal, readonly=True) as again:
        assert again.recommendation == race.recommendation
        assert again.history["pulls"].sum() == sum(n for pulls in asked for n in pulls.values())
