"""The room of notebook 01."""
