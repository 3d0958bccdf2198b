"""Algorithms with an error planted in their mathematics: a wrong width, count or rule."""

from dataclasses import replace

import numpy as np
from compendium.shared.joint_race import SharpElasticBatchRacing

import ebr
from ebr.algorithms.baselines import iterated_log
from ebr.algorithms.game import advance


class TooNarrow(ebr.ElasticBatchRacing):
    def deviation(self, pulls, n_arms):
        return 0.2 * super().deviation(pulls, n_arms)


class TooFewPulls(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return np.ceil(super().pulls_by_round(n_arms) / 1000).astype(int)


class SharpTooFewPulls(SharpElasticBatchRacing):
    def pulls_by_round(self, n_arms, rewards=None):
        return super().pulls_by_round(n_arms, rewards) // 2 + 1


class SharpWithoutUnion(SharpElasticBatchRacing):
    def log_terms(self, n_arms, rewards=None):
        return super().log_terms(2, rewards)


class SharpEager(SharpElasticBatchRacing):
    def refuted(self, pairs, shift, *place):
        lowered = replace(pairs, other=pairs.other - 2 * shift * pairs.other_pulls)
        return super().refuted(lowered, shift, *place)


class SharpNarrow(SharpElasticBatchRacing):
    """Drops arms that are half as far behind as they should be; counts are equal."""

    farther = 2

    def refuted(self, pairs, shift, *place):
        behind = (pairs.leader - pairs.other) * (1 if shift else self.farther)
        return super().refuted(replace(pairs, other=pairs.leader - behind), shift, *place)


class SharpRoundedCarelessly(SharpElasticBatchRacing):
    def refuted(self, pairs, shift, *place):
        # Rounding may leave leader − leader just above 0, so that arms without a success are dropped.
        nothing = pairs.leader - pairs.leader_pulls * pairs.means[0]
        return super().refuted(pairs, shift, *place) | ((shift == 0) & (pairs.other < nothing))


class SharpWide(SharpNarrow):
    farther = 0.5


class TooManyPulls(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return super().pulls_by_round(n_arms) * 6 // 5


class LooseRule(ebr.ElasticBatchRacing):
    def slack(self, n_arms):
        return 3 * self.epsilon


class SignFlipped(ebr.ElasticBatchRacing):
    def slack(self, n_arms):
        return -super().slack(n_arms)


class Meddling(ebr.ElasticBatchRacing):
    """Asks for one extra pull of an arm that did well."""

    def play(self, n_arms, replicates=1, **known):
        game, more = super().play(n_arms, replicates, **known), 0
        turn = advance(game)
        while turn.pulls is not None:
            pulls = turn.pulls + more * (turn.pulls > 0)
            sums = yield pulls
            more = sums > 0.7 * pulls.max()
            turn = advance(game, sums)
        return turn.arms


class Backwards(ebr.ElasticBatchRacing):
    """Spends most pulls in round 2 of easy problems, where means are far apart, and few on hard ones."""

    def play(self, n_arms, replicates=1, **_):
        sums = yield np.full((replicates, n_arms), self.pulls_by_round(n_arms)[0])
        spread = np.ptp(sums, axis=1, keepdims=True) / self.pulls_by_round(n_arms)[0]
        yield np.repeat((spread * 1e6).astype(int) + 1, n_arms, axis=1)
        return sums.argmax(axis=1)


class DropsNobody(ebr.ElasticBatchRacing):
    """Intervals so wide that no arm is ever dropped, so every problem costs the same."""

    def deviation(self, pulls, n_arms):
        return 1000 * super().deviation(pulls, n_arms)


class ShortSchedule(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return np.ceil(super().pulls_by_round(n_arms) / 50).astype(int)


class RoundsForNothing(ebr.ElasticBatchRacing):
    """An extra factor 1/T²: the more rounds, the fewer pulls in all."""

    def pulls_by_round(self, n_arms):
        return np.ceil(super().pulls_by_round(n_arms) / self.deadline**2).astype(int)


class KeepsAll(ebr.AggressiveElimination):
    """Eliminates no arm before the last round."""

    def play(self, n_arms, replicates=1, **_):
        for left in range(self.deadline, 0, -1):
            log_term = np.log(8 * 2 ** (self.deadline - left) / self.delta)
            pulls = 2 / self.epsilon**2 * (iterated_log(left, n_arms) + log_term)
            sums = yield np.full((replicates, n_arms), int(np.ceil(pulls)))
        return sums.argmax(axis=1)


class NaturalLogs(ebr.DeltaElimination):
    """β₁ with natural logarithms, not to the base 1/δ."""

    def _first_factor(self, n_arms):
        return 1 + iterated_log(self.deadline, n_arms)
