"""Draws the protocol as it is in `traindx.machine`: writes docs/process.md.

    python docs/render_process.py [--check]

`--check` writes nothing and exits with 1 when the page is not current. A test holds the table of edges against the
state machine itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

EDGES = (
    ("characterize", "characterized", "hypothesize", "the symptom is written down"),
    ("hypothesize", "hypothesized", "gather", "three to five hypotheses, ranked"),
    ("hypothesize", "hypothesized", "diagnose", "quick path: seen directly, in one place"),
    ("gather", "gathered", "diagnose", "evidence for and against each"),
    ("diagnose", "diagnosed", "gate", "complete: six sections, cited evidence, path and line"),
    ("diagnose", "sent-back", "gather", "incomplete: what is missing is said"),
    ("diagnose", "sent-back", "needs_data", "unfit three times in a row"),
    ("diagnose", "quick-path-ended", "gather", "not solved in 15 minutes"),
    ("diagnose", "data-needed", "needs_data", "no cause reaches 0.70"),
    ("diagnose", "found-healthy", "healthy", "nothing is wrong"),
    ("needs_data", "data-given", "hypothesize", "more artifacts"),
    ("gate", "decided", "fix", "a person approved one option"),
    ("gate", "decided", "gather", "revise: the person knows more"),
    ("gate", "decided", "halted", "rejected"),
    ("fix", "approval-stale", "gather", "the approved lines are no longer there"),
    ("fix", "applied", "verify", "the approved lines, nothing else"),
    ("verify", "verified", "retrospective", "fixed: what was promised was seen to move"),
    ("verify", "verified", "strike", "failed, or no effect"),
    ("verify", "verified", "verify", "passed, effect not shown or change not executed: a person says what it means"),
    ("fix", "undone", "gate", "the change is undone before it was judged: no strike, the diagnosis waits again"),
    ("verify", "undone", "gate", "the change is undone before it was judged: no strike, the diagnosis waits again"),
    ("halted", "undone", "gate", "the change that stands is undone: what a person changed beside it stays"),
    ("strike", "reverted", "strike", "the fix is taken back"),
    ("strike", "struck", "gather", "strike 1: more evidence; strike 2: doubt the cause"),
    ("strike", "struck", "halted", "strike 3: stop and ask"),
    ("halted", "directed", "hypothesize", "a fundamentally different approach"),
    ("halted", "directed", "done", "stop"),
    ("retrospective", "recorded", "done", "root cause and lessons are written"),
)
"""(from, event, to, in words). A halt for a changed workspace, an interruption and a resume can come in any phase."""

PAGE = Path(__file__).with_name("process.md")

HEAD = """# The process

Drawn from the state machine by `python docs/render_process.py`; a test keeps it true.

```mermaid
stateDiagram-v2
    [*] --> characterize
"""

TAIL = """    healthy --> [*]
    done --> [*]
```

Nothing is written to the workspace in `characterize`, `hypothesize`, `gather`, `diagnose` and `gate`; it is
fingerprinted before and after each, and a difference halts the session. Between `gate` and `fix` stands a person. A
session waits on disk in `gate`, `needs_data` and `halted`, for as long as it takes, and is replayed from its journal.

| from | event | to | when |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    arrows = "".join(f"    {a} --> {b}: {words.replace(':', ',')}\n" for a, _, b, words in EDGES)
    rows = "".join(f"| {a} | {event} | {b} | {words} |\n" for a, event, b, words in EDGES)
    return HEAD + arrows + TAIL + rows


def main() -> int:
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print("current" if current else f"{PAGE} is not current: run python docs/render_process.py")
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
