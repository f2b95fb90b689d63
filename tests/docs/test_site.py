"""The documentation as a site: every page has its place, and links lead somewhere without the repository beside it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from chromium_here import needs_chromium

ROOT = Path(__file__).parents[2]
SETTINGS = (ROOT / "mkdocs.yml").read_text()


def hooks(name: str = "site_hooks") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_page_has_its_place() -> None:
    named = re.findall(r": ([\w-]+\.md)$", SETTINGS, re.MULTILINE)
    assert sorted(named) == sorted(["index.md", *(p.name for p in (ROOT / "docs").glob("*.md"))])


def test_the_first_page_is_the_readme_with_links_that_hold() -> None:
    made = hooks()
    page = made.first_page("https://example.org/r")
    links = re.findall(r"\]\(([^)\s#]+)", page)
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://") or (ROOT / "docs" / link).is_file(), link


def test_links_out_of_the_folder_lead_to_the_repository() -> None:
    made = hooks()
    text = made.on_page_markdown("a [b](../benchmarks/x.md) [c](logs.md)", None, {"repo_url": "https://e.org/r"}, None)
    assert text == "a [b](https://e.org/r/blob/main/benchmarks/x.md) [c](logs.md)"


@needs_chromium
@pytest.mark.slow
def test_the_pictures_are_drawn_from_what_is_printed_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    made = hooks("render_screenshots").draw(tmp_path, lambda _: None)
    assert sorted(p.name for p in made) == sorted(p.name for p in (ROOT / "docs" / "pictures").glob("*.png"))
    assert all(p.stat().st_size > 10_000 for p in made)
