"""What the notebooks share, and one module for each of them: the checks of this paper's claims."""
