"""A fixture that tests of two notebooks share."""

import pandas as pd
import pytest

PULLS = {"EBR": 1.0, "kδER": 600.0, "AE": 300.0, "sequential": 0.5, "passive": 200.0}
ALONG_T = {
    "EBR": {1: 1, 2: 0.1, 50: 1 / 300},
    "AE": {1: 1, 2: 2, 50: 3},
    "sequential": dict.fromkeys((1, 2, 50), 0.001),
}


@pytest.fixture
def fulfilled():
    """A table of Figure 2 that fulfils every claim: with T, EBR falls 300-fold, AE rises, others stay."""
    places = [("T", t, 0.01) for t in (1, 2, 50)] + [("ε", 15, e) for e in (0.1, 0.3)]
    return pd.DataFrame(
        {"sweep": sweep, "setup": setup, "algorithm": name, "deadline": deadline, "epsilon": epsilon}
        | {"pulls": pulls * ALONG_T.get(name, {}).get(deadline, 1), "error": 0.0, "failures": 0, "runs": 100}
        for setup in ("Setup 1", "Setup 2")
        for sweep, deadline, epsilon in places
        for name, pulls in PULLS.items()
    )
