"""The room of notebook 06."""
