"""How often the operation and the line of a planted non-finite value are named exactly.

    python benchmarks/nonfinite_origins.py [--only NAME]

Each run that `tests/tools/on_torch/planted/origins.py` gathers is watched first and then traced around the backward
pass that the watch named, as `traindx run` does. Prints a line for each and a table; exit code 1 below 95 %.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/tools/on_torch/planted"))

BAR = 0.95


def main() -> int:
    from finding_origins import origin_of
    from origins import PLANTED

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    only = parser.parse_args().only
    table: dict[str, list[bool]] = defaultdict(list)
    reasons = 0
    for case in PLANTED:
        if only not in (None, case.name):
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            found = origin_of(case.run, Path(folder))
        m = found.measured if found else {}
        exact = bool(found and str(m["op"]).startswith(case.op) and m.get("line") == case.line
                     and m["phase"] == case.phase and case.module in (None, m.get("module")))
        table[case.family].append(exact)
        reasons += m.get("reason") == case.reason
        got = f"{m.get('phase')} {m.get('op')} line {m.get('line')} {m.get('reason')} module {m.get('module')}"
        print(f"{'exact' if exact else 'MISS ':6} {case.family:13} {case.name:38} {got}"
              f"{'' if exact and m.get('reason') == case.reason else f'  (planted: {case})'}")
        if only and found:
            print(found.statement)
    total = sum(map(len, table.values()))
    exact = sum(map(sum, table.values()))
    for family, hits in table.items():
        print(f"{family:14} {sum(hits)}/{len(hits)}")
    print(f"exact operation and line: {exact}/{total} ({100 * exact / total:.0f} %); right reason: {reasons}/{total}")
    return 0 if exact >= BAR * total else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
