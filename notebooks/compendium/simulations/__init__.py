"""The room of notebook 07."""
