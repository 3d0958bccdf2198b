"""For each claim, its check and the same check with planted errors; one module per notebook."""
