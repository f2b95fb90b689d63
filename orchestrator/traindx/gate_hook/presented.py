"""Reads a diagnosis out of the conversation: what the person was shown is what an approval covers."""

from __future__ import annotations

import re
from zlib import adler32, crc32

from traindx.gate_hook.changes import PLACE, changes_in
from traindx.gate_hook.hidden import hidden_in, table_in
from traindx.gate_hook.state import Option, Shown
from traindx.sections import SECTIONS, empty
from traindx.unseen import unseen_in

_LINE = r"^[#>*_\d.) \t]*{heading}[ \t]*[:*_]*[ \t]*(?P<rest>[^\n]*)$"
_OPTION = re.compile(r"^[-*>#+_ \t]*(?:(?:option|fix)[ \t]+)?(?P<name>[AB])(?:\*\*|__)?"
                     r"[ \t]*(?:[:.)(]|[-\u2013\u2014] )", re.IGNORECASE | re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]{3,400})`")
_FENCED = re.compile(r"(?P<mark>```|~~~)\w*\n(?P<body>.*?)(?P=mark)", re.DOTALL)
_COMMAND = re.compile(
    r"(?:\$ |[A-Z_]\w*=\S* )*(?:python[\d.]*|pytest|torchrun|accelerate|deepspeed|bash|sh|make|uv|poetry|conda|srun"
    r"|mpirun|traindx|\S+\.(?:py|sh))(?: |$)")
"""What is run; `loss < 2.0` in backticks is a condition."""

_VERIFY = re.compile(r"\bverif(?:y|ication|ied)\b", re.IGNORECASE)

_COMPARED = ", and a comparison with a space behind its < (a < b): without one a tag begins, whose words are gone"
CAUSE_AT_MOST = 300
"""Characters of the cause that the gate's question and the ledger repeat."""


def read_diagnosis(text: str, workspace: str, conversation: str = "") -> Shown | tuple[str, ...]:
    """The diagnosis in an assistant's message, or what it lacks to be one that can be approved."""
    parts, lacking = _sections(text)
    if lacking:
        return lacking
    options = _options(parts["Proposed Fix"], workspace)
    problems = [f"section '{heading}' says nothing" for heading, said in parts.items() if empty(said)]
    if not PLACE.search(parts["Root Cause"]):
        problems.append("section 'Root Cause' names no path:line")
    if not options:
        problems.append("section 'Proposed Fix' states no change: begin an option with its place, as in `A: "
                        "train.py:3: EPS = 1e-6`, and state each further one on a line `change: path:line: new text` "
                        "or `change: path (new)`, or show a diff")
    problems += [f"a viewer may hide {kind}: write it plainly, code in backticks or in a fence at the margin"
                 f"{_COMPARED if '<' in kind else ''}" for kind in hidden_in(text)]
    problems += [f"option {one.option} holds characters that nobody sees ({', '.join(unseen[:3])})" for one in options
                 if (unseen := unseen_in("\n".join([*one.verify, *(row for b in one.bound for row in b.lines)])))]
    if table_in(parts["Proposed Fix"]):
        problems.append("section 'Proposed Fix' holds a table, of which a viewer may drop cells: write it in sentences")
    if problems:
        return tuple(problems)
    whole = "\n".join(parts.values()).encode("utf-8", "surrogateescape")
    cause = next(line.strip() for line in parts["Root Cause"].splitlines() if line.strip())
    told = cause if len(cause) <= CAUSE_AT_MOST else f"{cause[:CAUSE_AT_MOST]} ..."
    return Shown(f"{crc32(whole):08x}{adler32(whole):08x}", conversation, told, options)


def looks_like_one(text: str) -> bool:
    """True where at least the cause and the fix of a diagnosis are headed."""
    return all(_heading(h).search(text) for h in ("Root Cause", "Proposed Fix"))


def _heading(heading: str) -> re.Pattern[str]:
    return re.compile(_LINE.format(heading=re.escape(heading)), re.MULTILINE | re.IGNORECASE)


def _sections(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    found: list[tuple[str, int, int, str]] = []
    lacking = []
    at = 0
    for _, heading in SECTIONS:
        match = _heading(heading).search(text, at)
        if match is None:
            lacking.append(f"section '{heading}' is missing or out of order")
            continue
        found.append((heading, match.start(), match.end(), match["rest"]))
        at = match.end()
    ends = [start for _, start, _, _ in found[1:]] + [len(text)]
    parts = {heading: f"{rest}\n{text[begin:end]}" for (heading, _, begin, rest), end in zip(found, ends, strict=True)}
    return parts, tuple(lacking)


def _options(text: str, workspace: str) -> tuple[Option, ...]:
    marks = list(_OPTION.finditer(text))
    pieces = [("A", text)] if not marks else [
        (m["name"].upper(), text[m.end():n.start() if n is not None else len(text)])
        for m, n in zip(marks, [*marks[1:], None], strict=True)]
    joined: dict[str, str] = {}
    for name, piece in pieces:
        joined[name] = f"{joined[name]}\n{piece}" if name in joined else piece
    shared = commands_in(text[:marks[0].start()] if marks else "")
    made = []
    for name, piece in joined.items():
        changes = changes_in(piece, workspace)
        made.append(Option(name, changes.places, (*commands_in(piece), *shared), (), changes.bound))
    return tuple(o for o in made if o.places)


def commands_in(text: str) -> tuple[str, ...]:
    """Commands that stand after the word "verify": in backticks of that line, or in the fence that follows."""
    found: list[str] = []
    for match in _VERIFY.finditer(text):
        line_end = text.find("\n", match.end())
        line = text[match.end():line_end if line_end >= 0 else len(text)]
        found += _QUOTED.findall(line)
        fence = _FENCED.match(text[line_end + 1:].lstrip()) if line_end >= 0 else None
        if fence is not None:
            found += [command.strip() for command in fence["body"].splitlines() if command.strip()]
    return tuple(dict.fromkeys(command for command in found if _COMMAND.match(command)))
