"""Findings as a person reads them: what each layer has alike is told once, and no statement is longer than a few lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from traindx_tools.finding import Finding

LONGEST = 300
"""Characters of a statement."""
_FEWEST = 3
"""Findings that differ in the name alone from which on they are told together."""
_NUMBER = re.compile(r"\d+")


def shortened(findings: Iterable[Finding], paths: Iterable[str]) -> list[Finding]:
    """Statements of at most `LONGEST` characters. `paths`: what long ones call by its end alone."""
    known = list(dict.fromkeys(paths))
    return [f if len(f.statement) <= LONGEST else replace(f, statement=_fitting(f.statement, known)) for f in findings]


def together(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that differ in the number of a layer alone as one, the others as they are."""
    groups: dict[object, list[Finding]] = {}
    for at, finding in enumerate(findings):
        name = finding.measured.get("name")
        key = ((finding.rule, finding.severity, _NUMBER.sub("*", name), finding.statement.replace(name, "*"))
               if isinstance(name, str) and _NUMBER.search(name) else at)
        groups.setdefault(key, []).append(finding)
    made = []
    for group in groups.values():
        made += [_one(group)] if len(group) >= _FEWEST else group
    return made


def _one(group: Sequence[Finding]) -> Finding:
    first, names = group[0], [str(f.measured["name"]) for f in group]
    pattern = _NUMBER.sub("*", names[0])
    return replace(first, statement=f"{first.statement}; the same in {len(group)} of {pattern} up to {names[-1]}",
                   measured={**first.measured, "alike": len(group), "names": tuple(names)})


def _fitting(statement: str, paths: Iterable[str]) -> str:
    """Paths by the end that tells them apart, then without what stands last."""
    named = [p for p in sorted(paths, key=len, reverse=True) if p in statement]
    for path in named:
        statement = statement.replace(path, _end(path, named))
    if len(statement) <= LONGEST:
        return statement
    return statement[: LONGEST - 4].rpartition(" ")[0].rstrip(",;:(") + " ..."


def _end(path: str, paths: Sequence[str]) -> str:
    """The shortest end of a path that is no other one's."""
    parts = [p.rstrip(os.sep).split(os.sep) for p in paths]
    own = path.rstrip(os.sep).split(os.sep)
    depth = next((d for d in range(1, len(own)) if sum(q[-d:] == own[-d:] for q in parts) == 1), len(own))
    return os.sep.join(own[-depth:])
