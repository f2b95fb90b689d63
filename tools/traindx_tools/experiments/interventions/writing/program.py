"""The program that a command starts, read as text: where its call is written, and its own files."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.interventions.writing.shell import Word, simple_commands
from traindx_tools.scope.commands import launches
from traindx_tools.scope.tree import Tree, read_text

SHELL_SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch")


@dataclass(frozen=True)
class CallText:
    """The shell text that holds the call of the script: the command itself (`file` is ""), or a script of a shell."""

    text: str
    file: str
    words: tuple[Word, ...]
    """Those of the simple command."""
    script_at: int
    """Which of the words is the script or module."""


class Program:
    """What a command runs in a workspace. Nothing of it is imported or run."""

    def __init__(self, command: str, workspace: Path, written: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """`written`: files by their path in the workspace that stand in place of those that lie there."""
        self.command, self.workspace, self.written = command, workspace, written
        self._tree = Tree((), (workspace,))
        self._launches = launches(command, self._tree, workspace)

    @property
    def script(self) -> Path:
        """The script that trains. Raises BadUsage where the command starts none."""
        if not self._launches:
            raise BadUsage(f"the command {self.command!r} starts no Python file below {self.workspace}: give one that "
                           "names it, as in `python train.py`.")
        return self._launches[0].script

    @cached_property
    def sources(self) -> dict[str, str]:
        """The script's own files and those that it imports, as text by their path in the workspace."""
        found: dict[str, str] = {}
        for path in self._tree.closure((self.script,)):
            name = self.name_of(path)
            if name is not None and path.suffix == ".py":
                found[name] = self.written[name].decode() if name in self.written else self._tree.text(path)
        return found

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The same, parsed; files that do not parse are left out."""
        found: dict[str, ast.Module] = {}
        for name, text in self.sources.items():
            try:
                found[name] = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return found

    @property
    def configs(self) -> tuple[str, ...]:
        """Configuration files that the command names."""
        named = (self.name_of(c) for launch in self._launches for c in launch.configs)
        return tuple(dict.fromkeys(n for n in named if n))

    def name_of(self, path: Path) -> str | None:
        """The path in the workspace, None for one outside."""
        real, root = os.path.realpath(path), os.path.realpath(self.workspace)
        return os.path.relpath(real, root).replace(os.sep, "/") if real.startswith(root + os.sep) else None

    @cached_property
    def call(self) -> CallText | None:
        """Where the script's arguments are written, None where no text of a shell shows them."""
        script = os.path.realpath(self.script)
        texts = [("", self.command)]
        seen: set[str] = set()
        while texts:
            file, text = texts.pop(0)
            for words in simple_commands(text):
                for at, word in enumerate(words):
                    before = words[at - 1].text if at else ""
                    if self._means(word.text, before, script):
                        return CallText(text, file, tuple(words), at)
                    inner = self.workspace / word.text
                    if word.text.endswith(SHELL_SUFFIXES) and word.text not in seen and inner.is_file():
                        seen.add(word.text)
                        texts.append((self.name_of(inner) or word.text, read_text(inner)))
        return None

    def _means(self, word: str, before: str, script: str) -> bool:
        if before in ("-m", "--module"):
            found = self._tree.module(word, self.workspace)
            return found is not None and os.path.realpath(found) == script
        if not word.endswith(".py"):
            return False
        here = self._tree.file(word, self.workspace)
        return here is not None and os.path.realpath(here) == script
