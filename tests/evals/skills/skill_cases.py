"""Cases of the skill evaluations: pressure scenarios in the format of `claude plugin eval`, and the set of triggers."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
GRADERS = {"regex": {"pattern"}, "tool_used": {"tool"}, "tool_order": {"before", "after"}, "file_exists": {"path"},
           "llm": {"criteria"}, "baseline": {"baseline_file", "criteria"}}
"""The kinds of graders of schema version 1, each with what it must name."""


class CaseFault(ValueError):
    """A case file is not what the format asks for."""


@dataclass(frozen=True)
class Case:
    """One pressure scenario."""

    name: str
    description: str
    tags: tuple[str, ...]
    prompt: str
    max_turns: int
    runs: int
    graders: tuple[dict[str, Any], ...]
    folder: Path

    @property
    def rules(self) -> tuple[dict[str, Any], ...]:
        """Graders that need no model and hold with and without the skill."""
        return tuple(g for g in self.graders if g["type"] != "llm" and g.get("arm") != "with-only")

    @property
    def criteria(self) -> tuple[str, ...]:
        """What the judge is asked."""
        return tuple(g["criteria"] for g in self.graders if g["type"] == "llm")

    def transcript(self, kind: str) -> list[dict[str, Any]]:
        """The written "good" or "bad" conversation that proves the graders."""
        steps: list[dict[str,
                         Any]] = yaml.safe_load((self.folder / "transcripts.yaml").read_text(encoding="utf-8"))[kind]
        return steps


@dataclass(frozen=True)
class Trigger:
    """One prompt, and the skills of which exactly one should be called; none for a prompt that is not for them."""

    id: str
    prompt: str
    skills: tuple[str, ...]
    kind: str
    language: str = "en"


def load_case(path: Path) -> Case:
    """A case from its `case.yaml`. Raises CaseFault."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    faults = list(_faults(data))
    if faults:
        raise CaseFault(f"{path}: {'; '.join(faults)}")
    run = data["execution"]
    return Case(data["name"], data.get("description", ""), tuple(data.get("tags", ())), run["prompt"],
                run.get("max_turns", 10), data.get("runs", 3), tuple(data["graders"]), path.parent)


def _faults(data: Any) -> list[str]:
    if not isinstance(data, dict) or not str(data.get("schema_version", "")).startswith("1."):
        return ["schema_version 1.x is missing"]
    faults = [f"{field} is missing" for field in ("name", "graders") if not data.get(field)]
    if not str(data.get("execution", {}).get("prompt", "")).strip():
        faults.append("execution.prompt is missing")
    names = [g.get("name") for g in data.get("graders", ())]
    faults += [f"two graders are named {n}" for n in sorted(set(filter(None, names))) if names.count(n) > 1]
    for grader in data.get("graders", ()):
        lacking = GRADERS.get(grader.get("type"), {"a known type"}) - set(grader)
        faults += [f"grader {grader.get('name')} lacks {what}" for what in sorted(lacking)]
        faults += _pattern_faults(grader)
    return faults


def _pattern_faults(grader: dict[str, Any]) -> list[str]:
    for field in ("pattern", "input_match"):
        try:
            re.compile(grader.get(field, ""))
        except re.error as error:
            return [f"grader {grader.get('name')}: {field} is no pattern ({error})"]
    return []


def load_cases(folder: Path = HERE / "pressure") -> list[Case]:
    """All scenarios below a folder, by name."""
    return [load_case(path) for path in sorted(folder.glob("*/case.yaml"))]


def load_triggers(path: Path = HERE / "triggers.toml") -> list[Trigger]:
    """The set of triggers. Raises CaseFault for an entry that is not as expected."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    found = [Trigger(t["id"], t["prompt"].strip(), tuple(t["skills"]), t["kind"], t.get("language", "en"))
             for t in data["trigger"]]
    twice = {t.id for t in found if sum(o.id == t.id for o in found) > 1}
    if twice:
        raise CaseFault(f"{path}: ids occur twice: {', '.join(sorted(twice))}")
    return found


def skills(folder: Path = ROOT / "skills") -> dict[str, tuple[str, str]]:
    """Description and body of each skill, by name: what a host shows always, and what it loads on demand."""
    found = {}
    for path in sorted(folder.glob("*/SKILL.md")):
        head, body = path.read_text(encoding="utf-8").split("\n---\n", 1)
        found[path.parent.name] = (str(yaml.safe_load(head.split("---\n", 1)[1])["description"]), body)
    return found


def export_triggers(triggers: list[Trigger], folder: Path) -> int:
    """Writes each trigger as a case for `claude plugin eval`; returns how many."""
    for t in triggers:
        called = {"type": "tool_used", "name": "skill", "tool": "Skill"}
        wanted = "|".join(t.skills)
        grader = {**called, "min": 1, "input_match": wanted} if t.skills else {
            **called, "min": 0, "max": 0, "input_match": "|".join(skills())}
        case = {"schema_version": "1.0", "name": t.id, "tags": ["trigger", t.kind], "runs": 3, "graders": [grader],
                "execution": {"prompt": t.prompt, "max_turns": 2, "allowed_tools": ["Skill"]}}
        (folder / t.id).mkdir(parents=True, exist_ok=True)
        (folder / t.id / "case.yaml").write_text(yaml.safe_dump(case, allow_unicode=True, sort_keys=False),
                                                 encoding="utf-8")
    return len(triggers)
