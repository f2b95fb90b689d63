"""An ignore comment takes a finding out of a report, and it has to say which rule and why.

    total += loss  # traindx: ignore[C103] at most 8 steps, and the graph is wanted

    # traindx: ignore[C104, C105] the discriminator is frozen for good
    net.eval()

It counts for the statement on its line, or, alone on a line, for the next statement. A comment without a reason,
without a rule, or with a rule that does not exist suppresses nothing and is reported: an exception that nobody can
check later is worse than none. One for a rule that was withdrawn says nothing any more and is left alone.
`traindx diagnose` does not heed these comments: when a run is broken, all evidence counts.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule
from traindx_tools.source_files.texts import Text
from traindx_tools.withdrawn import WITHDRAWN

RULE = Rule(
    id="C001",
    name="ignore-comment-without-effect",
    title="An ignore comment names no rule that exists, or gives no reason",
    severity=Severity.LOW,
    sees="Comments `# traindx: ignore[...]` without a reason, without a rule, or with the id of no rule.",
    matters="The finding is still reported; whoever reads the comment believes otherwise.",
    alike=("`# noqa` of other tools, which is not looked at",),
    confirm=("write `# traindx: ignore[C104] the reason`",),
)

_COMMENT = re.compile(r"#\s*traindx:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?(?P<reason>.*)", re.IGNORECASE)
_MENTIONED = re.compile(r"#\s*traindx:\s*ignore", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Suppressed:
    """A finding that a comment took out, and the reason that the comment gives."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class Comment:
    """One ignore comment: the line it stands on, the first line of the statement it counts for, what it says."""

    line: int
    target: int
    rules: tuple[str, ...]
    reason: str
    text: str


def comments_in(text: Text) -> tuple[list[Comment], dict[int, int]]:
    """The ignore comments of a file, and for each line of a longer statement the line on which that begins."""
    comments: list[Comment] = []
    begins: dict[int, int] = {}
    if not _MENTIONED.search(text.text):
        return comments, begins
    waiting: list[tokenize.TokenInfo] = []
    start: int | None = None
    for token in _tokens(text.text):
        if token.type == tokenize.COMMENT and _MENTIONED.match(token.string):
            waiting.append(token)
        elif token.type not in _BLANK and start is None:
            start = token.start[0]
        if token.type == tokenize.NEWLINE and start is not None:
            begins.update((n, start) for n in range(start, token.end[0] + 1))
            comments += [_comment(w, start) for w in waiting]
            waiting, start = [], None
    return comments + [_comment(w, w.start[0]) for w in waiting], begins


_BLANK = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
                    tokenize.NEWLINE})  # fmt: skip


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):  # the parser has said so already
        return


def _comment(token: tokenize.TokenInfo, target: int) -> Comment:
    match = _COMMENT.match(token.string)
    rules = match["rules"] if match else None
    named = tuple(r.strip().upper() for r in (rules or "").split(",") if r.strip())
    reason = match["reason"].strip(" \t:-,.#") if match else ""
    return Comment(token.start[0], target, named, reason, token.string[:200])


def heeded(findings: Iterable[Finding], texts: Iterable[Text], known: Collection[str],
           ) -> tuple[list[Finding], list[Suppressed]]:
    """The findings that remain, with those about comments that do not count; and those that comments took out."""
    findings = list(findings)
    excused: dict[tuple[str, int, str], str] = {}
    begins: dict[str, dict[int, int]] = {}
    kept: list[Finding] = []
    lines: dict[str | None, list[tuple[int, str]]] = {}
    for finding in findings:
        lines.setdefault(finding.where.file, []).append((finding.where.line or 0, finding.rule))
    for text in texts:
        comments, begins[text.path] = comments_in(text)
        for comment in comments:
            faults = list(_faults(comment, known))
            here = [rule for line, rule in lines.get(text.path, ())
                    if begins[text.path].get(line, line) == comment.target]
            named = next((r for r in (*comment.rules, *here) if r in known), "C104")
            counts = bool(_WORD.search(comment.reason)) and any(r in known for r in comment.rules)
            kept += [_complaint(text, comment, " and ".join(faults), counts, named)] if faults else []
            if counts:
                excused.update(((text.path, comment.target, rule), comment.reason) for rule in comment.rules)
    suppressed: list[Suppressed] = []
    for finding in findings:
        line = finding.where.line or 0
        start = begins.get(finding.where.file or "", {}).get(line, line)
        reason = excused.get((finding.where.file or "", start, finding.rule))
        if reason is None:
            kept.append(finding)
        else:
            suppressed.append(Suppressed(finding, reason))
    return kept, suppressed


def _faults(comment: Comment, known: Collection[str]) -> Iterator[str]:
    if not comment.rules:
        yield "names no rule"
    unknown = [rule[:20] for rule in comment.rules if rule not in known and rule not in WITHDRAWN]
    if unknown:
        yield f"names the unknown rule{'s' * (len(unknown) > 1)} {', '.join(unknown[:4])}"
    if not _WORD.search(comment.reason):
        yield "gives no reason"


def _complaint(text: Text, comment: Comment, why: str, counts: bool, rule: str) -> Finding:
    left = "less than it says" if counts else "nothing"
    return RULE.finding(
        f"The ignore comment at {text.path}:{comment.line} {why}, so that it suppresses {left}: write "
        f"`# traindx: ignore[{rule}] the reason`",
        Location(file=text.path, line=comment.line, quote=comment.text),
        text.path,
        bearing=Bearing.CAUSE,
        measured={"kind": why},
    )
