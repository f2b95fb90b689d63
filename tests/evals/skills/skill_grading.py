"""Grades a conversation: rules first, a judge second. A rule needs no model and decides the same way every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skill_cases import Case, Trigger

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
"""Flags of JavaScript that mean something in Python; the others change nothing here."""


@dataclass
class Trace:
    """What the assistant said and which tools it called, in order."""

    said: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    failure: str = ""

    @property
    def last_message(self) -> str:
        return self.said[-1] if self.said else ""

    def text(self, target: Any) -> str:
        """What a grader looks at: the last message, or everything."""
        calls = [f"[{tool}] {json.dumps(given, ensure_ascii=False)}" for tool, given in self.calls]
        return "\n".join([*self.said, *calls]) if target == "trace" else self.last_message


@dataclass(frozen=True)
class Grade:
    """How one conversation was graded, and by what it failed."""

    passed: bool
    failed: tuple[str, ...] = ()
    judged: bool = False
    why: str = ""


Judge = Callable[[str, str], tuple[bool, str]]
"""From criteria and conversation to (passed, reason)."""


def trace_of(steps: Sequence[dict[str, Any]]) -> Trace:
    """The trace of a written conversation."""
    trace = Trace()
    for step in steps:
        if "use" in step:
            trace.calls.append((step["use"], step.get("input", {})))
        else:
            trace.said.append(step["say"])
    return trace


def failed_rules(case: Case, trace: Trace) -> tuple[str, ...]:
    """The names of the rules that the conversation breaks; none where it is good enough for the judge.

    What must not happen (an edit, a word that claims it) must not happen once. Of what should be said, a third may be
    missing, or one thing: a pattern knows few of the ways to say it.
    """
    broken = [rule for rule in case.rules if not _holds(rule, trace)]
    unsaid = [rule for rule in broken if _should_be_said(rule)]
    allowed = max(1, sum(map(_should_be_said, case.rules)) // 3)
    if len(unsaid) == len(broken) <= allowed:
        return ()
    return tuple(rule["name"] for rule in broken)


def _should_be_said(rule: dict[str, Any]) -> bool:
    return bool(rule["type"] == "regex" and rule.get("match", "contains") == "contains")


def _holds(rule: dict[str, Any], trace: Trace) -> bool:
    return _RULES[rule["type"]](rule, trace)


def _regex(rule: dict[str, Any], trace: Trace) -> bool:
    flags = 0
    for letter in rule.get("flags", ""):
        flags |= _FLAGS.get(letter, 0)
    found = re.findall(rule["pattern"], trace.text(rule.get("target", "last_message")), flags)
    match = rule.get("match", "contains")
    if match.startswith("count:"):
        return len(found) == int(match.removeprefix("count:"))
    return bool(found) is (match == "contains")


def _matching(tool: str, pattern: str | None, trace: Trace) -> list[int]:
    return [i for i, (name, given) in enumerate(trace.calls)
            if name == tool and (pattern is None or re.search(pattern, json.dumps(given, ensure_ascii=False)))]


def _tool_used(rule: dict[str, Any], trace: Trace) -> bool:
    count = len(_matching(rule["tool"], rule.get("input_match"), trace))
    least = rule.get("min", 0 if "max" in rule else 1)
    return bool(least <= count <= rule.get("max", count))


def _tool_order(rule: dict[str, Any], trace: Trace) -> bool:
    sides = [s if isinstance(s, dict) else {"tool": s} for s in (rule["before"], rule["after"])]
    before, after = (_matching(s["tool"], s.get("input_match"), trace) for s in sides)
    return bool(before and after and before[0] < after[-1])


_RULES: dict[str, Callable[[dict[str, Any], Trace], bool]] = {
    "regex": _regex, "tool_used": _tool_used, "tool_order": _tool_order,
    # Files are the business of `claude plugin eval`, which has a folder; here there is none.
    "file_exists": lambda rule, trace: not rule.get("exists", True)}


def grade(case: Case, trace: Trace, judge: Judge | None) -> Grade:
    """Rules first: a conversation that breaks one is not shown to the judge, which costs money."""
    if trace.failure:
        return Grade(False, (f"no answer: {trace.failure}",))
    failed = failed_rules(case, trace)
    if failed or judge is None or not case.criteria:
        return Grade(not failed, failed)
    verdicts = [judge(criteria, trace.text("trace")) for criteria in case.criteria]
    passed = all(ok for ok, _ in verdicts)
    return Grade(passed, () if passed else ("judge",), True, " ".join(why for _, why in verdicts))


def triggered(trigger: Trigger, trace: Trace, known: Sequence[str]) -> bool:
    """True where exactly the skill was called that the prompt is for, or none where it is for none."""
    called = {str(given.get("skill", "")).split(":")[-1] for tool, given in trace.calls if tool == "Skill"} & set(known)
    if trace.failure:
        return False
    return not called if not trigger.skills else bool(called & set(trigger.skills))
