"""What only notebook 20 uses: what trials need."""
