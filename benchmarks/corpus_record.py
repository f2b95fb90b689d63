"""Writes what the auditor gives on its fixtures today, so that nothing is lost or gained unseen.

    python benchmarks/corpus_record.py [--check]

`tests/tools/on_code/golden.json`: for each fixture the findings as "RULE:line". `tests/tools/on_code/rewritten.json`:
the share of faulty fixtures whose fault is still seen after a rewrite that changes no meaning (own names taken away,
intermediate variables), and those whose fault is not. A lower share is refused where a fault is lost that was seen,
and nothing is written; it may fall with the fixtures of a rule that is withdrawn. `--check` writes nothing and exits
with 1 where the files are not what is found.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.code_audit.renaming import renamed
from traindx_tools.finding import Finding
from traindx_tools.source_files.texts import Text

HOME = Path(__file__).parent.parent / "tests" / "tools" / "on_code"
FIXTURES, GOLDEN, REWRITTEN = HOME / "fixtures", HOME / "golden.json", HOME / "rewritten.json"


def fixtures(kind: str = "") -> list[Path]:
    """All fixtures that are programs of one file, or those whose name begins with `kind` ("bad", "good")."""
    return sorted(p for p in FIXTURES.glob("*/*.py") if p.name.startswith(kind or ("bad_", "good_")))


def key(path: Path) -> str:
    """How a fixture is called: `c101/bad_window`."""
    return f"{path.parent.name}/{path.stem}"


def audited(text: str, rules: Iterable[str] = ()) -> tuple[Finding, ...]:
    """What the auditor says of one program."""
    return audit_texts([Text("program.py", text, "")], tuple(rules)).findings


def found(path: Path) -> list[str]:
    """The findings of a fixture, as they stand in the golden record."""
    return sorted({f"{f.rule}:{f.where.line}" for f in audited(path.read_text(encoding="utf-8"))})


def rewritten(text: str) -> str:
    """The same program under other names, with intermediate variables."""
    sys.path.insert(0, str(HOME))
    from intermediate import with_intermediates

    return with_intermediates(renamed(text))


def is_still_seen(path: Path) -> bool:
    """Whether the rule of a faulty fixture sees it in the rewritten program."""
    rule = path.parent.name.upper()
    return any(f.rule == rule for f in audited(rewritten(path.read_text(encoding="utf-8")), [rule]))


def survival() -> dict[str, Any]:
    """Share of faulty fixtures that are seen after the rewrite, and those that are not."""
    bad = fixtures("bad_")
    lost = [key(p) for p in bad if not is_still_seen(p)]
    return {"share": round(1 - len(lost) / len(bad), 4), "seen": len(bad) - len(lost), "of": len(bad), "lost": lost}


def _written(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=0, sort_keys=True) + "\n"


def _compact(golden: dict[str, list[str]]) -> str:
    lines = [f"{json.dumps(k)}: {json.dumps(' '.join(v))}" for k, v in sorted(golden.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file is out of date")
    check = parser.parse_args().check
    before = json.loads(REWRITTEN.read_text()) if REWRITTEN.exists() else {"share": 0.0, "lost": []}
    now = survival()
    print(f"seen after rewriting: {now['seen']} of {now['of']} ({now['share']:.1%}; before {before['share']:.1%})")
    lost = sorted(set(now["lost"]) - set(before["lost"]))
    if now["share"] < before["share"] and lost:
        print(f"refused: the share may only rise. Lost now: {', '.join(lost)}")
        return 1
    new = {GOLDEN: _compact({key(p): found(p) for p in fixtures()}), REWRITTEN: _written(now)}
    stale = [p.name for p, text in new.items() if not p.exists() or p.read_text() != text]
    if check:
        print(f"out of date: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for path, text in new.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
