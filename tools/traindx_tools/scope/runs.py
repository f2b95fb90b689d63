"""Several runs that were read together: each judged by itself, and which of them the verdict is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.each_run import OneRun
from traindx_tools.on_logs.run import Run
from traindx_tools.set_aside import SetAside
from traindx_tools.triage import Verdict

MOST_SAID = 12
"""Runs that are told in a line each."""


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """One run with what was seen in it and what follows."""

    one: OneRun
    run: Run
    findings: tuple[Finding, ...]
    verdict: Verdict
    aside: tuple[tuple[SetAside, int], ...] = ()
    """What a person set aside, each with the number of findings that it kept from being told."""
    grounds: frozenset[str] = frozenset()
    """The preconditions of failure modes that something of it shows (see `preconditions.py`)."""

    @property
    def said(self) -> str:
        """What is wrong with it, in one sentence."""
        if self.verdict.causes:
            return self.verdict.causes[0].issue
        worst = max(self.serious, key=lambda f: f.severity.rank, default=None)
        return worst.statement if worst is not None else "nothing wrong found"

    @property
    def serious(self) -> tuple[Finding, ...]:
        """What its log shows that is of medium severity or worse."""
        return tuple(f for f in self.findings if f.rule.startswith("L") and f.severity.rank >= Severity.MEDIUM.rank)

    def to_json(self) -> dict[str, Any]:
        """Plain values: where it stands, the verdict, and the findings of its log with their places."""
        return {"number": self.one.number, "of": self.one.of, "file": self.one.file, "from_line": self.one.start,
                "to_line": self.one.end, "cells": self.one.cells, "resumes": list(self.one.resumes),
                "status": self.verdict.status, "said": self.said,
                "findings": [f.to_json() for f in self.findings if f.rule.startswith("L")]}


def choose(runs: Sequence[JudgedRun], which: int | None, symptom: str) -> JudgedRun:
    """The run that the verdict is for: the one that is asked for, else the last one.

    With a symptom it is the one whose file the symptom names, else the last one in which something is wrong. Raises
    BadUsage where there is no run of this number.
    """
    if which is not None:
        found = next((r for r in runs if r.one.number == which), None)
        if found is None:
            first, count = runs[0].one.number, runs[0].one.of
            said = "one run was" if count == 1 else f"{count} runs were"
            why = f" (only the last {len(runs)} are judged)" if first > 1 else ""
            raise BadUsage(f"there is no run {which}: {said} found in what was read{why}; --which takes {first} to "
                           f"{runs[-1].one.number}")
        return found
    named = [r for r in runs if _named(r.one.file, symptom)]
    wrong = [r for r in runs if r.serious] if symptom else []
    return named[0] if len(named) == 1 else (wrong or list(runs))[-1]


def _named(file: str, symptom: str) -> bool:
    """Whether the words of a symptom hold the name of a file: its last folder or what stands before its suffix."""
    said = set(re.findall(r"\w+", symptom.lower()))
    path = PurePath(file.lower())
    return any(set(re.findall(r"\w+", name)) <= said for name in (path.stem, path.parent.name, path.name) if name)


def in_sentences(runs: Sequence[dict[str, Any]], which: int, line: Callable[[str], str]) -> list[str]:
    """The runs of the result JSON in a line each, the judged one first; nothing where there is one alone."""
    if len(runs) < 2:
        return []

    def place(run: dict[str, Any]) -> str:
        start, end = run["from_line"], run["to_line"]
        lines = f", lines {start} to {end}" if end else f", from line {start}" if start > 1 else ""
        lines = f", {run['cells']}" if run.get("cells") else lines
        return f"Run {run['number']} of {run['of']} ({run['file']}{lines})"

    chosen = next(r for r in runs if r["number"] == which)
    others = [r for r in runs if r is not chosen]
    told = [f"{place(chosen)} is the one that is judged; --which N takes another."]
    told += [f"{place(r)}: {line(str(r['said']))}" for r in others[-MOST_SAID:]]
    rest = chosen["of"] - 1 - MOST_SAID
    return [*told, f"and {rest} more runs before these"] if rest > 0 else told
