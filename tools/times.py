"""Measure `make figures` and `make test` on the machine at hand, for the Makefile.

Each is run from an empty build/ (so that nothing simulated before is used again) in a ready environment. Then
a table says how long each notebook took to build and to test, another which tests were the slowest.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

BUILD = Path("build")
SLOWEST = 20


def main() -> None:
    """Measure, then print."""
    figures, figures_failed = measured("figures")
    executed = {path.stem: json.loads(path.read_text("utf-8")) for path in BUILD.glob("[!.]*.ipynb")}
    built = {name: notebook["metadata"]["papermill"]["duration"] for name, notebook in executed.items()}
    test, test_failed = measured("test")
    cells, tests = tested(BUILD / "test.xml")
    print(f"\n{'notebook':<48}{'make figures':>14}{'make test':>14}")
    together = "all together, one after the other"
    built[together], cells[together] = sum(built.values()), sum(cells.values())
    for name in sorted(built | cells, key=lambda name: -built.get(name, 0)):
        print(f"{name:<48}{seconds(built.get(name))}{seconds(cells.get(name))}")
    print(f"\nThe slowest {SLOWEST} of {len(tests)} tests, {sum(tests.values()):.0f} s together:")
    for name, took in sorted(tests.items(), key=lambda test: -test[1])[:SLOWEST]:
        print(f"{took:8.1f} s  {name}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"\nOn {cores} cores, from an empty build/ (nothing simulated before), environment ready:")
    print(f"make figures {figures / 60:.1f} min, make test {test / 60:.1f} min")
    sys.exit(figures_failed or test_failed)


def measured(target: str) -> tuple[float, int]:
    """Make a target from an empty build/: how many seconds it took, and whether it failed."""
    for path in BUILD.iterdir() if BUILD.exists() else ():
        if path.name != "conda-ready":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    started = time.perf_counter()
    code = subprocess.run([os.environ.get("MAKE", "make"), target]).returncode
    return time.perf_counter() - started, code


def tested(report: Path) -> tuple[dict[str, float], dict[str, float]]:
    """What pytest's report says: the seconds of each notebook's cells together, and of each test."""
    cells: dict[str, float] = defaultdict(float)
    tests: dict[str, float] = {}
    cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
    for case in cases:
        place, name, took = case.get("classname", ""), case.get("name", ""), float(case.get("time", 0))
        if place.startswith("notebooks."):
            cells[place.removeprefix("notebooks.").removesuffix(".ipynb")] += took
        else:
            tests[f"{place.removeprefix('tests.')}: {name}"] = took
    return cells, tests


def seconds(number: float | None) -> str:
    """A cell of the table."""
    return f"{'':>14}" if number is None else f"{number:>12.1f} s"


if __name__ == "__main__":
    main()
