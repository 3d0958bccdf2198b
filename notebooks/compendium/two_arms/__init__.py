"""The room of notebook 19."""
