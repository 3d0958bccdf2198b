"""The room of notebook 18."""
