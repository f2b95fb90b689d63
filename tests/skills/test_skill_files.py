"""The skills as files: the specification's limits, the protocol's fixed parts, references that exist and say when."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from traindx import gate
from traindx.group import COMMANDS
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.references import read_when
from traindx_tools.rules import all_rules

ROOT = Path(__file__).resolve().parents[2]
SKILLS = sorted(p.parent for p in (ROOT / "skills").glob("*/SKILL.md"))
NAMES = ("distributed-debugging", "jax-debugging", "ml-debug", "pytorch-debugging", "research-debug")
CHARACTERS_A_TOKEN = 3.6
"""Low for English prose with code in it, so that the count errs on the safe side."""

every_skill = pytest.mark.parametrize("skill", SKILLS, ids=lambda p: p.name)


def body(skill: Path) -> str:
    return (skill / "SKILL.md").read_text(encoding="utf-8").split("\n---\n", 1)[1]


def description(skill: Path) -> str:
    head = (skill / "SKILL.md").read_text(encoding="utf-8").split("\n---\n", 1)[0]
    return " ".join(re.search(r"^description: >-\n((?:  .*\n)+)", head, re.MULTILINE)[1].split())


def section(skill: Path, heading: str) -> str:
    found = re.search(rf"^## {heading}[^\n]*\n(.*?)(?=^## |\Z)", body(skill), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{skill.name} has no section '{heading}'"
    return found[1]


def pages(skill: Path) -> list[Path]:
    return [skill / "SKILL.md", *sorted((skill / "references").glob("*.md"))]


def test_the_five_skills_are_there() -> None:
    assert tuple(s.name for s in SKILLS) == NAMES


@every_skill
def test_is_valid_by_the_reference_validator(skill: Path) -> None:
    assert pytest.importorskip("skills_ref").validate(skill) == []


@every_skill
def test_body_is_within_its_limits(skill: Path) -> None:
    assert len(body(skill).splitlines()) < 300
    assert len(body(skill)) / CHARACTERS_A_TOKEN < 5000


@every_skill
def test_description_says_when_and_when_not_and_nothing_of_the_workflow(skill: Path) -> None:
    said = description(skill)
    assert said.startswith("Use when ")
    assert " Not for " in said or " Do not use " in said
    assert said.count('"') >= 8, "at least four literal phrases in quotes"
    assert not re.search(r"gate|phase|strike|hypothes|step 1|workflow|then ", said, re.IGNORECASE)


def test_descriptions_together_stay_cheap() -> None:
    assert sum(len(description(s)) for s in SKILLS) / CHARACTERS_A_TOKEN < 900


@pytest.mark.parametrize("phrase", [
    "loss NaN", "training hangs", "OOM", "why is my loss diverging", "outputs are all the same token",
    "CUDA error: device-side assert", "mode collapse", "not learning anything", "gradients exploding",
    "failed at epoch", "UnexpectedTracerError", "Watchdog caught collective operation timeout",
])  # fmt: skip
def test_what_people_say_is_a_trigger(phrase: str) -> None:
    assert any(phrase in description(s) for s in SKILLS)


@every_skill
def test_a_subagent_is_told_to_skip_the_workflow(skill: Path) -> None:
    assert re.search(r"\*\*Subagents:\*\* .*skip this workflow", body(skill).split("## ")[0])


@every_skill
def test_core_rule_gate_and_three_strikes_are_spelled_out(skill: Path) -> None:
    text = body(skill)
    assert "**No fix before a diagnosis was presented to the user and approved.**" in text
    places = [text.index(heading) for _, heading in gate.SECTIONS]
    assert places == sorted(places), "the six sections in the order of Gate 4"
    assert "Three fixes of this approach have failed" in section(skill, "Three strikes")
    assert "fundamentally different approach" in section(skill, "Three strikes")


def test_gate_4_has_exactly_its_six_sections_and_three_questions() -> None:
    gate_4 = section(ROOT / "skills" / "ml-debug", "Gate 4")
    front = body(ROOT / "skills" / "ml-debug")
    block = re.search(r"```markdown\n# Diagnosis \(Gate 4\)\n(.*?)```", front, re.DOTALL)[1]
    assert tuple(re.findall(r"^## (.+)$", block, re.MULTILINE)) == tuple(heading for _, heading in gate.SECTIONS)
    asked = front.split("three questions", 1)[1].split("## Three strikes")[0]
    assert re.findall(r"^(\d)\. .*\?|^(\d)\. Targeted fix A or broader fix B", asked, re.MULTILINE) != []
    assert len(re.findall(r"^\d\. ", asked, re.MULTILINE)) == 3
    assert gate_4.startswith("\n```markdown")


@every_skill
def test_red_flags_and_rationalizations_are_many_and_different(skill: Path) -> None:
    flags = re.findall(r"(?:^|\s)(\d+)\. ", section(skill, "Red flags"))
    assert [int(n) for n in flags] == list(range(1, len(flags) + 1))
    assert len(flags) >= 15
    rows = re.findall(r"^\| (\".+?) \| (.+) \|$", section(skill, "Rationalizations"), re.MULTILINE)
    assert len(rows) >= 20
    assert len({said for said, _ in rows}) == len(rows)
    assert all(len(answer) > 15 for _, answer in rows)


def test_each_kind_of_pressure_has_an_answer() -> None:
    rows = section(ROOT / "skills" / "ml-debug", "Rationalizations").lower()
    for pressure in ("urgent", "demo in an hour", "senior", "try/except", "skip the bad batch", "too complex", "guess",
                     "works sometimes", "somewhere else", "all the fixes at once", "too rare"):
        assert pressure in rows, pressure


def test_counted_lists_of_the_techniques() -> None:
    folder = ROOT / "skills" / "pytorch-debugging" / "references"
    for name, least in (("error-patterns.md", 20), ("pitfalls.md", 10)):
        rows = re.findall(r"^\| \d+ \| .+ \| .+ \| .+ \|$", (folder / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(rows) >= least, name


@every_skill
def test_every_reference_is_listed_and_says_when_to_read_it(skill: Path) -> None:
    listed = dict(re.findall(r"^\| \[references/([\w.-]+)\]\(references/\1\) \| (.+) \|$", body(skill), re.MULTILINE))
    there = {p.name: read_when(p) for p in (skill / "references").glob("*.md")}
    assert listed == there
    assert not [p for p in (skill / "references").iterdir() if p.is_dir()], "references are one level deep"


@every_skill
def test_every_file_that_is_named_exists(skill: Path) -> None:
    for page in pages(skill):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)\)", text):
            assert (page.parent / target).exists(), f"{page}: {target}"
        for target in re.findall(r"\b((?:references|scripts)/[\w-]+\.(?:md|py))\b", text):
            assert (skill / target).exists(), f"{page}: {target}"
        if page.name == "SKILL.md":
            continue
        for target in re.findall(r"(?:see |\()`?([a-z]+(?:-[a-z]+)+\.md)\b", text):
            assert (page.parent / target).exists(), f"{page}: {target}"


@every_skill
def test_specialists_of_the_delegation_table_come_along(skill: Path) -> None:
    if "## Delegation" not in body(skill):
        return
    for name in re.findall(r"`([a-z-]+-(?:researcher|tracer|auditor|detector))`", section(skill, "Delegation")):
        assert (skill / "agents" / f"{name}.md").is_file(), name
        assert f"## {name}" in (skill / "references" / "delegation.md").read_text(encoding="utf-8")


@every_skill
def test_commands_rules_and_modes_that_are_named_exist(skill: Path) -> None:
    rules, modes = all_rules(), load_catalog()
    for page in pages(skill):
        text = page.read_text(encoding="utf-8")
        for command in re.findall(r"(?:`|^|\$ )traindx ([a-z]+)", text, re.MULTILINE):
            assert command in COMMANDS, f"{page}: traindx {command}"
        for rule in re.findall(r"\b([LC][1-9]\d\d)\b", text):
            assert rule in rules, f"{page}: {rule}"
        for name in re.findall(r"explain ([a-z]+\.[a-z-]+|[LC]\d{3})", text):
            assert name in modes or name in rules, f"{page}: explain {name}"


@every_skill
def test_calls_of_the_script_are_calls_that_it_takes(skill: Path) -> None:
    spec = importlib.util.spec_from_file_location("traindx_run", skill / "scripts" / "traindx_run.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    calls = [c for page in pages(skill) for c in
             re.findall(r"^python scripts/traindx_run\.py (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)]
    assert len(calls) >= 2
    for call in calls:
        script.parser().parse_args(shlex.split(call, comments=True))


def test_nothing_but_what_ships_lies_in_the_skills_folder() -> None:
    for skill in SKILLS:
        names = {p.name for p in skill.iterdir()}
        assert names <= {"SKILL.md", "references", "scripts", "agents"}
        assert {p.name for p in (skill / "scripts").iterdir()} <= {"traindx_run.py", "vendor", "__pycache__"}
