"""The room of notebook 12."""
