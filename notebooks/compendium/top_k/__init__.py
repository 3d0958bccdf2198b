"""The room of notebook 14."""
