"""Commands that fit: a check of the catalog becomes a command only where everything in it is the person's own.

The catalog writes checks with the field's words in them: PATH, CMD, `train.py`, `checkpoint.pt`, `labels`. Here they
are replaced by what the workspace has under another name. What has no counterpart there is not offered as a command:
the check is then told in its words alone.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from traindx.code_names import CodeNames, in_these_names
from traindx.places import Places
from traindx_tools.phrases import show

PROGRAMS = frozenset({"cd", "python", "python3", "pip", "torchrun", "traindx", "grep", "df", "du", "ls", "ps", "ss",
                      "env", "dmesg", "nvidia-smi", "free", "git", "compute-sanitizer"})
"""Programs that a check may call; anything else is a line of Python."""

PLACEHOLDERS = re.compile(r"\b(PID|PARAMETERS|VARIABLE|MASTER_ADDR|CMD|PATH|[A-Z]+_(?:DIR|FILE|PATH|CMD))\b")
"""Words of the catalog that stand for something which only the person knows."""

MOST_SEARCHED = 4
"""Files of code that a search names."""
_SEARCHED = ("loss", "scaler", "scheduler")
"""Words in the patterns of searches that have another name in many programs."""

_SLOT = re.compile(r"\{(\w+)\|[^{}]*\}")
_SETTING = re.compile(r"[A-Z_]+=\S*")
_SCRIPT = "train.py"
_STATES = ("checkpoint.pt", "final.pt")
_STATE_ENDINGS = frozenset({".pt", ".pth", ".ckpt"})
_QUOTABLE = re.compile(r"[\w.=-]+")
_OWNERS = {"JAX": "jax", "XLA": "jax", "TORCH": "torch", "NCCL": "cuda", "CUDA": "cuda"}
"""Whose a setting of the environment is, by its first word."""
_ACCELERATOR = ("cuda", "nvidia", "nccl")


def typed(paths: Sequence[str | Path]) -> str:
    """Paths as arguments of a shell command: a file's name is data and must not become a command or an option."""
    names = (str(p) for p in paths)
    return shlex.join(f"./{n}" if n.startswith("-") and n != "-" else n for n in names)


def typed_again(paths: Sequence[str | Path]) -> str:
    """`typed`, "" where standard input is among the paths: what came through a pipe is gone, and a command with "-"
    would wait for a terminal."""
    return "" if any(str(p) == "-" for p in paths) else typed(paths)


