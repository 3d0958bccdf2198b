"""Staked Elastic Batch Racing: δ is money, staked on the claims of likely winners, paid by fresh rewards."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, stdtrit

from ebr.algorithms import allocation
from ebr.algorithms.game import Differences, Game, Known, LossyGame, Rng, Standing, spelled
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.bets import MOST_TESTED, Beliefs, believed, paid, pooled, thinned
from ebr.theory.confidence import sequential_deviation
from ebr.theory.pairs import Pairs
from ebr.theory.selection import last_count
from ebr.validation import MOST_PULLS, count, positive, probability, require, rounds

SEATS = 8  # most arms with claims at a time
UNLIKELY = 0.1  # arms less likely to be better than the leader by ε/2 get no money
SAID = 0.05  # part of the stakes for the claims that are read if a race is stopped
COARSER = 1.25  # ratio of the shifts of these claims
MOST_SHIFTS = 60  # number of these shifts, where rewards have no bounds
CONTROL = 0.25  # least chance of a control when money is given out; the leader's is 0.5
AT_ONCE = 2**15  # claims that are settled in one go: their arrays fit into a processor's cache
FIRST = 1.7  # the first round resolves its width with 1.7 log(√n/δ) nats


@dataclass(frozen=True)
class StakedElasticBatchRacing(Differences):
    """Race for money: an arm is recommended once its claims against all others are paid in full.

    Up to eight arms, those likeliest to be the best, hold two *claims* against every other arm: "you are not
    better than I by ε", and "you are not better than I". Each claim has a purse. Before a round each claimant
    gets a part of the δ that is left, a likelier one more. The rewards of both arms in the round settle the
    bet (`ebr.theory.bets`). A claim whose purse reaches 1 holds. An arm is out once both claims of one
    claimant against it hold. If the race is undecided before the last round, or if that is cheaper, all arms
    that may still win are pulled b_T times, and the largest sum wins. The recommended arm is within ε of the
    best with 1 − δ. Pulls are at most (n + √n) b_T if no reward is missing.

    Parameters
    ----------
    deadline, epsilon, delta, sigma, rewards
        As in `PausingElasticBatchRacing`.
    start
        w_0: the first round resolves gaps of w_1 = w_0 (ε/w_0)^{1/T}.
    rate
        The part of the remaining δ that is staked on a round if one arm stands out; otherwise less.
    reach
        Standard errors by which a round's pulls exceed what its claims need.
    hope
        Standard errors by which an arm is believed to be worse than it seems, until time is short.
    spare
        Rounds before the last by which the race should be over; fewer in a short race.
    control, margin
        As in `SharpElasticBatchRacing`. The control always has a seat while it is in.
    blocks
        Whether the arms of a round are observed in the same blocks, with σ the noise within a block. All arms
        that are in are then pulled equally often, so that all bets are on differences within blocks. `Race`
        says so if it is told.
    squares
        Whether sums of squares come with the sums. Rewards in [0, 1] of small spread then need far fewer
        pulls. If `rewards` is "Gaussian", σ is then unknown, but the same for all arms: `sigma` is a guess
        that plans the first round, and the guarantee does not depend on it. None leaves the choice to the
        caller: `Race` asks for squares of rewards in [0, 1], `simulate` does not.

    Notes
    -----
    A claim by s counts only if the claims by all larger shifts hold. So among an arm's false claims against
    the best arm only the purse of the largest false shift matters: further shifts cost nothing of δ. With a
    margin g above ε there are claims by g, ε and 0, and the control is recommended once its claims by g hold.

    *Stopping.* A twentieth of the stakes is for claims by ε · 1.25, ε · 1.25², …, which do not affect the
    race. A race that is stopped after any round recommends the arm whose claims hold by the smallest shift.

    *Missing rewards* must be lost independently of all rewards. The rewards that came in settle the bets. If
    rewards of the last round are missing, there is no final: the race ends as if it were stopped.
    """

    rate: float = 0.6
    reach: float = 0.3
    hope: float = 1.0
    spare: int = 3
    control: int | None = None
    margin: float | None = None
    squares: bool | None = None
    blocks: bool = False
    fixed_counts: ClassVar[bool] = False
    resumes: ClassVar[bool] = True
    __repr__ = spelled

    def __post_init__(self) -> None:
        self._check(rate=probability, reach=positive, hope=positive, spare=rounds)
        self.set_control()
        require(self.squares in (None, True, False), "squares", "be True, False or None", self.squares)
        learns = self.deadline > 1 or not self.guessed
        require(learns, "deadline", "be at least 2 where sigma is only a guess", self.deadline)

    def suited(self, rewards: str, blocks: bool) -> Self:
        """In blocks it pulls all arms equally often; in [0, 1] it wants squares, if that is left open."""
        # Squares, so that small spreads do not pay for the support.
        squares = True if self.squares is None and self.model(rewards) == "bounded" else self.squares
        return replace(self, blocks=blocks or self.blocks, squares=squares)

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """Blocks are permitted if `blocks` says so, and σ is known."""
        if feature != "blocks":
            return None
        if not self.blocks or self.guessed:
            needed = "blocks=True and a known sigma for rewards in blocks"
            return f"algorithm must have {needed}, got {self!r:.60}"
        return self.independent(rewards)

    @property
    def guessed(self) -> bool:
        """Whether `sigma` is only a guess: where rewards are assumed to be Gaussian and come with squares."""
        return bool(self.squares) and self.rewards == "Gaussian"

    def wants_squares(self, rewards: Known = None) -> bool:
        """Of rewards in [0, 1], and of Gaussian ones of unknown σ, if `squares` says so."""
        return bool(self.squares) and (self.guessed or self.model(rewards) == "bounded")

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """A half-width that holds at all counts at once, as counts here depend on rewards; NaN without σ."""
        if self.guessed:
            return np.full(np.shape(pulls), np.nan)
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    @property
    def last_part(self) -> float:
        """c_T = 1/√T: the part of δ for the sign at b_T, to which short races often come."""
        return float(self.deadline**-0.5)

    def last_count(self, n_arms: int, rewards: Known = None) -> int:
        """b_T: with so many rewards each, the sign of a difference errs with c_T δ, if σ is `sigma`."""
        # In blocks the differences of an arm from others depend on each other: a union over pairs.
        arms, pairs = (2, n_arms - 1) if self.blocks else (n_arms, 1)
        miss = self.delta * self.last_part / pairs
        return count(last_count(self.model(rewards), arms, self.epsilon, miss, self.sigma), n_arms)

    def most_pulls(self, n_arms: int, rewards: Known = None) -> int | None:
        """(n + √n) b_T; with T = 1 or in blocks n b_T; None if σ is unknown."""
        last, equal = self.last_count(n_arms, rewards), self.deadline == 1 or self.blocks
        most = n_arms * last + (0 if equal else int(math.sqrt(n_arms) * last))
        return None if self.guessed else most

    def first_count(self, n_arms: int, rewards: Known = None) -> int:
        """b_1 = ⌈4σ² · 1.7 log(√n/δ) / w_1²⌉, at most b_T T^{−0.7}; b_T for T = 1.

        With squares of rewards in [0, 1] ⌈1.7 log(√n/δ) / w_1⌉, which resolves as much where they hardly
        vary. For an unknown σ at least 2.
        """
        last = self.last_count(n_arms, rewards)
        variance, width = 4 * self.sigma**2, self.widths()[0]
        if self.wants_squares(rewards) and not self.guessed:
            variance = width
        pulls = variance * FIRST * math.log(math.sqrt(n_arms) / self.delta) / width**2
        first: int = last if self.deadline == 1 else math.ceil(min(pulls, last * self.deadline**-0.7))
        return max(first, 2) if self.guessed else first

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race: yield the pulls of each round, receive the rewards' sums, return the recommended arms."""
        table = _Table(self, n_arms, replicates, rewards, generator, said=False)
        for now in range(1, self.deadline + 1):
            sums = yield table.pulls()
            table.settle(table.pulls(), sums, now)
            if not table.go_on(now):
                break
        return table.arms

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None
    ) -> LossyGame:
        """Race with rewards that may be missing; after every round it could be stopped."""
        table = _Table(self, n_arms, replicates, rewards, generator, said=True)
        for now in range(1, self.deadline + 1):
            table.settle(*(yield Standing(*table.standing(), table.pulls())), now)
            if not table.go_on(now):
                break
        return Standing(table.arms, table.within)


