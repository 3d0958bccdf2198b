"""What the tests of journals and races share."""

import os

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trial.jsonl"


@pytest.fixture
def unflushed(monkeypatch):
    """Flushing changes nothing that another process sees, and takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
