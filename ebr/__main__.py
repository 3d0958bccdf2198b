"""`python -m ebr`: the command line."""

import os
import signal
import sys


def _leave(*_: object) -> None:
    """End at once, without a traceback: numpy makes another error of an interrupt while it is loaded."""
    os.write(2, b"interrupted: python -m ebr status JOURNAL says what was recorded\n")
    os._exit(130)


def main() -> int:
    """Run a command; an interrupt ends it, also while modules are loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it is ignored in the background
        signal.signal(signal.SIGINT, _leave)
    from ebr.live import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
