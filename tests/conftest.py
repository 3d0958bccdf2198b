"""Fixtures that tests share."""

import os
import random

import pytest


@pytest.fixture(scope="module", autouse=True)
def unkept():
    """Tests alter what is simulated, so they do not use the cache of results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EBR_CACHE", raising=False)
        yield


@pytest.fixture(autouse=True)
def lots(request, monkeypatch):
    """Seeds of new journals differ between races, and are the same each time a test is run."""
    monkeypatch.setattr("secrets.randbits", random.Random(request.node.nodeid).getrandbits)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trial.jsonl"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A temporary folder that the test runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command in this process; return its status and its output. A refusal must be a single line."""
    from ebr.live.cli import main

    def run(*words):
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        assert (status == 2) == said.err.startswith("error: ")
        if status == 2:
            assert said.out == ""
            assert said.err.count("\n") == 1
        return status, said.out or said.err

    return run


@pytest.fixture
def unflushed(monkeypatch):
    """Skip flushing to the disk, which takes most of the time. Other processes see the same bytes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def few_experiments(monkeypatch):
    """A plan simulates only two experiments, for tests that do not read its means."""
    monkeypatch.setattr("ebr.live.plan.RUNS", 2)