def stein_count(variance: FloatArray, freedom: IntArray, epsilon: float, miss: float) -> FloatArray:
    """Stein's b = ⌈2 S² t² / ε²⌉: of two arms, ε apart, the worse has the larger sum with α at most.

    S² is the first round's, t Student's quantile of 1 − α. Given S², b is fixed, and the means of the first b
    rewards are independent of S²: their difference over S √(2/b) has Student's law. If ν is 0, b is ∞. (C.
    Stein, Ann. Math. Stat. 16, 1945.)
    """
    quantile = np.maximum(-stdtrit(np.maximum(freedom, 1), miss), 0)
    return np.where(freedom > 0, np.ceil(2 * variance * (quantile / epsilon) ** 2), np.inf)


class _Table:
    """State of the races that go on: replicates × arms, replicates × seats, replicates × seats × arms."""

    BY_RACE = "replicate last counts sums first_sums squares out claimant share left asked final"

    def __init__(
        self, race: StakedElasticBatchRacing, n_arms: int, replicates: int, told: Known, lots: Rng, said: bool
    ) -> None:
        n_arms, replicates = race.entered(n_arms, replicates, told)
        self.race, self.model, self.lots = race, race.model(told), lots or np.random.default_rng()
        margin = [race.margin] if race.margin is not None and race.margin > race.epsilon else []
        self.shifts: FloatArray = np.array([*margin, race.epsilon, 0.0])
        self.place = len(margin)  # of the claims by ε
        coarser = race.epsilon * COARSER ** np.arange(MOST_SHIFTS if said else 0, 0.0, -1.0)
        self.coarser = coarser[coarser < (1 if self.model in IN_UNIT else math.inf)]
        self.other_lots = self.lots.spawn(1)[0] if said else self.lots
        self.planned, self.never = race.last_count(n_arms, told), MOST_PULLS // n_arms
        self.last: IntArray = np.full((replicates, 1), self.planned)  # b_T
        self.spare = max(1, min(race.spare, (race.deadline - 1) // 3))
        # Of all replicates: the recommended arm, and its distance from the best.
        self.arms: IntArray = np.full(replicates, -1)
        self.within: FloatArray = np.full(replicates, race.epsilon)
        self.replicate: IntArray = np.arange(replicates)  # those that go on
        shape, seats = (replicates, n_arms), min(SEATS, n_arms)
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)
        self.sums, self.first_sums, self.squares = np.zeros((3, *shape))  # of all rewards, and the first b_T
        self.squared = race.wants_squares(told) and not race.guessed
        self.out: BoolArray = np.zeros(shape, dtype=bool)
        self.claimant: IntArray = np.zeros((replicates, seats), dtype=np.int64)  # the arm in each seat
        self.share: FloatArray = np.zeros((replicates, seats))  # its part of the round's money
        self.left: FloatArray = np.full(replicates, (1 - SAID) * (1 - race.last_part))  # money for later
        # Logarithms of the purses, and of those of the coarser claims, which are read if a race is stopped.
        self.purses: FloatArray = np.full((len(self.shifts), replicates, seats, n_arms), -np.inf)
        self.said: FloatArray = np.full((len(self.coarser), replicates, seats, n_arms), -np.inf)
        self.asked: IntArray = np.full(shape, race.first_count(n_arms, told))  # pulls of the coming round
        self.final: BoolArray = np.full(shape, race.deadline == 1)  # the arms among which it decides, if any

    def pulls(self) -> IntArray:
        """What to ask for, of all replicates."""
        table = np.zeros((len(self.arms), self.counts.shape[1]), dtype=np.int64)
        table[self.replicate] = self.asked
        return table

    @property
    def beliefs(self) -> Beliefs:
        """Estimates of the arms; for 0 and 1, and in [0, 1] without squares, half of each end is added."""
        if self.squared:
            return believed(self.counts, self.sums, self.squares)
        if self.model in IN_UNIT:
            mean = (self.sums + 0.5) / (self.counts + 1)
            return Beliefs(mean, mean * (1 - mean), self.counts)
        mean = self.sums / np.maximum(self.counts, 1)
        variance = np.full(mean.shape, self.race.sigma**2)
        if self.race.guessed:
            found, freedom = pooled(self.counts, self.sums, self.squares)
            variance = np.where(freedom > 0, found, variance)
        return Beliefs(mean, variance, self.counts)

    def of_claimants(self, table: Any) -> Any:
        """The claimants' entries of a table of arms: replicates × seats."""
        return np.take_along_axis(table, self.claimant, axis=1)

    def held(self, place: int) -> BoolArray:
        """Where a seat's claims against an arm, down to the shift at a place, hold or need not hold."""
        held = (self.purses[: place + 1] >= 0).all(axis=0) | self.out[:, None, :]
        np.put_along_axis(held, self.claimant[:, :, None], True, axis=2)
        return np.asarray(held)

    def settle(self, came: IntArray, sums: FloatArray, now: int) -> None:
        """Take in a round's rewards: pay the claims, see who is out, and end the races that are decided."""
        told: FloatArray = np.asarray(sums, dtype=np.float64)[..., self.replicate, :]
        both = told.ndim == 3
        require(both or not self.race.guessed, "sums", "come with sums of squares", "sums alone")
        self.came = came[self.replicate]
        self.fresh: FloatArray = told[0] if both else told
        self.fresh_squares: FloatArray = told[1] if both else told
        if now == 1 and self.race.deadline > 1:
            self._open()
        self._pay()
        self.counts = self.counts + self.came
        self.sums = self.sums + self.fresh
        self.squares = self.squares + self.fresh_squares
        self.first_sums = np.where(self.counts <= self.last, self.sums, self.first_sums)
        if self.race.control is not None and self.race.margin is not None:  # nobody is better by the margin
            seated = (self.claimant == self.race.control) & ~self.of_claimants(self.out)
            futile = (self.held(0).all(axis=2) & seated).any(axis=1)
            self.within[self.replicate[futile]] = self.race.margin
            self._end(futile, np.full(len(futile), self.race.control))
        won = np.asarray(self.held(self.place).all(axis=2) & ~self.of_claimants(self.out))
        best = np.where(won, self.of_claimants(self.beliefs.mean), -np.inf).argmax(axis=1)
        self._end(np.asarray(won.any(axis=1)), self.claimant[np.arange(len(best)), best])
        decided = np.asarray((~self.out).sum(axis=1) < 2)  # nobody is in with δ at most
        self._end(decided, np.asarray(self.out.argmin(axis=1)))
        complete = (~self.final | (self.counts >= self.last)).all(axis=1) & self.final.any(axis=1)
        self._end(np.asarray(complete), np.where(self.final, self.first_sums, -np.inf).argmax(axis=1))
        if now == self.race.deadline:
            arms, self.within = self.standing()
            self._end(np.ones(len(self.replicate), dtype=bool), arms[self.replicate])

    def standing(self) -> tuple[IntArray, FloatArray]:
        """What each replicate would recommend if stopped now: an arm, and its distance from the best."""
        known = np.logical_and.accumulate(self.said >= 0, axis=0)
        steps = np.concatenate([[np.inf], self.coarser])
        shift = np.where(self.held(self.place), self.race.epsilon, steps[known.sum(axis=0)])
        least = np.where(self.of_claimants(self.out), np.inf, shift.max(axis=2))
        mean = np.where(self.counts > 0, self.beliefs.mean, -np.inf)
        order = np.lexsort((-self.of_claimants(mean), least))[:, 0]
        rows = np.arange(len(order))
        leader = np.where(self.counts.any(axis=1), np.where(self.out, -np.inf, mean).argmax(axis=1), -1)
        arms, within = self.arms.copy(), self.within.copy()
        within[self.replicate] = found = least[rows, order]
        arms[self.replicate] = np.where(np.isinf(found), leader, self.claimant[rows, order])
        return arms, within

    def go_on(self, now: int) -> bool:
        """Decide on the next round; whether any race goes on."""
        if now + 1 < self.race.deadline:
            self.stake(now)
            self.plan(now)
        elif now < self.race.deadline:
            self.enter_final(np.ones(len(self.replicate), dtype=bool))
        return len(self.replicate) > 0

    def _open(self) -> None:
        """The first round's money: the same for all n arms. Only those with the largest sums take seats."""
        race, n_arms = self.race, self.fresh.shape[1]
        order = self.fresh / np.maximum(self.came, 1)
        if race.control is not None:
            order[:, race.control] = np.inf
        self.claimant = np.argsort(-order, axis=1, kind="stable")[:, : self.claimant.shape[1]]
        given = (1 - SAID) * (1 - race.last_part) * min(1.0, 2 / (race.deadline - 1))
        self.left = self.left - given
        self.purses[:] = math.log(race.delta * given / n_arms)
        self.said[:] = math.log(SAID / (1 - SAID)) + self.purses[0]
        if race.guessed:  # Stein's b_T; there is no final where it is out of reach
            spread = pooled(self.came, self.fresh, self.fresh_squares)
            least = stein_count(*spread, race.epsilon, race.delta * race.last_part / (n_arms - 1))
            last = np.maximum(least, self.came.max(axis=1, keepdims=True))
            self.last = np.minimum(last, self.never).astype(np.int64)

    def _end(self, ended: BoolArray, arms: IntArray) -> None:
        """End some races with these arms, and go on with the others."""
        if ended.any():
            self.arms[self.replicate[ended]] = arms[ended]
            for name in self.BY_RACE.split():
                setattr(self, name, getattr(self, name)[~ended])
            self.purses, self.said = (np.compress(~ended, it, axis=1) for it in (self.purses, self.said))

    def _pay(self) -> None:
        """Settle the bets on all claims that do not hold yet, where rewards of both arms came."""
        pulled = (self.came > 0) & ~self.out
        live = (self.purses > -np.inf).all(axis=0) & (self.purses < 0).any(axis=0)
        live &= self.of_claimants(pulled)[:, :, None] & pulled[:, None, :]
        np.put_along_axis(live, self.claimant[:, :, None], False, axis=2)
        if self.race.guessed:
            live &= pooled(self.came, self.fresh, self.fresh_squares)[1][:, :, None] > 0
        self._bet(self.purses, self.shifts, live, self.lots)
        if len(self.coarser):
            self._bet(self.said, self.coarser, live, self.other_lots)

    def _told(self, lots: Generator) -> tuple[str, list[Any]]:
        """The model of a round's bets, and what `paid` is told of each arm beside its rewards."""
        if self.squared:
            return self.model, [self.fresh_squares]
        if self.race.guessed:
            variance, freedom = pooled(self.came, self.fresh, self.fresh_squares)
            return self.model, [np.sqrt(variance), freedom]
        if self.model not in IN_UNIT:
            return self.model, [self.race.sigma]
        if self.model == "bounded" or int(self.came.max()) > MOST_TESTED:
            return "bounded", []
        return self.model, [lots.random(self.came.shape)]

    def _bet(self, purses: FloatArray, shifts: FloatArray, live: BoolArray, lots: Generator) -> None:
        """Settle the bets on these claims, with lots for ties and then for each shift.

        Of many claims the likeliest claimant's come first: none against an arm that it puts out is looked at
        again.
        """
        (model, told), fresh, (_, seats, n_arms) = self._told(lots), self.fresh, live.shape
        sums = [(fresh, fresh)] * len(shifts)
        if model == "Bernoulli":
            sums = [thinned(fresh, self.came, shift, lots) for shift in shifts]
        known = (np.broadcast_to(each, fresh.shape).ravel() for each in (self.came, *self.beliefs, *told))
        table, claimants = np.array([*known], dtype=np.float64), self.claimant.ravel()
        first = np.arange(seats) == self.share.argmax(axis=1)[:, None]
        for some in (first, ~first) if live.size > AT_ONCE else (first | True,):
            # Places in flat tables are found faster.
            claim = np.flatnonzero(live & some[:, :, None] & ~self.out[:, None, :])
            for claims, shift, (raised, lowered) in zip(purses, shifts, sums, strict=True):
                due = claim[claims.take(claim) < 0]
                for where in np.split(due, range(AT_ONCE, len(due), AT_ONCE)):
                    seat, other = np.divmod(where, n_arms)
                    arms = seat // seats * n_arms  # where the arms of a claim's replicate begin
                    k, b = arms + claimants[seat], arms + other
                    mine, theirs = (table.take(arm, axis=1) for arm in (k, b))
                    pairs = Pairs(raised.ravel()[k], mine[0], lowered.ravel()[b], theirs[0])
                    believe = [Beliefs(*of[1:4]) for of in (mine, theirs)]
                    both = [*(mine[4:] if self.squared else ()), *theirs[4:]]  # else alike, or the rival's
                    claims.put(where, paid(claims.take(where), pairs, shift, believe, model, both))
            self.out = self.out | np.any((self.purses >= 0).all(axis=0), axis=1)

    def stake(self, now: int) -> None:
        """Seat the arms that may be better than the leader by ε/2, and stake money on their claims."""
        beliefs, rows = self.beliefs, np.arange(len(self.replicate))
        lead = np.where(self.out, -np.inf, beliefs.mean).argmax(axis=1)
        error = beliefs.variance / np.maximum(beliefs.counts, 1)
        ahead = beliefs.mean - beliefs.mean[rows, lead][:, None] - self.race.epsilon / 2
        chance = ndtr(ahead / np.sqrt(error + error[rows, lead][:, None]))
        chance = np.where((chance < UNLIKELY) | self.out, 0.0, chance)
        chance[rows, lead] = 0.5
        if (control := self.race.control) is not None:
            chance[:, control] = np.where(self.out[:, control], 0, np.maximum(chance[:, control], CONTROL))
        self._seat(chance)
        self.share = self.of_claimants(chance)
        self.share /= self.share.sum(axis=1, keepdims=True)
        clear = (self.share**2).sum(axis=1)  # how clearly one of them stands out: 1 if it is alone
        given = self.left * (1 if now + 2 == self.race.deadline else self.race.rate * clear)
        self.left = self.left - given
        with np.errstate(divide="ignore"):  # who is out gets nothing
            money = np.log(self.race.delta * given[:, None] * self.share)
        self.purses = _given(self.purses, money)
        self.said = _given(self.said, money + math.log(SAID / (1 - SAID)))

    def _seat(self, chance: FloatArray) -> None:
        """Give the seats to the arms with the largest chances; those that stay keep seat and purses."""
        best = np.argsort(-chance, axis=1, kind="stable")[:, : self.claimant.shape[1]]
        same = self.claimant[:, :, None] == best[:, None, :]
        rows, free = np.nonzero(~same.any(axis=2))
        self.claimant[rows, free] = best[~same.any(axis=1)]  # in each row as many come as leave
        self.purses[:, rows, free] = self.said[:, rows, free] = -np.inf

    def finalists(self) -> BoolArray:
        """The smallest sets of arms of which each has claims that hold against all arms outside the set.

        A set is grown from each claimant. An arm without a seat has no claims, so the set of all arms that
        are in is the fallback.
        """
        held, seated = self.held(self.place), np.zeros(self.out.shape, dtype=bool)
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

    def enter_final(self, which: BoolArray, cost: FloatArray | float = 0.0) -> None:
        """Let the coming round decide these races, and others if that is cheaper; end what lacks nothing."""
        final = self.finalists()
        lacking = np.where(final, np.maximum(self.last - self.counts, 0), 0)
        which = which | (lacking.sum(axis=1) < cost)
        self.final = final & which[:, None]
        wanted = np.minimum(lacking, np.where(self.last < self.never, self.last, self.planned))
        self.asked = np.where(which[:, None], wanted, self.asked)
        self._end(which & ~lacking.any(axis=1), np.where(final, self.first_sums, -np.inf).argmax(axis=1))

    def plan(self, now: int) -> None:
        """Ask for the pulls that the likeliest claimant needs, at the race's pace; or enter the final."""
        rows, race = np.arange(len(self.replicate)), self.race
        have = np.maximum(self.counts.sum(axis=1), 1).astype(np.float64)
        late = max(0, self.spare - (race.deadline - 2 - now)) / self.spare
        final = (~self.out).sum(axis=1) * self.last[:, 0]
        reach = np.maximum(race.reach, late * np.sqrt(2 * np.log1p(final / have)))[:, None]
        hope = 0.0 if late else race.hope
        seat = self.share.argmax(axis=1)
        claimant, need = self.claimant[rows, seat], self.needed(seat, self.place, reach, hope)
        if race.control is not None:  # the race may end with the control, if that is cheaper
            at = (self.claimant == race.control).argmax(axis=1)
            other = self.needed(at, 0, reach, hope)
            cheaper = (self.claimant[rows, at] == race.control) & ~self.out[:, race.control]
            cheaper &= other.sum(axis=1) < need.sum(axis=1)
            claimant = np.where(cheaper, race.control, claimant)
            need = np.where(cheaper[:, None], other, need)
        cost = need.sum(axis=1)
        part = allocation.paced(have, cost, max(race.deadline - 1 - self.spare - now, 1))
        asked = np.ceil(need * part[:, None])
        if race.blocks:
            seen = self.out | (self.counts >= self.last)
            asked = np.where(seen, 0.0, np.ceil(asked.mean(axis=1, keepdims=True, where=~self.out)))
        self.asked = allocation.within(asked, self.counts, self.last, self.out)
        self.final = np.zeros_like(self.out)
        stuck = self.asked[rows, claimant] == 0
        least = self.last[:, 0] - np.where(self.out, 0, self.counts).max(axis=1)  # a final costs no less
        if (stuck | (cost > least)).any():
            self.enter_final(stuck, cost)

    def needed(self, seat: IntArray, place: int, reach: FloatArray, hope: float) -> FloatArray:
        """The pulls with which the claims of one seat each, by the shift at a place, may all be paid."""
        beliefs, rows, race = self.beliefs, np.arange(len(seat)), self.race
        claimant, open_ = self.claimant[rows, seat], ~self.held(place)[rows, seat]
        mean = beliefs.mean[rows, claimant][:, None]
        gap = mean - beliefs.mean + hope * np.sqrt(beliefs.variance / np.maximum(beliefs.counts, 1))
        shift = float(self.shifts[place])
        lowest = math.log(race.delta) - allocation.FARTHEST
        nats = -np.clip(self.purses[place, rows, seat], lowest, -allocation.NEAREST)
        far = np.maximum(gap + shift, allocation.LEAST_GAP * shift)
        width = far / (np.sqrt(2 * nats) + reach)  # the error of a difference at which its claim is paid
        variance = beliefs.variance
        own = beliefs.variance[rows, claimant]
        if self.squared:  # no stake may be larger than the range allows
            linear = allocation.LINEAR * np.maximum(gap + shift, 0)
            variance = variance + linear
            own = own + np.where(open_, linear, np.inf).min(axis=1)
        elif self.model in IN_UNIT:  # a test takes both arms to be alike
            between = (mean + beliefs.mean) / 2
            variance = np.maximum(variance, between * (1 - between))
        return allocation.cheapest(np.where(open_, width, np.inf), variance, own, claimant)


def _given(purses: FloatArray, money: FloatArray) -> FloatArray:
    """Purses with money put into them, by logarithm. Rewards alone pay in full."""
    more = np.minimum(np.logaddexp(purses, money[:, :, None]), -1e-12)
    return np.where(purses >= 0, 0.0, more)  # a purse that is no number holds nothing
