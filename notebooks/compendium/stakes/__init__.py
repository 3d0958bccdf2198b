"""The room of notebook 17."""
