"""What two or more notebooks use."""
