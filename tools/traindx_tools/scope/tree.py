"""The Python files among which a run's own lie, and which of them a file uses.

Only files that were found or that an import leads to are read; a large tree is not walked. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePath

from traindx_tools.code_audit.programs import runs_by_itself
from traindx_tools.on_code.source import SourceFile, Unparsed
from traindx_tools.source_files.imports import ModuleIndex, imported
from traindx_tools.source_files.texts import MAX_BYTES

MOST_FILES = 400
"""Files of one run that are followed."""
MOST_FOLDERS = 1_000
"""Folders below a package that are looked into: a folder of data may have the name of a package."""
_SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "env", "site-packages", "build", "dist", "scratch"})
_FIRST_NAMES = re.compile(r"^[ \t]*(?:from[ \t]+([A-Za-z_]\w*)|import[ \t]+([A-Za-z_][\w., \t]*))", re.MULTILINE)
_DYNAMIC = re.compile(r"import_module|__import__|_target_|class_path|run_module|locate\(")
_ALL_MODULES = re.compile(r"iter_modules|walk_packages")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*\.?")
_PYTHON_FILE = re.compile(r"[\w./-]+\.(?:py|ipynb)\b")
_SAID = frozenset({"print", "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "write",
                   "add_argument", "ArgumentParser", "add_parser", "echo", "exit", "option"})
"""Calls whose texts are for a person: a file that is named in one is not used."""


def read_text(path: Path) -> str:
    """A text file, bounded; "" where it cannot be read, as a pipe that would be waited for."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def python_files(folder: Path, most: int = MOST_FILES) -> Iterator[Path]:
    """The Python files below a folder, in a stable order and bounded; links are not followed."""
    left = most
    for here, below, names in itertools.islice(os.walk(folder, followlinks=False), MOST_FOLDERS):
        below[:] = sorted(n for n in below if n not in _SKIPPED and not n.startswith("."))
        for name in sorted(n for n in names if n.endswith(".py") and not n.startswith(".")):
            if left == 0:
                return
            left -= 1
            yield Path(here) / name


