"""What the attributes of a data set hold: an array, a tensor, a list, or whatever its maker passes."""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written

_NUMPY = frozenset({"load", "array", "asarray", "zeros", "ones", "empty", "concatenate", "stack", "vstack", "hstack",
                    "loadtxt", "genfromtxt", "normal", "randn", "rand", "uniform", "random", "fromfile", "full",
                    "standard_normal", "ascontiguousarray", "expand_dims", "memmap"})  # fmt: skip
_TORCH = frozenset({"tensor", "as_tensor", "from_numpy", "randn", "rand", "zeros", "ones", "stack", "cat", "concat",
                    "FloatTensor", "Tensor", "randint", "full"})  # fmt: skip
_ARRAY_METHODS = frozenset({"astype", "to_numpy", "numpy"})
_TENSOR_METHODS = frozenset({"float", "double", "half", "unsqueeze", "permute", "contiguous"})
_SAME_KIND = frozenset({"reshape", "transpose", "copy", "clone", "squeeze", "view", "swapaxes", "cpu", "detach", "to"})
_HANDED_ON = re.compile(r"base|data_?set|source|subset|inner|wrapped|^_?ds|hf|h5|hdf|file|store|reader|zarr|lmdb|memmap"
                        r"|mmap|backend|loader|archive|^_?df$|frame$|table", re.IGNORECASE)  # fmt: skip
"""Attributes that another data set or a file may be, which make each sample anew."""


def kinds_of(look: Lookup, code: Syntax, owner: ast.ClassDef) -> dict[str, str]:
    """What each attribute of self holds: "array", "tensor", "list", "given" (whatever is passed), "" where unknown."""
    found: dict[str, set[str]] = {}
    for node in (n for n in below(owner) if isinstance(n, (ast.Assign, ast.AnnAssign))):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is None:
            continue
        for target in targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for one, value in pairs:
                if isinstance(one, ast.Attribute) and written(one.value) == "self":
                    found.setdefault(one.attr, set()).add(_kind(look, code, value, 5))
    known = {name: next(iter(kinds)) if len(kinds) == 1 else "" for name, kinds in found.items()}
    return {n: k if k != "given" or not _HANDED_ON.search(n) else "" for n, k in known.items()}


def _kind(look: Lookup, code: Syntax, node: ast.expr, left: int) -> str:
    if left <= 0:
        return ""
    if isinstance(node, (ast.List, ast.ListComp)):
        return "list"
    if isinstance(node, ast.BinOp):
        return _kind(look, code, node.left, left - 1) or _kind(look, code, node.right, left - 1)
    if isinstance(node, (ast.Name, ast.Attribute)):
        step = look.one_step(code, node)
        if step is not None and step[1] is not node:
            return _kind(look, *step, left - 1)
        body = code.function(node)
        if isinstance(node, ast.Name) and body is not None and body.name == "__init__" and not code.bindings(node):
            return "given" if node.id in parameters(body) and not _HANDED_ON.search(node.id) else ""
        return "array" if isinstance(node, ast.Attribute) and node.attr == "values" else ""
    if isinstance(node, ast.Subscript):
        inner = code.origin(node.value)
        named = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        if named and isinstance(inner, ast.Call) and code.qualified(inner.func) == "numpy.load":
            return "array"  # of an .npz file
        return "" if named else {"array": "array", "tensor": "tensor"}.get(_kind(look, code, node.value, left - 1), "")
    return _kind_of_call(look, code, node, left) if isinstance(node, ast.Call) else ""


def _kind_of_call(look: Lookup, code: Syntax, node: ast.Call, left: int) -> str:
    name, full = last_name(node.func), code.qualified(node.func)
    if argument(node, 1, "mmap_mode") is not None or name == "memmap":
        return ""
    if full.startswith("numpy.") and name in _NUMPY:
        return "array"
    if full.startswith("torch.") and name in _TORCH:
        return "tensor"
    if name in ("list", "sorted") and isinstance(node.func, ast.Name):
        return "list"
    if isinstance(node.func, ast.Attribute) and not full:
        if name in _ARRAY_METHODS:
            return "array"
        if name in _TENSOR_METHODS:
            return "tensor"
        if name in _SAME_KIND:
            return _kind(look, code, node.func.value, left - 1)
    return ""
