"""The mathematics: problems, confidence, divergence, bounds, schedules, policies; nothing random."""
