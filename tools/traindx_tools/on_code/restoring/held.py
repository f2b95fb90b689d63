"""What names hold while a program is played, which calls take something out of a file, which put it into objects."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import Syntax, last_name


@dataclass(frozen=True, eq=False)
class Mark:
    """Something that came out of a file: what is written there, and under which conditions and loops."""

    entry: str
    code: Syntax
    node: ast.AST
    conditions: tuple[tuple[int, int], ...] = ()
    loops: tuple[int, ...] = ()
    any_file: bool = False
    """Such files hold anything: it is a checkpoint where the program writes one with this entry itself."""


@dataclass(eq=False)
class Held:
    """What a name holds. `loaded`: it is what a file gave; `pending`: a state of a file went into it, unread."""

    loaded: Mark | None = None
    pending: Mark | None = None
    made: str = ""
    """What it is made by, as a qualified name: "torch.optim.AdamW"."""
    klass: tuple[Syntax, ast.ClassDef] | None = None
    attrs: dict[str, Held] = field(default_factory=dict)
    parts: tuple[Held, ...] = ()
    uses: int = 0


@dataclass(eq=False)
class Frame:
    """The names of one call, or of a file. `around`: of the function that it is defined in, or of the file."""

    names: dict[str, Held] = field(default_factory=dict)
    around: Frame | None = None
    shared: set[str] = field(default_factory=set)
    """Names that belong to the frame around: global, nonlocal."""
    result: Held | None = None

    def home(self, name: str, *, stores: bool = False) -> dict[str, Held]:
        """The dict that holds a name, or that it is stored in."""
        frame: Frame | None = self
        if stores and name not in self.shared:
            return self.names
        while frame is not None:
            if name in frame.names and (name not in frame.shared):
                return frame.names
            frame = frame.around
        return self.names


@dataclass(eq=False)
class Loss:
    """What was written over before it was read; `sure` once somebody reads what stands there instead."""

    mark: Mark
    target: str
    code: Syntax
    node: ast.AST
    old: Held
    new: Held
    place: tuple[int, str]
    replaced: bool = False
    turns: bool = False
    """A loop counts in it."""
    uses: int = 0
    sure: bool = False
    called: tuple[Syntax, ast.AST] | None = None
    """The call of the method in which it is lost, where the load is in another function."""


_FILES = frozenset({
    "torch.load", "joblib.load", "flax.training.checkpoints.restore_checkpoint", "flax.serialization.from_bytes",
    "flax.serialization.msgpack_restore", "equinox.tree_deserialise_leaves", "safetensors.torch.load_file",
    "safetensors.numpy.load_file"})  # fmt: skip
_OWN = frozenset({"pickle.load", "pickle.loads", "cloudpickle.load", "dill.load", "json.load", "json.loads",
                  "numpy.load", "msgpack.unpackb", "msgpack.unpack"})  # fmt: skip
"""They read all kinds of files: one that the program writes itself under the same key is a checkpoint."""
_RESTORERS = frozenset({"restore", "restore_checkpoint"})
_PUTS_IN = re.compile(r"^((load|restore|set)(_?(from|all|full|weights|states?|dict))*|setstate)$")
QUIET = frozenset({"print", "debug", "info", "warning", "warn", "log", "write", "format", "len", "isinstance", "str",
                   "repr"})  # fmt: skip
CONVERTS = frozenset({"int", "float", "bool", "list", "tuple", "dict", "set", "deque", "array", "asarray", "tensor",
                      "as_tensor", "deepcopy", "copy", "max", "min", "get", "pop", "item", "clone", "device_put", "to",
                      "wrap_key_data", "from_state_dict", "tree_map", "map", "from_numpy"})  # fmt: skip


def is_source(code: Syntax, call: ast.Call) -> bool:
    """Whether a call gives what a checkpoint holds."""
    name = code.qualified(call.func)
    return name in _FILES or (isinstance(call.func, ast.Attribute) and call.func.attr in _RESTORERS and bool(
        "orbax" in code.file.text or name.startswith(("flax.", "orbax."))))


def is_own_source(code: Syntax, call: ast.Call) -> bool:
    """Whether it reads a file of any kind."""
    return code.qualified(call.func) in _OWN


def puts_in(call: ast.Call) -> bool:
    """Whether the method of a call, by its name, takes a state."""
    return isinstance(call.func, ast.Attribute) and bool(_PUTS_IN.match(call.func.attr))


def key_of(node: ast.expr) -> str | None:
    """The text by which an entry is taken: `x["epoch"]`, `x.get("epoch")`, `x.pop("epoch")`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and last_name(node.func) in ("get", "pop"):
        first = node.args[0] if node.args else None
        return str(first.value) if isinstance(first, ast.Constant) else None
    return None


def kind_of(made: str) -> str:
    """What is made by a call of this name."""
    short = made.rpartition(".")[2]
    if "lr_scheduler" in made:
        return "schedule"
    if made.startswith(("torch.optim.", "optax.")):
        return "optimizer"
    if short == "GradScaler":
        return "scaler"
    return "generator" if short in ("default_rng", "RandomState", "Generator", "Random", "PRNGKey", "key") else "object"


def keys_written(look: Lookup) -> set[str]:
    """The texts under which the program keeps something: keys of dicts, names of keyword arguments."""
    found: set[str] = set()
    for code in look.codes:
        found |= {str(k.value) for d in code.of(ast.Dict) for k in d.keys if isinstance(k, ast.Constant)}
        found |= {k.arg for c in code.of(ast.Call) for k in c.keywords if k.arg}
    return found
