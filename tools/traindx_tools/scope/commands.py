"""Which script a command starts: `python train.py`, `torchrun -m pkg.train`, `env A=1 bash run.sh`.

A command is text: it is taken apart and looked up among files, and never run. Launchers differ in their options, but
all name what they start in one way: the first word that is a Python file of the project, or the module after -m.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from traindx_tools.scope.tree import Tree, read_text

MOST_DEPTH = 4
"""Scripts that start one another: more are a circle."""
MOST_COMMANDS = 200
"""Commands of one text that are looked at."""
CONFIG_SUFFIXES = (".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".gin")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "source", "."})
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_ENDS = frozenset({";", "&&", "||", "|", "&", "\n", "(", ")", "then", "do", "else"})
_SCRIPT = (".py", ".ipynb")
_REDIRECTED = re.compile(r"\d*[<>]")
_OPEN = re.compile(r"[$`*?'\"\x00-\x1f]")
"""What a shell puts something else for, or a quote that was not closed."""
_PYTHON = re.compile(r"python[\d.]*")


@dataclass(frozen=True)
class Launch:
    """One script that a command starts, and the configuration files among its arguments."""

    script: Path
    configs: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()
    """What stands behind the script, as it was typed."""
    interpreter: bool = False
    """Whether Python alone starts it, with arguments that stand for themselves: no launcher, module, variable."""


def launches(command: str, tree: Tree, base: Path, depth: int = 0) -> tuple[Launch, ...]:
    """The scripts that a command starts, in order, each once. `base`: the folder in which it is typed."""
    found: dict[Path, Launch] = {}
    here = base
    for words in _simple_commands(command):
        if words[0] == "cd" and len(words) > 1:
            here = here / words[1]
            continue
        for launch in _started(words, tree, here, depth):
            found.setdefault(launch.script, launch)
    return tuple(found.values())


def _simple_commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell text, each as its words without the assignments before it."""
    for number, logical in enumerate(text.replace("\\\n", " ").splitlines()):
        if number >= MOST_COMMANDS:
            return
        words: list[str] = []
        for word in (*_words(logical), ";"):
            if word in _ENDS:
                if words:
                    yield words
                words = []
            elif words or not _ASSIGNED.match(word):
                words.append(word)


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quote that is not closed
        return text.split()


def _started(words: list[str], tree: Tree, here: Path, depth: int) -> Iterator[Launch]:
    if depth > MOST_DEPTH:
        return
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        if before == "-c" and _is_shell(words[:at]):
            yield from launches(word, tree, here, depth + 1)
            return
        if before == "-c":
            yield from (Launch(f) for f in _imported_by_text(word, tree, here))
            return
        script = _script(word, before, tree, here)
        if script is not None:
            arguments = tuple(takewhile(lambda w: not _REDIRECTED.match(w), words[at + 1 :]))
            alone = (at == 1 and _PYTHON.fullmatch(Path(words[0]).name) is not None
                     and not any(_OPEN.search(a) for a in arguments))
            yield Launch(script, _configs(words[at + 1 :], here), arguments, alone)
            return
        if _is_script_of_shell(word, words[:at], here):
            text = read_text(here / word)
            yield from launches(text, tree, here, depth + 1)
            return


def _script(word: str, before: str, tree: Tree, here: Path) -> Path | None:
    if before in ("-m", "--module"):
        return tree.module(word, here)
    return tree.file(word, here) if word.endswith(_SCRIPT) and not word.startswith("-") else None


def _is_shell(before: list[str]) -> bool:
    return any(Path(w).name in _SHELLS for w in before)


def _is_script_of_shell(word: str, before: list[str], here: Path) -> bool:
    if not (word.endswith((".sh", ".bash", ".slurm", ".sbatch")) or (before and _is_shell(before[-1:]))):
        return False
    return (here / word).is_file()


def _imported_by_text(text: str, tree: Tree, here: Path) -> Iterator[Path]:
    """The files that the program of `python -c` imports."""
    try:
        parsed = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(parsed):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        yield from (f for name in names if name and (f := tree.module(name, here)) is not None)


def _configs(arguments: list[str], here: Path) -> tuple[Path, ...]:
    """Configuration files among the arguments: `conf.yaml`, `--config=conf.yaml`."""
    named = (w.rpartition("=")[2] if w.startswith("-") or "=" in w else w for w in arguments)
    return tuple(dict.fromkeys(here / n for n in named if n.endswith(CONFIG_SUFFIXES) and (here / n).is_file()))
