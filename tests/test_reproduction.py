"""Run after the notebooks' tests: the numbers that they wrote are the committed ones."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

COMMITTED = Path(__file__).parents[1] / "figures"
RELATIVE = 1.1e-8  # one unit of the ninth digit, which rounding may change

pytestmark = pytest.mark.reproduction


def differences(committed, fresh):
    """The differences between two folders of figures, in words; none if the fresh one reproduces."""
    names = [
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob("[!.]*.*"))
        for folder in (committed, fresh)
    ]
    found = [f"{name} is in one folder only" for name in sorted(set(names[0]) ^ set(names[1]))]
    for name in sorted(set(names[0]) & set(names[1])):
        try:
            if name.endswith(".csv"):
                pd.testing.assert_frame_equal(
                    pd.read_csv(committed / name), pd.read_csv(fresh / name), rtol=RELATIVE, atol=0
                )
            elif name.endswith(".json"):
                old, new = (json.loads((folder / name).read_text("utf-8")) for folder in (committed, fresh))
                assert words(old) == words(new)
                assert numbers(new) == pytest.approx(numbers(old), rel=RELATIVE, abs=0)
        except AssertionError as error:
            found.append(f"{name}: {error}")
    return found


def words(data):
    """The same data with every number replaced by 0."""
    if isinstance(data, dict):
        return {key: words(value) for key, value in data.items()}
    if isinstance(data, list):
        return [words(value) for value in data]
    return data if isinstance(data, str) else 0


def numbers(data):
    """All numbers, in order."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else None
    if inner is not None:
        return [number for value in inner for number in numbers(value)]
    return [] if isinstance(data, str) else [data]


def test_the_notebooks_wrote_the_committed_numbers():
    fresh = os.environ.get("EBR_FIGURES")
    assert fresh, "EBR_FIGURES must name the folder that the notebooks' test run wrote: use make test"
    assert any(COMMITTED.glob("data/*.csv"))
    found = differences(COMMITTED, Path(fresh))
    hint = "figures/ holds other numbers than the notebooks' defaults give; `make figures` writes those"
    assert not found, "\n".join([hint, *found])


FINDING = {"claim": "C01", "verdict": "holds", "evidence": [{"what": "pulls", "value": 1.0}]}
CHANGES = [
    {"verdict": "fails as stated"},
    {"claim": "C02"},
    {"evidence": [{"what": "pulls", "value": 1.00000003}]},
    {"evidence": [{"what": "rounds", "value": 1.0}]},
]
PLANTED = [
    *(
        ("x.csv", "pulls\n1.0\n3400000.0\n", f"pulls\n1.0\n{3.4e6 * (1 + change)}\n")
        for change in (3e-8, -3e-8)
    ),
    *(("x.json", json.dumps([FINDING]), json.dumps([FINDING | change])) for change in CHANGES),
    ("x.csv", "pulls\n1\n", None),
]


@pytest.mark.parametrize(("name", "committed", "fresh"), PLANTED)
def test_a_planted_difference_and_a_missing_file_are_found(tmp_path, name, committed, fresh):
    for folder, content in (("a", committed), ("b", fresh)):
        (tmp_path / folder / "data").mkdir(parents=True)
        if content:
            (tmp_path / folder / "data" / name).write_text(content)
    assert differences(tmp_path / "a", tmp_path / "a") == []
    (found,) = differences(tmp_path / "a", tmp_path / "b")
    assert found.startswith(f"data/{name}")
