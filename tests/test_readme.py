"""The pages for people: every link leads somewhere, the map is complete, and the tree is the tree."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_of_the_project(page):
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (ROOT / link).exists()] == []
    assert inside or page != "README.md"


def test_the_map_has_every_notebook():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert README.count(f"(notebooks/{path.name})") >= 1, path.name


@pytest.mark.parametrize("room", ["theory", "algorithms", "simulation", "live"])
def test_the_tree_names_the_modules_of_every_room(room):
    (line,) = re.findall(rf"^  {room}/\s+([a-z_\s]+):", README, re.MULTILINE)
    assert sorted(line.split()) == sorted(path.stem for path in (ROOT / "ebr" / room).glob("[!_]*.py"))


def test_the_ledgers_part_is_what_make_ledger_writes():
    check = [sys.executable, "tools/ledger.py", "--check"]
    result = subprocess.run(check, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_readme_is_short():
    # Two screens of text; pictures, tables and examples aside.
    prose = re.sub(r"```.*?```|<!-- ledger.*?end of ledger -->", "", README, flags=re.DOTALL)
    prose = re.sub(r"^(\||!\[).*$", "", prose, flags=re.MULTILINE)
    assert 200 < len(prose.split()) < 900
