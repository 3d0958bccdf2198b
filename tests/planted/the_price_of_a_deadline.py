"""Notebook 13: X7, the price of a deadline."""

from functools import cache

import numpy as np
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.the_price_of_a_deadline import any_algorithm, deadline_tables, raised_probability
from compendium.the_price_of_a_deadline.deadline_price import (
    closed_form,
    least_average,
    least_power,
    many_arms,
    many_arms_stop,
    price,
    sequential_price,
    two_arms,
)

import ebr


@cache
def algorithms(deadline=3, epsilon=0.3):
    sharp = SharpElasticBatchRacing(deadline, epsilon, 0.1, rewards="Gaussian")
    return {
        "sharp": sharp,
        "AE": ebr.AggressiveElimination(deadline, epsilon, 0.1),
        "EBR": ebr.ElasticBatchRacing(deadline, epsilon, 0.1),
    }


@cache
def steps(make=two_arms):
    return any_algorithm.steps(any_algorithm.pair_policies(0.01, 0.01), 0.01, make)


@cache
def pairs(make=two_arms):
    return deadline_tables.two_arms_table(0.01, [0.01], [1, 2, 3], make)


@cache
def events(least=least_average):
    return raised_probability.events(algorithms(), 5, 2000, 1, least)


@cache
def many(closed=closed_form):
    return deadline_tables.many_arms_table([2, 10], 1e-4, 0.01, [2], closed)


@cache
def scans(make=two_arms, least=least_average):
    return deadline_tables.scan_table(0.01, 0.01, make, least)


@cache
def costs():
    bound = price(many_arms(5, 0.02, 0.1), 2).ratio
    return raised_probability.costs(algorithms(2, 0.02), bound, 5, (0.02, 0.2, 1.0), 200, 1)


def check(
    make=two_arms,
    least=least_average,
    stop=many_arms_stop,
    prices=two_arms,
    closed=closed_form,
    sequential=sequential_price,
    slopes=least_average,
):
    near = raised_probability.limit([10, 10_000], [1.0, 4.0], least, stop)
    bounds = (
        pairs(prices),
        many(closed),
        deadline_tables.unlimited_table([2, 5, 1000], 0.01, 0.01, sequential),
        scans(prices, slopes),
    )
    return any_algorithm.any_algorithm(steps(make), events(least), near, costs(), *bounds)


def forgetful(epsilon, delta):
    """Neyman and Pearson with nine tenths of the information."""
    return two_arms(epsilon, delta)._replace(curve=lambda p, x: least_power(p, 0.81 * x))


def half_seen(epsilon, delta):
    """Information is d²/8 per pull in place of d²/4."""
    return two_arms(epsilon, delta)._replace(seen=1 / 8)


def one_direction(epsilon, delta):
    """As if the less likely recommendation had all of q: misses are halved."""
    right = two_arms(epsilon, delta)
    return right._replace(misses=right.misses / 2)


def one_arm(epsilon, delta):
    """H summed over one arm, which doubles the ratio."""
    return two_arms(epsilon, delta)._replace(arms=1)


def all_seen(epsilon, delta):
    """Information d² per pull in place of d²/4: the bound is true, but too weak."""
    return two_arms(epsilon, delta)._replace(seen=1.0)


def slow_decay(chance, seen, arms):
    """x/2.2 in the exponent in place of x/2."""
    value, slope = least_average(chance, seen, arms)
    return value * np.exp(seen * (1 / 2 - 1 / 2.2)), slope


def small_root(chance, seen, arms):
    """√(1.5 x log(1/p)/n) in place of √(2x log(1/p)/n)."""
    value, slope = least_average(chance, seen, arms)
    root = np.sqrt(seen * -np.log(chance) / arms)
    return value * np.exp((np.sqrt(2) - np.sqrt(1.5)) * root), slope


def each_arm_alone(chance, seen, arms):
    """log(1/p) is not divided by n: true, but far from what is attained."""
    return least_average(chance, seen, arms)[0] * np.exp(-np.sqrt(2 * seen)), chance


def never_rarer(chance, seen, arms):
    """As if raising an arm did not change the event's probability."""
    return chance, np.ones_like(chance)


def no_recommendation(miss, epsilon, delta, arms):
    """log(n/q) is forgotten, as if errors did not depend on the recommended arm."""
    excess = np.log(miss * (arms - 1) / (arms * delta))
    return 2 * excess * (arms - 1) / epsilon**2


def impatient(epsilon, delta):
    """PAC at 2ε in place of ε, with a quarter of the pulls."""
    right = two_arms(epsilon, delta)
    return right._replace(pulls=right.pulls / 4)


def steep(epsilon, delta):
    """Neyman and Pearson's slope with e^{−x/8} in place of e^{−x/2}: tangents lie above the curve."""

    def curve(chance, seen):
        value, slope = least_power(chance, seen)
        return value, slope * np.exp(3 * seen / 8)

    return two_arms(epsilon, delta)._replace(curve=curve)


def flat(chance, seen, arms):
    """Donsker and Varadhan's slope without its second term."""
    value, _ = least_average(chance, seen, arms)
    return value, value / chance


def more_rounds(arms, epsilon, delta, deadline):
    """Formula (5) with 1.2 T in place of T."""
    return closed_form(arms, epsilon, delta, deadline)[0] / 1.2, None


def other_root(arms, epsilon, delta, deadline):
    """Formula (5) with the root of T + 1 rounds."""
    return closed_form(arms, epsilon, delta, deadline + 1)[0] * (deadline + 1) / deadline, None


PLANTED = {
    "X7": (
        check,
        lambda: check(forgetful),
        lambda: check(half_seen),
        lambda: check(one_direction),
        lambda: check(one_arm),
        lambda: check(prices=all_seen),
        lambda: check(prices=impatient),
        lambda: check(least=slow_decay),
        lambda: check(least=small_root),
        lambda: check(least=each_arm_alone),
        lambda: check(least=never_rarer),
        lambda: check(stop=no_recommendation),
        lambda: check(prices=steep),
        lambda: check(slopes=flat),
        lambda: check(closed=more_rounds),
        lambda: check(closed=other_root),
        lambda: check(sequential=lambda arms, delta: 5 * sequential_price(arms, delta)),
        lambda: check(sequential=lambda arms, delta: sequential_price(arms, delta) / 2),
        lambda: check(sequential=lambda arms, delta: sequential_price(min(arms, 3), delta)),
    )
}
