"""What is tried, in which order: one setting, one of many like files, or one stage of the training at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.writing.edits import edits_of
from traindx_tools.experiments.interventions.writing.program import Program
from traindx_tools.experiments.plan import Decision
from traindx_tools.experiments.screening.settings import settings_of
from traindx_tools.experiments.screening.values import other_values

KINDS = ("settings", "files", "stages")
CODE = "code"
"""Small edits of the source: many more than of everything else, so that they are tried where they are asked for."""
DATA = (".npz", ".npy", ".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".feather", ".tar", ".bin", ".h5", ".hdf5",
        ".tfrecord", ".pt", ".safetensors", ".txt", ".json", ".wav", ".mds")
FEWEST_ALIKE = 3
"""Files that are named alike but for a number or one word: of two, the other may be the validation set."""
MOST_ALIKE = 64
MOST_EDITS = 1_000
"""Places of the code that one screen looks at, the likeliest first: nobody has time for as many runs."""
_SETTING, _FILE = frozenset({"cfg.value-carries"}), frozenset({"data.file-carries"})
_CODE = frozenset({"code.place-carries"})
_OWN = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules", "scratch"})


@dataclass(frozen=True)
class Arm:
    """One change of one thing. `now`: what the thing is without it, "" where that has no value."""

    kind: str
    what: str
    change: Change
    now: str = ""
    file: str = ""
    line: int | None = None
    """Where the thing stands."""
    modes: frozenset[str] = frozenset()
    """Failure modes that the change undoes."""
    edited: str = ""
    """Of an edit of the source: what stands there then."""
    own: bool = False
    """A person named it: it is tried first, whatever it may tell."""
    why: str = ""
    """Why it is tried where it is."""

    @property
    def to(self) -> str:
        """The value that the change sets, or the source as it writes it; "" where it does neither."""
        if self.edited:
            return self.edited
        return str(next(iter(self.change.options.values()), "")) if self.kind == "settings" else ""

    @property
    def specific(self) -> bool:
        """Whether it undoes one cause alone: an edit of the code may make the measure easier instead."""
        return self.kind in ("settings", "files")

    @property
    def said(self) -> str:
        """`model.dropout: 0.9 -> 0.09`, `data/part-3.npz left out`, `no-clipping`."""
        if self.kind == "settings":
            return f"{self.what}: {self.now} -> {self.to}"
        if self.kind == CODE:
            return f"{self.what}: `{self.now}` -> `{self.to}`"
        return f"{self.what} left out" if self.kind == "files" else self.what


def arms_of(command: str, workspace: Path, kinds: Sequence[str] = KINDS,
            stages: Iterable[Decision] = ()) -> list[Arm]:
    """Everything that can be changed in a run of the command, the first value of each setting before any second one.

    `stages`: changes of the catalog that have something to take hold of in this program. Raises BadUsage for a kind
    that is none, and where the command starts no Python file below the workspace.
    """
    unknown = [k for k in kinds if k not in (*KINDS, CODE)]
    if unknown or not kinds:
        raise BadUsage(f"--screen takes {', '.join((*KINDS, CODE))}, separated by commas; got "
                       f"{', '.join(unknown) or 'nothing'}")
    rounds: list[list[Arm]] = [[], [], []]
    if "files" in kinds:
        rounds[0] += [Arm("files", name, Change("files-left-out", {"files": name}), file=name, modes=_FILE)
                      for group in alike(workspace) for name in group]
    if "settings" in kinds:
        for setting in settings_of(Program(command, workspace)):
            now = str(setting.value)
            for at, value in enumerate(other_values(setting.value, setting.choices)[:len(rounds)]):
                rounds[at].append(Arm("settings", setting.typed, Change("set", {setting.typed: value}), now,
                                      setting.file, setting.line, _SETTING))
    if "stages" in kinds:
        rounds[0] += [Arm("stages", str(d.change), d.change, modes=d.removes) for d in stages]
    if CODE in kinds:
        rounds.append(list(_of_code(Program(command, workspace))))
    return [arm for one in rounds for arm in one]


def _of_code(program: Program) -> Iterator[Arm]:
    """Every edit of every file of the program, the likeliest to undo a fault first."""
    found = [(edit, name) for name, tree in program.trees.items() for edit in edits_of(program.sources[name], tree)]
    for edit, name in sorted(found, key=lambda f: -f[0].likely)[:MOST_EDITS]:
        place = f"{name}:{edit.line}"
        change = Change("edit", {"at": f"{place}:{edit.column}", "do": edit.do})
        yield Arm(CODE, place, change, edit.before, name, edit.line, _CODE, edit.after)


def alike(workspace: Path) -> Iterator[list[str]]:
    """Groups of data files of one folder whose names differ in a number or one word."""
    folders: dict[tuple[Path, str], list[Path]] = {}
    for path in sorted(workspace.rglob("*")):
        inside = path.relative_to(workspace).parts
        if path.suffix.lower() in DATA and not _OWN.intersection(inside) and path.is_file() and not path.is_symlink():
            shape = re.sub(r"\d+", "#", path.name)
            folders.setdefault((path.parent, shape), []).append(path)
    for (_, shape), paths in folders.items():
        if "#" in shape and FEWEST_ALIKE <= len(paths) <= MOST_ALIKE:
            yield [str(p.relative_to(workspace)) for p in paths]


