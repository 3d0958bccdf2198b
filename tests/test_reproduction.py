"""After the notebooks' test run: the numbers that it wrote are the committed ones."""

import os
from pathlib import Path

import pandas as pd
import pytest

COMMITTED = Path(__file__).parents[1] / "figures"
RELATIVE = 1e-9

pytestmark = pytest.mark.reproduction


def differences(committed, fresh):
    """What differs between two folders of figures, in words; nothing if the fresh one reproduces."""
    names = [
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob("[!.]*.*"))
        for folder in (committed, fresh)
    ]
    found = [f"{name} is in one folder only" for name in sorted(set(names[0]) ^ set(names[1]))]
    for name in sorted(set(names[0]) & set(names[1])):
        if name.endswith(".csv"):
            try:
                pd.testing.assert_frame_equal(
                    pd.read_csv(committed / name), pd.read_csv(fresh / name), rtol=RELATIVE, atol=0
                )
            except AssertionError as error:
                found.append(f"{name}: {error}")
    return found


def test_the_notebooks_wrote_the_committed_numbers():
    fresh = os.environ.get("EBR_FIGURES")
    assert fresh, "EBR_FIGURES must name the folder that the notebooks' test run wrote: use make test"
    assert any(COMMITTED.glob("data/*.csv"))
    found = differences(COMMITTED, Path(fresh))
    hint = "figures/ holds other numbers than the notebooks' defaults give; `make figures` writes those"
    assert not found, "\n".join([hint, *found])


@pytest.mark.parametrize("change", [1 + 1e-8, 1 - 1e-8])
def test_a_planted_difference_is_found(tmp_path, change):
    for name, factor in (("a", 1.0), ("b", change)):
        (tmp_path / name / "data").mkdir(parents=True)
        pd.DataFrame({"pulls": [1.0, 3.4e6 * factor]}).to_csv(tmp_path / name / "data" / "x.csv", index=False)
    assert differences(tmp_path / "a", tmp_path / "a") == []
    assert differences(tmp_path / "a", tmp_path / "b")


def test_a_missing_file_is_found(tmp_path):
    (tmp_path / "a" / "data").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "data" / "x.csv").write_text("pulls\n1\n")
    assert differences(tmp_path / "a", tmp_path / "b") == ["data/x.csv is in one folder only"]
