"""The room of notebook A1."""
