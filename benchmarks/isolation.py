"""Planted differences, found to the smallest, with the number of runs beside the fewest that any search can take.

    python benchmarks/isolation.py [--only NAME]

Each of `tests/orchestrator/isolation/planted.py` is searched with real runs in protected copies. Runs include two of
each control and a second one of what was found; the fewest are those of the search alone (log2 of the possibilities).
Prints a table; exit code 1 where a planted difference was not found exactly.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/orchestrator/isolation"))


def main() -> int:
    from planted import PLANTED

    from traindx.isolation import Request

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one of: " + ", ".join(p.name for p in PLANTED))
    only = parser.parse_args().only
    right = tried = 0
    print("| planted | among | found exactly | runs | fewest | seconds |\n|---|---|---|---|---|---|")
    for case in PLANTED:
        if only not in (None, case.name):
            continue
        if case.needs and importlib.util.find_spec(case.needs) is None:
            print(f"{case.name}: needs {case.needs}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            found = case.search(Path(folder), Request("", Path(folder), runs=300))
            seconds = time.monotonic() - started
        exact = sorted(found.named) == sorted(case.expected)
        tried, right = tried + 1, right + exact
        said = "yes" if exact else f"NO: {found.named}"
        numbers = f"{found.runs} | {found.fewest or '-'} | {seconds:.0f}"
        print(f"| {case.name} | {case.among} | {said} | {numbers} |", flush=True)
    print(f"\nfound exactly: {right}/{tried}")
    return 0 if right == tried else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
