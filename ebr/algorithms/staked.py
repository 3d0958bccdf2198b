"""Staked Elastic Batch Racing: δ is money, staked on the claims of likely winners, paid by fresh rewards."""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ebr.algorithms import allocation
from ebr.algorithms.differences import Differences
from ebr.algorithms.game import Game, Known, Lots, check_known, entered
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.bets import MOST_TESTED, Beliefs, paid, thinned
from ebr.theory.confidence import sequential_deviation
from ebr.theory.pairs import Pairs, sign_count
from ebr.theory.selection import bechhofer_count
from ebr.validation import count, positive, probability, rounds

SEATS = 8  # arms that have claims at a time
UNLIKELY = 0.1  # to be better than the leader by ε/2: such arms get no money
FIRST = 1.7  # times log(√n/δ): what the first round resolves

Entry = TypeVar("Entry", np.float64, np.bool_)


@dataclass(frozen=True)
class StakedElasticBatchRacing(Differences):
    """Race for money: an arm is recommended once its claims against all others are paid in full.

    The arms that are likeliest to be the best, up to eight, hold two *claims* against every other arm: "you
    are not better than I by ε", and "not by 0". Each claim has a purse. Before a round the purses of a
    claimant are given a part of what is left of δ, the larger the likelier it is the best. The rewards of
    both arms in the round settle the bet (`ebr.theory.bets`). A claim whose purse reaches 1 holds. An arm is
    out once both claims of one claimant against it hold. Where the race is not decided before the last
    round, or where that is cheaper, all who may still win are pulled b_T times; the largest sum wins.

    With 1 − δ the recommended arm is within ε of the best. Pulls are at most (n + √n) b_T.

    Parameters
    ----------
    deadline, epsilon, delta, sigma, rewards
        As in `PausingElasticBatchRacing`.
    start
        w_0: the first round resolves gaps of w_1 = w_0 (ε/w_0)^{1/T}.
    rate
        The part of what is left of δ that is staked on a round, where one arm stands out; else less.
    reach
        How many standard errors more than they need a round's claims are given.
    hope
        By how many standard errors an arm is believed to be worse than it seems, until time is short.
    spare
        How many rounds before the last the race is meant to be over; fewer of a short race.
    """

    deadline: int
    epsilon: float
    delta: float
    sigma: float = 0.5
    rewards: str | None = None
    start: float = 0.5
    rate: float = 0.6
    reach: float = 0.3
    hope: float = 1.0
    spare: int = 3
    fixed_counts: ClassVar[bool] = False
    resumes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check(rate=probability, reach=positive, hope=positive, spare=rounds)

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """A half-width that holds at all counts at once, as counts here depend on rewards."""
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    @property
    def last_part(self) -> float:
        """c_T = 1/√T: the part of δ for the sign at b_T, to which short races often come."""
        return self.deadline**-0.5

    def last_count(self, n_arms: int, rewards: Known = None) -> int:
        """b_T: with so many rewards each, the sign of a difference errs with c_T δ."""
        model, miss = self.model(rewards), self.delta * self.last_part
        if model == "Gaussian":
            return bechhofer_count(n_arms, self.epsilon, miss, self.sigma)
        if model == "Bernoulli":
            return sign_count(self.epsilon, miss / (n_arms - 1))
        return max(count(4 * self.sigma**2 * math.log((n_arms - 1) / miss) / self.epsilon**2, n_arms), 1)

    def first_count(self, n_arms: int, rewards: Known = None) -> int:
        """b_1 = ⌈4σ² · 1.7 log(√n/δ) / w_1²⌉, at most b_T T^{−0.7}; b_T for T = 1."""
        last = self.last_count(n_arms, rewards)
        pulls = 4 * self.sigma**2 * FIRST * math.log(math.sqrt(n_arms) / self.delta) / self.widths()[0] ** 2
        return last if self.deadline == 1 else math.ceil(min(pulls, last * self.deadline**-0.7))

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Race: yield the pulls of each round, receive the rewards' sums, return the recommended arms."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
        check_known(self.rewards, rewards)
        table = _Table(self, n_arms, replicates, self.model(rewards), generator or np.random.default_rng())
        for now in range(1, self.deadline + 1):
            table.settle((yield table.pulls()), now)
            if now + 1 < self.deadline:
                table.stake(now)
                table.plan(now)
            else:
                table.enter_final(np.ones(len(table.replicate), dtype=bool))
            if not len(table.replicate):
                break
        return table.arms


