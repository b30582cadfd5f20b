"""What the documentation site is made of (mkdocs reads this as its hook; `make site`).

The site has the layout of the repository, so a link that leads somewhere on a forge does so here: README.md is the
first page, ``docs/x.md`` is ``docs/x.html``. Added are reference pages that are generated when the site is built, and
the text of each example below its page. Charts in mermaid's language are drawn here: no script of others is needed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import flowchart
import reference

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "*.md",
    "LICENSE",
    "CITATION.cff",
    "docs/*.md",
    "docs/*.svg",
    "docs/*.png",
    "docs/*.csv",
    "docs/site/*.css",
    "docs/site/*.js",
    "examples/*.*",
    "examples/*/*.*",
    "ascendopt_tune/vnpu/core/README.md",
)
LANGUAGES = {".py": "python", ".sh": "sh", ".cpp": "cpp", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the repository in its own layout, the theme's, and the generated pages."""
    made = [f for f in files if f.abs_src_path is None or not Path(f.abs_src_path).is_relative_to(config.docs_dir)]
    for pattern in FILES:
        for path in sorted(ROOT.glob(pattern)):
            made.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    for name, write in reference.PAGES.items():
        made.append(File.generated(config, f"reference/{name}.md", content=write()))
    return Files(made)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Charts as pictures; behind an example's page the files it is about."""
    markdown = re.sub(
        r"^```mermaid\n(.*?)^```$", lambda m: flowchart.svg(m[1]), markdown, flags=re.MULTILINE | re.DOTALL
    )
    source = Path(page.file.src_uri)
    if source.parent.as_posix() == "examples" and source.stem != "README":
        markdown += "".join(_shown(path) for path in _files_of(source.stem))
    return markdown


def _files_of(stem: str) -> list[Path]:
    """``examples/STEM.*`` and what is in ``examples/STEM/``, its page left out."""
    found = [*(ROOT / "examples").glob(f"{stem}.*"), *(ROOT / "examples" / stem).rglob("*")]
    return sorted(path for path in found if path.suffix in LANGUAGES)


def _shown(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return f"\n\n## {name}\n\n````{LANGUAGES[path.suffix]}\n{path.read_text().rstrip()}\n````\n"


def on_post_build(config: MkDocsConfig) -> None:
    """The search's index as a script, too: a page that was opened from a folder can't read a file otherwise."""
    index = Path(config.site_dir, "search", "search_index.json")
    index.with_suffix(".js").write_text(f"var __index = {index.read_text()}")
