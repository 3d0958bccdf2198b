"""The room of notebook 05."""
