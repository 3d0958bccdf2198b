"""What the tests of journals and races share."""

import os

import pytest


@pytest.fixture(scope="module", autouse=True)
def unkept():
    """Tests alter what is simulated, so they neither use nor leave results that are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EBR_CACHE", raising=False)
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trial.jsonl"


@pytest.fixture
def unflushed(monkeypatch):
    """Flushing changes nothing that another process sees, and takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def few_experiments(monkeypatch):
    """Typical totals of a plan, which are not what is looked at: two experiments, for its deadline alone."""
    monkeypatch.setattr("ebr.live.typical.RUNS", 2)
    monkeypatch.setattr("ebr.live.typical._deadlines", lambda algorithm: [algorithm.deadline])
