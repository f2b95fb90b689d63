"""Hooks of the documentation site: the README is its first page, and links out of docs/ lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_OUT = re.compile(r"\]\(\.\./(?!\.\.)([^)\s]+)\)")
_IN = re.compile(r"\]\(docs/([^)\s]+)\)")
_REST = re.compile(r"\]\((?!https?:|#|docs/)([\w.][^)\s]*)\)")


def on_files(files: Any, config: Any) -> Any:
    """Adds the first page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "index.md", content=first_page(config["repo_url"])))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files that are no pages."""
    return _OUT.sub(rf"]({config['repo_url']}/blob/main/\1)", markdown)


def first_page(repository: str) -> str:
    """The README as a page of docs/."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return _IN.sub(r"](\1)", _REST.sub(rf"]({repository}/blob/main/\1)", text))
