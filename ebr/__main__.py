"""`python -m ebr`: the command line."""

import sys


def main() -> int:
    """Run a command; an interrupt while it is loaded ends it, too."""
    try:
        from ebr.live import cli

        return cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
