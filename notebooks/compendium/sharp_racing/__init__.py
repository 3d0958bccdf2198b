"""The room of notebook 09."""
