#!/usr/bin/env python3
"""The instruments of traindx for a coding agent: read-only, no network, JSON on stdout, everything else on stderr.

Uses the installed `traindx` where there is one, else the archive `traindx.zip` of the skill ml-debug, which needs
Python 3.10 or newer and numpy and is checked by its digest before. Nothing is unpacked or written.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ARCHIVES = (HERE / "traindx.zip", HERE.parent.parent / "ml-debug" / "scripts" / "traindx.zip")
"""Where the archive of the instruments can be: here, or in the skill that brings it."""
OLDEST = (3, 10)
EXIT_CODES = {"healthy": 0, "diagnosis_complete": 1, "needs_more_data": 3}
MOST_CHARACTERS = 40_000
"""Size of an answer unless --max-chars says otherwise: what an agent can read without losing its context."""
MOST_ERRORS = 20
EPILOG = """\
commands: diagnose PATH... [--symptom TEXT]   findings in order of time, then suspects, checks, proven causes
          log PATH...                         every metric of the run, summarised and sampled
          audit PATH...                       static audit of training code
          explain NAME | --list [WORD]        page of a rule (L204) or failure mode (lr.too-high)
          where                               which engine is used
exit codes: 0 nothing wrong found, 1 a problem was found, 2 bad usage or unreadable input, 3 more data is needed"""


class Unusable(Exception):
    """The request cannot be served; the text says what to do."""


def say(text: str) -> None:
    """A diagnostic, on standard error."""
    print(f"traindx_run: {text}", file=sys.stderr)


def use_instruments(bundled: bool = False) -> str:
    """Makes `traindx_tools` importable, from this Python or from the bundle; returns which. Raises Unusable."""
    if sys.version_info < OLDEST:
        raise Unusable(f"Python {sys.version.split()[0]} is too old: run this with Python 3.10 or newer")
    if importlib.util.find_spec("numpy") is None:
        raise Unusable(f"numpy is missing: {sys.executable} -m pip install numpy")
    origin = "installed"
    if bundled or importlib.util.find_spec("traindx_tools") is None:
        archive = next((a for a in ARCHIVES if a.is_file()), None)
        if archive is None:
            raise Unusable(f"the instruments are neither installed nor in {ARCHIVES[-1]}: add the skill ml-debug, "
                           f"which brings them (`npx skills add`), or {sys.executable} -m pip install traindx")
        check_digest(archive)
        sys.path.insert(0, str(archive))
        origin = "bundled"
    _provide_toml()
    return origin


def check_digest(archive: Path) -> None:
    """Raises Unusable where the archive does not hold what was built into it: half copied, damaged or changed."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(archive) as stored:
            for name in sorted(stored.namelist()):
                content = stored.read(name)
                digest.update(f"{name}\0{len(content)}\0".encode())
                digest.update(content)
            whole = stored.comment == digest.hexdigest().encode()
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        whole = False
    if not whole:
        raise Unusable(f"{archive} is damaged: its digest is not the one that it was built with. Nothing of it is run: "
                       f"add the skill ml-debug anew (`npx skills add`), or {sys.executable} -m pip install traindx")


def _provide_toml() -> None:
    """Python 3.10 has no TOML reader; pip brings one along."""
    if sys.version_info >= (3, 11) or importlib.util.find_spec("tomli") is not None:
        return
    try:
        from pip._vendor import tomli
    except ImportError:
        raise Unusable(f"Python 3.10 needs a TOML reader: {sys.executable} -m pip install tomli") from None
    sys.modules["tomli"] = tomli


def installed_traindx() -> list[str] | None:
    """The command of the installed traindx, or None."""
    if importlib.util.find_spec("traindx") is not None:
        # -I: a folder called traindx in the user's project must not be imported.
        return [sys.executable, "-I", "-m", "traindx"]
    found = shutil.which("traindx")
    return [found] if found else None


