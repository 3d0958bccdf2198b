"""The arms still in a race, S_t, for many replicates at once."""

import numpy as np

from ebr.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Survivors"]


class Survivors:
    """S_t and the sums of its arms' rewards.

    All survivors of a replicate have been pulled equally often, so their sums compare as their means do.
    Arrays are arms × replicates, as draws are made arm by arm, and hold only the arms that survive in
    some replicate that is still running.

    Attributes
    ----------
    running
        Which replicates go on.
    first
        The largest sum in each replicate, as of the last round that it played: the leader's.
    leader
        Whose it is, for replicates that have ended; −1 if nobody was left.
    """

    def __init__(self, n_arms: int, replicates: int) -> None:
        self.running: BoolArray = np.ones(replicates, dtype=bool)
        self.leader: IntArray = np.zeros(replicates, dtype=np.int64)
        self.first: FloatArray = np.zeros(replicates)
        self._shape = (n_arms, replicates)
        self._replicates = np.arange(replicates)
        self._arms = np.arange(n_arms)
        self._alive = np.ones(self._shape, dtype=bool)
        self._sums = np.zeros(self._shape)  # −∞ for an arm that is dropped

    def pulls(self, each: IntArray | int) -> IntArray:
        """What to ask for: so many pulls (one number, or one a replicate) of every survivor."""
        asked: IntArray = self._alive * (self.running * each)
        if len(asked) == self._shape[0]:
            return asked.T
        table = np.zeros(self._shape, dtype=np.int64)
        table[self._arms] = asked
        return table.T

    def add(self, sums: FloatArray) -> None:
        """Take in the rewards' sums of a round."""
        self._sums += sums.T if len(self._arms) == len(sums.T) else sums.T[self._arms]
        self.first = np.where(self.running, self._sums.max(axis=0), self.first)

    def second(self) -> FloatArray:
        """The largest sum but the leader's; −∞ where the leader is alone."""
        rivals = self._sums.copy()
        rivals[rivals.argmax(axis=0), self._replicates] = -np.inf
        return np.asarray(rivals.max(axis=0))

    def last(self) -> FloatArray:
        """The smallest sum of a survivor, which the leader's is where there is no other."""
        lowest = np.where(self._alive, self._sums, np.inf).min(axis=0)
        return np.asarray(np.minimum(lowest, self.first))

    def drop(self, reach: FloatArray | float) -> None:
        """Drop every arm that is more than `reach` behind the leader."""
        dropped = (self._sums < self.first - reach) & self.running
        self._alive &= ~dropped
        np.putmask(self._sums, dropped, -np.inf)

    def size(self) -> IntArray:
        """How many arms survive in each replicate that runs."""
        return np.asarray(np.add.reduce(self._alive, axis=0, dtype=np.int32))

    def end(self, ended: BoolArray) -> None:
        """End some replicates, and forget the arms that nobody pulls any more."""
        ending = np.flatnonzero(self.running & ended)
        if len(ending):
            sums = self._sums if len(ending) == len(ended) else self._sums[:, ending]
            leader = sums.argmax(axis=0)
            nobody = np.isinf(sums[leader, np.arange(len(ending))])
            self.leader[ending] = np.where(nobody, -1, self._arms[leader])
            self.running[ending] = False
        needed = np.asarray((self._alive & self.running).any(axis=1))
        if 0 < np.count_nonzero(needed) < 0.8 * len(needed):  # a few dead rows cost less than a copy
            self._arms = self._arms[needed]
            self._alive = self._alive[needed]
            self._sums = self._sums[needed]
