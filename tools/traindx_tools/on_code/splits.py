"""Which part of a data set an expression is: what is trained on, or what is held out.

A split says it (`data[:k]` and `data[k:]`, the results of `train_test_split`), or else the name of the part or of the
index that takes it, in the languages that training code is written in.
"""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import Syntax, last_name

TRAIN, HELD = "train", "held"
_TRAIN = re.compile(
    r"(^|_)(x|y|df|data|ds)?(train\w*|trn|tr|lern\w*|lehr\w*|entrena\w*|apprentissage|addestr\w*|trein\w*|treino|learn)"
    r"(_|\d|$)|^[xy]tr", re.IGNORECASE)  # fmt: skip
_HELD = re.compile(
    r"(^|_)(x|y|df|data|ds)?(val|valid|vali|validation|validate|validier\w*|test|tst|te|ev|eval|dev|hold_?out|heldout"
    r"|held|pruef\w*|prüf\w*|kontroll\w*|prueba\w*|essai|verif\w*|prova|teste|oos|out_of_sample)(_|\d|df|x|y|$)"
    r"|^[xy](val|te|ev)", re.IGNORECASE)  # fmt: skip
_NO_PART = re.compile(r"transform|scaler|loader|loss|size|len|ratio|frac|flag|mode", re.IGNORECASE)
_METHODS = frozenset({
    "reshape", "to_numpy", "copy", "astype", "drop", "values", "ravel", "flatten", "numpy", "float", "iloc", "loc",
    "squeeze", "tolist", "apply", "map", "fillna", "str", "view", "detach", "cpu",
})  # fmt: skip
_DEEP = 6


def part_of(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> str | None:
    """TRAIN, HELD, or None where nothing says it."""
    if left <= 0:
        return None
    if isinstance(node, ast.Constant):
        return named(node.value) if isinstance(node.value, str) and len(node.value) < 24 else None
    if isinstance(node, ast.Subscript):
        return _of_subscript(look, code, node, left)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return part_of(look, code, node.func.value, left - 1)
        plain = last_name(node.func) in ("array", "asarray", "list", "tensor", "DataFrame", "float32", "as_tensor")
        return part_of(look, code, node.args[0], left - 1) if plain and node.args else None
    if isinstance(node, ast.Attribute) and node.attr in _METHODS:
        return part_of(look, code, node.value, left - 1)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    said = named(last_name(node))
    if said is not None:
        return said
    step = code.assigned(node)
    return part_of(look, code, step, left - 1) if step is not None and step is not node else None


def named(name: str) -> str | None:
    """What a name says."""
    if _NO_PART.search(name):
        return None
    train, held = bool(_TRAIN.search(name)), bool(_HELD.search(name))
    return None if train == held else TRAIN if train else HELD


def _of_subscript(look: Lookup, code: Syntax, node: ast.Subscript, left: int) -> str | None:
    taken, whole = node.slice, node.value
    if isinstance(whole, ast.Call) and last_name(whole.func) == "train_test_split" and isinstance(taken, ast.Constant):
        return HELD if isinstance(taken.value, int) and taken.value % 2 else TRAIN
    inner = part_of(look, code, whole, left - 1)
    if inner is not None:
        return inner
    rows = taken.elts[0] if isinstance(taken, ast.Tuple) and taken.elts else taken
    if isinstance(rows, ast.Slice) and rows.step is None:
        if rows.lower is not None and rows.upper is None:
            return HELD if _split_elsewhere(code, whole, rows.lower) else None
        if rows.upper is not None and rows.lower is None:
            return TRAIN if _split_elsewhere(code, whole, rows.upper) else None
    return named(last_name(rows)) if isinstance(rows, (ast.Name, ast.Attribute)) else None


def _split_elsewhere(code: Syntax, whole: ast.expr, at: ast.expr) -> bool:
    """Whether the other part, from or up to the same place, is taken as well."""
    text, place = ast.unparse(whole), ast.unparse(at)
    lower = upper = False
    for other in code.of(ast.Subscript):
        if ast.unparse(other.value) != text:
            continue
        rows = other.slice.elts[0] if isinstance(other.slice, ast.Tuple) and other.slice.elts else other.slice
        if isinstance(rows, ast.Slice):
            lower = lower or (rows.lower is not None and ast.unparse(rows.lower) == place and rows.upper is None)
            upper = upper or (rows.upper is not None and ast.unparse(rows.upper) == place and rows.lower is None)
    return lower and upper
