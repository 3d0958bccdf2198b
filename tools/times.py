"""Measure `make figures` and `make test` on the machine at hand, for the Makefile.

Each is run from an empty build/ (so that nothing simulated before is used again) in a ready environment. Then
a table says how long each notebook took. Of tests, `pytest --durations=20` says so.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path("build")


def main() -> None:
    """Measure, then print."""
    figures, figures_failed = measured("figures")
    executed = {path.stem: json.loads(path.read_text("utf-8")) for path in BUILD.glob("[!.]*.ipynb")}
    built = {name: notebook["metadata"]["papermill"]["duration"] for name, notebook in executed.items()}
    test, test_failed = measured("test")
    print()
    for name, seconds in sorted(built.items(), key=lambda pair: -pair[1]):
        print(f"{name:<40}{seconds:>8.1f} s")
    print(f"{'all together, one after the other':<40}{sum(built.values()):>8.1f} s")
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


if __name__ == "__main__":
    main()
