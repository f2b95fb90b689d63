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
FRONT_DOOR = "ml-debug"
MOST_TOKENS = {FRONT_DOOR: 1500}
MOST_TOKENS_ELSE = 900
MOST_ALWAYS = 900
"""Tokens of the lines that a host shows in every conversation, also where nobody trains anything."""

_spec = importlib.util.spec_from_file_location("skill_cost", ROOT / "benchmarks" / "skill_cost.py")
cost = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cost)

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
def test_a_skill_costs_little_when_it_is_read(skill: Path) -> None:
    text = (skill / "SKILL.md").read_text(encoding="utf-8")
    assert cost.tokens(text) <= MOST_TOKENS.get(skill.name, MOST_TOKENS_ELSE)


@every_skill
def test_description_says_when_and_when_not_and_nothing_of_the_workflow(skill: Path) -> None:
    said = description(skill)
    assert said.startswith("Use when ")
    assert " Not for " in said or " Do not use " in said
    assert said.count('"') >= 8, "at least four literal phrases in quotes"
    assert not re.search(r"gate|phase|strike|hypothes|step 1|workflow|then ", said, re.IGNORECASE)


def test_the_pack_costs_little_where_nobody_asked_for_it() -> None:
    lines = cost.listing(ROOT)
    assert len(lines) == len(NAMES) + 9
    assert cost.tokens("".join(lines)) <= MOST_ALWAYS
    served = re.findall(r"mcp__\w+", "".join(lines))
    assert served == ["mcp__plugin_traindx_traindx"] * 9, "the server, once an agent"


def test_the_cost_of_a_file_without_frontmatter_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "x.md").write_text("# No frontmatter\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected a frontmatter"):
        cost.listing(tmp_path)


@every_skill
def test_a_page_is_small(skill: Path) -> None:
    sizes = {p.name: cost.tokens(p.read_text(encoding="utf-8")) for p in (skill / "references").glob("*.md")}
    assert {n: s for n, s in sizes.items() if s > 2500 and n != "failure-modes.md"} == {}
    assert sizes.get("failure-modes.md", 0) < 6000, "the ids of all failure modes by symptom"


def test_what_lands_in_a_project_is_small_and_holds_no_link() -> None:
    there = [p for p in (ROOT / "skills").rglob("*") if "__pycache__" not in p.parts]
    assert not [p for p in there if p.is_symlink()]
    files = [p for p in there if p.is_file()]
    assert len(files) < 120
    assert sum(p.stat().st_size for p in files) < 4.45e6
    assert len([p for p in files if p.parent.name == "references"]) < 100


@every_skill
def test_running_things_needs_no_approval_and_editing_does(skill: Path) -> None:
    front = body(skill).split("## Core rule")[0]
    first = next(row for row in front.splitlines() if row.startswith("**") and not row.startswith("**Subagents"))
    assert first.startswith("**Experiments in the protected runner need no approval:**"), "before any rule that slows"
    assert "tools/hooks/protected.py" in first
    assert "a copy below `scratch/debug/`" in first
    assert first.endswith("The host asks where it must.")
    assert "never run" not in body(skill).split("## Find the cause")[0]


@every_skill
def test_facts_come_before_the_guess(skill: Path) -> None:
    assert re.search(r"[Ll]ook yourself", section(skill, "Find the cause"))
    assert re.search(r"suspects(?: last|; their| last)", section(skill, "Find the cause"))


def test_the_five_measurements_that_settle_hard_cases_are_named() -> None:
    found = section(ROOT / "skills" / FRONT_DOOR, "Find the cause")
    for number, kind in enumerate(("**Data** by shard and row", "**Weights** by tensor",
                                   "**One change and a rerun**", "**What goes along with the jumps**",
                                   "**Two runs or ranks compared:**"), 1):
        assert f"{number}. {kind}" in found, kind


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
    assert "Wait" in section(skill, "Three strikes")
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


def under_pressure(skill: Path) -> tuple[str, str]:
    """The red flags and the answers of a skill."""
    text = (skill / "references" / "under-pressure.md").read_text(encoding="utf-8")
    flags, answers = text.split("## Red flags")[1].split("## What you hear or think")
    return flags, answers


@every_skill
def test_red_flags_and_rationalizations_are_many_and_different(skill: Path) -> None:
    said, answered = under_pressure(skill)
    flags = re.findall(r"(?:^|\s)(\d+)\. ", said)
    assert [int(n) for n in flags] == list(range(1, len(flags) + 1))
    assert len(flags) >= 15
    rows = re.findall(r"^- (\"[^\"]+\") (.+)$", answered, re.MULTILINE)
    assert len(rows) >= 20
    assert len({said for said, _ in rows}) == len(rows)
    assert all(len(answer) > 15 for _, answer in rows)


def test_each_kind_of_pressure_has_an_answer() -> None:
    rows = under_pressure(ROOT / "skills" / FRONT_DOOR)[1].lower()
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
    index = (skill / "references" / "index.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[([\w.-]+)\]\(\1\) \| (.+) \|$", index, re.MULTILINE))
    there = {p.name: read_when(p.read_text("utf-8"), p.name) for p in (skill / "references").glob("*.md")}
    assert listed == {n: when for n, when in there.items() if n != "index.md"}
    assert "(references/index.md)" in section(skill, "Pages")
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
        for target in re.findall(r"`([a-z]+(?:-[a-z]+)*\.md)`", text) if page.name == "SKILL.md" else ():
            assert (skill / "references" / target).exists(), f"{page}: {target}"
        for target in re.findall(r"(?:see |\()`?([a-z]+(?:-[a-z]+)+\.md)\b", text):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_specialists_of_the_delegation_table_come_along() -> None:
    home = ROOT / "skills" / FRONT_DOOR
    text = (home / "references" / "delegation.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| [^|]+ \| `([a-z-]+)` \|", text, re.MULTILINE)
    assert len(named) == 6
    for name in named:
        assert (home / "agents" / f"{name}.md").read_bytes() == (ROOT / "agents" / f"{name}.md").read_bytes()
        assert f"## {name}" in text


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
        assert {p.name for p in (skill / "scripts").iterdir()} <= {"traindx_run.py", "traindx.zip", "__pycache__"}
