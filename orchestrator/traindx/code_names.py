"""The names that a person's code gives to the things of a training: which one is the model, the loss, the loader.

Read from the syntax tree, by what is called and with what; nothing is run. A check such as `print(labels.min())` is
only of use where `labels` exists, and under the name that it has there.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_OPTIMIZER = re.compile(r"(SGD|AdamW?|Adam\w+|RMSprop|Adagrad|Adadelta|NAdam|RAdam|LBFGS|Lion|Adafactor|Lamb|Muon)")
_SCHEDULER = re.compile(r"\w*LR|\w*Scheduler|\w*WarmRestarts|get_\w*schedule\w*")
_LOADER = re.compile(r"\w*DataLoader")
_LOSS = re.compile(r"cross_entropy|\w*_loss|criterion|loss_fn|loss_func|kl_div|binary_cross_entropy\w*")

OUTPUTS = ("logits", "output", "pred")
TARGETS = ("labels", "target", "y")


@dataclass(frozen=True)
class CodeNames:
    """What is known of the names in a workspace's code.

    `names`: every variable, function, class and parameter. `attributes`: every attribute and key that is written there.
    `aliases`: imported names as they are used (`np`), with the module (`numpy`). `roles`: the field's word for a thing
    ("model") and the name that the code has for it ("net"), where there is exactly one.
    """

    names: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def modules(self) -> frozenset[str]:
        """Top-level packages that the code imports."""
        return frozenset(m.split(".")[0] for m in self.aliases.values())

    def name_for(self, word: str) -> str | None:
        """The code's name for what a check calls `word`; None where it has none.

        One letter says nothing by itself: `x` in a program may be anything, unless its role is known.
        """
        if word in self.roles:
            return self.roles[word]
        return word if word in self.names and len(word) > 1 else None


NO_NAMES = CodeNames()


def read_names(trees: Iterable[ast.AST]) -> CodeNames:
    """The names of several parsed files together."""
    names, attributes, aliases = set[str](), set[str](), dict[str, str]()
    found: dict[str, list[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            names.update(_bound(node))
            attributes.update(_keys(node))
            aliases.update(_imported(node))
            for role, name in _roles(node):
                found.setdefault(role, []).append(name)
    roles = {role: next(iter(set(n))) for role, n in found.items() if len(set(n)) == 1}
    return CodeNames(frozenset(names), frozenset(attributes), aliases, roles)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg


def _keys(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
        yield node.value


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for name in node.names:
            yield (name.asname, name.name) if name.asname else (name.name.split(".")[0], name.name)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for name in node.names:
            yield name.asname or name.name, f"{node.module}.{name.name}"


def _roles(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(word, name in the code) for what one statement or call says."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
        yield from _assigned(node.targets[0], node.value)
    elif isinstance(node, ast.Call):
        yield from _called(node)


def _assigned(target: ast.expr, call: ast.Call) -> Iterator[tuple[str, str]]:
    name, made = _text(target), _function(call)
    if not name:
        return
    for role, pattern in (("optimizer", _OPTIMIZER), ("scheduler", _SCHEDULER), ("loader", _LOADER)):
        if pattern.fullmatch(made):
            yield role, name
    if made == "GradScaler":
        yield "scaler", name
    if made == "from_pretrained" and "Tokenizer" in ast.unparse(call.func):
        yield "tokenizer", name


def _called(call: ast.Call) -> Iterator[tuple[str, str]]:
    made, args = _function(call), call.args
    if _OPTIMIZER.fullmatch(made) and args:
        for given in ast.walk(args[0]):
            if isinstance(given, ast.Call) and _function(given) in ("parameters", "named_parameters"):
                yield from _of("model", _whole(getattr(given.func, "value", None), given is args[0]))
    elif made == "named_parameters" and isinstance(call.func, ast.Attribute):
        yield from _of("model", call.func.value)
    elif made == "backward" and isinstance(call.func, ast.Attribute):
        yield from _of("loss", call.func.value)
    elif _LOADER.fullmatch(made) and args:
        yield from _of("dataset", args[0])
    elif _LOSS.fullmatch(made) and len(args) >= 2:
        for role in OUTPUTS:
            yield from _of(role, args[0])
        for role in TARGETS:
            yield from _of(role, args[1])


def _whole(node: ast.AST | None, alone: bool) -> ast.AST | None:
    """The model that a part belongs to: `net` of `net.head`, `self.net` of `self.net.head`; alone it is the model."""
    while not alone and isinstance(node, ast.Attribute) and _text(node.value) != "self":
        node = node.value
    return node


def _of(role: str, node: ast.AST | None) -> Iterator[tuple[str, str]]:
    name = _text(node)
    if name:
        yield role, name


def _function(call: ast.Call) -> str:
    target = call.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _text(node: ast.AST | None) -> str:
    """A name or a path of attributes (`self.net`), "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _text(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


_OWN_PARTS = frozenset({"head", "embedding", "encoder", "codebook"})
"""Attributes that a class of the person's own may have or not; everything else in a check belongs to a library."""
_LIBRARY_KEYS = frozenset({"params", "lr", "exp_avg_sq", "state", "optimizer"})


def in_these_names(snippet: str, known: CodeNames) -> str:
    """A line of Python with the code's own names in it; "" where it speaks of what the code has no name for."""
    try:
        tree = ast.parse(snippet)
    except SyntaxError:
        return ""
    own = {n for node in ast.walk(tree) for n in (*_bound(node), *(k for k, _ in _imported(node)))}
    changes: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in own and not hasattr(builtins, node.id):
            name = node.id if node.id in known.aliases else known.name_for(node.id)
            if name is None:
                return ""
            changes[node.id] = name
        if isinstance(node, ast.Attribute) and node.attr in _OWN_PARTS and node.attr not in known.attributes:
            return ""
        if isinstance(node, ast.Subscript) and not _known_key(node, known):
            return ""
    return _renamed(snippet, tree, {k: v for k, v in changes.items() if k != v})


def _known_key(node: ast.Subscript, known: CodeNames) -> bool:
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return not isinstance(key, str) or key in _LIBRARY_KEYS or key in known.attributes


def _renamed(snippet: str, tree: ast.AST, changes: Mapping[str, str]) -> str:
    """The text with some names replaced, everything else as it was written."""
    places = sorted(((n.lineno, n.col_offset, n.id) for n in ast.walk(tree)
                     if isinstance(n, ast.Name) and n.id in changes), reverse=True)
    lines = snippet.split("\n")
    for line, column, name in places:
        text = lines[line - 1].encode()
        lines[line - 1] = (text[:column] + changes[name].encode() + text[column + len(name):]).decode()
    return "\n".join(lines)
