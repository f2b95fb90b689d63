"""Findings as SARIF 2.1.0, the format that code hosts and editors take from analysers.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from traindx_tools import __version__
from traindx_tools.artifact import Artifact
from traindx_tools.code_reports.suppression import Suppressed
from traindx_tools.finding import Finding, Patch, Severity, Strength
from traindx_tools.rules import RuleModule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note",
          Severity.INFO: "note"}  # fmt: skip
_RANK = {Strength.RAN: 95.0, Strength.DERIVED: 85.0, Strength.GUESSED: 40.0}
"""SARIF's `rank`, 0 to 100: how much attention a result deserves among those of its level."""
_HOME = "%SRCROOT%"


def document(findings: Sequence[Finding], suppressed: Sequence[Suppressed], notes: Iterable[Artifact],
             rules: Mapping[str, RuleModule], home: Path) -> dict[str, Any]:
    """One run with its rules, results, fixes and what could not be read. Paths are given from `home`."""
    told = [*findings, *(s.finding for s in suppressed)]
    ids = sorted({f.rule for f in told})
    prints = _Fingerprints(home)
    results = [_result(f, ids, prints, home) for f in findings]
    results += [{**_result(s.finding, ids, prints, home),
                 "suppressions": [{"kind": "inSource", "justification": s.reason}]} for s in suppressed]
    for result in results:
        result.setdefault("suppressions", [])  # "all or none of the results have it": empty means not suppressed
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "traindx",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": "https://github.com/traindx/traindx",
                "rules": [_rule(rules[i]) for i in ids],
            }},
            "originalUriBaseIds": {_HOME: {"uri": f"{home.resolve().as_uri()}/"}},
            "columnKind": "utf16CodeUnits",
            "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [_notice(n) for n in notes]}],
            "results": results,
        }],
    }


def _rule(module: RuleModule) -> dict[str, Any]:
    from traindx_tools.catalog.page import rule_page

    rule = module.rule
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": f"{rule.sees} {rule.matters}"},
        "help": {"text": rule_page(module), "markdown": rule_page(module)},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"tags": ["training", "correctness"], "severity": rule.severity.value},
    }


def _result(finding: Finding, ids: Sequence[str], prints: _Fingerprints, home: Path) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": _LEVEL[finding.severity],
        "rank": _RANK[finding.strength],
        "message": {"text": finding.statement},
        "locations": [_location(finding, home)] if finding.where.file is not None else [],
        "partialFingerprints": {"traindx/v1": prints.of(finding)},
        "properties": {"severity": finding.severity.value, "strength": finding.strength.value},
    }
    if finding.patch:
        result["fixes"] = [_fix(patch, home) for patch in finding.patch]
    return result


def _location(finding: Finding, home: Path) -> dict[str, Any]:
    where = finding.where
    assert where.file is not None
    region: dict[str, Any] = {"startLine": 1}  # of a notebook the lines of its JSON are not known
    if where.cell is None and where.line is not None:
        region = {"startLine": where.line, "endLine": max(where.line, where.end_line or where.line)}
        if where.quote:
            region["snippet"] = {"text": where.quote}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(where.file, home),
                                                     "region": region}}
    logical = [{"name": where.module, "kind": "function"}] if where.module else []
    if where.cell is not None:
        logical.append({"name": f"cell {where.cell}, line {where.line}", "kind": "element"})
    return {**location, "logicalLocations": logical} if logical else location


def _artifact(file: str, home: Path) -> dict[str, Any]:
    relative = os.path.relpath(file, home)
    if relative.startswith(os.pardir):
        return {"uri": Path(os.path.abspath(file)).as_uri()}
    return {"uri": quote(relative.replace(os.sep, "/")), "uriBaseId": _HOME}


def _fix(patch: Patch, home: Path) -> dict[str, Any]:
    deleted = {"startLine": patch.line, "startColumn": 1, "endLine": patch.end_line + 1, "endColumn": 1}
    removed = patch.replacement == "" and patch.original != ""
    return {
        "description": {"text": patch.summary},
        "artifactChanges": [{
            "artifactLocation": _artifact(patch.file, home),
            "replacements": [{"deletedRegion": deleted,
                              "insertedContent": {"text": "" if removed else f"{patch.replacement}\n"}}],
        }],
    }


def _notice(note: Artifact) -> dict[str, Any]:
    return {"level": "warning", "message": {"text": f"{note.path}: {note.note}"}}


class _Fingerprints:
    """What stays the same when lines move: rule, file, quoted line, and the how-manieth such one it is."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.seen: Counter[str] = Counter()

    def of(self, finding: Finding) -> str:
        file = os.path.relpath(finding.where.file, self.home) if finding.where.file else ""
        kind = f"{finding.rule}\0{file}\0{finding.where.quote or ''}\0{finding.measured.get('kind', '')}"
        self.seen[kind] += 1
        return hashlib.sha256(f"{kind}\0{self.seen[kind]}".encode("utf-8", "replace")).hexdigest()[:32]
