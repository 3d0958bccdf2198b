"""The room of notebook 11."""
