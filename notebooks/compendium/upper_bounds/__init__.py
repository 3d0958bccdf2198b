"""The room of notebook 03."""
