"""Races of simulated rewards, one after another or many at once, on cores or a cluster."""
