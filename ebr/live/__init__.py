"""Races of real rewards: a journal that outlives the process, plans, pictures, the command line."""
