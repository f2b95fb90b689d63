"""Reads what a run folder holds: findings of every rank and pass, where it ran and how it ended. Bounded, tolerant."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.live.files_read import FileRead, read_from
from traindx_tools.live.in_cells import in_cells, text_in_cells
from traindx_tools.on_ranks.examine import compared
from traindx_tools.on_ranks.records import KIND, MOST_RECORDS
from traindx_tools.on_variables import numbered
from traindx_tools.on_variables.numbered import Numbered

MARK = '"traindx": "live'
"""What the first record of each of our files holds."""
MAX_BYTES = 64 * 2**20
"""Bytes of one file that are read; a recorder writes at most a quarter of it."""
MAX_FILES = 4_096
RUN_FILE = "run.json"
RANK_FILES = "rank*.jsonl"
TRACING = "origin"
"""How the folders of passes with tracing begin."""


@dataclass(frozen=True)
class LiveFile:
    """One process of one pass."""

    path: Path
    rank: int = 0
    mode: str = "watch"
    cwd: str = ""
    findings: tuple[Finding, ...] = ()
    last_step: float | None = None
    started: float = 0.0
    """Seconds since the epoch."""
    ended: str | None = None
    """"ok", the error with which it ended, or None where it was killed."""
    facts: str = ""
    """What the program is made of and does, in lines; "" where no probe told it."""
    read: tuple[FileRead, ...] = ()
    """The data files that it opened."""
    script: str = ""
    """The Python file that the process was started with, as it was typed; "" where there is none."""
    replica: tuple[Mapping[str, Any], ...] = ()
    """What it wrote for a comparison with other ranks."""
    numbered: tuple[Numbered, ...] = ()
    """Rows of tables that its model holds, with the names that the program gives them."""
    """Rows that it evaluated, none of which it was trained on; 0 where that was not compared, or is not so."""


@dataclass(frozen=True)
class LiveRun:
    """Everything that a run folder tells."""

    files: tuple[LiveFile, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)
    """The runner's own record: command, cwd, exit code; empty where there was no runner."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all processes, each once, with their files as seen from where the command ran."""
        return self.seen_from()

    def seen_from(self, root: Path | None = None) -> tuple[Finding, ...]:
        """The same with files below the root as seen from there."""
        found = [(f.cwd, finding) for f in self.files for finding in f.findings]
        found += [(self.cwd, finding) for finding in compared(f.replica for f in self.files)]
        near = [_from(str(root), finding) if root is not None else finding for _, finding in found]
        short = [_from(cwd, finding) for (cwd, _), finding in zip(found, near, strict=True)]
        short = in_cells(short, [cwd for cwd, _ in found], root)
        return tuple({(f.rule, str(f.where), f.statement): f for f in without_echoes(short)}.values())

    @property
    def facts(self) -> str:
        """What the program is made of and does, of the lowest rank that tells it; "" where none does."""
        told = next((f for f in sorted(self.files, key=lambda f: f.rank) if f.facts), None)
        return text_in_cells(told.facts, told.cwd) if told is not None else ""

    def scripts(self, root: Path) -> tuple[Path, ...]:
        """The files that the processes were started with, where they lie below this folder."""
        real = root.resolve()
        found = [(Path(f.cwd) / f.script).resolve() for f in self.files if f.cwd and f.script]
        return tuple(dict.fromkeys(f for f in found if f.is_relative_to(real) and f.is_file()))

    def data_files(self, root: Path) -> tuple[FileRead, ...]:
        """The data files that the processes read: those below the folder where the command ran as they lie below this
        root (it may have run in a copy), the others where they lie. Each once; those that are gone are left out."""
        found: dict[Path, FileRead] = {}
        for f in self.files:
            for one in f.read:
                path, source = (_moved(p, f.cwd, root) for p in (one.path, one.file))
                if path.is_file():
                    found.setdefault(path.resolve(), FileRead(str(path), str(source) if one.file else "", one.line))
        return tuple(found.values())

    @property
    def numbered(self) -> tuple[Numbered, ...]:
        """What the processes wrote of tables whose rows they number by names, of the first that did."""
        return next((f.numbered for f in self.files if f.numbered), ())

    @property
    def cwd(self) -> str:
        """The folder in which the command ran, "" where nothing says so."""
        return str(self.run.get("cwd") or next((f.cwd for f in self.files if f.cwd), ""))


def _moved(name: str, cwd: str, root: Path) -> Path:
    """A path below the folder of the command, as it lies below a root."""
    path = Path(name)
    there = root / path.relative_to(cwd) if cwd and path.is_relative_to(cwd) else path
    return there if there.exists() else path


def is_live(head: bytes | str) -> bool:
    """Whether a file that begins like this is one of ours."""
    text = head[:200].decode("utf-8", "replace") if isinstance(head, bytes) else head[:200]
    return text.lstrip().startswith("{") and MARK in text


def read_folder(folder: Path) -> LiveRun:
    """What is below a run folder; what is damaged or foreign is left out."""
    paths = sorted(p for p in folder.rglob("*.jsonl"))[:MAX_FILES]
    files = [f for f in map(read_file, paths) if f is not None]
    return LiveRun(tuple(files), _run_record(folder / RUN_FILE))


