"""The code auditor beside TorchFix and flake8: what each sees in faulty training code, and how long each takes.

    python benchmarks/audit_peers.py [--cases tests/evals/cases] [--timed accelerate lightning optax] [--lines 100000]
        [--repeat 3]
    python benchmarks/audit_peers.py --small

Each peer is installed from PyPI into a virtual environment of its own (TorchFix is a flake8 plugin too, and would slow
flake8 down). A fault counts as seen where a tool has a finding within three lines of it; of flake8 only what Pyflakes
says (F) and, of errors, E9 count, not style. All run on the same files, in the same run, on the same two cores. Times
are medians of runs in turn (A B C, A B C, ...); a tool that takes minutes runs once. `--small` runs our tool alone,
over two cases and once over some lines of a package: it installs nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

NEAR = 3
"""Lines between a finding and the fault at most."""
CORES = 2
SLOW = 100.0
"""CPU seconds from which on a tool is not run again."""
_PLACE = re.compile(r"^(?P<file>.+?):(?P<line>\d+)(?::\d+)?: (?P<rule>[A-Z]+\d+)\b")


@dataclass(frozen=True)
class Tool:
    """A tool: its package, the arguments before the paths, and which of its codes say that something is wrong."""

    name: str
    package: str
    arguments: tuple[str, ...]
    meant: str

    def program(self, venvs: Path) -> list[str]:
        """The command without paths."""
        if not self.package:
            return [sys.executable, "-m", "traindx", *self.arguments]
        home = venvs / self.package
        if not (home / "bin" / self.package).exists():
            venv.create(home, with_pip=True)
            subprocess.run([home / "bin" / "pip", "install", "--quiet", self.package], check=True)
        return [str(home / "bin" / self.package), *self.arguments]

    def version(self, venvs: Path) -> str:
        """The version that ran."""
        python = str(venvs / self.package / "bin" / "python") if self.package else sys.executable
        code = f"import importlib.metadata as m; print(m.version({self.package or 'traindx'!r}))"
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


TOOLS = (
    Tool("traindx audit", "", ("audit", "--no-cache", "--isolated", "--fail-on", "never"), r"C\d+"),
    Tool("torchfix", "torchfix", ("--select", "ALL", "-j", str(CORES)), r"TOR\d+"),
    Tool("flake8", "flake8", ("--isolated", "--exit-zero", "-j", str(CORES)), r"F\d+|E9\d+"),
)


@dataclass(frozen=True)
class Ran:
    """What a tool said: findings as (file, line, rule), and what it cost."""

    found: tuple[tuple[str, int, str], ...]
    wall: float
    cpu: float


def ran(tool: Tool, paths: Sequence[Path], venvs: Path) -> Ran:
    """Run a tool over paths on two cores."""
    command = [*tool.program(venvs), *map(str, paths)]
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_two_cores)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime
    if done.returncode not in (0, 1):
        raise SystemExit(f"{tool.name} failed: {done.stderr[-2000:]}")
    places = [m for m in map(_PLACE.match, done.stdout.splitlines()) if m and re.fullmatch(tool.meant, m["rule"])]
    return Ran(tuple((os.path.realpath(m["file"]), int(m["line"]), m["rule"]) for m in places), wall, cpu)


def _two_cores() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def seen_and_missed(cases: Path, venvs: Path, tools: Sequence[Tool], most: int | None = None) -> None:
    """The table of cases, and how often each tool was right."""
    folder = Path(tempfile.mkdtemp())
    truths = []
    for number, path in enumerate(sorted(cases.glob("*/case.json"))[:most]):
        truth = json.loads(path.read_text())
        target = folder / f"{number:03}"
        shutil.copytree(path.parent / "input", target)
        truths.append((path.parent.name, truth, target))
    said = {tool.name: [place for _, _, target in truths for place in ran(tool, [target], venvs).found]
            for tool in tools}
    print("| case | needs | fault | " + " | ".join(t.name for t in tools) + " |")
    print("|---|---|---|" + "---|" * len(tools))
    seen = dict.fromkeys(said, 0)
    of_code = dict.fromkeys(said, 0)
    for name, truth, target in truths:
        if truth["healthy"]:
            continue
        cells = []
        for tool, found in said.items():
            rules = sorted({rule for place in filter(None, (truth["location"], *(truth.get("location_alt") or ())))
                            for rule in _at(found, target, place)})
            seen[tool] += bool(rules)
            of_code[tool] += bool(rules) and truth["needs"] == "code"
            cells.append(", ".join(rules) or "-")
        print(f"| {name} | {truth['needs']} | {truth['title'].replace('|', '/')} | " + " | ".join(cells) + " |")
    faulty = [t for _, t, _ in truths if not t["healthy"]]
    code = sum(t["needs"] == "code" for t in faulty)
    print()
    for tool, found in said.items():
        healthy = [target for _, truth, target in truths if truth["healthy"]]
        alarms = sum(Path(file).is_relative_to(os.path.realpath(h)) for file, _, _ in found for h in healthy)
        print(f"- {tool}: at the fault in {seen[tool]} of {len(faulty)} faulty cases ({of_code[tool]} of the {code} "
              f"that need code); {alarms} findings in {len(healthy)} healthy ones")


def _at(found: Iterable[tuple[str, int, str]], folder: Path, place: str) -> set[str]:
    name, _, line = place.rpartition(":")
    files = {os.path.realpath(p) for p in folder.rglob(name)}
    return {rule for file, at, rule in found if file in files and abs(at - int(line or 0)) <= NEAR}


def timed(names: Sequence[str], lines: int, venvs: Path, repeat: int, tools: Sequence[Tool]) -> None:
    """The table of times over the files of installed packages, cut at about so many lines."""
    folder = Path(tempfile.mkdtemp())
    total = 0
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{name} is not installed")
        home = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(home.rglob("*.py")):
            if total < lines:
                target = folder / name / path.relative_to(home)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
                total += path.read_bytes().count(b"\n")
    files = len(list(folder.rglob("*.py")))
    print(f"\n{files} files, {total:,} lines of {', '.join(names)}; {CORES} cores, load {os.getloadavg()[0]:.1f}\n")
    done: dict[str, list[Ran]] = {tool.name: [] for tool in tools}
    for _ in range(repeat):
        for tool in tools:
            if not done[tool.name] or done[tool.name][0].cpu < SLOW:
                done[tool.name].append(ran(tool, [folder], venvs))
    print("| tool | version | runs | wall s (least to most) | CPU s (least to most) | lines a CPU second |")
    print("|---|---|---|---|---|---|")
    for tool in tools:
        runs = done[tool.name]
        cpu = statistics.median(r.cpu for r in runs)
        print(f"| {tool.name} | {tool.version(venvs)} | {len(runs)} | {_spread([r.wall for r in runs])} | "
              f"{_spread([r.cpu for r in runs])} | {total / cpu:,.0f} |", flush=True)  # fmt: skip


def _spread(seconds: Sequence[float]) -> str:
    least, most = min(seconds), max(seconds)
    return f"{statistics.median(seconds):.1f}" + (f" ({least:.1f} to {most:.1f})" if len(seconds) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=Path(__file__).parents[1] / "tests" / "evals" / "cases")
    parser.add_argument("--timed", nargs="*", default=["accelerate", "lightning", "optax"], metavar="PACKAGE")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each tool for the times (default 3)")
    parser.add_argument("--venvs", type=Path, help="where the peers are or will be installed (default: anew)")
    parser.add_argument("--small", action="store_true", help="our tool alone, two cases, a few hundred lines")
    options = parser.parse_args()
    venvs = options.venvs or Path(tempfile.mkdtemp())
    if options.small:
        seen_and_missed(options.cases, venvs, TOOLS[:1], 2)
        timed(["numpy"], 500, venvs, 1, TOOLS[:1])
        return
    seen_and_missed(options.cases, venvs, TOOLS)
    if options.timed:
        timed(options.timed, options.lines, venvs, options.repeat, TOOLS)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
