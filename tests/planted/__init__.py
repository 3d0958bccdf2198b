"""For each claim the check as it is, and the same with planted errors; a module a notebook."""
