"""Findings as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

Source of the format and its escapes: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os

from traindx_tools.finding import Finding, Severity

_LEVEL = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice",
          Severity.INFO: "notice"}  # fmt: skip


def workflow_command(finding: Finding, home: str | None = None) -> str:
    """One finding as `::error file=...,line=...::message`, with the path as seen from `home`."""
    where = finding.where
    properties = {"title": f"{finding.rule} {finding.title}"}
    if where.file is not None:
        properties["file"] = os.path.relpath(where.file, home).replace(os.sep, "/")
    if where.line is not None and where.cell is None:
        properties["line"] = str(where.line)
        properties["endLine"] = str(where.end_line or where.line)
    said = ",".join(f"{k}={_property(v)}" for k, v in sorted(properties.items()))
    return f"::{_LEVEL[finding.severity]} {said}::{_data(finding.statement)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
