"""Which transforms and functions draw random numbers at each call, as it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written

_TRANSFORMS = re.compile(
    r"Random\w+|ColorJitter|AutoAugment|RandAugment|TrivialAugment\w*|AugMix|ElasticTransform|GaussianNoise|GaussNoise"
    r"|HorizontalFlip|VerticalFlip|ShiftScaleRotate|CoarseDropout|HueSaturationValue|Cutout|GridDistortion|TimeMasking"
    r"|FrequencyMasking|AddGaussianNoise|Rand[A-Z]\w+"
)
"""Names of transforms of torchvision, albumentations, torchaudio, audiomentations and MONAI that draw."""
_LIBRARIES = re.compile(r"torchvision|albumentations|torchaudio|audiomentations|monai|kornia|torch_audiomentations")
_DRAWS = re.compile(
    r"(random|numpy\.random)\.(random|randint|uniform|gauss|normal|choice|choices|sample|shuffle|rand|randn|permutation"
    r"|beta|integers|randrange|random_sample|normalvariate)"
    r"|torch\.(rand|randn|randint|randperm|bernoulli|normal|rand_like|randn_like|randint_like|multinomial|poisson)"
)
_FIXED = frozenset({"generator", "manual_seed", "default_rng", "RandomState", "seed", "Generator"})
"""Words of a draw that is made the same each time."""
_CONTAINERS = frozenset({"Compose", "Sequential", "OneOf", "SomeOf", "ReplayCompose", "ImageOnly"})
_MOST_STEPS = 6


@dataclass(frozen=True)
class Random:
    """What draws: the name that a reader knows it by, and where it is written."""

    name: str
    at: str


def drawn(codes: Sequence[Syntax], code: Syntax, node: ast.AST | None, left: int = _MOST_STEPS) -> Random | None:
    """The random part of a transform: of a list of transforms, a function, a lambda, or an object that is called."""
    if node is None or left <= 0:
        return None
    if isinstance(node, (ast.List, ast.Tuple)):
        found = (drawn(codes, code, e, left - 1) for e in node.elts)
        return next((f for f in found if f is not None), None)
    if isinstance(node, ast.Lambda):
        return _in_body(codes, code, node, "lambda", left)
    if isinstance(node, ast.Call):
        return _called(codes, code, node, left)
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = code.assigned(node)
        if made is not None:
            return drawn(codes, code, made, left - 1)
        home = defined(codes, code, node)
        if home is not None and isinstance(home[1], (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _in_body(codes, home[0], home[1], home[1].name, left)
        if home is not None and isinstance(home[1], ast.expr):
            return drawn(codes, home[0], home[1], left - 1)
    return None


def _called(codes: Sequence[Syntax], code: Syntax, node: ast.Call, left: int) -> Random | None:
    name, library = last_name(node.func), code.qualified(node.func)
    if name in _CONTAINERS or name == "partial":
        inner = (drawn(codes, code, a, left - 1) for a in node.args)
        return next((f for f in inner if f is not None), None)
    if _TRANSFORMS.fullmatch(name) and _LIBRARIES.match(library):
        p = argument(node, 99, "p", "prob")
        never = isinstance(p, ast.Constant) and p.value in (0, 0.0)
        return None if never else Random(name, code.at(node))
    home = defined(codes, code, node.func)
    if home is None:
        return None
    where, what = home
    if isinstance(what, ast.ClassDef):
        for method in (m for m in what.body if isinstance(m, ast.FunctionDef) and m.name in ("__call__", "forward")):
            return _in_body(codes, where, method, what.name, left)
        return None
    if isinstance(what, (ast.FunctionDef, ast.AsyncFunctionDef)):
        returned = [n.value for n in below(what) if isinstance(n, ast.Return) and n.value is not None]
        if len(returned) == 1 and where.function(returned[0]) is what:
            return drawn(codes, where, returned[0], left - 1)
    return None


def _in_body(codes: Sequence[Syntax], code: Syntax, function: ast.AST, name: str, left: int) -> Random | None:
    """Whether a function's own body draws, with a source of randomness that nobody fixes."""
    if any(word in written(function) for word in _FIXED):
        return None
    own = set(parameters(function)) if isinstance(function, (ast.FunctionDef, ast.Lambda)) else set()
    for call in (n for n in below(function) if isinstance(n, ast.Call)):
        full = code.qualified(call.func)
        if _DRAWS.fullmatch(full):
            return Random(f"{name} ({written(call)[:40]})", code.at(call))
        if isinstance(call.func, ast.Name) and call.func.id not in own and left > 1:
            home = defined(codes, code, call.func)
            if home is not None and isinstance(home[1], ast.FunctionDef) and home[1] is not function:
                inner = _in_body(codes, home[0], home[1], name, left - 3)
                if inner is not None:
                    return inner
    return None


def defined(codes: Sequence[Syntax], code: Syntax, node: ast.AST) -> tuple[Syntax, ast.AST] | None:
    """The function, class or assigned value of the project that a name or `module.name` means."""
    if isinstance(node, ast.Name):
        home = _at_top(code, node.id)
        if home is not None:
            return code, home
        module, _, name = code.aliases.get(node.id, "").rpartition(".")
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module, name = code.aliases.get(node.value.id, ""), node.attr
    else:
        return None
    stem = module.rpartition(".")[2]
    for other in codes:
        if module and other.file.path.rpartition("/")[2] == f"{stem}.py":
            found = _at_top(other, name)
            if found is not None:
                return other, found
    return None


def _at_top(code: Syntax, name: str) -> ast.AST | None:
    for node in code.file.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return node.value
    return None
