"""Pages that are rendered from the catalog and the rules are current, and say what the catalog says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from traindx_tools.catalog import references
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.page import rule_page
from traindx_tools.errors import CatalogError
from traindx_tools.rules import all_rules

SKILLS = Path(__file__).resolve().parents[2] / "skills"


def test_rendered_pages_are_current() -> None:
    stale = [p.relative_to(SKILLS).as_posix() for p, text in references.rendered_pages(SKILLS).items()
             if not p.is_file() or p.read_text(encoding="utf-8") != text]
    assert not stale, f"run `make skills`: {stale}"


def test_every_failure_mode_has_its_entry_and_is_in_the_index() -> None:
    pages = references.rendered_pages(SKILLS)
    home = "".join(text for p, text in pages.items() if p.parts[-3] == "ml-debug" and p.name.startswith("modes-"))
    index = pages[SKILLS / "ml-debug" / "references" / "failure-modes.md"]
    for mode in load_catalog().values():
        assert f"\n- `{mode.id}`: {mode.title} (" in home
        for symptom in mode.symptoms:
            assert f"`{mode.id}`" in index.split(f"\n## {symptom}\n")[1].split("\n## ")[0]


def test_every_threshold_is_on_the_page_of_its_rule() -> None:
    for module in all_rules().values():
        page = " ".join(rule_page(module).split())
        for name, threshold in module.rule.thresholds.items():
            assert f"`{name}` = {threshold.value} {' '.join(threshold.unit.split())}" in page


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A pack whose rendered files are stale or gone; returns its folder of skills."""
    shutil.copytree(SKILLS.parent / "agents", tmp_path / "agents")
    rendered = shutil.ignore_patterns("agents", "modes-*", "index.md", "*.zip")
    shutil.copytree(SKILLS, tmp_path / "skills", ignore=rendered)
    (tmp_path / "skills" / "jax-debugging" / "scripts" / "traindx_run.py").unlink()
    return tmp_path / "skills"


@pytest.mark.slow
def test_rendering_writes_once_and_then_nothing(pack: Path) -> None:
    changed = {p.relative_to(pack).as_posix() for p in references.write_skills(pack)}
    assert {"ml-debug/references/index.md", "ml-debug/agents/data-flow-tracer.md", "ml-debug/scripts/traindx.zip",
            "jax-debugging/scripts/traindx_run.py"} <= changed
    assert list(references.write_skills(pack)) == []
    for path in changed:
        if path != "ml-debug/scripts/traindx.zip":
            assert (pack / path).read_bytes() == (SKILLS / path).read_bytes()


def test_a_reference_that_does_not_say_when_to_read_it_is_refused(pack: Path) -> None:
    (pack / "ml-debug" / "references" / "page.md").write_text("# Title\n\nSome text.\n", encoding="utf-8")
    with pytest.raises(CatalogError, match=r"page\.md.*Read when"):
        references.rendered_pages(pack)
