"""The room of notebook 08."""