@dataclass(frozen=True)
class Ground:
    """What checks are filled from: the paths as they are typed, the workspace, its names, what was read of it."""

    subject: str
    places: Places
    names: CodeNames
    told: str = ""
    """Texts of the artifacts' errors and findings: what they name is in use."""

    def fill(self, command: str, measured: Mapping[str, Any]) -> str:
        """The command with everything filled in, "" where something in it is not known."""
        if any(measured.get(m[1]) is None for m in _SLOT.finditer(command)):
            return ""
        command = _SLOT.sub(lambda m: show(measured[m[1]]), command)
        return self._shell(command) if _is_shell(command) else in_these_names(command, self.names)

    def _shell(self, command: str) -> str:
        command = self._searched(command) if command.startswith("grep ") else command
        made = self._with_states(self._with_training(command))
        if made is None or ("PATH" in made and not self.subject) or PLACEHOLDERS.search(re.sub(r"\bPATH\b", "", made)):
            return ""
        words = _split(made)
        if not (self._has_script(words) and self._has_programs(words)):
            return ""
        return re.sub(r"\bPATH\b", lambda _: self.subject, self._from_here(made))

    def _searched(self, command: str) -> str:
        """A search with the code's own names in its pattern, and in the code's own files."""
        for word in _SEARCHED:
            name = self.names.roles.get(word, word)
            if name != word:
                command = re.sub(rf"(?<![\w.]){word}\b", lambda _, to=name: to, command)  # type: ignore[misc]
        files = [self.places.name(str(c)) for c in self.places.code]
        if command.endswith(f" {_SCRIPT}") and _SCRIPT not in files and 0 < len(files) <= MOST_SEARCHED:
            command = f"{command[:-len(_SCRIPT)]}{' '.join(map(shlex.quote, files))}"
        return command

    def _from_here(self, made: str) -> str:
        """With a change into the workspace before it, where it names a file of it and is typed elsewhere."""
        training = self.places.training_command
        inside = [training, self.checkpoint, _SCRIPT] if not made.startswith("traindx diagnose") else []
        if Path.cwd() == self.places.root or not any(name and name in made for name in inside):
            return made
        return f"cd {shlex.quote(seen_from_here(self.places.root))} && {made}"

    def _with_training(self, command: str) -> str:
        """`CMD` as an argument after an option, as the rest of the line after `--`; `python train.py` as it is here."""
        training = self.places.training_command
        if training is None:
            return command
        made = command.replace("-- CMD", f"-- {training}")
        made = re.sub(r"\bCMD\b", lambda _: shlex.quote(training), made)
        return re.sub(rf"\bpython {re.escape(_SCRIPT)}$", lambda _: training, made)

    def _with_states(self, command: str) -> str | None:
        """The command with a checkpoint of the workspace; None where it needs one and there is none."""
        if not any(state in command for state in _STATES):
            return command
        there = self.checkpoint
        return re.sub("|".join(map(re.escape, _STATES)), lambda _: there, command) if there else None

    @cached_property
    def checkpoint(self) -> str:
        """The last checkpoint by name in the workspace's folder or in one of its folders, "" where there is none."""
        found = sorted(p for pattern in ("*", "*/*") for p in self.places.root.glob(pattern)
                       if p.suffix in _STATE_ENDINGS and _QUOTABLE.fullmatch(p.name) and p.is_file())
        return found[-1].relative_to(self.places.root).as_posix() if found else ""

    def _has_script(self, words: list[str]) -> bool:
        return _SCRIPT not in words or any(self.places.name(str(c)) == _SCRIPT for c in self.places.code)

    def _has_programs(self, words: list[str]) -> bool:
        """Whether what it calls is about this workspace: its libraries, its accelerator."""
        settings, words = words[:_settings(words)], words[_settings(words):]
        if not all(self._in_use(s) for s in settings):
            return False
        if words[:1] == ["nvidia-smi"] or words[:1] == ["compute-sanitizer"]:
            return self.on_accelerator
        if words[:2] == ["pip", "show"]:
            return all(w.replace("-", "_") in self.names.modules for w in words[2:])
        return words[:2] != ["python", "-c"] or self._runs_alone(words[2])

    def _in_use(self, setting: str) -> bool:
        """Whether a setting of the environment is one of a library or device that is used here."""
        owner = _OWNERS.get(setting.split("_")[0])
        return owner is None or (self.on_accelerator if owner == "cuda" else owner in self.names.modules)

    def _runs_alone(self, code: str) -> bool:
        """Whether a program of one line needs nothing but the standard library and what the code here uses as well."""
        try:
            tree = ast.parse(code)
        except SyntaxError:
            return False
        imported = {n.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
        imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        return "sys.argv" not in code and imported <= sys.stdlib_module_names | self.names.modules

    @cached_property
    def on_accelerator(self) -> bool:
        """Whether the code or the artifacts speak of a CUDA device."""
        words = self.names.attributes | self.names.names
        return any(w in self.told.lower() for w in _ACCELERATOR) or any(
            w.split(":")[0] in _ACCELERATOR for w in words)


def beside_here(path: str) -> str:
    """The path; one beside the current directory as a person types it."""
    near = os.path.relpath(path)
    return near if os.path.isabs(path) and near.startswith("../") and not near.startswith("../../") else path


def seen_from_here(path: Path) -> str:
    """As seen from the current directory where it lies below it."""
    here = Path.cwd()
    below = path.is_relative_to(here) and here != Path(here.anchor)
    return str(path.relative_to(here)) if below else str(path)


def _settings(words: list[str]) -> int:
    """How many settings of the environment (`NAME=value`) a command begins with."""
    return next((i for i, word in enumerate(words) if not _SETTING.fullmatch(word)), len(words))


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _is_shell(command: str) -> bool:
    words = _split(command)
    words = words[_settings(words):]
    return bool(words) and words[0] in PROGRAMS


def can_be_typed(command: str) -> bool:
    """Whether a filled command is one for the shell, and no line of Python."""
    return bool(command) and _is_shell(command)


def with_words(symptom: str) -> str:
    """The option with the person's words, so that the next command answers them as well."""
    return f" --symptom {typed([symptom])}" if symptom else ""
