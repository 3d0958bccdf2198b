"""Build the site: write its pages, and convert them to HTML with Sphinx. A warning is an error.

publish.py [FOLDER]    write the site there, by default to build/site

The folder must be new, empty, or hold a site that this program wrote. Any other folder is left alone.
"""

import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import claims_page
import pages
from fontTools import subset
from sphinx.cmd.build import build_main

HERE = Path(__file__).parent
ROOT = HERE.parent
LETTERS = "--unicodes=U+20-7E,U+A0-3FF,U+2000-22FF,U+2300-23FF,U+25A0-25FF,U+27E0-27FF,U+1D400-1D7FF"
MARK = ".ebr-site"  # marks a folder that this program wrote and may therefore empty


def lay_out(folder: Path) -> None:
    """Write the pages that Sphinx reads."""
    folder.mkdir(parents=True)
    written = {
        "index.md": pages.home(),
        "own-experiment.md": pages.own_experiment(),
        "gallery.md": pages.gallery(folder),
        "notebooks/index.md": pages.notebooks(),
        **{f"{name}.md": text for name, text in claims_page.texts().items()},
        "command-line.md": pages.command_line(),
        **{f"api/{name}.rst": text for name, text in pages.reference().items()},
        **{
            f"{name.lower()}.md": pages.links((ROOT / f"{name}.md").read_text(encoding="utf-8"))
            for name in ("CHANGELOG", "CONTRIBUTING")
        },
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    copied = ("notebooks/*.ipynb", "notebooks/gallery/*.ipynb", "figures/*.png", "CITATION.cff", "LICENSE")
    for path in (path for pattern in copied for path in ROOT.glob(pattern)):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def add_font(static: Path) -> None:
    """Write the font of the formulas: Latin, Greek and mathematical characters of STIX Two Math."""
    source = Path(str(files("ziamath"))) / "fonts" / "STIXTwoMath-Regular.ttf"
    static.mkdir(parents=True, exist_ok=True)
    subset.main([str(source), LETTERS, "--flavor=woff", f"--output-file={static / 'formulas.woff'}"])


def build(output: Path) -> str | None:
    """Build the site; return what went wrong, if anything did."""
    if output.exists() and not (output / MARK).is_file() and (not output.is_dir() or any(output.iterdir())):
        return f"{output} holds something else than a site made here, so it stays as it is: name another"
    output.mkdir(parents=True, exist_ok=True)
    (output / MARK).touch()
    for path in output.iterdir():  # keep the mark, so that an interrupted run can be repeated
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARK:
            path.unlink()
    with tempfile.TemporaryDirectory() as work:
        lay_out(Path(work) / "pages")
        add_font(output / "_static")
        failed = run_sphinx(Path(work) / "pages", output, Path(work) / "read")
    return "Sphinx warned, see above" if failed else None


def run_sphinx(pages: Path, output: Path, read: Path) -> int:
    """Convert the pages to HTML; return 0 if Sphinx had no warning."""
    arguments = ["-q", "-W", "--keep-going", "-c", HERE, "-d", read, pages, output]
    return build_main([str(argument) for argument in arguments])


def main() -> None:
    """Build the site in the folder that the command line names."""
    output = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    if wrong := build(output):
        sys.exit(wrong)
    print(output / "index.html")


if __name__ == "__main__":
    main()
