"""Counts what the code auditor reports on well-kept installed packages, where nearly every alarm is a false one.

    python benchmarks/audit_false_alarms.py timm trl torchvision [--level high] [--rules C225,C226] [--show]
    python benchmarks/audit_false_alarms.py --checkout FOLDER [--level medium] [--show]
    python benchmarks/audit_false_alarms.py --small

Arguments are names of installed packages or paths of folders. For each: files, lines, seconds, findings by severity and
by rule, and with `--show` every finding at or above the level. The exit code is 1 when the alarms at or above the level
are more than one in 2,000 lines.

`--checkout` goes through the public training programs of `public_programs.toml`, each repository at FOLDER/owner/name,
and holds what is told beside what was judged by hand (`judgements/public_programs.json`). Its exit code is 1 where a
finding of high severity or above was judged false, or was never judged. `--small` goes through this folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from public_programs import judgements, repositories, seen, table

from traindx_tools.code_audit import audit
from traindx_tools.finding import Finding, Severity

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
    files = {f.path: f for project in result.projects for f in project.files}  # programs share files
    notes = [f"{n.path}: {n.note}" for n in result.notes]
    return len(files), sum(len(f.lines) for f in files.values()), seconds, list(result.findings), notes


def public(folder: Path, options: argparse.Namespace, least: Severity) -> int:
    """The public programs: a table, and with `--show` every finding with what was judged of it."""
    rules, judged, known = _rules(options), judgements(), repositories()
    lacking = [why for r in known if (why := r.missing(folder)) is not None]
    for why in lacking:
        print(why, file=sys.stderr)
    there = [r for r in known if r.missing(folder) is None]
    if not there:
        return 2
    results = [seen(r, folder, judged, least, rules) for r in there]
    print("\n".join(table(iter(results))))
    told = [(one.repository, f, said) for one in results for f, said in one.findings]
    if options.show:
        for repository, finding, said in told:
            print(f"    {finding.severity.value:8} {said or 'not judged':10} {finding.rule} {repository.name}: "
                  f"{finding.statement}")  # fmt: skip
    verdicts = Counter((f.severity.value, said or "not judged") for _, f, said in told)
    print("; ".join(f"{severity} {said} {n}" for (severity, said), n in sorted(verdicts.items())) or "no finding")
    return int(any(f.severity.rank >= Severity.HIGH.rank and said in (None, "false") for _, f, said in told))


def _rules(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(filter(None, options.rules.split(",")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--checkout", type=Path, metavar="FOLDER", help="holds the public programs, owner/name each")
    parser.add_argument("--small", action="store_true", help="this folder only: seconds")
    parser.add_argument("--level", choices=[s.value for s in Severity], help="default high, of public programs medium")
    parser.add_argument("--rules", default="", help="only these, separated by commas")
    parser.add_argument("--show", action="store_true", help="print every finding at or above the level")
    options = parser.parse_args()
    if options.checkout is not None:
        return public(options.checkout, options, Severity(options.level or "medium"))
    names = [str(Path(__file__).resolve().parent)] if options.small else options.packages
    if not names:
        parser.error("name packages or folders, or give --checkout FOLDER or --small")
    level = options.level or "high"
    least = Severity(level).rank
    total_lines, total_alarms = 0, 0
    print(f"{'package':32} {'files':>6} {'lines':>8} {'seconds':>8} {'alarms':>7}  by rule")
    for name in names:
        files, lines, seconds, found, notes = measured(name, _rules(options))
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
    print(f"{total_alarms} alarms at {level} or above in {total_lines} lines: "
          f"{2000 * total_alarms / max(total_lines, 1):.3f} in 2,000")
    return int(total_alarms * LINES_PER_ALARM > total_lines)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
