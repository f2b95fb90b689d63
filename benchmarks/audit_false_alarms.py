"""Counts what the code auditor reports on well-kept installed packages, where nearly every alarm is a false one.

    python benchmarks/audit_false_alarms.py timm trl torchvision [--level high] [--rules C225,C226] [--show]

Arguments are names of installed packages or paths of folders. For each: files, lines, seconds, findings by severity and
by rule, and with `--show` every finding at or above the level. The exit code is 1 when the alarms at or above the level
are more than one in 2,000 lines.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import time
from collections import Counter
from pathlib import Path

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_code import audit

LINES_PER_ALARM = 2_000
"""At most one alarm of high severity in so many lines of well-kept code."""


def folder(name: str) -> Path:
    """The folder of an installed package (not imported), or the path itself."""
    if Path(name).exists():
        return Path(name)
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{name}: neither a path nor an installed package; pip install it first")
    return Path(next(iter(spec.submodule_search_locations)))


def measured(name: str, rules: tuple[str, ...]) -> tuple[int, int, float, list[Finding], list[str]]:
    """Files, lines, seconds, findings and notes of one package."""
    start = time.perf_counter()
    result = audit([folder(name)], rules=rules)
    seconds = time.perf_counter() - start
    lines = sum(len(f.lines) for f in result.project.files)
    notes = [f"{n.path}: {n.note}" for n in result.notes]
    return len(result.project.files), lines, seconds, list(result.findings), notes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--level", default="high", choices=[s.value for s in Severity])
    parser.add_argument("--rules", default="", help="only these, separated by commas")
    parser.add_argument("--show", action="store_true", help="print every finding at or above the level")
    options = parser.parse_args()
    least = Severity(options.level).rank
    total_lines, total_alarms = 0, 0
    print(f"{'package':32} {'files':>6} {'lines':>8} {'seconds':>8} {'alarms':>7}  by rule")
    for name in options.packages:
        files, lines, seconds, found, notes = measured(name, tuple(filter(None, options.rules.split(","))))
        alarms = [f for f in found if f.severity.rank >= least]
        rules = Counter(f.rule for f in alarms)
        said = ", ".join(f"{rule} {n}" for rule, n in sorted(rules.items()))
        print(f"{Path(name).name:32} {files:6} {lines:8} {seconds:8.1f} {len(alarms):7}  {said}", flush=True)
        total_lines, total_alarms = total_lines + lines, total_alarms + len(alarms)
        if options.show:
            for finding in alarms:
                print(f"    {finding.severity.value:8} {finding.rule} {finding.statement}")
            for note in notes:
                print(f"    note: {note}")
    print(f"{total_alarms} alarms at {options.level} or above in {total_lines} lines: "
          f"{2000 * total_alarms / max(total_lines, 1):.3f} in 2,000")
    return int(total_alarms * LINES_PER_ALARM > total_lines)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
