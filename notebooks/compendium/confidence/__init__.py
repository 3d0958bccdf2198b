"""The room of notebook 02."""
