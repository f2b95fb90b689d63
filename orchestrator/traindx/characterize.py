"""What is known of a symptom before anything is investigated: the user's own words, and what changed in the code.

A sentence is read for what it says of the time ("since step 400"), of a change ("after I upgraded torch") and of how
often it happens; nothing is invented. `git log` and the difference since the last good commit become evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traindx.model import Evidence, Symptom
from traindx.policy import is_secret
from traindx.workspace import run_git

COMMITS_SHOWN = 10
DIFF_SHOWN = 20_000
"""Characters of a difference that are read."""

_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--relative")

Often = Literal["always", "sometimes", "unknown"]

_SINCE = re.compile(
    r"\b(?:(?:since|at|from|around|after|in)\s+)?((?:step|iteration|iter|epoch|batch|update)s?\s+~?\d[\d,_.]*k?)\b"
    r"|\b(since\s+(?!we\b|i\b|it\b|the loss\b)(?:[^,.;]|[.,](?=\d)){3,60})", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:after|since|when|once)\s+((?:i|we|they|he|she)\s+(?:have\s+|had\s+)?\w+(?:[^,.;]|[.,](?=\d)){2,80}"
    r"|(?:(?:the|an?|my|our)\s+)?(?:upgrad|updat|chang|switch|mov|add|refactor|merg|rebas|resum|restart)\w*(?:[^,.;]|[.,](?=\d)){2,80})",
    re.IGNORECASE)
_EXPECTED = re.compile(
    r"\b(?:expect(?:ed|ing)?|should(?:\s+have)?|supposed to|instead of|used to|normally)\s+((?:[^.;]|\.(?=\d)){3,120})",
    re.IGNORECASE)
_OFTEN: tuple[tuple[Often, re.Pattern[str]], ...] = (
    ("sometimes", re.compile(r"\b(sometimes|intermittent\w*|occasional\w*|random(?:ly)?|flaky|now and then"
                             r"|some(?: of the)? runs|not always|once in a while|one in \w+|rare(?:ly)?"
                             r"|every (?:few|other) runs?|with some seeds?|non-?determinis\w+)\b", re.IGNORECASE)),
    ("always", re.compile(r"\b(always|every (?:time|run|single)|each (?:time|run)|consistent(?:ly)?|reproducib\w+"
                          r"|determinis\w+|all runs|any seed)\b", re.IGNORECASE)),
)
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")


def read_symptom(told: str | Symptom | Mapping[str, object]) -> Symptom:
    """The symptom's form, filled with what the user's words say; fields that they filled themselves are kept."""
    if not isinstance(told, str):
        return told if isinstance(told, Symptom) else Symptom.model_validate(told)
    text = " ".join(told.split())
    since, changed, expected = _SINCE.search(text), _CHANGED.search(text), _EXPECTED.search(text)
    return Symptom(
        observed=text,
        expected=expected[1].strip() if expected else "",
        since_when=(since[1] or since[2]).strip() if since else "",
        what_changed=changed[1].strip() if changed else "",
        reproducible=next((often for often, pattern in _OFTEN if pattern.search(text)), "unknown"),
    )


@dataclass(frozen=True)
class Changes:
    """What git says: recent commits (newest first), files that differ from `base`, and the difference itself."""

    base: str
    commits: tuple[str, ...]
    files: tuple[str, ...]
    difference: str


def recent_changes(workspace: Path, symptom: Symptom, good: str | None = None) -> Changes | None:
    """What changed since the last good commit: `good`, or a commit that the symptom names, or HEAD (uncommitted work).

    None where the workspace is no git repository, or git is not there. Files that may hold secrets are left out.
    """
    base = _base(workspace, symptom, good)
    if base is None:
        return None
    span = f"{base}..HEAD" if base != "HEAD" else "HEAD"
    log = run_git(workspace, "log", f"-n{COMMITS_SHOWN}", "--date=iso", "--format=%h %ad %s", span, "--", ".")
    names = run_git(workspace, *_DIFF, "--name-only", "-z", base, "--", ".")
    files = tuple(n for n in (names or "").split("\0") if n and not is_secret(Path(n)))
    difference = run_git(workspace, *_DIFF, "-U2", base, "--", *files[:100], limit=DIFF_SHOWN) if files else ""
    return Changes(base, tuple((log or "").splitlines()), files, difference or "")


def _base(workspace: Path, symptom: Symptom, good: str | None) -> str | None:
    named = [good] if good else [m[0] for m in _COMMIT.finditer(f"{symptom.since_when} {symptom.what_changed} "
                                                                f"{symptom.observed}")]
    for name in named:
        if not name.startswith("-") and run_git(workspace, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return name
    return "HEAD" if run_git(workspace, "rev-parse", "--verify", "--quiet", "HEAD") else None


def change_evidence(changes: Changes | None) -> tuple[Evidence, ...]:
    """The changes as evidence: they correlate, and prove nothing by themselves."""
    if changes is None:
        return ()
    out = []
    since = "HEAD, not committed" if changes.base == "HEAD" else changes.base
    if changes.commits:
        out.append(Evidence(id="GIT-log", statement=f"The last commits: {changes.commits[0]}",
                            value="\n".join(changes.commits), place=f"git log {changes.base}", source="git"))
    if changes.files:
        shown = ", ".join(changes.files[:8]) + (" ..." if len(changes.files) > 8 else "")
        out.append(Evidence(id="GIT-diff", statement=f"{len(changes.files)} files differ from {since}: {shown}",
                            value=changes.difference or shown, place=f"git diff {changes.base}", source="git"))
    return tuple(out)
