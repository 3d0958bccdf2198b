"""pyproject.toml, requirements.txt and environment.yml say the same; what is installed is the lock."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


def wanted():
    extras = PROJECT["optional-dependencies"].values()
    requirements = map(Requirement, [*PROJECT["dependencies"], *(name for extra in extras for name in extra)])
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def locked():
    """Every entry of the lock: its requirement, its hashes, and whether the project itself asks for it."""
    entries = {}
    for entry in re.split(r"\n(?=[a-z0-9])", (ROOT / "requirements.txt").read_text()):
        if entry.startswith("#"):
            continue
        line, _, rest = entry.partition("\n")
        requirement = Requirement(line.rstrip(" \\"))
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
        entries[canonicalize_name(requirement.name)] = (requirement, hashes, "via" in rest and "ebr" in rest)
    return entries


def test_the_lock_has_exactly_what_the_project_asks_for():
    direct = {name for name, (_, _, asked) in locked().items() if asked}
    assert direct == set(wanted())


def test_every_locked_version_is_pinned_with_hashes_and_fits_what_is_asked():
    asked = wanted()
    for name, (requirement, hashes, _) in locked().items():
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        assert hashes, f"{name} has no hash"
        if name in asked:
            assert pin.version in asked[name].specifier


def test_what_is_installed_is_the_lock():
    for name, (requirement, _, _) in locked().items():
        if requirement.marker is None or requirement.marker.evaluate():
            assert version(name) in requirement.specifier


def test_conda_takes_python_and_make_and_the_same_lock():
    *packages, pip = CONDA["dependencies"]
    assert pip == {"pip": ["--requirement requirements.txt"]}
    assert {re.match(r"[a-z]+", package).group() for package in packages} == {"python", "make", "pip"}
    (python,) = (package for package in packages if package.startswith("python"))
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PROJECT["requires-python"])


def test_no_file_of_the_environment_names_an_index():
    for name in ("pyproject.toml", "requirements.txt", "environment.yml", "Makefile"):
        assert not re.search(r"index-url|find-links|https?://", (ROOT / name).read_text()), name
