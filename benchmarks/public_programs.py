"""Public training programs that nobody here wrote: which they are, and what was judged of the auditor's findings there.

`public_programs.toml` lists repositories with their commits; a reader fetches them, nothing of them is copied here.
`judgements/public_programs.json` holds what was judged by hand of each finding of medium severity or above, as it was
told at first sight: "true", "overrated" (what it says holds, and it hardly matters) or "false".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from traindx_tools.code_audit import audit
from traindx_tools.finding import Finding, Severity

HERE = Path(__file__).resolve().parent
LIST, JUDGEMENTS = HERE / "public_programs.toml", HERE / "judgements/public_programs.json"
_TRAINS = re.compile(r"\.backward\(|value_and_grad|\bgrad\(|\.fit\(|\.learn\(|Trainer\(|\btrain\(")
_STARTS = re.compile(r"__main__|^(main|app\.run|run)\(|^(for|while)\b|\.ipynb$|\"cells\"", re.MULTILINE)
_TEST = re.compile(r"(^|/)tests?/|test_|_test\.")


@dataclass(frozen=True)
class Repository:
    """A repository at a commit, and what of it is audited in one call (files or folders below its root)."""

    name: str
    commit: str
    paths: tuple[str, ...]

    def missing(self, folder: Path) -> str | None:
        """Why it cannot be audited in a folder of checkouts; None where it can."""
        root = folder / self.name
        if not root.is_dir():
            return f"{self.name}: no folder {root}; clone https://github.com/{self.name} there at {self.commit[:12]}"
        at = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        own = (root / ".git").exists() and at.returncode == 0
        if own and at.stdout.strip() != self.commit:
            return f"{self.name}: {root} is at {at.stdout.strip()[:12]}; check out {self.commit[:12]}"
        return None


@dataclass(frozen=True)
class Seen:
    """What was found in a repository. Each finding comes with what was judged of it before, or None."""

    repository: Repository
    programs: int
    files: int
    lines: int
    seconds: float
    findings: tuple[tuple[Finding, str | None], ...]


def repositories(path: Path = LIST) -> list[Repository]:
    """The list. Raises SystemExit with one line where it cannot be read."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["repository"]
        return [Repository(r["name"], r["commit"], tuple(r.get("paths", ["."]))) for r in rows]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise SystemExit(f"{path}: not a list of [[repository]] with name and commit ({error})") from None


def judgements(path: Path = JUDGEMENTS) -> Mapping[tuple[str, str, int | None], str]:
    """What was judged, by rule, "owner/name:path" and line. The commit is that of the list."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {(r["rule"], re.sub(r"@[0-9a-f]+:", ":", r["program"]), r["line"]): r["judgement"] for r in rows}


def seen(repository: Repository, folder: Path, judged: Mapping[tuple[str, str, int | None], str], least: Severity,
         rules: tuple[str, ...] = ()) -> Seen:  # fmt: skip
    """Audit one repository in a folder of checkouts; findings at or above a severity."""
    root = folder / repository.name
    start = time.perf_counter()
    result = audit([root / p for p in repository.paths if (root / p).exists()], rules=rules)
    seconds = time.perf_counter() - start
    files = {f.path: f for project in result.projects for f in project.files}
    programs = sum(trains(_relative(root, path), file.text) for path, file in files.items())
    found = [f for f in result.findings if f.severity.rank >= least.rank]
    where = [(f"{repository.name}:{_relative(root, f.where.file or '')}", f.where.line) for f in found]
    told = tuple((f, judged.get((f.rule, *at))) for f, at in zip(found, where, strict=True))
    return Seen(repository, programs, len(files), sum(len(f.lines) for f in files.values()), seconds, told)


def trains(path: str, text: str) -> bool:
    """Whether a file is a training program: it does something when started, and takes gradients or has it done."""
    starts = path.endswith(".ipynb") or _STARTS.search(text) is not None
    return starts and _TRAINS.search(text) is not None and _TEST.search(path) is None


def table(results: Iterator[Seen]) -> Iterator[str]:
    """Lines of a table, each repository's as soon as it is known, and the totals."""
    yield "| repository | commit | programs | files | lines | critical | high | medium |"
    yield "|---|---|---|---|---|---|---|---|"
    total: Counter[str] = Counter()
    for one in results:
        said = Counter(f.severity.value for f, _ in one.findings)
        total.update(said)
        total.update(repositories=1, programs=one.programs, files=one.files, lines=one.lines)
        yield (f"| {one.repository.name} | {one.repository.commit[:12]} | {one.programs} | {one.files} | {one.lines:,} "
               f"| {said['critical']} | {said['high']} | {said['medium']} |")  # fmt: skip
    yield (f"\n{total['programs']} programs of {total['repositories']} repositories, {total['files']} files, "
           f"{total['lines']:,} lines: {total['critical']} critical, {total['high']} high, {total['medium']} medium")


def _relative(root: Path, path: str) -> str:
    return Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path
