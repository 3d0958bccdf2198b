"""For each claim the check as it is, and the same with errors planted in the mathematics; a module a notebook."""