def read_file(path: Path) -> LiveFile | None:
    """One process's file, None where it is none of ours."""
    records = _records(path)
    start = next(records, None)
    if start is None or start.get("traindx") != "live":
        return None
    findings: list[Finding] = []
    last: float | None = None
    ended: str | None = None
    facts = ""
    read: tuple[FileRead, ...] = ()
    replica: list[dict[str, Any]] = []
    tables: list[Numbered] = []
    for record in records:
        kind = record.get("kind")
        if kind == "finding":
            findings += _finding(record.get("finding"))
        elif kind == "withdrawn":
            gone = record.get("rule"), record.get("value")
            findings = [f for f in findings if (f.rule, f.measured.get(str(record.get("key")))) != gone]
        elif kind == "metrics":
            last = _later(last, record.get("step"))
        elif kind == "facts":
            facts = str(record.get("text") or "")
        elif kind == "files" and isinstance(record.get("read"), list):
            read = read_from(record["read"])
        elif kind == numbered.KIND and isinstance(record.get("tables"), list):
            tables = [t for said in record["tables"] if (t := numbered.from_record(said)) is not None]
        elif kind == KIND and len(replica) < MOST_RECORDS:
            replica.append(record)
        elif kind == "end":
            ended = str(record.get("how"))
    return LiveFile(path, _whole(start.get("rank")), str(start.get("mode")), str(start.get("cwd") or ""),
                    tuple(replace(f, source=str(path)) for f in findings),
                    last, _number(start.get("started")), ended, facts, read, _script(start.get("argv")),
                    tuple(replica), tuple(tables))


def _script(argv: object) -> str:
    first = argv[0] if isinstance(argv, list) and argv else ""
    return first if isinstance(first, str) and first.endswith(".py") and "\0" not in first else ""


def _later(last: float | None, step: object) -> float | None:
    """The larger of two steps: records of one step are written when their values are known, not in its order."""
    if not isinstance(step, (int, float)) or isinstance(step, bool) or not math.isfinite(step):
        return last
    return float(step) if last is None else max(last, float(step))


def read_files(paths: Iterable[str | Path]) -> LiveRun:
    """What those of these files tell that are ours; of several runs only the one that started last."""
    runs: dict[Path, list[LiveFile]] = {}
    for path in map(Path, paths):
        file = read_file(path) if path.suffix == ".jsonl" else None
        if file is not None:
            runs.setdefault(run_folder_of(path), []).append(file)
    if not runs:
        return LiveRun()
    folder = max(runs, key=lambda f: max(x.started for x in runs[f]))
    return LiveRun(tuple(runs[folder]), _run_record(folder / RUN_FILE))


def run_folder_of(path: Path) -> Path:
    """The run folder that a rank's file belongs to: a pass with tracing lies one folder deeper."""
    return path.parent.parent if path.parent.name.startswith(TRACING) else path.parent


def workspace_of(paths: Iterable[str | Path]) -> Path | None:
    """Where the command ran, for the one run folder that was named: a folder that holds it, or the current one."""
    named = [Path(p) for p in paths]
    if len(named) != 1 or not named[0].is_dir():
        return None
    is_run = os.path.isfile(named[0] / RUN_FILE) or any(named[0].glob(RANK_FILES))  # False where it may not look
    cwd = read_folder(named[0]).cwd if is_run else ""
    workspace = Path(cwd).resolve() if cwd else None
    if workspace is None or not workspace.is_dir():
        return None
    near = named[0].resolve().is_relative_to(workspace) or workspace == Path.cwd().resolve()
    return workspace if near else None


def without_echoes(findings: Iterable[Finding]) -> list[Finding]:
    """Without non-finite values that came from another rank (T103) where the rank that made them says how (T101)."""
    told = list(findings)
    known = any(f.rule == "T101" for f in told)
    return [f for f in told if not (known and f.rule == "T103")]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            left = MAX_BYTES
            while left > 0 and (line := file.readline(left)):
                left -= len(line)
                record = _parsed(line)
                if isinstance(record, dict):
                    yield record
    except OSError:
        return


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):  # the last line of a process that was killed
        return None


def _finding(data: Any) -> list[Finding]:
    try:
        return [Finding.from_json(data)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _run_record(path: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8")[:MAX_BYTES])
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and record.get("traindx") == "live-run" else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _from(cwd: str, finding: Finding) -> Finding:
    """The finding with its files, also in its statement, as seen from the folder where the command ran."""
    prefix = cwd.rstrip("/") + "/"
    if len(prefix) < 2:
        return finding
    file = finding.where.file
    where = replace(finding.where, file=file.removeprefix(prefix)) if file is not None else finding.where
    measured = {k: v.removeprefix(prefix) if isinstance(v, str) else v for k, v in finding.measured.items()}
    patch = tuple(replace(p, file=p.file.removeprefix(prefix)) for p in finding.patch)
    return replace(finding, where=where, measured=measured, patch=patch,
                   statement=finding.statement.replace(prefix, ""))
