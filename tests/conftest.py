"""What the tests of journals and races share."""

import os
import random

import pytest


@pytest.fixture(scope="module", autouse=True)
def unkept():
    """Tests alter what is simulated, so they neither use nor leave results that are kept."""
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
    """Flushing changes nothing that another process sees, and takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def few_experiments(monkeypatch):
    """Means of a plan, which are not what is looked at: two experiments each."""
    monkeypatch.setattr("ebr.live.plan.RUNS", 2)
