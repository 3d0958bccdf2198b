"""The table of a race's arms, for many replicates at once."""

import numpy as np

from ebr.arrays import BoolArray, FloatArray, IntArray


class Survivors:
    """S_t and the sums of its arms' rewards, which compare as means do if all arms are pulled equally often.

    Arrays are arms × replicates, because draws are made arm by arm. They hold only the arms that survive in
    some replicate that is still running. With k > 1 the survivors are the undecided arms: a dropped arm has
    the sum −∞, an accepted arm +∞, so the k-th largest sum is that of the last arm that has a place.
    """

    def __init__(self, n_arms: int, replicates: int, k: int = 1) -> None:
        self.running: BoolArray = np.ones(replicates, dtype=bool)
        # Of replicates that have ended: the arms with the k largest sums, or −1 if no arm was left. For k > 1
        # it has k columns, arms in the order of their numbers.
        self.leader: IntArray = np.zeros(replicates if k == 1 else (replicates, k), dtype=np.int64)
        self.first: FloatArray = np.zeros(replicates)  # the k-th largest sum after a replicate's last round
        self._second: FloatArray = np.zeros(replicates)  # for k > 1
        self._k = k
        self._shape = (n_arms, replicates)
        self._arms = np.arange(n_arms)
        self._sums = np.zeros(self._shape)

    @property
    def _alive(self) -> BoolArray:
        return np.isfinite(self._sums)  # neither dropped nor accepted

    def pulls(self, each: IntArray | int) -> IntArray:
        """The pulls to ask for: `each` of every survivor, one number or one per replicate."""
        table = np.zeros(self._shape, dtype=np.int64)
        table[self._arms] = self._alive * (self.running * each)
        return table.T

    def add(self, sums: FloatArray) -> None:
        """Add the sums of a round's rewards."""
        self._sums += sums.T[self._arms]
        if self._k == 1:
            largest = self._sums.max(axis=0)
        else:
            places = len(self._arms) - self._k - 1, len(self._arms) - self._k
            self._second, largest = np.partition(self._sums, places, axis=0)[list(places)]
        self.first = np.where(self.running, largest, self.first)

    def second(self) -> FloatArray:
        """The next largest sum: for k = 1 the runner-up's, −∞ where the leader is alone."""
        if self._k > 1:
            return self._second
        rivals = self._sums.copy()
        np.put_along_axis(rivals, rivals.argmax(axis=0, keepdims=True), -np.inf, axis=0)
        return np.asarray(rivals.max(axis=0))

    def against(self, arm: int) -> tuple[FloatArray, FloatArray]:
        """An arm's sum, −∞ if it is dropped, and the largest of all other survivors'; for k = 1."""
        own = self._arms == arm
        one, others = (self._sums[rows].max(axis=0, initial=-np.inf) for rows in (own, ~own))
        return one, others

    def last(self) -> FloatArray:
        """The smallest sum of a survivor; the leader's if it is alone."""
        lowest = np.where(self._alive, self._sums, np.inf).min(axis=0)
        return np.asarray(np.minimum(lowest, self.first))

    def drop(self, reach: FloatArray | float) -> None:
        """Drop every arm that is more than `reach` behind the k-th."""
        self.discard((self._sums < self.first - reach) & self.running)

    def discard(self, dropped: BoolArray) -> None:
        """Drop these arms."""
        np.putmask(self._sums, dropped, -np.inf)

    def accept(self, reach: FloatArray | float) -> None:
        """Accept every arm that is more than `reach` ahead of the (k+1)-th, if k > 1."""
        accepted = (self._sums > self._second + reach) & self.running
        np.putmask(self._sums, accepted, np.inf)

    def size(self) -> IntArray:
        """How many arms survive in each replicate that runs."""
        return np.asarray(np.add.reduce(self._alive, axis=0, dtype=np.int32))

    def end(self, ended: BoolArray, arms: IntArray | None = None) -> None:
        """End some replicates with these arms or, without them, with those that have the k largest sums."""
        ending = np.flatnonzero(self.running & ended)
        if len(ending):
            self.leader[ending] = self._leading(self._sums[:, ending]) if arms is None else arms[ending]
            self.running[ending] = False
        # Remove the arms that no replicate pulls any more; an accepted arm still has its place.
        needed = np.asarray(((self._sums > -np.inf) & self.running).any(axis=1))
        if 0 < np.count_nonzero(needed) < 0.8 * len(needed):  # a few dead rows cost less than a copy
            self._arms = self._arms[needed]
            self._sums = self._sums[needed]

    def _leading(self, sums: FloatArray) -> IntArray:
        """The arms with the k largest sums."""
        if self._k > 1:
            leading = np.argsort(-sums, axis=0, kind="stable")[: self._k]  # of equals, the first ones
            return np.asarray(np.sort(self._arms[leading], axis=0).T)
        leader = sums.argmax(axis=0)
        nobody = np.isinf(sums[leader, np.arange(len(leader))])
        return np.where(nobody, -1, self._arms[leader])
