"""The names and shapes of a model that a person names as `module:Class`: built in the protected runner.

Naming it is the consent to import that module and to call the class. Torch models are built on the meta device where
they can be, so that no memory is filled.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from traindx.sandbox import find_sandbox
from traindx.verify import clean_environment
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.of_model import model_as_checkpoint

SECONDS = 300.0
"""For importing the module and building the model."""

_PROGRAM = r'''
import importlib, json, sys
sys.path.insert(0, "")
mark, module, name, given = sys.argv[1:5]
del sys.argv[1:]
make = importlib.import_module(module)
for part in name.split("."):
    make = getattr(make, part)
given = json.loads(given)
def built():
    return make(**given) if callable(make) else make
def named(tree, before=""):
    if hasattr(tree, "shape") and hasattr(tree, "dtype"):
        yield before, tree
    elif hasattr(tree, "items"):
        for key, value in tree.items():
            yield from named(value, f"{before}.{key}" if before else str(key))
torch = sys.modules.get("torch")
model = None
if torch is not None:
    try:
        with torch.device("meta"):
            model = built()
    except Exception:  # the class may do anything; what the meta device cannot do is built for real below
        model = None
if model is None:
    model = built()
state = model.state_dict() if hasattr(model, "state_dict") else model
told = {k: [str(v.dtype).rpartition(".")[2], list(v.shape)] for k, v in named(state)}
print("\n" + mark + json.dumps(told))
'''


def model_named(spec: str, workspace: Path, arguments: str = "", python: str = sys.executable) -> Checkpoint:
    """The model of `module:Class` (or a function, or a model that the module holds), as a checkpoint without values.

    `arguments`: a JSON object of keyword arguments. Raises BadUsage for a text of another form, UnreadableInput where
    the model cannot be built, with its own last line.
    """
    module, colon, name = spec.partition(":")
    if colon and module.endswith((".ipynb", ".py")):
        raise BadUsage(_of_a_file(module, name))
    if not colon or not all(p.isidentifier() for p in (*module.split("."), *name.split("."))):
        raise BadUsage(f"--model is module:Class, as in model:Transformer, got {spec!r}")
    try:
        told = json.loads(arguments or "{}")
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise BadUsage("--model-args is a JSON object of keyword arguments, as in '{\"width\": 256}', got "
                       f"{arguments!r}")
    mark = secrets.token_hex(8)
    words = [python, "-c", _PROGRAM, mark, module, name, json.dumps(told)]
    environment = {**clean_environment(os.environ), "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(find_sandbox().reading(words, workspace), cwd=workspace, env=environment, timeout=SECONDS,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise UnreadableInput(f"{spec} was not built within {SECONDS:.0f} s") from None
    return model_as_checkpoint(spec, _read(spec, mark, done))


def _of_a_file(file: str, name: str) -> str:
    """What to do where a file is named in place of a module."""
    stem = Path(file).stem
    if file.endswith(".py"):
        return f"--model is module:Class, as it is imported: --model {stem}:{name}, got the file {file}"
    return (f"--model is module:Class, and {file} is a notebook, which cannot be imported without running its "
            f"training: copy the cell with {name} and its imports into {stem}_model.py and give "
            f"--model {stem}_model:{name}")


def _read(spec: str, mark: str, done: subprocess.CompletedProcess[bytes]) -> dict[str, tuple[str, list[int]]]:
    """What our program told behind its mark, which the module cannot know before it has run."""
    lines = [x for x in done.stdout.decode("utf-8", "replace").splitlines() if x.startswith(mark)]
    if done.returncode != 0 or not lines:
        said = [x.strip() for x in done.stderr.decode("utf-8", "replace").splitlines() if x.strip()]
        raise UnreadableInput(f"{spec} cannot be built: {said[-1][:200] if said else 'it ended without a word'}. "
                              "The module is imported from the current folder; arguments go to --model-args.")
    told: Any = json.loads(lines[0][len(mark):])
    return {name: (dtype, shape) for name, (dtype, shape) in told.items()}
