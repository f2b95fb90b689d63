"""Writes `precision.toml`: how often each check was right on material that its author had not seen.

    python benchmarks/measure_precision.py [JUDGEMENTS.json ...] [--out FILE] [--check]

Reads `benchmarks/judgements/*.json`: for each case of a set at its first sight, which entries of the catalog matched
and whether the entry's failure mode was the cause (`benchmarks/first_sight.py` writes them), and
`public_programs.json` and `files*.json`: findings on public programs, and on strangers' folders of data and weights at
first sight, looked at one by one. A level of running counts for live checks
alone: the text was judged at the level of code already. `--check` writes nothing and exits with 1 where the table is
not what the judgements give.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import beta

from traindx_tools.catalog.catalog import load_catalog as load_modes_with_effects
from traindx_tools.catalog.precision import COUNTER_ROLES, ROLES, TABLE, place_of

HERE = Path(__file__).parent / "judgements"
SHRINK = 20.0
"""Judgements that what is pooled counts for: below this many a check is drawn to its kind, a kind to its role."""
TAIL = 0.10
"""The Jeffreys lower bound is this quantile of the posterior: in nine of ten worlds the precision is higher."""
LEAST = 0.001
"""No bound is put at 0: nothing is impossible that was not seen in a few hundred programs."""
AGAINST_UNMEASURED = 1.5
"""Log-odds that a contradiction takes while fewer than SHRINK judgements exist."""
Key = tuple[str, ...]


class Judgement(NamedTuple):
    """One entry that matched, and whether its failure mode was the cause. `failing`: somebody complains of the run."""

    rule: str
    role: str
    bearing: str
    right: bool
    failing: bool = True



@dataclass
class Counts:
    """Judged and right, by key."""

    judged: Counter[Key] = field(default_factory=Counter)
    right: Counter[Key] = field(default_factory=Counter)

    def add(self, key: Key, right: bool) -> None:
        self.judged[key] += 1
        self.right[key] += int(right)

    def rate(self, key: Key, pooled: float, drawn: float = 5.0) -> float:
        """The share that was right, drawn to what is pooled."""
        return (self.right[key] + 0.5 + drawn * pooled) / (self.judged[key] + 1.0 + drawn)

    def bound(self, key: Key, pooled: float) -> float:
        """The Jeffreys lower bound, drawn to what is pooled."""
        wrong = self.judged[key] - self.right[key]
        drawn = max(0.0, SHRINK - self.judged[key])
        found = beta.ppf(TAIL, self.right[key] + 0.5 + drawn * pooled, wrong + 0.5 + drawn * (1.0 - pooled))
        return max(float(found), LEAST)


def entries(files: Iterable[Path]) -> Iterable[Judgement]:
    """Everything judged; an effect is no cause, so its entries teach nothing about
    causes."""
    effects = {i for i, m in load_modes_with_effects().items() if m.effect}
    for file in files:
        data = json.loads(file.read_text(encoding="utf-8"))
        if file.name == "public_programs.json":
            yield from _public(data)
            continue
        if file.name.startswith("files"):
            yield from _of_files(data)
            continue
        for case in data["cases"]:
            for rule, role, bearing, mode, right in case["entries"]:
                if mode not in effects and (data["level"] != "run" or place_of(rule) == "live"):
                    yield Judgement(rule, role, bearing, bool(right))


def _public(rows: Iterable[dict[str, Any]]) -> Iterable[Judgement]:
    """A finding of high or above on a public program claims the fault itself. Nobody complains of these programs, so
    they tell of a check, and nothing of how often such findings are the cause where a run fails. What one file repeats
    is one judgement: three functions of a benchmark are no three programs. What holds and hardly matters is no fault,
    and counts as wrong."""
    seen: set[tuple[str, str, str]] = set()
    for row in rows:
        key = row["rule"], row["program"], row["judgement"]
        if row["severity"] in ("critical", "high") and key not in seen:
            seen.add(key)
            yield Judgement(row["rule"], "cause", "cause", row["judgement"] == "true", failing=False)


def _of_files(rows: Iterable[dict[str, Any]]) -> Iterable[Judgement]:
    """A finding of medium or above on a folder of files that a stranger made claims what was done to them; a rule that
    repeats itself in a folder is one judgement."""
    for row in rows:
        yield Judgement(row["rule"], "cause", "cause", row["judgement"] == "true")


def table(judged: Iterable[Judgement]) -> str:
    """`precision.toml` as text."""
    roles, kinds, checks, sides = Counts(), Counts(), Counts(), Counts()
    for one in judged:
        if one.role in ROLES:
            checks.add((one.rule, one.role), one.right)
        if one.failing:
            sides.add((one.role,), one.right)
            if one.role in ROLES:
                roles.add((one.role,), one.right)
                kinds.add((place_of(one.rule), one.role, one.bearing), one.right)
    out = ["# Written by `python benchmarks/measure_precision.py`; never edited by hand. See catalog/precision.py.", ""]
    share = {role: (roles.right[(role,)] + 0.5) / (roles.judged[(role,)] + 1.0) for role in ROLES}
    for role in ROLES:
        n, r = roles.judged[(role,)], roles.right[(role,)]
        bound = float(beta.ppf(TAIL, r + 0.5, n - r + 0.5))
        out.append(f"[role.{role}]\njudged = {n}\nright = {r}\nbound = {bound:.3f}\n")
    rate: dict[Key, float] = {}
    for key in sorted(kinds.judged):
        rate[key] = kinds.rate(key, share[key[1]])
        out.append(f'[[kind]]\nplace = "{key[0]}"\nrole = "{key[1]}"\nbearing = "{key[2]}"\n'
                   f"judged = {kinds.judged[key]}\nright = {kinds.right[key]}\n"
                   f"bound = {kinds.bound(key, share[key[1]]):.3f}\n")
    for key in sorted(checks.judged):
        place = place_of(key[0])
        mine = [k for k in rate if k[0] == place and k[1] == key[1]]
        total = sum(kinds.judged[k] for k in mine)
        pooled = sum(rate[k] * kinds.judged[k] for k in mine) / total if total else share[key[1]]
        out.append(f'[[check]]\nrule = "{key[0]}"\nrole = "{key[1]}"\njudged = {checks.judged[key]}\n'
                   f"right = {checks.right[key]}\nbound = {checks.bound(key, pooled):.3f}\n")
    out += [_against(role, sides) for role in COUNTER_ROLES]
    return "\n".join(out)


def _against(role: str, sides: Counts) -> str:
    """What a contradiction takes: how much rarer it is where the mode is the cause than where it is not."""
    right = sum(sides.right[(r,)] for r in ROLES) + 1.0
    wrong = sum(sides.judged[(r,)] - sides.right[(r,)] for r in ROLES) + 1.0
    n, r = sides.judged[(role,)], sides.right[(role,)]
    measured = max(0.0, -math.log(((r + 0.5) / right) / ((n - r + 0.5) / wrong)))
    weight = (n * measured + SHRINK * AGAINST_UNMEASURED) / (n + SHRINK)
    return f"[against.{role}]\njudged = {n}\nright = {r}\nweight = {weight:.2f}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judgements", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    files = options.judgements or sorted(HERE.glob("*.json"))
    if not files:
        print(f"no judgements in {HERE}: write some with benchmarks/first_sight.py", file=sys.stderr)
        return 2
    try:
        text = table(entries(files))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot read the judgements ({error!r}): expected what benchmarks/first_sight.py writes",
              file=sys.stderr)
        return 2
    if options.check:
        same = options.out.is_file() and options.out.read_text(encoding="utf-8") == text
        print("precision.toml is what the judgements give" if same else "precision.toml is stale: write it anew")
        return 0 if same else 1
    options.out.write_text(text, encoding="utf-8")
    print(f"{options.out}: {text.count('[[check]]')} checks, {text.count('[[kind]]')} kinds")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
