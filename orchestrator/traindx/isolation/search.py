"""One function a kind of difference: the space is read, its runs are made in copies, and the answer is searched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx.experiment_place import ProtectedPlace
from traindx.isolation.kept import Kept
from traindx.isolation.place import place_for, to_its_end
from traindx.isolation.request import Request
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.isolating.isolate import FOUND, Isolated, isolate, isolate_turn
from traindx_tools.experiments.isolating.oracle import Asked, Budget, Oracle, Trial
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.rules import x201_smallest_difference
from traindx_tools.experiments.isolating.spaces.command_lines import CommandLines
from traindx_tools.experiments.isolating.spaces.commits import Commits
from traindx_tools.experiments.isolating.spaces.configuration import Configuration
from traindx_tools.experiments.isolating.spaces.data_files import OneFolder, TwoFolders
from traindx_tools.experiments.isolating.spaces.environment import Environment
from traindx_tools.experiments.isolating.spaces.further import rows_of_left_out, rows_of_two
from traindx_tools.experiments.isolating.spaces.rows import RowsOfOne, RowsOfTwo
from traindx_tools.experiments.isolating.spaces.space import Space, hashed
from traindx_tools.experiments.isolating.spaces.tensors import Tensors
from traindx_tools.experiments.isolating.spaces.tree_files import FORMS
from traindx_tools.experiments.isolating.symptom import Symptom, parse_symptom
from traindx_tools.finding import Finding

TOGETHER = ("the merged commits by themselves do not show the symptom: the merge brought it, together with what was "
            "there before",)
MOST_FURTHER = 3
"""Files in whose rows the search goes on, where several files show the symptom."""


@dataclass(frozen=True)
class Level:
    """One search: over what, and what came out. `notes`: what differs and cannot be tried, and how it was tried."""

    over: str
    result: Isolated
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The searches, each within what the one before found; the first one decides."""

    symptom: str
    levels: tuple[Level, ...]
    folder: Path

    @property
    def result(self) -> Isolated:
        """Of the first search."""
        return self.levels[0].result

    @property
    def exit_code(self) -> int:
        """Of the first search."""
        return self.result.exit_code

    @property
    def runs(self) -> int:
        """Of all searches."""
        return sum(level.result.runs for level in self.levels)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """X201 for each cause of each search: evidence that a diagnosis can cite."""
        source = f"isolation {self.folder.name}"
        return tuple(f for v in self.levels for f in x201_smallest_difference.check(v.result, self.symptom, source))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"symptom": self.symptom, "status": self.result.status, "runs": self.runs, "folder": str(self.folder),
                "findings": [f.to_json() for f in self.findings],
                "levels": [{"over": v.over, "notes": list(v.notes), **v.result.to_json()} for v in self.levels]}


def isolate_config(good: str, bad: str, request: Request) -> Answer:
    """Two files of settings or of variables; two command lines where neither is a file. Raises TraindxError."""
    sides = Path(good), Path(bad)
    if any(p.exists() for p in sides) or not any(" " in s for s in (good, bad)):
        for path in sides:
            if not path.is_file():
                raise BadUsage(f"{path}: there is no such file. Give two files of settings, or two command lines in "
                               "quotes")
        request.checked()
        if all(p.suffix.lower() in FORMS for p in sides):
            space: Space = Configuration.of(*sides, request.command, request.workspace, request.at)
        else:
            space = Environment.of(*sides, request.command)
    else:
        if request.command not in ("", good, bad):
            raise BadUsage("two command lines are run as they are: --run is for files of settings")
        space = CommandLines.of(good, bad)
        request = _with(request, bad)
    with place_for(request.checked().workspace) as place:
        search = _Search(request, place, ("settings", space.identity))
        return search.answer([search.level("settings", space)])


def isolate_commits(spec: str, request: Request) -> Answer:
    """The commits GOOD..BAD of the repository around the workspace. A merge is looked into. Raises TraindxError."""
    request.checked()
    commits: Commits | None = Commits.of(spec, request.command, request.workspace)
    assert commits is not None, "it was just made"
    request = _with(request, request.command, commits.repository.root)
    with place_for(request.workspace) as place:
        search = _Search(request, place, ("commits", commits.identity))
        levels = [search.level("commits", commits, turn=True)]
        while levels[-1].result.status == "found" and commits is not None:
            merge = commits.commits[levels[-1].result.causes[0][0]]
            commits = commits.within(merge)
            if commits is not None:
                within = search.level(f"commits that {merge[:10]} merged", commits, turn=True)
                levels.append(replace(within, notes=TOGETHER) if within.result.status == "not-bad" else within)
        return search.answer(levels)


