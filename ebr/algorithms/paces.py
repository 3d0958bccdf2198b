"""The arms of a race in which each has a pace of its own, for many replicates at once."""

import numpy as np

from ebr.arrays import BoolArray, FloatArray, IntArray


class Paces:
    """Each arm's stage, the sum of its rewards, and who is certified against it.

    An arm at stage s has been pulled b_s times, b_0 = 0. Arrays have one entry for each arm that is still in
    a race that goes on, replicate by replicate; `leader` and `best` have one for each replicate.

    Attributes
    ----------
    replicate, arm
        Which arm of which replicate an entry is.
    sums, stage, aim
        The sum of the rewards, the stage, and the stage to which the coming round is to take the arm.
    rested
        Whether the arm was not pulled in the last round.
    certifier
        The arm that is certified not to be worse than this one by ε, −1 where none is; a leader's is itself.
    open
        Whether the arm may be better than the leader by ε, for all that is certified.
    leader, best
        The leader, its last one where a race has ended, and the sum of its rewards.
    """

    def __init__(self, n_arms: int, replicates: int) -> None:
        size = n_arms * replicates
        self.replicate: IntArray = np.repeat(np.arange(replicates), n_arms)
        self.arm: IntArray = np.tile(np.arange(n_arms), replicates)
        self.sums: FloatArray = np.zeros(size)
        self.stage: IntArray = np.zeros(size, dtype=np.int64)
        self.aim: IntArray = np.ones(size, dtype=np.int64)
        self.rested: BoolArray = np.zeros(size, dtype=bool)
        self.certifier: IntArray = np.full(size, -1)
        self.open: BoolArray = np.ones(size, dtype=bool)
        self.leader: IntArray = np.full(replicates, -1)
        self.best: FloatArray = np.zeros(replicates)
        self._shape = (n_arms, replicates)  # of tables: draws are made arm by arm
        self._place = self.arm * replicates + self.replicate  # in a table
        self._pulled: IntArray = np.zeros(0, dtype=np.int64)  # the entries of the coming round

    def pulls(self, counts: IntArray) -> IntArray:
        """What to ask for, replicates × arms: every arm from its stage to its aim."""
        table = np.zeros(self._shape, dtype=np.int64)
        self._pulled = np.flatnonzero(self.aim > self.stage)
        asked = counts[self.aim[self._pulled]] - counts[self.stage[self._pulled]]
        table.ravel()[self._place[self._pulled]] = asked
        return table.T

    def add(self, sums: FloatArray) -> None:
        """Take in the rewards' sums of a round."""
        self.sums[self._pulled] += sums.T.ravel()[self._place[self._pulled]]
        self.rested = self.stage == self.aim
        self.stage = self.aim

    def lead(self, stage: int) -> None:
        """Find the leaders: the largest sums, the first of those that tie, at this stage, the highest."""
        highest = np.flatnonzero(self.stage == stage)
        replicate = self.replicate[highest]
        first = _firsts(replicate)
        self.best[replicate[first]] = np.maximum.reduceat(self.sums[highest], first)
        winners = highest[self.sums[highest] == self.best[replicate]]
        winners = winners[_firsts(self.replicate[winners])]
        self.leader[self.replicate[winners]] = self.certifier[winners] = self.arm[winners]
        self.open = self.certifier != self.leader[self.replicate]

    @property
    def leads(self) -> BoolArray:
        """Whether each arm is its replicate's leader."""
        return np.asarray(self.arm == self.leader[self.replicate])

    def certify(self, chosen: IntArray) -> None:
        """Let their leaders be certified against these arms."""
        self.certifier[chosen] = self.leader[self.replicate[chosen]]
        self.open[chosen] = False

    def keep(self, dropped: IntArray) -> None:
        """Go on without the dropped arms, in the replicates where some arm is open."""
        going = np.zeros(len(self.leader), dtype=bool)
        going[self.replicate[self.open]] = True
        kept = going[self.replicate]
        kept[dropped] = False
        if not kept.all():
            places = np.flatnonzero(kept)
            for name in ("replicate", "arm", "sums", "stage", "rested", "certifier", "open", "_place"):
                setattr(self, name, getattr(self, name).take(places))


def _firsts(replicate: IntArray) -> IntArray:
    """Where each replicate's entries begin."""
    return np.flatnonzero(np.concatenate([[True], replicate[1:] != replicate[:-1]])[: len(replicate)])
