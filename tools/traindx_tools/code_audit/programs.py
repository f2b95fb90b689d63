"""Which files run together: a folder of independent scripts is judged script by script.

Whether a call is missing depends on what runs with it: `set_epoch` in one script says nothing of the next script. Files
belong together where one imports the other, names its file ("worker.py" in a command line) or a module of it in a
string (a registry, a `_target_`), or where they lie in one package; a file that only defines something and that nothing
imports may be used by any file of its folder. Among files that belong together, a script that
nothing imports is judged once more with only what it runs itself; where that is too much to follow again, it is judged
with its neighbours.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from traindx_tools.code_audit.results import RuleResults
from traindx_tools.on_code.source import Source, SourceFile
from traindx_tools.source_files.imports import ModuleIndex, imported

MOST_AGAIN = 5_000
"""Lines that one script may run with, itself included, to be followed on its own; hand-written projects stay below."""
MOST_IN_ALL = 20_000
"""Lines that are followed again in one audit at most: about two seconds."""

_FILE_NAME = re.compile(r"\.(?:py|ipynb)\b")
_STEM = re.compile(r"[\w-]+$")
_LONGEST_STEM = 100
"""Characters before `.py` among which the name of a file is looked for."""
_MODULE_IN_TEXT = re.compile(r"[\"']([A-Za-z_]\w*(?:\.\w+)+)[\"']")
_MODULE_NAME = re.compile(r"import_module|__import__|_target_|locate\(|class_path")


@dataclass(frozen=True, eq=False)
class Program:
    """Files that are followed together, and those among them that are judged here."""

    files: tuple[Source, ...]
    reported: frozenset[str]
    """Paths of the files whose findings count; the others are read for what they hold."""

    @cached_property
    def lines(self) -> int:
        """Lines of code that are followed."""
        return sum(f.text.count("\n") for f in self.files)

    def of_these(self, results: RuleResults) -> RuleResults:
        """What was said of the files that are judged here, and of files that are no source (a configuration)."""
        others = {f.path for f in self.files if f.path not in self.reported}
        if not others:
            return results
        return RuleResults([f for f in results.findings if f.where.file not in others], results.notes)


def programs(files: Sequence[Source]) -> list[Program]:
    """The programs that these files are: every file is judged in exactly one of them."""
    if len(files) < 2:
        return [Program(tuple(files), frozenset(f.path for f in files))] if files else []
    uses, imports = _uses(files)
    found: list[Program] = []
    left = MOST_IN_ALL
    for group in _connected(files, uses, imports):
        own: list[Program] = []
        for script in _scripts(group, imports):
            program = Program(_reached(script, uses, group), frozenset({script.path}))
            if len(program.files) < len(group) and program.lines <= min(MOST_AGAIN, left):
                left -= program.lines
                own.append(program)
        alone = {path for program in own for path in program.reported}
        rest = frozenset(f.path for f in group if f.path not in alone)
        found += [Program(tuple(group), rest), *own] if rest else own
    return found


def _uses(files: Sequence[Source]) -> tuple[dict[str, set[str]], set[str]]:
    """For each file those that it imports or names; and all files that another one imports."""
    index: ModuleIndex[Source] = ModuleIndex(files)
    by_stem: dict[str, list[str]] = {}
    for file in files:
        by_stem.setdefault(PurePath(file.path).stem, []).append(file.path)
    uses: dict[str, set[str]] = {}
    taken: set[str] = set()
    for file in files:
        found = set(imported(file, index)) - {file.path}
        taken |= found
        found.update(_named(file, index, by_stem))
        uses[file.path] = found - {file.path}
    return uses, taken


def _named(file: Source, index: ModuleIndex[Source], by_stem: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Files of the project that a file names in a text."""
    for match in _FILE_NAME.finditer(file.text):
        stem = _STEM.search(file.text[max(0, match.start() - _LONGEST_STEM) : match.start()])
        same = by_stem.get(stem[0], ()) if stem is not None else ()
        beside = [p for p in same if PurePath(p).parent == PurePath(file.path).parent]
        yield from beside or (same if len(same) == 1 else ())
    if _MODULE_NAME.search(file.text):
        for match in _MODULE_IN_TEXT.finditer(file.text):
            for name in (match[1], match[1].rpartition(".")[0]):
                found = index.find(name, file, 0)
                if found is not None:
                    yield found.path


def _home(file: Source) -> str:
    return str(PurePath(file.path).parent)


def runs_by_itself(file: Source) -> bool:
    """Whether a file does something when it is started, and not only defines what others may use."""
    parsed = file.parsed
    return isinstance(parsed, SourceFile) and any((isinstance(s, ast.Expr) and not isinstance(s.value, ast.Constant))
        or isinstance(s, (ast.For, ast.While, ast.With))
        or (isinstance(s, ast.If) and "__name__" in ast.unparse(s.test)) for s in parsed.tree.body)


def _connected(files: Sequence[Source], uses: Mapping[str, set[str]],
               imports: set[str]) -> list[list[Source]]:  # fmt: skip
    """The files in groups that no use leaves, in the order in which they were given."""
    leader = {f.path: f.path for f in files}

    def head(path: str) -> str:
        while leader[path] != path:
            leader[path] = leader[leader[path]]
            path = leader[path]
        return path

    packages = {_home(f): f.path for f in files if PurePath(f.path).name == "__init__.py"}
    loose = {_home(f): f.path for f in files if f.path not in imports and not runs_by_itself(f)}
    for file in files:
        if _home(file) in loose:
            leader[head(loose[_home(file)])] = head(file.path)
        for other in uses[file.path]:
            leader[head(other)] = head(file.path)
        home = PurePath(file.path).parent
        for folder in (home, home.parent) if PurePath(file.path).name == "__init__.py" else (home,):
            if str(folder) in packages:
                leader[head(packages[str(folder)])] = head(file.path)
    groups: dict[str, list[Source]] = {}
    for file in files:
        groups.setdefault(head(file.path), []).append(file)
    return list(groups.values())


def _scripts(group: Sequence[Source], imports: set[str]) -> list[Source]:
    """The files of a group that are started themselves, as far as the sources tell."""
    packages = {_home(f) for f in group if PurePath(f.path).name == "__init__.py"}
    return [f for f in group if f.path not in imports and runs_by_itself(f)
            and (_home(f) not in packages or "__main__" in f.text) and len(group) > 1]


def _reached(script: Source, uses: Mapping[str, set[str]], group: Sequence[Source]) -> tuple[Source, ...]:
    seen = {script.path}
    queue = [script.path]
    while queue:
        for path in uses[queue.pop()]:
            if path not in seen:
                seen.add(path)
                queue.append(path)
    return tuple(f for f in group if f.path in seen)
