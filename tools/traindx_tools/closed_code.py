"""Whether the code that was read is all the code of a run: what is not written in it, the run does not do.

A program that imports nothing but its own files, the standard library and libraries that run no training loop and
configure nothing by themselves says all that it does. A trainer, a package of the laboratory or a module whose name is
computed may do anything: there, what is not read may still be.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PLAIN = frozenset({
    "PIL", "chex", "cv2", "datasets", "distrax", "einops", "equinox", "flax", "h5py", "haiku", "jax", "jaxlib",
    "jaxtyping", "matplotlib", "numpy", "optax", "pandas", "pyarrow", "safetensors", "scipy", "seaborn", "sklearn",
    "tensorboard", "tensorboardX", "torch", "torchaudio", "torchvision", "tqdm", "wandb", "yaml",
})
"""Libraries that do to a training what the program's own lines ask for, and nothing else."""
MOST = 400_000
"""Characters of a file; of a longer one nobody knows its end."""
_COMPUTED = re.compile(r"\b(?:import_module|__import__|exec|eval|spec_from_file_location|run_path|run_module|"
                       r"instantiate|hub\.load)\s*\(")


def closed_text(code: Iterable[Path]) -> str | None:
    """The text of the files where they are all the code of a program, else None (none, unreadable, or more to it).

    It is written anew from what was parsed: a statement a line, whatever stood on one line, and no comments.
    """
    files = tuple(code)
    own = {part for f in files for part in (f.stem, f.parent.name)}
    texts = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace") if file.suffix == ".py" else ""
            tree = ast.parse(text)
            imported = set(_imported(tree))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        if not text or len(text) > MOST or _COMPUTED.search(text.replace(".eval(", " ")):
            return None
        if not imported <= own | PLAIN | sys.stdlib_module_names:
            return None
        texts.append(_as_written(tree))
    return "\n".join(texts) if texts else None


def _as_written(tree: ast.Module) -> str:
    """The text of a program in one form, without what documents it."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [s for s in body if not _documents(s)] or [ast.Pass()]
    return ast.unparse(tree)


def _documents(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The first names of what is imported; of an import from the own package that of the module."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (n.name.split(".")[0] for n in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.split(".")[0]
            case ast.ImportFrom(module=str(name)):
                yield name.split(".")[-1]
            case ast.ImportFrom(names=names):
                yield from (n.name for n in names)
