"""A change is tried before it is offered: it must parse, and an audit of the result must be better than before.

The finding that the change came from has to be gone, and no finding of medium severity or above may be new. Two
findings are the same where the rule, the file and the line (carried over the change) agree, or the rule, the file and
the statement without its numbers. Nothing is written here and nothing is run; `trial_run.py` runs it, with consent.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.code_reports.unified_diff import with_patches
from traindx_tools.finding import Finding, Patch, Severity
from traindx_tools.source_files.texts import Text

_NUMBERS = re.compile(r"\d+(?:\.\d+)?")


def what_fails(texts: Sequence[Text], after: Mapping[str, str], carriers: Sequence[Finding],
               before: Sequence[Finding] | None = None) -> str:
    """Why the change may not be offered, "" where nothing speaks against it.

    `texts`: the audited files as they are; `after`: the new content of changed ones, by path; `carriers`: the findings
    that the change is to remove; `before`: what an audit of `texts` says, where it is known. Notebooks, and files that
    are no Python, are not judged.
    """
    changed = {p: new for p, new in after.items() if p.endswith(".py")}
    broken = next((b for t in texts if t.path in changed for b in [_broken(t, changed[t.path])] if b), "")
    if broken or not changed:
        return broken
    old = audit_texts(texts).findings if before is None else before
    new = audit_texts([replace(t, text=changed.get(t.path, t.text), digest="") for t in texts]).findings
    return _still_there(old, new, carriers) or _new_fault(old, new, texts, changed)


def sound(findings: Sequence[Finding], texts: Sequence[Text]) -> tuple[tuple[Finding, ...], dict[Patch, str]]:
    """The findings, those without their change whose trial fails; and why each of these changes was left out.

    All changes are tried together first; only where that fails is each tried by itself.
    """
    carriers = [f for f in findings if any(p.file.endswith(".py") for p in f.patch)]
    if not carriers or not what_fails(texts, patched(carriers, texts), carriers, findings):
        return tuple(findings), {}
    failed = {id(f): why for f in carriers for why in [what_fails(texts, patched([f], texts), [f], findings)] if why}
    left_out = {p: failed[id(f)] for f in carriers if id(f) in failed for p in f.patch}
    return tuple(replace(f, patch=()) if id(f) in failed else f for f in findings), left_out


def patched(carriers: Sequence[Finding], texts: Iterable[Text]) -> dict[str, str]:
    """The new content of each file that the changes of these findings touch; of two that clash the first counts."""
    out = {}
    for text in texts:
        own = [p for f in carriers for p in f.patch if p.file == text.path]
        if own:
            out[text.path] = with_patches(text.text, own)
    return out


def _broken(text: Text, new: str) -> str:
    """Whether the changed file no longer compiles; one that did not before is not judged."""
    problem = _syntax_error(text.path, new)
    return f"the changed {text.path} does not parse: {problem}" if problem and not _syntax_error(text.path,
                                                                                               text.text) else ""


def _syntax_error(path: str, text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return str(error)
    return ""


def _still_there(old: Sequence[Finding], new: Sequence[Finding], carriers: Sequence[Finding]) -> str:
    """The carriers that the change does not remove: counted by rule, as a line may have moved."""
    was, now = Counter(f.rule for f in old), Counter(f.rule for f in new)
    for rule, count in Counter(f.rule for f in carriers if f.rule[0] == "C").items():
        if was[rule] and now[rule] > was[rule] - count:
            told = next(f for f in new if f.rule == rule)
            return f"an audit of the result still finds {rule}: {told.statement}"
    return ""


def _new_fault(old: Sequence[Finding], new: Sequence[Finding], texts: Iterable[Text],
               changed: Mapping[str, str]) -> str:
    carried = {t.path: _carried(t.text, changed[t.path]) for t in texts if t.path in changed}
    places = {(f.rule, f.where.file, _moved(f, carried)) for f in old}
    said = {(f.rule, f.where.file, _NUMBERS.sub("#", f.statement)) for f in old}
    for f in new:
        known = (f.rule, f.where.file, f.where.line) in places or (
            f.rule, f.where.file, _NUMBERS.sub("#", f.statement)) in said
        if f.severity.rank >= Severity.MEDIUM.rank and not known:
            return f"an audit of the result finds {f.rule}, which is new: {f.statement}"
    return ""


def _moved(finding: Finding, carried: Mapping[str, Mapping[int, int]]) -> int | None:
    """The line of an old finding in the changed file; None where that line is gone."""
    line, lines = finding.where.line, carried.get(finding.where.file or "")
    return line if lines is None or line is None else lines.get(line)


def _carried(old: str, new: str) -> dict[int, int]:
    """Line numbers (1-based) of unchanged lines, before to after."""
    blocks = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False).get_matching_blocks()
    return {b.a + i + 1: b.b + i + 1 for b in blocks for i in range(b.size)}
