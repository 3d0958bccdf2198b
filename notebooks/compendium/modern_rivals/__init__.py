"""The room of notebook 16."""
