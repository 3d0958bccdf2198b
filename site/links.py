"""Find errors in pages without a browser: dead links, missing alternative texts, resources of other hosts."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# Attributes whose target the browser loads by itself.
LOADED = {
    *((tag, "src") for tag in ("script", "img", "iframe", "source")),
    ("link", "href"),
    ("object", "data"),
}
NOT_LOADED = {"next", "prev", "index", "search", "author", "copyright", "canonical", "top", "up"}
STYLE = re.compile(r"""(?:url\(\s*|@import\s+)['"]?([^'")\s;]+)""")
FORMULA = re.compile(r"<math\b.*?</math>", re.DOTALL)  # contains no links, and is half of some pages


class Link(NamedTuple):
    """The target of a link, and whether the browser loads it by itself."""

    target: str
    loaded: bool


class Page(HTMLParser):
    """The anchors, links and pictures without alternative text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[Link] = []
        self.wordless: list[str] = []
        self.in_style = False
        self.feed(FORMULA.sub("", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the anchors and links of an element."""
        given = {name: value or "" for name, value in attrs}
        self.in_style = tag == "style"
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name, target in given.items():
            relation = set(given.get("rel", "").split())
            if name in ("href", "src", "data") and (tag, name) in LOADED | {("a", "href")}:
                self.links.append(Link(target, tag != "a" and not relation & NOT_LOADED))
            if name == "style":
                self.links += [Link(found, True) for found in STYLE.findall(target)]
        if tag == "img" and not given.get("alt", "").strip():
            self.wordless.append(given.get("src", ""))

    def handle_data(self, data: str) -> None:
        """Collect what a style sheet inside the page loads."""
        if self.in_style:
            self.links += [Link(found, True) for found in STYLE.findall(data)]


def pages_of(site: Path) -> list[Path]:
    """The pages of a site, without the theme's templates."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def problems(site: Path) -> list[str]:
    """The errors in the pages and style sheets of a site, one line each."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    found = []
    loaded = {path: page.links for path, page in pages.items()}
    for sheet in sorted(site.rglob("*.css")):
        loaded[sheet] = [Link(target, True) for target in STYLE.findall(sheet.read_text(encoding="utf-8"))]
    for path, there in loaded.items():
        name = path.relative_to(site)
        wordless = pages[path].wordless if path in pages else []
        found += [f"{name}: {picture} has no alternative text" for picture in wordless]
        found += [f"{name}: {wrong}" for link in there if (wrong := _wrong(path, link, pages))]
    return found


def _wrong(path: Path, link: Link, pages: dict[Path, Page]) -> str:
    """The error in a link, or an empty string."""
    address = urlsplit(link.target)
    if address.scheme == "data" or (address.scheme and not link.loaded):
        return ""
    if address.scheme or address.netloc:
        return f"{link.target} is loaded from another host" if link.loaded else ""
    target = (path.parent / unquote(address.path)).resolve() if address.path else path
    if not target.is_file():
        return f"{link.target} leads nowhere"
    if target in pages and unquote(address.fragment) not in pages[target].anchors:
        return f"{link.target} has no such anchor"
    return ""
