"""The room of notebook 04."""
