"""README and other pages: links work, the map and the tree are complete, commands work as printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import ebr

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
    # Tables, links and pictures count as words; examples and what `make ledger` writes do not.
    text = re.sub(r"```.*?```|<!-- ledger.*?end of ledger -->", "", README, flags=re.DOTALL)
    assert 200 < len(text.split()) <= 1200
    assert README.index("## Use it on your own experiment") < README.index("## The map")


def test_the_readme_shows_this_plan():
    assert str(ebr.plan(3, 6, 0.05)) in README
    first = ebr.StakedElasticBatchRacing(6, 0.05, 0.05, rewards="bounded", squares=True).first_count(3)
    assert f"race.ask()  # {dict.fromkeys('ABC', int(first))}" in README


def test_the_readmes_commands_work_as_printed(run, folder):
    own = README.split("## Use it on your own experiment")[1].split("\n## ")[0]
    (python,) = re.findall(r"```python\n(.*?)```", own, re.DOTALL)
    names = {}
    exec(python, names)  # in a temporary folder
    assert names["race"].round == 2
    names["race"].close()
    (folder / "trial.jsonl").unlink()
    _, shell = re.findall(r"```sh\n(.*?)```", own, re.DOTALL)
    for line in shell.splitlines():
        _, module, package, *words = shlex.split(line.partition(" > ")[0], comments=True)
        assert (module, package) == ("-m", "ebr")
        assert run(*words)[0] == 0
    assert ebr.Race.open("trial.jsonl", readonly=True).round == 2
    assert (folder / "trial.png").exists()