def isolate_weights(good: Path, bad: Path, request: Request) -> Answer:
    """The tensors of two checkpoints. Raises TraindxError."""
    space = Tensors.of(good, bad, request.checked().command, request.workspace, request.at)
    with place_for(request.workspace) as place:
        search = _Search(request, place, ("weights", space.identity))
        return search.answer([search.level("tensors", space)])


def isolate_data(good: Path | None, bad: Path, request: Request) -> Answer:
    """Files of two folders or shards of one, then the rows in them; rows of two files or of one.

    Raises TraindxError.
    """
    request.checked()
    given = (request.command, request.workspace, request.at)
    with place_for(request.workspace) as place:
        if not bad.is_dir():
            rows: Space = RowsOfOne.of(bad, *given) if good is None else RowsOfTwo.of(good, bad, *given)
            search = _Search(request, place, ("rows", rows.identity))
            return search.answer([search.level("rows", rows, only_left_out=good is None)])
        files = OneFolder.of(bad, *given) if good is None else TwoFolders.of(good, bad, *given)
        search = _Search(request, place, ("files", files.identity))
        levels = [search.level("files" if good is not None else "shards", files, only_left_out=good is None)]
        found = levels[0].result
        for cause in found.causes[:MOST_FURTHER] if found.exit_code == FOUND else ():
            levels += search.further(files, found, cause)
        return search.answer(levels)


class _Search:
    """Searches that share a place, a budget and the outcomes on disk."""

    def __init__(self, request: Request, place: ProtectedPlace, what: tuple[str, str]) -> None:
        self.request, self.place = request, place
        self.symptom: Symptom = parse_symptom(request.fails_if)
        self._base = hashed([*what, request.command, self.symptom.text, f"{request.seconds:g}",
                             place.fingerprint])
        default = request.workspace / "scratch" / "debug" / f"isolate-{what[0]}-{self._base[:8]}"
        self.kept = Kept.of(request.out or default)
        self._runs = 0

    def level(self, over: str, space: Space, *, only_left_out: bool = False, turn: bool = False) -> Level:
        """One search."""
        labels = space.labels
        self.request.told(f"{len(labels):,} {over} {'can be left out' if only_left_out else 'differ'}")

        def key(part: Items, number: int) -> str:
            return hashed([self._base, space.identity, *map(str, sorted(part)), "run", str(number)])

        def run(part: Items, number: int) -> Trial:
            trial = self.symptom.judge(self.place.run(space.prepared(part), to_its_end, seconds=self.request.seconds))
            self.kept.add(key(part, number), trial, (labels[i] for i in sorted(part)))
            return trial

        oracle = Oracle(run, Budget(max(0, self.request.runs - self._runs)), self._told(len(labels)),
                        lambda part, number: self.kept.trial(key(part, number)))
        words = ("first", "last") if turn else ("good", "bad")
        result = isolate_turn(labels, oracle, words) if turn else isolate(
            labels, oracle, only_left_out=only_left_out, words=words)
        self._runs += result.runs
        if result.status == "no-difference" and space.notes:
            result = replace(result, status="nothing-to-try",
                             problem="what differs cannot be changed here, see the notes")
        return Level(over, result, space.notes)

    def further(self, files: OneFolder | TwoFolders, found: Isolated, cause: Sequence[int]) -> list[Level]:
        """The rows of the files of one cause, where these hold rows."""
        if isinstance(files, TwoFolders):
            rows: Space | None = rows_of_two(files, cause)
        else:
            others = {i for c in found.causes for i in c if i not in cause}
            rows = rows_of_left_out(files, cause, others)
        if rows is None or len(rows.labels) < 2:
            return []
        name = ", ".join(files.labels[i] for i in cause)
        return [self.level(f"rows of {name}", rows, only_left_out=isinstance(files, OneFolder))]

    def answer(self, levels: Iterable[Level]) -> Answer:
        """All levels together."""
        return Answer(self.symptom.text, tuple(levels), self.kept.folder)

    def _told(self, count: int) -> Any:
        def told(asked: Asked) -> None:
            self.request.told(f"with {len(asked.part):,} of {count:,}: {asked.shown.value} ({asked.trials[-1].why})")

        return told


def _with(request: Request, command: str, workspace: Path | None = None) -> Request:
    return replace(request, command=command, workspace=workspace or request.workspace)
