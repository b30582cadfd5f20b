"""What holds for every page: small, alone, well-formed; and what a browser says of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path

MOST_BYTES = 400_000
VOID = {"meta", "input", "br", "rect", "path", "circle"}
CHROMIUM = next((p for name in ("chromium", "chromium-browser") if (p := shutil.which(name))), None)


class Balanced(HTMLParser):
    """Raises where a tag is closed that isn't open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def sound(page: Path, most: int = MOST_BYTES) -> str:
    """The page's text, looked through: its size, no other file or address, every tag closed, every id there once."""
    text = page.read_text()
    assert page.stat().st_size <= most
    links = re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?([^\"')\s]+)", text)
    assert links == [], "nothing is asked of a network, or of another file"
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    return text


def browsed(page: Path, width: int, folder: Path, acts: str = "") -> None:
    """Headless Chromium draws it and has no message on its console, errors of scripts and refused requests included.

    ``acts``: a script that does what a reader does, and throws where the page doesn't follow.
    """
    if acts:
        text = page.read_text()
        page = folder / "acted.html"
        page.write_text(text.replace("</body>", f"<script>{acts}</script></body>"))
    picture, profile = folder / "page.png", folder / "profile"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={profile}"]
    found = subprocess.run(
        [str(CHROMIUM), *options, f"--window-size={width},1600", f"--screenshot={picture}", page.as_uri()],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert picture.stat().st_size > 10_000
    assert "CONSOLE" not in found.stderr


# Tables and pictures scroll by themselves, the page doesn't.
_FITS = """<script>addEventListener("load", () => {
  const {scrollWidth, clientWidth} = document.documentElement;
  if (scrollWidth > clientWidth) throw new Error(`the page is ${scrollWidth} wide on ${clientWidth}`);
})</script></body>"""


def fits_a_phone(page: Path, folder: Path, width: int = 360) -> None:
    """The page isn't wider than a phone: drawn in a frame, because a window of Chromium is at least 500 wide."""
    text = escape(page.read_text().replace("</body>", _FITS))
    framed = folder / "framed.html"
    framed.write_text(f'<body><iframe width="{width}" height="1500" srcdoc="{text}"></iframe></body>')
    browsed(framed, 500, folder)
