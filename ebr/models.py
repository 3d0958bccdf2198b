"""The names of reward models and of races, which load in no time."""

# That they are 0 and 1, that they lie in [0, 1], that they are normal with the algorithm's σ, or only that
# they are σ-sub-Gaussian.
REWARDS = ("Bernoulli", "bounded", "Gaussian", "sub-Gaussian")
IN_UNIT = ("Bernoulli", "bounded")  # those of them that say that rewards lie in [0, 1]
RACES = ("sharp", "pausing", "staked", "certified", "ebr")  # a plan compares all but the last
