"""Judges what the checks say of a set of cases that nobody here has seen, and keeps it.

    python benchmarks/first_sight.py CASES --set NAME [--level log|code|run] [--out FILE]

Prints the figures of a first sight (right first, within three, wrong at 0.70 or above, healthy called broken) and
writes for each case which entries of the catalog matched and whether the entry's failure mode was the cause: what
`benchmarks/measure_precision.py` counts. A set has one first sight: a file that is there already is not written over.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "evals"))
from eval_cases import RUN_SECONDS, examined, table  # noqa: E402
from scoring import Score, matches, score  # noqa: E402

from traindx_tools.catalog.catalog import FailureMode, load_catalog  # noqa: E402
from traindx_tools.examine import Examination  # noqa: E402
from traindx_tools.finding import Finding  # noqa: E402
from traindx_tools.weighing import described, matched_sides, netted  # noqa: E402

HERE = Path(__file__).parent / "judgements"


def judged(name: str, truth: Mapping[str, Any], seen: Examination) -> dict[str, Any]:
    """A case as it is kept: its verdict, and every entry that matched with whether its mode was the cause."""
    first = seen.verdict.hypotheses[:1]
    entries = [row for mode in load_catalog().values() for row in _entries(mode, truth, seen)]
    top = [[h.mode.id, round(h.confidence, 4), int(_is_cause(h.mode, truth, seen))] for h in first]
    return {"case": name, "healthy": truth["healthy"], "status": seen.verdict.status,
            "first": top[0] if top else None, "entries": entries}


def _is_cause(mode: FailureMode, truth: Mapping[str, Any], seen: Examination) -> bool:
    pro, _ = _sides(mode, seen.findings, truth["symptom"])
    _, _, issue, mechanism = described(load_catalog()[mode.id], pro)
    return not truth["healthy"] and matches(truth["accept"], f"{issue}\n{mechanism}")


def _sides(mode: FailureMode, findings: Sequence[Finding], words: str) -> tuple[list[Any], list[Any]]:
    mode = load_catalog()[mode.id]
    return netted(*matched_sides(mode, findings, words))


def _entries(mode: FailureMode, truth: Mapping[str, Any], seen: Examination) -> Iterator[list[Any]]:
    pro, con = matched_sides(mode, seen.findings, truth["symptom"])
    if pro:
        right = int(_is_cause(mode, truth, seen))
        yield from ([w.finding.rule, w.role, w.bearing.value, mode.id, right] for w in (*pro, *con))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--set", required=True, help="a name for the set, and the state of the code it was tried on")
    parser.add_argument("--level", choices=("log", "code", "run"), default="code")
    parser.add_argument("--out", type=Path, help=f"default: {HERE.name}/SET-LEVEL.json")
    options = parser.parse_args()
    folders = sorted(p.parent for p in options.cases.glob("*/case.json"))
    out = options.out or HERE / f"{options.set.replace(' ', '-')}-{options.level}.json"
    if not folders:
        print(f"no cases in {options.cases}: expected folders with case.json and input/", file=sys.stderr)
        return 2
    if out.exists():
        print(f"{out} is there already: a set has one first sight; give another --set or --out", file=sys.stderr)
        return 2
    rows, scores = [], []
    for folder in folders:
        truth = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as scratch:
            report = examined(folder, truth, options.level, Path(scratch), RUN_SECONDS)
        scores.append(score(folder.name, truth, report.to_json(), options.level))
        rows.append(judged(folder.name, truth, report.seen))
        print(_line(scores[-1]), flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(r) for r in rows)
    out.write_text(f'{{"set": {json.dumps(options.set)}, "level": "{options.level}", "cases": [\n{lines}\n]}}\n',
                   encoding="utf-8")
    print("\n".join(table(scores, options.level)))
    return 0


def _line(s: Score) -> str:
    return f"{s.outcome:10} {s.confidence:.2f} {s.needs:10} {s.case:24} {s.first[:120]}"


if __name__ == "__main__":
    raise SystemExit(main())
