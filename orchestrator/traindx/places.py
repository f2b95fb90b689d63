"""Where things are, as a person in the workspace names them."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from traindx.usual_lines import Anchor, choose
from traindx_tools.finding import Finding, Location
from traindx_tools.on_code.source import MAX_BYTES
from traindx_tools.on_data.named_lines import NamedLine, maker_of
from traindx_tools.on_settings.written import ENDINGS
from traindx_tools.scope.cells import NO_NOTEBOOKS, Notebooks

_MAIN = re.compile(r"""^if __name__ == ['"]__main__['"]""", re.MULTILINE)
_TRAINS = re.compile(r"^\s*(?:import|from)\s+(?:torch|jax|flax|optax|equinox|tensorflow|keras|lightning|transformers|"
                     r"mlx|paddle|sklearn|numpy|trl|accelerate|deepspeed|(?!traindx\b)\w*train\w*)\b", re.MULTILINE)
"""An import of what programs train with, or of a module that is called so."""
_ARGUMENTS = re.compile(r"required\s*=\s*True|add_argument\(\s*['\"][^-'\"]|nargs\s*=\s*['\"]\+")
"""A script that cannot be started without arguments which nobody but its author knows."""
_LAUNCHED = re.compile(r"init_process_group\(|LOCAL_RANK")
_LAUNCHES = re.compile(r"\bspawn\(|MASTER_ADDR|init_method|Process\(|FileStore|TCPStore|HashStore")


