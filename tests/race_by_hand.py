"""Algorithm 1 again, as a plain loop over rounds, arms and single pulls: the oracle of the vectorised one."""

import math


def elastic_batch_racing(pull, n_arms, deadline, epsilon, delta, sigma=0.5, again=False):
    """Follow the printed pseudo-code; `pull(arm)` draws one reward. Return pulls per arm, arm, rounds."""
    log_term = math.log(n_arms * deadline / delta)
    survivors = set(range(n_arms))
    rewards = {arm: [] for arm in survivors}
    rounds = 0
    for t in range(1, deadline + 1):
        target = math.ceil(80 * sigma**2 * log_term * epsilon ** (-2 * t / deadline))
        before = sum(map(len, rewards.values()))
        for arm in survivors:
            while len(rewards[arm]) < target:
                rewards[arm].append(pull(arm))
        rounds += sum(map(len, rewards.values())) > before
        mean = {arm: sum(rewards[arm]) / len(rewards[arm]) for arm in survivors}
        width = sigma * math.sqrt((4 + 2 * math.log(2)) * log_term / target)
        best_lower = max(mean[arm] - width for arm in survivors)
        leader = max(mean.values())
        dropped = {
            arm
            for arm in survivors
            if mean[arm] + width < best_lower + epsilon / min(n_arms, deadline) and mean[arm] < leader
        }
        if again and len(survivors) == 1:
            break
        survivors -= dropped
        if not again and len(survivors) == 1:
            break
    winner = max(sorted(survivors), key=lambda arm: mean[arm])
    return [len(rewards[arm]) for arm in range(n_arms)], winner, rounds