class _Table:
    """The races that go on: replicates × arms, replicates × seats, replicates × seats × arms.

    Attributes
    ----------
    replicate, arms
        Which replicates go on; what each of all replicates recommends.
    counts, sums, first_sums
        An arm's rewards and their sum, and the sum of the first b_T of them.
    out
        Which arms are out.
    claimant, share
        The arm in each seat, and its part of the round's money.
    purses
        The logarithms of what the claims by ε, and those by 0, are worth.
    left
        What is left of 1 − c_T.
    asked, final
        The pulls of the coming round; the arms among which it decides, where it does.
    """

    def __init__(
        self,
        race: StakedElasticBatchRacing,
        n_arms: int,
        replicates: int,
        model: str,
        lots: np.random.Generator,
    ) -> None:
        self.race, self.model, self.lots = race, model, lots
        self.last = race.last_count(n_arms, model)
        self.spare = max(1, min(race.spare, (race.deadline - 1) // 3))
        self.arms: IntArray = np.full(replicates, -1)
        self.replicate: IntArray = np.arange(replicates)
        shape, seats = (replicates, n_arms), min(SEATS, n_arms)
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)
        self.sums: FloatArray = np.zeros(shape)
        self.first_sums: FloatArray = np.zeros(shape)
        self.out: BoolArray = np.zeros(shape, dtype=bool)
        self.claimant: IntArray = np.zeros((replicates, seats), dtype=np.int64)
        self.share: FloatArray = np.zeros((replicates, seats))
        self.purses: FloatArray = np.full((2, replicates, seats, n_arms), -np.inf)
        self.left: FloatArray = np.full(replicates, 1 - race.last_part)
        self.asked: IntArray = np.full(shape, race.first_count(n_arms, model))
        self.final: BoolArray = np.full(shape, race.deadline == 1)

    def pulls(self) -> IntArray:
        """What to ask for, of all replicates."""
        table = np.zeros((len(self.arms), self.counts.shape[1]), dtype=np.int64)
        table[self.replicate] = self.asked
        return table

    @property
    def beliefs(self) -> Beliefs:
        """What is believed of the arms; of rewards in [0, 1] with half a success and half a failure more."""
        if self.model in IN_UNIT:
            mean = (self.sums + 0.5) / (self.counts + 1)
            return Beliefs(mean, mean * (1 - mean), self.counts)
        mean = self.sums / np.maximum(self.counts, 1)
        return Beliefs(mean, np.full(mean.shape, self.race.sigma**2), self.counts)

    def of_claimants(self, table: NDArray[Entry]) -> NDArray[Entry]:
        """The claimants' entries of a table of arms: replicates × seats."""
        return np.take_along_axis(table, self.claimant, axis=1)

    def held(self) -> BoolArray:
        """Against whom each claimant's claim by ε holds, or is not needed: replicates × seats × arms."""
        held = (self.purses[0] >= 0) | self.out[:, None, :]
        np.put_along_axis(held, self.claimant[:, :, None], True, axis=2)
        return np.asarray(held)

    def settle(self, sums: FloatArray, now: int) -> None:
        """Take in a round's sums: pay the claims, see who is out, and end the races that are decided."""
        fresh = np.asarray(sums[self.replicate], dtype=np.float64)
        if now == 1 and self.race.deadline > 1:
            self._open(fresh)
        self._pay(fresh)
        self.counts = self.counts + self.asked
        self.sums = self.sums + fresh
        self.first_sums = np.where(self.counts <= self.last, self.sums, self.first_sums)
        both = np.asarray((self.purses >= 0).all(axis=0))
        self.out = np.asarray(self.out | both.any(axis=1))
        won = np.asarray(self.held().all(axis=2) & ~self.of_claimants(self.out))
        best = np.where(won, self.of_claimants(self.beliefs.mean), -np.inf).argmax(axis=1)
        self._end(np.asarray(won.any(axis=1)), self.claimant[np.arange(len(best)), best])
        alone = np.asarray((~self.out).sum(axis=1) < 2)  # nobody is in with δ at most
        self._end(alone, np.asarray(self.out.argmin(axis=1)))
        self._end(
            np.asarray(self.final.any(axis=1)), np.where(self.final, self.first_sums, -np.inf).argmax(axis=1)
        )

    def _open(self, fresh: FloatArray) -> None:
        """The first round's money: the same for all n arms. Only those with the largest sums take seats."""
        seats = self.claimant.shape[1]
        self.claimant = np.argsort(-fresh, axis=1, kind="stable")[:, :seats]
        given = (1 - self.race.last_part) * min(1.0, 2 / (self.race.deadline - 1))
        self.left = self.left - given
        self.purses[:] = math.log(self.race.delta * given / fresh.shape[1])

    def _end(self, ended: BoolArray, arms: IntArray) -> None:
        """End some races with these arms, and go on with the others."""
        if ended.any():
            self.arms[self.replicate[ended]] = arms[ended]
            for name in ("replicate", "counts", "sums", "first_sums", "out", "claimant", "share", "left"):
                setattr(self, name, getattr(self, name)[~ended])
            self.asked, self.final, self.purses = (
                self.asked[~ended],
                self.final[~ended],
                self.purses[:, ~ended],
            )

    def _pay(self, fresh: FloatArray) -> None:
        """Settle the bets on all claims that do not hold yet, where both arms were pulled."""
        pulled = (self.asked > 0) & ~self.out
        live = (self.purses > -np.inf).all(axis=0) & (self.purses < 0).any(axis=0)
        live &= self.of_claimants(pulled)[:, :, None] & pulled[:, None, :]
        np.put_along_axis(live, self.claimant[:, :, None], False, axis=2)
        row, seat, rival = np.nonzero(live)
        coins = self.model == "Bernoulli" and int(self.asked.max()) <= MOST_TESTED
        model = "bounded" if self.model == "Bernoulli" and not coins else self.model
        ties = self.lots.random(fresh.shape) if coins else fresh
        beliefs = self.beliefs
        for claims, shift in zip(self.purses, (self.race.epsilon, 0.0), strict=True):
            raised, lowered = thinned(fresh, self.asked, shift, self.lots) if coins else (fresh, fresh)
            due = claims[row, seat, rival] < 0
            where = row[due], seat[due], rival[due]
            one, two = (where[0], self.claimant[where[:2]]), (where[0], where[2])
            pairs = Pairs(raised[one], self.asked[one], lowered[two], self.asked[two])
            pair = beliefs[one], beliefs[two]
            claims[where] = paid(claims[where], pairs, shift, pair, model, self.race.sigma, ties[two])

    def stake(self, now: int) -> None:
        """Seat who may be better than the leader by ε/2; stake a part of what is left on their claims."""
        from scipy.special import ndtr

        beliefs, rows = self.beliefs, np.arange(len(self.replicate))
        lead = np.where(self.out, -np.inf, beliefs.mean).argmax(axis=1)
        error = beliefs.variance / beliefs.counts
        ahead = beliefs.mean - beliefs.mean[rows, lead][:, None] - self.race.epsilon / 2
        chance = ndtr(ahead / np.sqrt(error + error[rows, lead][:, None]))
        chance = np.where((chance < UNLIKELY) | self.out, 0.0, chance)
        chance[rows, lead] = 0.5
        self._seat(chance)
        self.share = self.of_claimants(chance)
        self.share /= self.share.sum(axis=1, keepdims=True)
        clear = (self.share**2).sum(axis=1)  # how clearly one of them stands out: 1 if it is alone
        given = self.left * (1 if now + 2 == self.race.deadline else self.race.rate * clear)
        self.left = self.left - given
        with np.errstate(divide="ignore"):  # who is out gets nothing
            money = np.log(self.race.delta * given[:, None] * self.share)
        more = np.minimum(np.logaddexp(self.purses, money[:, :, None]), -1e-12)  # rewards alone pay in full
        self.purses = np.where(self.purses < 0, more, 0.0)

    def _seat(self, chance: FloatArray) -> None:
        """Give the seats to the arms with the largest chances. Who stays keeps seat and purses."""
        best = np.argsort(-chance, axis=1, kind="stable")[:, : self.claimant.shape[1]]
        same = self.claimant[:, :, None] == best[:, None, :]
        leaves, comes = ~same.any(axis=2), ~same.any(axis=1)
        seat, place = (np.argsort(~who, axis=1, kind="stable") for who in (leaves, comes))
        many = comes.sum(axis=1)
        for number in range(int(many.max(initial=0))):
            rows = np.flatnonzero(many > number)
            free = seat[rows, number]
            self.claimant[rows, free] = best[rows, place[rows, number]]
            self.purses[:, rows, free] = -np.inf

    def finalists(self) -> BoolArray:
        """The smallest sets of arms with claims, that hold, of each of them against all others that are in.

        They are grown from each claimant. An arm without a seat has no claims: all who are in are such a set.
        """
        held, seated = self.held(), np.zeros(self.out.shape, dtype=bool)
        np.put_along_axis(seated, self.claimant, True, axis=1)
        best = ~self.out
        for seat in range(held.shape[1]):
            chosen = ~held[:, seat]
            np.put_along_axis(chosen, self.claimant[:, [seat]], True, axis=1)
            while (more := (self.of_claimants(chosen)[:, :, None] & ~held).any(axis=1) & ~chosen).any():
                chosen |= more
            smaller = chosen.sum(axis=1) < best.sum(axis=1)
            smaller &= ~(chosen & (self.out | ~seated)).any(axis=1)
            best = np.where(smaller[:, None], chosen, best)
        return np.asarray(best)

    def enter_final(self, which: BoolArray) -> None:
        """Let the coming round decide some races, or end them where nobody lacks any of b_T rewards."""
        final = self.finalists() & which[:, None]
        lacking = np.where(final, np.maximum(self.last - self.counts, 0), 0)
        self.asked = np.where(which[:, None], lacking, self.asked)
        self.final = final
        self._end(which & ~lacking.any(axis=1), np.where(final, self.first_sums, -np.inf).argmax(axis=1))

    def plan(self, now: int) -> None:
        """Ask for what the likeliest claimant needs, at the race's pace; or enter the final if cheaper."""
        beliefs, rows = self.beliefs, np.arange(len(self.replicate))
        seat = self.share.argmax(axis=1)
        claimant, open_ = self.claimant[rows, seat], ~self.held()[rows, seat]
        have, race = self.counts.sum(axis=1).astype(np.float64), self.race
        late = max(0, self.spare - (race.deadline - 2 - now)) / self.spare
        final = (~self.out).sum(axis=1) * self.last
        reach = np.maximum(race.reach, late * np.sqrt(2 * np.log1p(final / have)))[:, None]
        mean = beliefs.mean[rows, claimant][:, None]
        hope = 0.0 if late else race.hope
        gap = mean - beliefs.mean + hope * np.sqrt(beliefs.variance / beliefs.counts)
        width = allocation.resolved(gap, self.purses[0, rows, seat], reach, race.epsilon, race.delta)
        variance = beliefs.variance
        if self.model in IN_UNIT:  # a test takes both arms to be alike
            between = (mean + beliefs.mean) / 2
            variance = np.maximum(variance, between * (1 - between))
        need = allocation.cheapest(
            np.where(open_, width, np.inf), variance, beliefs.variance[rows, claimant], claimant
        )
        cost = need.sum(axis=1)
        part = allocation.paced(have, cost, max(race.deadline - 1 - self.spare - now, 1))
        self.asked = allocation.within(np.ceil(need * part[:, None]), self.counts, self.last, self.out)
        self.final = np.zeros_like(self.out)
        stuck = self.asked[rows, claimant] == 0
        least = self.last - np.where(self.out, 0, self.counts).max(axis=1)  # a final costs no less
        if (stuck | (cost > least)).any():
            rest = np.where(self.finalists(), np.maximum(self.last - self.counts, 0), 0).sum(axis=1)
            self.enter_final(stuck | (rest < cost))