@dataclass(frozen=True)
class Places:
    """The workspace, the code files that were read in it and the anchors in them."""

    root: Path
    code: tuple[Path, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    recorded: str | None = None
    """The command of the last run under `traindx run` here (see `recorded.py`)."""
    files: tuple[NamedLine, ...] = ()
    """The lines of the code that write and read files."""
    books: Notebooks = NO_NOTEBOOKS
    """The notebooks among the code."""
    entry: tuple[Path, ...] = ()
    """The scripts that start the run, where it is known which (`traindx_tools.scope`)."""
    arguments: tuple[str, ...] | None = None
    """With which the log shows that Python started the one entry point; None where it does not."""

    def name(self, file: str) -> str:
        """A file as seen from the workspace, whether it is given so, absolute or as seen from the current directory.

        A path of another machine (from a traceback) becomes the file of the workspace with the longest equal tail of
        names, where there is exactly one.
        """
        path = Path(file)
        inside = _inside(self.root / path, self.root) or _inside(path, self.root)
        if inside is not None:
            return inside
        same = list({os.path.realpath(c): c for c in self.code if c.name == path.name}.values())
        best = max((_tail(c, path) for c in same), default=0)
        nearest = [c for c in same if _tail(c, path) == best]
        return (_inside(nearest[0], self.root) or file) if len(nearest) == 1 else file

    def code_place(self, location: Location | None) -> tuple[str, int] | None:
        """(path from the workspace, line) where the location is a line of a code file that was read, of a notebook the
        line in its joined code, or of a configuration that lies in the workspace."""
        if location is None or location.file is None or location.line is None or location.printed:
            return None
        name, line = self.name(location.file), location.line
        if location.cell is not None:
            joined = self.books.joined(str(self.root / name), location.cell, line)
            if joined is None:
                return None
            line = joined
        known = {_inside(c, self.root) or str(c) for c in self.code}
        configured = name.endswith(ENDINGS) and _inside(self.root / name, self.root) is not None
        return (name, line) if name in known or configured else None

    def maker(self, location: Location) -> tuple[str, int] | None:
        """(path from the workspace, line) of the code that writes a data file, else reads it; None of any other."""
        if location.file is None or not self.files:
            return None
        made = maker_of(self.root / self.name(location.file), self.files)
        return None if made is None else (self.name(made.code), made.line)

    def told(self, name: str, line: int) -> str:
        """A line of code as a person finds it: `train.py:3`, of a notebook `train.ipynb:cell 2:3`."""
        return self.books.shown(str(self.root / name), line, name) or f"{name}:{line}"

    @property
    def training_command(self) -> str | None:
        """The command that `traindx run` recorded, or that the log shows, else `python train.py` with the run's entry
        point, or where one script can be run or is called so.

        None where there is no such script, where it takes arguments that must be given, where it is a notebook, or is
        not called so and imports nothing that trains. One that waits for its ranks is started with two of them.
        """
        if self.recorded is not None:
            return self.recorded
        started = [c for c in self.entry if _inside(c, self.root)]
        if len(started) == len(self.entry) == 1 and self.arguments is not None:
            return shlex.join(["python", self.name(str(started[0])), *self.arguments])
        mains = started or [c for c in self.code if _MAIN.search(_text(c))]
        named = [c for c in mains or self.code if "train" in c.stem.lower()]
        only = named or mains or list(self.code)
        text = _text(only[0]) if len(only) == 1 else ""
        asks = _ARGUMENTS.search(text) or ("sys.argv[1" in text and "len(sys.argv)" not in text)
        if len(only) != 1 or asks or only[0].suffix != ".py" or not (named or _TRAINS.search(text)):
            return None
        ranks = _LAUNCHED.search(text) and not _LAUNCHES.search(text)
        program = "torchrun --nproc_per_node 2" if ranks else "python"
        return f"{program} {shlex.quote(self.name(str(only[0])))}"

    def last_line(self, name: str, line: int) -> int | None:
        """The last line of the statement at a line, of a compound one that of its head; None where nothing is known.

        A change of `optimizer = AdamW(` is one of the whole call, over all its lines.
        """
        file = next((c for c in self.code if self.name(str(c)) == name), None)
        try:
            tree = ast.parse(_text(file)) if file is not None else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= _ends(n)] if tree else []
        inner = max(around, key=lambda n: n.lineno, default=None)
        body = getattr(inner, "body", None)
        if inner is None or (body and not line < body[0].lineno):
            return None
        return body[0].lineno - 1 if body else _ends(inner)

    def anchor(self, kinds: Sequence[str]) -> Anchor | None:
        """The line of the code that a failure mode with these anchors is about."""
        return choose(self.anchors, kinds)

    def describe(self, finding: Finding) -> str:
        """The place of a finding in words: `train.py:32`, or `log.txt:812, step 400`."""
        where = finding.where
        parts = [f"{self.name(where.file)}{where.numbers}"] if where.file else []
        rest = str(Location(step=where.step, end_step=where.end_step, unit=where.unit, module=where.module,
                            rank=where.rank)) if _more(where) else ""
        return ", ".join(p for p in (*parts, rest) if p)


def _ends(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _more(where: Location) -> bool:
    return where.step is not None or where.module is not None or where.rank is not None


def _inside(path: Path, root: Path) -> str | None:
    try:
        return path.resolve().relative_to(root.resolve()).as_posix() if path.exists() else None
    except (ValueError, OSError, RuntimeError):  # no name at all, too long a one, links in a circle
        return None


def _text(path: Path) -> str:
    """A code file's text, bounded; "" where it vanished meanwhile."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _tail(one: PurePath, other: PurePath) -> int:
    same = 0
    for a, b in zip(reversed(one.parts), reversed(other.parts), strict=False):
        if a != b:
            break
        same += 1
    return same


def common_root(paths: Iterable[str | Path]) -> Path:
    """The folder that a person would call the workspace: the deepest one that holds everything that was named."""
    here = [Path(os.path.realpath(p)) for p in paths if str(p) != "-" and "://" not in str(p)]
    folders = [p if p.is_dir() else p.parent for p in here]
    if not folders:
        return Path.cwd()
    root = folders[0]
    while not all(f.is_relative_to(root) for f in folders):
        root = root.parent
    return root
