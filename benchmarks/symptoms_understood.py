"""Counts how many of the symptoms of a set of cases are understood; reads nothing of a case but its `symptom`.

    python benchmarks/symptoms_understood.py CASES... [-v]

CASES are folders with `NAME/case.json`. A text is understood where every symptom that it states is read by a table, or
where it states none (a question, a theory, "everything is fine"). With `-v` a line for each text: what was read of it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from traindx_tools.symptom import StatedSymptom, parse


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and stated symptom of each case below a folder."""
    for path in sorted(folder.glob("*/case.json")):
        yield path.parent.name, str(json.loads(path.read_text(encoding="utf-8")).get("symptom") or "")


def outcome(symptoms: tuple[StatedSymptom, ...]) -> str:
    """ "understood", "worry only", "states none" or "not understood"."""
    if not symptoms:
        return "states none"
    if not all(s.understood for s in symptoms):
        return "not understood"
    return "worry only" if all(s.asked for s in symptoms) else "understood"


def shown(symptom: StatedSymptom) -> str:
    """A symptom in a few words: what it does, of what, where and at which value."""
    subject = symptom.subject
    parts = [
        symptom.direction or "?",
        subject.words if subject else "",
        symptom.place.words,
        "" if symptom.value is None else f"{symptom.relation} {symptom.value:g}",
    ]
    return " / ".join(p for p in parts if p)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    for folder in options.cases:
        read = [(name, text, parse(text)) for name, text in texts(folder)]
        if not read:
            print(f"no cases in {folder}: expected folders with case.json")
            return 2
        counts = Counter(outcome(symptoms) for _, _, symptoms in read)
        stated = len(read) - counts["states none"]
        if options.verbose:
            print("\n".join(f"{outcome(s):15} {name:20} {'; '.join(map(shown, s))}" for name, _, s in read))
        share = 100 * (stated - counts["not understood"]) / stated if stated else 100.0
        print(f"{folder}: {len(read)} texts, {stated} state something, {share:.0f} % of those are understood")
        print("  " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
