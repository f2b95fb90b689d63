"""Pages that are rendered from the catalog and the rules are current, and say what the catalog says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from traindx_tools.catalog import references
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.errors import CatalogError
from traindx_tools.rules import all_rules

SKILLS = Path(__file__).resolve().parents[2] / "skills"


def test_rendered_pages_are_current() -> None:
    stale = [p.relative_to(SKILLS).as_posix() for p, text in references.rendered_pages(SKILLS).items()
             if not p.is_file() or p.read_text(encoding="utf-8") != text]
    assert not stale, f"run `make skills`: {stale}"


def test_tables_of_references_are_current() -> None:
    folders = [p.parent for p in SKILLS.glob("*/SKILL.md")]
    stale = [f.name for f in folders if references.rendered_skill(f) != (f / "SKILL.md").read_text(encoding="utf-8")]
    assert not stale, f"run `make skills`: {stale}"


def test_every_failure_mode_has_its_entry_and_is_in_the_index() -> None:
    pages = references.rendered_pages(SKILLS)
    home = "".join(text for p, text in pages.items() if p.parts[-3] == "ml-debug" and p.name.startswith("modes-"))
    index = pages[SKILLS / "ml-debug" / "references" / "failure-modes.md"]
    for mode in load_catalog().values():
        assert f"## `{mode.id}`: {mode.title}" in home
        assert f"| `{mode.id}` | {mode.title} |" in index


def test_every_threshold_of_every_rule_is_on_the_page() -> None:
    page = references.thresholds_document(all_rules())
    for module in all_rules().values():
        for threshold in module.rule.thresholds.values():
            assert threshold.source in page


def test_rendering_writes_once_and_then_nothing(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    shutil.copytree(SKILLS, skills, ignore=shutil.ignore_patterns("vendor", "agents", "modes-*", "thresholds.md"))
    (skills / "jax-debugging" / "scripts" / "traindx_run.py").unlink()
    changed = {p.relative_to(skills).as_posix() for p in references.write_skills(skills)}
    assert "ml-debug/references/thresholds.md" in changed
    assert "jax-debugging/scripts/traindx_run.py" in changed
    assert references.write_skills(skills) == []


def test_a_reference_that_does_not_say_when_to_read_it_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nSome text.\n", encoding="utf-8")
    with pytest.raises(CatalogError, match="Read when"):
        references.read_when(page)


def test_a_skill_without_a_table_of_references_is_refused(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: x\n---\n# X\n", encoding="utf-8")
    with pytest.raises(CatalogError, match="table of references"):
        references.rendered_skill(tmp_path)