class Tree:
    """Files by their real path. Paths that are handed out are as they were first named."""

    def __init__(self, files: Iterable[Path], folders: Iterable[Path] = ()) -> None:
        self._files: dict[str, Unparsed] = {}
        self._shown: dict[str, Path] = {}
        self._given: list[str] = []
        self._looked: set[str] = set()
        self.folders = tuple(dict.fromkeys(Path(os.path.realpath(f)) for f in folders))
        """Folders that imports may start from."""
        for file in files:
            key = self._add(file)
            if key not in self._given:
                self._given.append(key)

    def _add(self, file: Path) -> str:
        key = os.path.realpath(file)
        if key not in self._files:
            self._files[key] = Unparsed(key, read_text(file))
            self._shown[key] = file
            self.__dict__.pop("_index", None)
        return key

    @cached_property
    def _index(self) -> ModuleIndex[Unparsed]:
        return ModuleIndex(list(self._files.values()))

    @property
    def given(self) -> tuple[Path, ...]:
        """The files that were found to begin with."""
        return tuple(self._shown[k] for k in self._given)

    def shown(self, key: str) -> Path:
        """A file under the name that it came with."""
        return self._shown[key]

    def key(self, path: Path) -> str | None:
        """The key of a file of the tree, None for another."""
        real = os.path.realpath(path)
        return real if real in self._files else None

    def text(self, path: Path) -> str:
        """What a file holds."""
        return self._files[os.path.realpath(path)].text

    def source(self, path: Path) -> Unparsed:
        """The file as the audit reads it."""
        return self._files[os.path.realpath(path)]

    def file(self, name: str, here: Path) -> Path | None:
        """The file that a word of a command means: on disk, or where only one has such a tail (another machine)."""
        path = here / name
        if "\0" not in name and path.is_file():
            return self._shown[self._add(path)]
        return self.by_tail(name)

    def by_tail(self, name: str) -> Path | None:
        """The one file whose path shares the most of its end with a path of another machine."""
        parts = PurePath(name).parts
        tails = {k: _tail(PurePath(k).parts, parts) for k in self._files}
        best = max(tails.values(), default=0)
        longest = [k for k, n in tails.items() if n == best]
        return self._shown[longest[0]] if best and len(longest) == 1 else None

    def module(self, dotted: str, here: Path) -> Path | None:
        """The file that `python -m dotted` runs in a folder; that of an import, too."""
        parts = dotted.split(".")
        for folder in (Path(os.path.realpath(here)), *self.folders):
            base = folder.joinpath(*parts)
            for path in (base.with_name(f"{base.name}.py"), base / "__main__.py", base / "__init__.py"):
                if path.is_file():
                    return self._shown[self._add(path)]
        return None

    @cached_property
    def scripts(self) -> tuple[Path, ...]:
        """The files that do something when they are started, without those that others import and that have no main."""
        taken = {u for k in self._given for u in imported(self._files[k], self._index) if u != k}
        return tuple(self._shown[k] for k in self._given
                     if runs_by_itself(self._files[k]) and (k not in taken or "__main__" in self._files[k].text))

    def closure(self, entries: Iterable[Path]) -> tuple[Path, ...]:
        """The entries and everything that they use, the entries first."""
        seen = dict.fromkeys(self._add(e) for e in entries)
        queue = list(seen)
        while queue and len(seen) < MOST_FILES:
            for key in sorted(self._uses(queue.pop(0))):
                if key not in seen:
                    seen[key] = None
                    queue.append(key)
        return tuple(self._shown[k] for k in seen)

    def _uses(self, key: str) -> set[str]:
        file = self._files[key]
        self._look_for_packages(file)
        found = set(imported(file, self._index))
        if _ALL_MODULES.search(file.text) or ("*.py" in file.text and PurePath(key).name == "__init__.py"):
            found |= self._package(PurePath(key))
        if ".py" in file.text or _DYNAMIC.search(file.text):
            found |= self._named(file)
        return found - {key}

    def _package(self, key: PurePath) -> set[str]:
        """The modules of a package whose `__init__` goes through them; of a script, those of the packages below it."""
        whole = key.name == "__init__.py"
        return {k for k in self._files if (p := PurePath(k).parent).is_relative_to(key.parent)
                and (whole or p != key.parent)}

    def _look_for_packages(self, file: Unparsed) -> None:
        """Adds what lies on disk under the names that a file imports: a module beside it, or a whole package."""
        names = {n for one, several in _FIRST_NAMES.findall(file.text)
                 for n in ([one] if one else [s.split()[0].split(".")[0] for s in several.split(",") if s.split()])}
        for folder in (Path(file.path).parent, *self.folders):
            for name in names:
                self._look(folder, name)
        if "from ." in file.text:
            self._look(Path(file.path).parent.parent, Path(file.path).parent.name)

    def _look(self, folder: Path, name: str) -> None:
        place = folder / name
        if str(place) in self._looked or len(self._files) >= 2 * MOST_FILES:
            return
        self._looked.add(str(place))
        module = folder / f"{name}.py"
        if module.is_file() and module.resolve().is_relative_to(folder):
            self._add(module)
        if place.is_dir() and not place.is_symlink() and name not in _SKIPPED:
            for path in python_files(place):
                self._add(path)

    def _named(self, file: Unparsed) -> set[str]:
        """Files that a file names in a text which is no remark: a worker's script, a module of a registry."""
        found: set[str] = set()
        here, dynamic = Path(file.path).parent, bool(_DYNAMIC.search(file.text))
        for text in _texts(file):
            for name in _PYTHON_FILE.findall(text):
                path = self._beside(name, here)
                found |= {path} if path else set()
            if dynamic and _DOTTED.fullmatch(text):
                found |= self.modules_named(text, file)
        return found

    def _beside(self, name: str, here: Path) -> str | None:
        for folder in (here, *self.folders):
            if (folder / name).is_file():
                return self._add(folder / name)
        return None

    def modules_named(self, dotted: str, file: Unparsed) -> set[str]:
        """The module of a dotted name, of the name without its last part (a class), or all modules of a prefix."""
        prefix = dotted.endswith(".")
        name = dotted.rstrip(".")
        self._look(Path(file.path).parent, name.split(".")[0])
        for folder in self.folders:
            self._look(folder, name.split(".")[0])
        if prefix:
            package = self._index.find(name, file, 0)
            home = PurePath(package.path).parent if package is not None else PurePath(file.path).parent / name
            return {k for k in self._files if PurePath(k).is_relative_to(home)}
        found = [self._index.find(n, file, 0) for n in (name, name.rpartition(".")[0]) if n]
        return {f.path for f in found if f is not None}


def _texts(file: Unparsed) -> Iterator[str]:
    """The texts of a program that are neither docstrings nor written for a person."""
    parsed = file.parsed
    stack: list[ast.AST] = [parsed.tree] if isinstance(parsed, SourceFile) else []
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call) and _called(node.func) in _SAID:
            continue
        if isinstance(node, (ast.Raise, ast.Assert)) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        stack.extend(ast.iter_child_nodes(node))


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _tail(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    same = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        same += 1
    return same
