"""The checks of this paper's claims: a room for each notebook, and what they share."""
