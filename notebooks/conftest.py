"""nbval compares every stream; progress bars go to stderr and differ from run to run."""

import pytest


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Leave stderr out of nbval's comparison."""
    if collector.nodeid.endswith(".ipynb"):
        collector.skip_compare += ("stderr",)
