"""The room of notebook 10."""
