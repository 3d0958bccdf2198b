"""After the notebooks' test run: the numbers that it wrote are the committed ones."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

COMMITTED = Path(__file__).parents[1] / "figures"
RELATIVE = 1.1e-8  # a unit of the ninth digit, which rounding may decide either way

pytestmark = pytest.mark.reproduction


def differences(committed, fresh):
    """What differs between two folders of figures, in words; nothing if the fresh one reproduces."""
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
                compare_findings(
                    *(json.loads((folder / name).read_text("utf-8")) for folder in (committed, fresh))
                )
        except AssertionError as error:
            found.append(f"{name}: {error}")
    return found


def compare_findings(committed, fresh):
    """Verdicts and words are the same, and numbers but for the last saved digit."""
    assert words(committed) == words(fresh)
    assert numbers(fresh) == pytest.approx(numbers(committed), rel=RELATIVE, abs=0)


def words(data):
    """The same data with every number 0."""
    if isinstance(data, dict):
        return {key: words(value) for key, value in data.items()}
    return (
        [words(value) for value in data] if isinstance(data, list) else data if isinstance(data, str) else 0
    )


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


@pytest.mark.parametrize("change", [1 + 3e-8, 1 - 3e-8])
def test_a_planted_difference_is_found(tmp_path, change):
    for name, factor in (("a", 1.0), ("b", change)):
        (tmp_path / name / "data").mkdir(parents=True)
        pd.DataFrame({"pulls": [1.0, 3.4e6 * factor]}).to_csv(tmp_path / name / "data" / "x.csv", index=False)
    assert differences(tmp_path / "a", tmp_path / "a") == []
    assert differences(tmp_path / "a", tmp_path / "b")


CHANGES = [
    {"verdict": "fails as stated"},
    {"claim": "C02"},
    {"evidence": [{"what": "pulls", "value": 1.00000003}]},
    {"evidence": [{"what": "rounds", "value": 1.0}]},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_planted_difference_of_a_finding_is_found(tmp_path, change):
    finding = {"claim": "C01", "verdict": "holds", "evidence": [{"what": "pulls", "value": 1.0}]}
    for name, content in (("a", finding), ("b", finding | change)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.json").write_text(json.dumps([content]))
    assert differences(tmp_path / "a", tmp_path / "a") == []
    assert differences(tmp_path / "a", tmp_path / "b")


def test_a_missing_file_is_found(tmp_path):
    (tmp_path / "a" / "data").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "data" / "x.csv").write_text("pulls\n1\n")
    assert differences(tmp_path / "a", tmp_path / "b") == ["data/x.csv is in one folder only"]
