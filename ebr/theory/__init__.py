"""The mathematics: problems, confidence, divergence, bounds, tests of pairs, bets; nothing random."""
