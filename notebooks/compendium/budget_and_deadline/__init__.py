"""The room of notebook 15."""
