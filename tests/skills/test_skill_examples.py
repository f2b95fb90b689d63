"""Code in the skills: every Python block parses; those that say so run, and their assertions hold."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

SKILLS = Path(__file__).resolve().parents[2] / "skills"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MARK = "# self-contained\n"


def blocks() -> list[tuple[str, str]]:
    """(place, code) of each Python block of each page, once."""
    found: dict[str, str] = {}
    for page in sorted([*SKILLS.glob("*/SKILL.md"), *SKILLS.glob("*/references/*.md")]):
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text[: match.start()].count("\n") + 2
            # Some pages are in two skills: a block that was seen is not run again.
            found.setdefault(match[1], f"{page.relative_to(SKILLS)}:{line}")
    return [(place, code) for code, place in found.items()]


@pytest.mark.parametrize(("place", "code"), [pytest.param(*b, id=b[0]) for b in blocks()])
def test_block_parses(place: str, code: str) -> None:
    assert compile(code, place, "exec").co_filename == place


@pytest.mark.parametrize(("place", "code"), [pytest.param(*b, id=b[0]) for b in blocks() if b[1].startswith(MARK)])
def test_self_contained_block_runs_and_its_assertions_hold(place: str, code: str) -> None:
    for module in ("torch", "jax"):
        if re.search(rf"^import {module}\b|^from {module}\b", code, re.MULTILINE):
            pytest.importorskip(module)
    assert "assert" in code or "raise" in code or "broadcast" in code, "a block that runs must prove something"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, place, "exec"), {"__name__": "example"})


def test_there_is_enough_that_runs() -> None:
    assert sum(code.startswith(MARK) for _, code in blocks()) >= 40