def diagnose(args: argparse.Namespace) -> tuple[int, Any]:
    """Ranked causes, by the installed traindx or by the bundle."""
    command = None if args.bundled else installed_traindx()
    if command is not None:
        done = subprocess.run([*command, "diagnose", "--json", "--symptom", args.symptom, "--", *args.paths],
                              capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
        sys.stderr.write(done.stderr[-4000:])
        try:
            return done.returncode, {"engine": " ".join(command), **_facts_first(json.loads(done.stdout))}
        except ValueError:
            if done.returncode == 2:
                return 2, None
            say("the installed traindx gave no result: the bundled instruments are used")
    return _diagnose_bundled(args)


def _diagnose_bundled(args: argparse.Namespace) -> tuple[int, Any]:
    origin = use_instruments(args.bundled)
    from traindx_tools.catalog.trust import how_often_right
    from traindx_tools.examine import examine
    from traindx_tools.triage import timeline

    seen = examine(args.paths, symptom=args.symptom, stdin=sys.stdin.buffer.read() if "-" in args.paths else None)
    for note in seen.notes:
        say(note)
    verdict = seen.verdict
    remarks = [f for f in seen.findings if f.severity.value == "info"]
    causes = verdict.causes if verdict.status == "diagnosis_complete" else ()
    steps = [s for h in verdict.hypotheses[:2] for s in (*h.mode.confirm, *h.mode.rule_out)]
    checks = [s.command.replace("PATH", " ".join(args.paths)) for s in steps if s.command]
    # Facts in the order of time, then what is made of them; a fix is only in root_causes, where the cause is proven.
    return EXIT_CODES[verdict.status], {
        "engine": origin,
        "status": verdict.status,
        "findings": [f.to_json() for f in (*timeline(seen.findings), *remarks)],
        "first_lead": how_often_right(verdict.hypotheses),
        "reason": verdict.reason,
        "hypotheses": [_hypothesis(h) for h in verdict.hypotheses],
        "root_causes": [_cause(h) for h in causes],
        "next_checks": list(dict.fromkeys(checks))[:8],
    }


def _facts_first(result: dict[str, Any]) -> dict[str, Any]:
    """The result of `traindx diagnose --json`: what was seen comes first; a fix is for a proven cause alone."""
    guesses = ("hypotheses", "root_causes", "quick_fixes", "next_checks")
    if result.get("status") != "diagnosis_complete":
        result = {**result, "quick_fixes": []}
    return {**{k: v for k, v in result.items() if k not in guesses}, **{k: result[k] for k in guesses if k in result}}


def _cause(found: Any) -> dict[str, Any]:
    from traindx_tools.catalog.page import without_values

    plans = {"A": found.mode.targeted, "B": found.mode.broader}
    texts = ("summary", "change", "metric", "verify", "otherwise")
    return {
        "issue": found.issue,
        "severity": found.severity.value,
        "confidence": round(found.confidence, 3),
        "failure_mode": found.mode.id,
        "location": _place(found.location),
        "mechanism": found.mechanism,
        "evidence": [f"[{w.finding.rule}] {w.finding.statement} ({w.finding.where})" for w in found.speaks_for],
        "fix": {k: {t: without_values(getattr(p, t)) for t in texts} for k, p in plans.items()},
        "will_change": list(found.mode.will_change),
        "will_not_fix": list(found.mode.will_not_fix),
    }


def _hypothesis(found: Any) -> dict[str, Any]:
    def said(step: Any) -> str:
        return ": ".join(t for t in (step.do, step.command, f"expect {step.expect}" if step.expect else "") if t)

    return {
        "issue": found.issue,
        "failure_mode": found.mode.id,
        "confidence": round(found.confidence, 3),
        "location": _place(found.location),
        "for": [f"{w.weight:+.1f} {w.finding.rule}: {w.finding.statement}" for w in found.speaks_for],
        "against": [f"{w.weight:+.1f} {w.finding.rule}: {w.finding.statement}" for w in found.speaks_against],
        "confirm": [said(s) for s in found.mode.confirm],
        "rule_out": [said(s) for s in found.mode.rule_out],
    }


def _place(location: Any) -> str | None:
    if location is not None and location.file is not None and location.line is not None:
        return f"{location.file}:{location.line}"
    return None if location is None else str(location)


def log(args: argparse.Namespace) -> tuple[int, Any]:
    """Every metric of the run with its course in at most --samples values."""
    use_instruments()
    from traindx_tools.on_logs import read_run

    run = read_run(args.paths, stdin=sys.stdin.buffer.read() if "-" in args.paths else None)
    for artifact in run.artifacts:
        if artifact.note:
            say(f"{artifact.path}: {artifact.note}")
    errors = [{"kind": e.kind, "type": e.type, "message": e.message[:2000], "at": f"{e.source}:{e.line}"}
              for e in run.errors[:MOST_ERRORS]]
    return 0, {"series": [_series(s, args.samples) for s in run.series], "errors": errors}


def _series(series: Any, samples: int) -> dict[str, Any]:
    finite = series.values[series.finite]
    every = max(1, math.ceil(len(series) / max(1, samples)))
    bad = [float(p) for p in series.position[~series.finite][:1]]
    course = list(zip(series.position.tolist(), series.values.tolist(), strict=True))
    return {
        "metric": series.name, "original": series.original, "group": series.group, "source": series.source,
        "rank": series.rank, "records": len(series), "position": series.unit,
        "first": _number(series.values[0]), "last": _number(series.values[-1]),
        "min": _number(finite.min()) if len(finite) else None, "max": _number(finite.max()) if len(finite) else None,
        "first_not_finite": bad[0] if bad else None,
        "sampled": [[_number(p), _number(v)] for p, v in [*course[:-1:every], course[-1]]],
    }  # fmt: skip


def _number(value: Any) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _present(paths: Sequence[str]) -> None:
    missing = [p for p in paths if "*" not in p and not Path(p).exists()]
    if missing:
        raise Unusable(f"not found: {', '.join(missing)}. Give Python files or folders of training code")


def audit(args: argparse.Namespace) -> tuple[int, Any]:
    """Findings in training code, which is read as text."""
    _present(args.paths)
    use_instruments()
    from traindx_tools.code_audit import audit as read_code
    from traindx_tools.finding import Severity

    result = read_code(args.paths)
    for note in result.notes:
        say(str(getattr(note, "note", note)))
    found = any(f.severity.rank >= Severity.MEDIUM.rank for f in result.findings)
    return int(found), {"findings": [f.to_json() for f in result.findings]}


def explain(args: argparse.Namespace) -> tuple[int, Any]:
    """The page of a rule or a failure mode, or the list of both: all of them in short, or those that hold a word."""
    use_instruments()
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.catalog.page import mode_page, rule_page
    from traindx_tools.rules import all_rules

    modes = load_catalog()
    if not args.list and args.name is not None and args.name.lower() in modes:
        return 0, {"name": args.name.lower(), "page": mode_page(modes[args.name.lower()])}
    rules = all_rules()
    if args.list and args.name:
        begins = re.compile(rf"(?<![^\W_]){re.escape(args.name)}", re.IGNORECASE)
        return 0, {"rules": {k: m.rule.title for k, m in rules.items() if begins.search(f"{k} {m.rule.title}")},
                   "failure_modes": {k: m.title for k, m in modes.items() if begins.search(f"{k} {m.title}")}}
    if args.list or args.name is None:
        return 0, {"rules": {k: m.rule.name for k, m in rules.items()}, "failure_modes": sorted(modes)}
    if args.name.upper() in rules:
        return 0, {"name": args.name.upper(), "page": rule_page(rules[args.name.upper()])}
    raise Unusable(f"no rule and no failure mode is called '{args.name}': `explain --list` shows all")


def where(_: argparse.Namespace) -> tuple[int, Any]:
    """Which engine is used."""
    origin = use_instruments()
    command = installed_traindx()
    return 0, {"python": sys.executable, "instruments": origin, "traindx": " ".join(command) if command else None}


COMMANDS: dict[str, Callable[[argparse.Namespace], tuple[int, Any]]] = {
    "diagnose": diagnose, "log": log, "audit": audit, "explain": explain, "where": where,
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="traindx_run.py", description=(__doc__ or "").strip(), epilog=EPILOG,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in COMMANDS.items():
        sub = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        sub.add_argument("--max-chars", type=int, default=MOST_CHARACTERS, help="size of the answer (%(default)s)")
        if name in ("diagnose", "log", "audit"):
            sub.add_argument("paths", nargs="+", metavar="PATH", help="files, folders, globs, or - for standard input")
    commands.choices["diagnose"].add_argument("--symptom", default="", help="what the user saw, in their words")
    commands.choices["diagnose"].add_argument("--bundled", action="store_true",
                                              help="use the instruments in this folder even if traindx is installed")
    commands.choices["log"].add_argument("--samples", type=int, default=24, help="values shown a metric (%(default)s)")
    commands.choices["explain"].add_argument("name", nargs="?", help="such as L204 or lr.too-high")
    commands.choices["explain"].add_argument("--list", action="store_true", help="all, or those with the word NAME")
    return top


def bounded(answer: dict[str, Any], most: int) -> str:
    """The answer as JSON of at most `most` characters: the longest list loses its tail until it fits, and says so."""
    shown = dict(answer)
    while len(text := json.dumps(shown, indent=1, allow_nan=False)) > most:
        lists = {k: v for k, v in shown.items() if isinstance(v, list) and v}
        if not lists:
            return json.dumps({"error": f"the answer has {len(text)} characters; ask with a larger --max-chars"})
        lists = {k: v for k, v in lists.items() if k != "root_causes"} or lists
        longest = max(lists, key=lambda k: len(json.dumps(lists[k])))
        kept = lists[longest][: len(lists[longest]) // 2]
        shown[longest] = kept
        shown[f"{longest}_left_out"] = len(answer[longest]) - len(kept)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; every failure is one line on standard error and exit code 2."""
    args = parser().parse_args(arguments)
    try:
        code, answer = COMMANDS[args.command](args)
    except Unusable as error:
        say(str(error))
        return 2
    except Exception as error:  # noqa: BLE001
        # Errors of the instruments are sentences for the user; anything else is a defect, named without a traceback.
        known = any(c.__name__ == "TraindxError" for c in type(error).__mro__)
        say(str(error) if known else f"unexpected {type(error).__name__}: {error}")
        return 2
    if answer is not None:
        try:
            print(bounded(answer, args.max_chars), flush=True)
        except BrokenPipeError:
            # The reader (head, less) went away. Python would complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    raise SystemExit(main())
