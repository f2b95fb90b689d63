"""The value of the next state counts where the episode has ended, and only there.

A bootstrapped target is `reward + gamma * (1 - done) * value(next)`. With `done` itself as the factor, the next value
is added at the end of an episode, where there is none, and left out everywhere else: rewards are never handed back over
more than one step. The loss looks fine, since the targets are easy; the policy does not improve.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C234",
    name="terminal-mask-inverted",
    title="The next value counts only where the episode has ended",
    severity=Severity.CRITICAL,
    sees="A discounted next value times the flag of an episode's end, where its negation belongs.",
    matters="Rewards are never handed back over more than one step.",
    alike=("a stored mask that is 1 - done already",
           "an environment's `continue` or discount that is multiplied directly"),
    confirm=("print the target of a transition in the middle of an episode: it is the bare reward",),
)
_DONE = re.compile(
    r"^(is_|b_|batch_|next_)?(dones?|terminals?|terminated|terminates|ended|is_end|finished|game_over|episode_over)"
    r"(_batch|_b|_t|_flags?|_next)?$", re.IGNORECASE)  # fmt: skip
_DISCOUNT = re.compile(r"(^|_)(gamma|discount|discount_factor)$", re.IGNORECASE)
_PASSES = frozenset({
    "float", "to", "unsqueeze", "squeeze", "view", "reshape", "astype", "tensor", "as_tensor", "array", "asarray",
    "bool", "from_numpy", "stack", "float32", "FloatTensor", "cpu", "cuda", "int", "long", "device_put", "cat",
    "concatenate",
    "Tensor",
})  # fmt: skip
_MOST_STEPS = 8


def check(project: Project) -> Iterator[Finding]:
    """Look at every product with a discount factor."""
    if not any("gamma" in f.text or "discount" in f.text for f in project.files):
        return
    for file in project.files:
        code = syntax(file)
        for node in code.of(ast.BinOp):
            if not isinstance(node.op, ast.Mult) or (isinstance(code.parent(node), ast.BinOp) and \
                    isinstance(code.parent(node).op, ast.Mult)):  # type: ignore[union-attr]  # fmt: skip
                continue
            factors = list(_factors(node))
            if len(factors) < 3 or not any(_DISCOUNT.search(last_name(f)) for f in factors):
                continue
            for factor in factors:
                raw = None if _DISCOUNT.search(last_name(factor)) else _raw_flag(project, code, factor)
                if raw is not None:
                    yield _finding(code, node, factor, *raw)
                    break


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _raw_flag(project: Project, code: Syntax, node: ast.expr) -> tuple[SourceFile, ast.expr] | None:
    """Where a factor is the plain flag of an episode's end: the expression that is it, and its file."""
    for _ in range(_MOST_STEPS):
        if isinstance(node, ast.Call):
            if last_name(node.func) not in _PASSES:
                return None
            plain = isinstance(node.func, ast.Name) or bool(code.qualified(node.func))
            inner = node.args[0] if plain and node.args else getattr(node.func, "value", None)
            if not isinstance(inner, ast.expr):
                return None
            node = inner
        elif isinstance(node, ast.Subscript):
            stored = _stored(project, code, node)
            if stored is not None:
                return stored
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                return (code.file, node) if _DONE.match(node.slice.value) else None
            node = node.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            made = code.assigned(node)
            if made is None and code.bindings(node):
                return None  # assigned more than once
            returned = _unpacked(project, code, made) if isinstance(made, ast.Subscript) else None
            if returned is not None:
                code, node = returned
                continue
            if made is None or (isinstance(made, ast.Subscript) and isinstance(made.value, ast.Call)):
                named = _named_alike(project, last_name(node))
                return named or ((code.file, node) if _DONE.match(last_name(node)) else None)
            node = made
        else:
            return None
    return None


def _named_alike(project: Project, name: str) -> tuple[SourceFile, ast.expr] | None:
    """What is stored under the name of a value that is handed over: `self.mask[i] = float(done)`, `Step(mask=done)`."""
    found: list[tuple[SourceFile, ast.expr]] = []
    for file in project.files:
        if name not in file.text:
            continue
        code = syntax(file)
        found += [(file, value) for target, value in _written(code) if isinstance(target, ast.Subscript)
                  and isinstance(target.value, ast.Attribute) and target.value.attr == name]  # fmt: skip
        found += [(file, k.value) for call in code.of(ast.Call) for k in call.keywords if k.arg == name]
    flags = [(file, value) for file, value in found if _is_flag(value)]
    return flags[0] if flags and len(flags) == len(found) else None


def _written(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr]]:
    for assign in code.of(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                yield from zip(target.elts, assign.value.elts, strict=False)
            else:
                yield target, assign.value


def _is_flag(value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and last_name(value.func) in _PASSES and value.args:
        value = value.args[0]
    return isinstance(value, (ast.Name, ast.Attribute)) and bool(_DONE.match(last_name(value)))


def _unpacked(project: Project, code: Syntax, node: ast.Subscript) -> tuple[Syntax, ast.expr] | None:
    """The element of a tuple that a method of the project returns: `o, a, r, n, m = memory.sample(64)`."""
    call, place = node.value, node.slice
    if not isinstance(call, ast.Call) or not isinstance(place, ast.Constant) or not isinstance(place.value, int):
        return None
    name = last_name(call.func)
    found: list[tuple[Syntax, ast.expr]] = []
    for file in project.files:
        other = syntax(file)
        for function in other.of(ast.FunctionDef):
            if function.name != name:
                continue
            for back in below(function):
                value = back.value if isinstance(back, ast.Return) else None
                if isinstance(value, ast.Name):
                    value = other.assigned(value)
                if isinstance(value, (ast.Tuple, ast.List)) and place.value < len(value.elts):
                    found.append((other, value.elts[place.value]))
                elif isinstance(value, (ast.GeneratorExp, ast.ListComp)):
                    return None
    return found[0] if len(found) == 1 else None


def _stored(project: Project, code: Syntax, node: ast.Subscript) -> tuple[SourceFile, ast.expr] | None:
    """What is written into the array that is read here: `self.mask[i] = float(done)`."""
    if not isinstance(node.value, ast.Attribute):
        return None
    name = node.value.attr
    owner = code.owner(node)
    found = [value for target, value in _written(code)
             if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute)
             and target.value.attr == name and code.owner(target) is owner]  # fmt: skip
    return (code.file, found[0]) if len(found) == 1 and _is_flag(found[0]) else None


def _finding(code: Syntax, node: ast.expr, factor: ast.expr, file: SourceFile, raw: ast.expr) -> Finding:
    here = file is code.file and any(n is raw for n in below(factor))
    patch: tuple[Patch, ...] = ()
    change = Change(file, "count the next value where the episode goes on")
    if not here and isinstance(raw, ast.Call):
        patch = change.wrap(raw, "1.0 - ", "").patches()
    elif here and isinstance(factor, ast.Call) and last_name(factor.func) == "float":
        patch = change.wrap(factor, "(1.0 - ", ")").patches()
    where = "" if here else f", which is {written(raw)} from {file.path}:{raw.lineno}"
    function = code.function(node)
    place = code.place(node)
    return RULE.finding(
        f"{written(node)} at {code.at(node)}"
        + (f" in {function.name}" if isinstance(function, FunctionNode) else "")
        + f" multiplies the next value by {written(factor)}{where}: it counts only at the end of an episode",
        place,
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "inverted", "factor": written(factor)},
        patch=patch,
    )
