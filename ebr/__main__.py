"""`python -m ebr`: the command line."""

import sys

from ebr.live.cli import main

if __name__ == "__main__":
    sys.exit(main())
