"""What may be known of rewards: the names of their models, which load in no time."""

# That they are 0 and 1, that they lie in [0, 1], that they are normal with the algorithm's σ, or only that
# they are σ-sub-Gaussian.
REWARDS = ("Bernoulli", "bounded", "Gaussian", "sub-Gaussian")
IN_UNIT = ("Bernoulli", "bounded")  # those of them that say that rewards lie in [0, 1]
