"""Pictures of a race and of a plan."""

from pathlib import Path

__all__ = ["STYLE"]

STYLE = Path(__file__).with_name("ebr.mplstyle")
