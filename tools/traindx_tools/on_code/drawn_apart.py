"""A random transform that is called once for an image and once for its mask, and draws anew each time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

PLANE = re.compile(r"mask|seg|depth|flow|heatmap|box|contour|keypoint|annot", re.IGNORECASE)
"""Names of labels that have places, which move with the image."""
GEOMETRIC = {
    "flip": "flip", "fliplr": "flip", "flipud": "flip", "hflip": "flip", "vflip": "flip", "rot90": "rotation",
    "rotate": "rotation", "roll": "roll", "affine": "affine", "warp_affine": "affine", "warpAffine": "affine",
    "transpose": "transposition", "swapaxes": "transposition", "crop": "crop", "center_crop": "crop",
    "resized_crop": "crop", "elastic_transform": "elastic", "perspective": "perspective", "grid_sample": "warp",
}  # fmt: skip
"""Functions that move what is seen, and in which way."""
_RANDOM_LAYERS = re.compile(r"Random(Horizontal|Vertical)Flip|RandomRotation|RandomAffine|Random(Resized)?Crop|"
                            r"RandomPerspective|ElasticTransform|RandomZoomOut")  # fmt: skip
_DRAWS = re.compile(r"(^|\.)(random|rand|randint|uniform|choice|randrange|bernoulli|integers|get_params|coin)$")
_SEEDED = re.compile(r"seed|rng_state|getstate|setstate|get_state|set_state|fork_rng|replay|Generator")
"""The state of the generator is put back between the two, or the draw is handed over."""
_PREPARES = ("__getitem__", "augment", "ransform", "ataset")
"""Where samples are made."""
_OTHER = re.compile(r"(^|_)(x|img|image|pixels|frame|photo|rgb|scan|slice|tile|picture|input|data)s?\d?$", re.I)
_FIXED = ("transposition", "warp")
"""Kinds that networks use as well."""
_DEEP = 3


@dataclass(frozen=True)
class DrawnApart:
    """Two calls of one random geometric transform, and what in it draws."""

    code: Syntax
    image: ast.Call
    label: ast.Call
    what: str


def drawn_apart(look: Lookup) -> Iterator[DrawnApart]:
    """Every pair of calls in one function."""
    for code in look.codes:
        if not any(word in code.file.text for word in _PREPARES):
            continue
        groups: dict[tuple[int, str], list[ast.Call]] = {}
        for call in code.of(ast.Call):
            if _of_one(call) and isinstance(call.func, (ast.Name, ast.Attribute)):
                groups.setdefault((id(code.function(call)), written(call.func)), []).append(call)
        for (_, callee), calls in groups.items():
            labels = [c for c in calls if PLANE.search(_name(c))] if len(calls) > 1 else []
            images = [c for c in calls if _OTHER.search(_name(c)) and not PLANE.search(_name(c))] if labels else []
            if images and not PLANE.search(callee):
                found = next((_pair(look, code, i, m) for i in images for m in labels), None)
                if found is not None:
                    yield found


def _pair(look: Lookup, code: Syntax, image: ast.Call, label: ast.Call) -> DrawnApart | None:
    function = code.function(label)
    if function is None or code.apart(image, label) or _SEEDED.search(written(function)):
        return None
    what = _draws(look, code, label.func)
    return DrawnApart(code, image, label, what) if what else None


def _of_one(call: ast.Call) -> bool:
    return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)


def _name(call: ast.Call) -> str:
    """The name of what is transformed: of `mask`, `self.masks[i]`, `Image.fromarray(mask)`."""
    node: ast.expr = call.args[0]
    for _ in range(_DEEP):
        if isinstance(node, ast.Subscript):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(key, str):
                return key
            node = node.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
    return last_name(node)


def _draws(look: Lookup, code: Syntax, func: ast.expr, left: int = _DEEP) -> str:
    """What a callable draws to move things in space; "" where that is not certain."""
    of, made = look.origin(code, func) if isinstance(func, (ast.Name, ast.Attribute)) else (code, func)
    if isinstance(made, ast.IfExp):
        return (_draws(look, of, made.body, left - 1) or _draws(look, of, made.orelse, left - 1)) if left > 0 else ""
    if isinstance(made, (ast.Name, ast.Attribute)):
        body = look.function(of, made)
        return _moves(body[1]) if body is not None else ""
    if not isinstance(made, ast.Call) or left <= 0:
        return ""
    name = last_name(made.func)
    if _RANDOM_LAYERS.fullmatch(name):
        return name
    if name in ("Compose", "Sequential"):
        listed = made.args[0].elts if made.args and isinstance(made.args[0], (ast.List, ast.Tuple)) else made.args
        return next((found for part in listed if (found := _draws(look, of, part, left - 1))), "")
    for holder, method in (*look.functions.get("__call__", ()), *look.functions.get("forward", ())):
        owner = holder.parent(method)
        if isinstance(owner, ast.ClassDef) and owner.name == name:
            return _moves(method)
    return ""


def _moves(body: ast.AST) -> str:
    """A function that draws and flips, rotates or crops: where its own parameter decides, the caller may draw."""
    calls = [n for n in below(body) if isinstance(n, ast.Call)]
    drawn = next((c for c in calls if _DRAWS.search(written(c.func))), None)
    moved = next((c for c in calls if GEOMETRIC.get(last_name(c.func), "warp") not in _FIXED), None)
    return f"{written(drawn)[:60]} in {getattr(body, 'name', 'it')}" if drawn is not None and moved is not None else ""
