"""The room of notebook 13."""
