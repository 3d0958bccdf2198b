"""What the tests of journals and races share."""

import os
import random

import pytest


@pytest.fixture(scope="module", autouse=True)
def unkept():
    """Tests alter what is simulated, so they neither read nor write the cache of results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EBR_CACHE", raising=False)
        yield


@pytest.fixture(autouse=True)
def lots(request, monkeypatch):
    """Seeds of new journals differ from race to race, and are the same whenever a test is run."""
    monkeypatch.setattr("secrets.randbits", random.Random(request.node.nodeid).getrandbits)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trial.jsonl"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of the test's own, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command in this process: its status, and what it says; a refusal is one line and nothing else."""
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
    """Skip flushing to the disk: it takes most of the time, and other processes see the same bytes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def few_experiments(monkeypatch):
    """A plan simulates two experiments only: these tests do not look at its means."""
    monkeypatch.setattr("ebr.live.plan.RUNS", 2)
