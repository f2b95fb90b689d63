"""Image and mask are transformed by different random draws.

A random crop, flip or rotation draws its parameters at each call. Called once for the image and once for the mask (or
box, depth, flow), the two no longer lie on each other: half of the flips leave a mask on the wrong side. Joint
transforms (torchvision's v2, albumentations) or drawn parameters that are applied twice keep them together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import draws
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C195",
    name="labels-augmented-apart",
    title="Image and mask are augmented by different random draws",
    severity=Severity.HIGH,
    sees="One random transform called on the image and once more on its mask.",
    matters="Labels lie on the wrong pixels: the model learns blurred shapes.",
    alike=("a transform without randomness, such as resize and ToTensor",),
    confirm=("plot ten samples with their masks over them",),
)
_LABEL = re.compile(r"ma?sk|label|target|seg|annot|depth|flow|heatmap|gt|lbl|bbox|boxes", re.IGNORECASE)
_IMAGE = re.compile(r"im(age|g)?s?|x|rgb|frame|picture|photo|scan|slice_?|patch|sample", re.IGNORECASE)
_MOVES = re.compile(r"flip|rot90|rotate|crop|roll|affine|\[::-1\]|shift")
_SEEDED = ("manual_seed", "random.seed", "get_params", "set_state", "set_rng_state", "setstate", "seed(")


_RANDOM = re.compile(r"Random(Crop|ResizedCrop|HorizontalFlip|VerticalFlip|Rotation|Affine|Perspective)")


_OTHER_DRAWS = re.compile(r"\b(np|numpy)\.random|(?<!\.)\brandom\.\w+\(|from random import|default_rng|generator=self")
"""Draws that are not from torch's own generator."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every __getitem__ that transforms twice."""
    random = any("Random" in f.text and f.mentions(_RANDOM) for f in project.files)
    if any("albumentations" in f.text or "transforms.v2" in f.text for f in project.files):
        return
    if not random and not _own_random(project):
        return
    library = not any(f.mentions(_OTHER_DRAWS) for f in project.files if "Random" in f.text or "__call__" in f.text)
    for file in project.files:
        if "__getitem__" not in file.text:
            continue
        code = syntax(file)
        for function in code.of(ast.FunctionDef):
            if function.name == "__getitem__" and not any(s in written(function) for s in _SEEDED):
                yield from _judged(code, function, library)


def _own_random(project: Project) -> bool:
    """Whether a data set is given a transform that holds a class of the project's own, which moves pixels at random."""
    codes = [syntax(f) for f in project.files]
    names = {
        owner.name for code in codes for owner in code.of(ast.ClassDef) for m in owner.body
        if isinstance(m, ast.FunctionDef) and m.name in ("__call__", "forward")
        and re.search(r"\brand(om|int|n)?\b", written(m)) and _MOVES.search(written(m))
    }  # fmt: skip
    if not names:
        return False
    given = [k.value for code in codes for k in code.of(ast.keyword) if k.arg and re.search("transform|aug|tf", k.arg)]
    given += [a.value for code in codes for a in code.of(ast.Assign)
              if any(re.search("transform|aug", last_name(t)) for t in a.targets)]
    return any(isinstance(n, ast.Call) and last_name(n.func) in names for g in given for n in below(g))


def _judged(code: Syntax, function: ast.FunctionDef, library: bool) -> Iterator[Finding]:
    used: dict[str, ast.Call] = {}
    for call in (n for n in below(function) if isinstance(n, ast.Call)):
        callee = written(call.func)
        if not re.search(r"transform|augment|\btf\b|\baug\b", callee, re.IGNORECASE) or len(call.args) != 1:
            continue
        name = last_name(call.args[0])
        if not name or "target" in callee or "mask" in callee:
            continue
        if _LABEL.search(name) and callee in used:
            yield RULE.finding(
                f"{written(call)} at {code.at(call)} draws other random parameters than "
                f"{written(used[callee])} at line {used[callee].lineno}: image and {name} no longer lie on each other",
                code.place(call),
                code.file.path,
                bearing=Bearing.SIGN,
                measured={"kind": "apart"},
                patch=draws.drawn_alike(code, used[callee], call) if library else (),
            )
            return
        if _IMAGE.fullmatch(name):
            used[callee] = call
