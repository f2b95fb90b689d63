"""Inputs are scaled twice, or with statistics of another scale.

ToTensor turns pixels of 0..255 into 0..1, and so does the image processor of transformers (`do_rescale`). A further
division by 255 leaves values below 0.004; means such as 123.675 subtracted from values in 0..1 leave a constant.
Standardising twice with fixed statistics moves the inputs away from what a pretrained model knows.
Training goes on, at a fraction of the pace, and pretrained features are worth little.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C243",
    name="scaled-twice",
    title="Inputs are scaled twice or with statistics of another scale",
    severity=Severity.HIGH,
    sees="ToTensor and a division by 255 of the same images, or a Normalize whose mean is of another scale.",
    matters="The inputs are nearly constant or far outside the range that the model is made for.",
    alike=("PILToTensor or read_image, which leave pixels in 0..255", "a Normalize that undoes an earlier one to plot",
           "ToTensor of an array of floats, which scales nothing"),
    confirm=("print(x.min(), x.max(), x.mean(), x.std()) of a batch as the model gets it",),
)
_SCALES = frozenset({"ToTensor"})
_UNKNOWN = frozenset({"Lambda", "ToDtype", "ConvertImageDtype", "PILToTensor", "ToImage", "ToTensorV2", "ToFloat"})
_RAW = ("PILToTensor", "read_image", "imread", "frombuffer", "pil_to_tensor")
"""What gives images in 0..255."""
_PIXEL_MEAN = 2.0
"""A mean above it is one of pixels in 0..255: those of 0..1 lie below 1."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every list of transforms, and at what is divided by 255 beside it."""
    for file in project.files:
        if not any(word in file.text for word in ("ToTensor", "Normalize", "rocessor", "StandardScaler")):
            continue
        code = syntax(file)
        lists = [steps for call in code.calls("Compose") if (steps := _steps(code, call))]
        for steps in lists:
            yield from _in_list(code, steps)
        yield from _albumentations(code)
        yield from _divided_after(code, lists)
        yield from _divided_before_processor(code)
        yield from _standardised_twice(code)


def _steps(code: Syntax, call: ast.Call) -> list[ast.expr]:
    given = argument(call, 0, "transforms")
    given = code.origin(given) if given is not None else None
    return list(given.elts) if isinstance(given, (ast.List, ast.Tuple)) else []


def _in_list(code: Syntax, steps: list[ast.expr]) -> Iterator[Finding]:
    """The order of steps in one Compose: where pixels become 0..1, and which statistics follow."""
    scaled: ast.expr | None = None
    normalised: ast.Call | None = None
    unclear = False
    for step in steps:
        if not isinstance(step, ast.Call):
            unclear = True
            continue
        name = last_name(step.func)
        if name in _SCALES and "albumentations" not in code.qualified(step.func):
            scaled = step
        elif name == "Lambda" and scaled is not None and (division := _by_255(step)) is not None:
            yield _finding(
                code, division, f"{written(division)} stands after ToTensor, which divides by 255 already", "pixels",
                _step_out(code, steps, step),
            )  # fmt: skip
            return
        elif name in _UNKNOWN:
            unclear = True
        elif name == "Normalize" and "albumentations" not in code.qualified(step.func):
            mean = _largest(code, argument(step, 0, "mean"))
            if scaled is not None and mean is not None and mean > _PIXEL_MEAN and not unclear:
                why = f"{written(step)} takes means of pixels in 0..255 from what ToTensor has brought to 0..1"
                yield _finding(code, step, why, "statistics", _divide_arguments(code, step))
            if normalised is not None and not unclear and not _undoes(code, normalised, step):
                why = f"{written(step)} normalises what {written(normalised)} (line {normalised.lineno}) has normalised"
                patch = _step_out(code, steps, step) if written(step) == written(normalised) else ()
                yield _finding(code, step, why, "twice", patch)
            normalised = step


def _albumentations(code: Syntax) -> Iterator[Finding]:
    """Its Normalize divides by max_pixel_value, 255 unless said otherwise, and takes statistics of 0..1."""
    for call in code.calls("Normalize"):
        mean = _largest(code, argument(call, 0, "mean"))
        if code.qualified(call.func).startswith("albumentations") and argument(call, 2, "max_pixel_value") is None \
                and mean is not None and mean > _PIXEL_MEAN:  # fmt: skip
            why = f"{written(call)} takes means of pixels in 0..255 where those of 0..1 belong (max_pixel_value is 255)"
            yield _finding(code, call, why, "statistics", _divide_arguments(code, call))


def _by_255(node: ast.AST) -> ast.BinOp | None:
    """x / 255 somewhere below a node."""
    for n in below(node):
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and isinstance(n.right, ast.Constant) and \
                n.right.value in (255, 256):  # fmt: skip
            return n
    return None


def _largest(code: Syntax, node: ast.expr | None) -> float | None:
    node = code.origin(node) if node is not None else None
    values = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node] if node is not None else []
    found = [code.number(v) for v in values]
    known = [v for v in found if v is not None]
    return max(known) if known and len(known) == len(found) else None


def _undoes(code: Syntax, first: ast.Call, second: ast.Call) -> bool:
    """Whether the second one may be made to take the first one back: a negative mean, or a deviation above 1."""
    mean, deviation = _largest(code, argument(second, 0, "mean")), _largest(code, argument(second, 1, "std"))
    return mean is None or deviation is None or mean < 0 or deviation > 1 or mean == 0


def _divided_after(code: Syntax, lists: list[list[ast.expr]]) -> Iterator[Finding]:
    """Batches of a loader whose data set was made with ToTensor, divided by 255 in the loop or the step."""
    scaling = [s for s in lists if any(isinstance(t, ast.Call) and last_name(t.func) in _SCALES for t in s)]
    other = [s for s in lists if s not in scaling]
    if not scaling and not _bare_to_tensor(code):
        return
    if other or any(word in code.file.text for word in _RAW):
        return
    sure = Bearing.CAUSE if "transform=" in code.file.text else Bearing.SIGN
    for node in code.of(ast.BinOp):
        if _by_255(node) is not node or not isinstance(node.left, (ast.Name, ast.Call)):
            continue
        name = _bare(node.left)
        if name is not None and _from_batch(code, node, name):
            why = f"{written(node)} divides a batch whose data set applies ToTensor, which divides by 255 already"
            patch = Change(code.file, "leave the scale that ToTensor gives").unwrap(node, node.left).patches()
            yield _finding(code, node, why, "pixels", patch, sure)
    for changed in code.of(ast.AugAssign):
        number = changed.value.value if isinstance(changed.value, ast.Constant) else None
        if isinstance(changed.op, ast.Div) and number in (255, 256) and isinstance(changed.target, ast.Name) and \
                _from_batch(code, changed, changed.target.id):  # fmt: skip
            why = f"{written(changed)} divides a batch whose data set applies ToTensor, which divides by 255 already"
            patch = Change(code.file, "leave the scale that ToTensor gives").delete(changed).patches()
            yield _finding(code, changed, why, "pixels", patch, sure)


def _bare_to_tensor(code: Syntax) -> bool:
    """transform=ToTensor() given to a data set, without a list."""
    return any(isinstance(code.parent(call), ast.keyword) for call in code.calls("ToTensor"))


def _bare(node: ast.expr) -> str | None:
    """x of x, x.float(), x.to(device)."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
            node.func.attr in ("float", "to", "cuda", "type", "half"):  # fmt: skip
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else None


def _from_batch(code: Syntax, node: ast.AST, name: str) -> bool:
    """Whether a name is what a loop over a loader, or a step of Lightning, unpacks from a batch as its first part."""
    for loop in code.loops(node):
        if isinstance(loop, ast.For) and "load" in written(loop.iter).lower():
            target = loop.target
            numbered = isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "enumerate"
            if isinstance(target, ast.Tuple) and numbered and len(target.elts) == 2:
                target = target.elts[1]
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            if isinstance(first, ast.Name) and first.id == name:
                return True
    function = code.function(node)
    if not isinstance(function, FunctionNode) or function.name not in ("training_step", "validation_step"):
        return False
    return any(isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Tuple) and written(s.value) == "batch"
               and written(s.targets[0].elts[0]) == name for s in below(function))  # fmt: skip


def _divided_before_processor(code: Syntax) -> Iterator[Finding]:
    """An image processor of transformers, which rescales by default, fed with what was divided by 255."""
    made = [c for c in code.calls("from_pretrained") if isinstance(c.func, ast.Attribute)
            and last_name(c.func.value).endswith(("ImageProcessor", "ImageProcessorFast"))]  # fmt: skip
    if "do_rescale" in code.file.text:
        return
    for call in code.of(ast.Call):
        if (not call.args and argument(call, 99, "images") is None) or code.origin(call.func) not in made:
            continue
        images = argument(call, 0, "images")
        source = code.origin(images) if images is not None else None
        division = _by_255(source) if source is not None else None
        if division is not None:
            why = f"{written(images)} was divided by 255 (line {division.lineno}); {written(call.func)} does it again"
            change = Change(code.file, "say that the images are scaled").pass_argument(call, "do_rescale", "False")
            yield _finding(code, call, why, "pixels", change.patches())


def _standardised_twice(code: Syntax) -> Iterator[Finding]:
    """fit_transform of what fit_transform of a StandardScaler gave."""
    for call in code.calls("fit_transform"):
        if not call.args or not _scaler(code, call):
            continue
        source = code.assigned(call.args[0])
        if isinstance(source, ast.Call) and source is not call and last_name(source.func) == "fit_transform" and \
                _scaler(code, source):  # fmt: skip
            change = Change(code.file, "standardise once").replace(call, written(call.args[0]))
            why = f"{written(call)} standardises what line {source.lineno} has standardised"
            yield _finding(code, call, why, "twice", change.patches())


def _scaler(code: Syntax, call: ast.Call) -> bool:
    made = code.origin(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return isinstance(made, ast.Call) and last_name(made.func) == "StandardScaler"


def _step_out(code: Syntax, steps: list[ast.expr], step: ast.expr) -> tuple[Patch, ...]:
    """A step taken out of a list, with the comma before it."""
    before = steps[steps.index(step) - 1]
    gap = ast.copy_location(ast.Pass(), step)
    gap.lineno, gap.col_offset = before.end_lineno or 0, before.end_col_offset or 0
    gap.end_lineno, gap.end_col_offset = step.end_lineno or 0, step.end_col_offset or 0
    return Change(code.file, "scale once").replace(gap, "").patches()


def _divide_arguments(code: Syntax, step: ast.Call) -> tuple[Patch, ...]:
    """The statistics of pixels brought to 0..1."""
    change = Change(code.file, "statistics of values in 0..1")
    for position, name in enumerate(("mean", "std")):
        given = argument(step, position, name)
        if not isinstance(given, (ast.List, ast.Tuple)):
            return ()
        for part in given.elts:
            change.replace(part, f"{written(part)} / 255")
    return change.patches()


def _finding(
    code: Syntax, node: ast.AST, why: str, kind: str, patch: tuple[Patch, ...], bearing: Bearing = Bearing.CAUSE
) -> Finding:
    return RULE.finding(
        f"{why} at {code.at(node)}",
        code.place(node),
        code.file.path,
        bearing=bearing,
        measured={"kind": kind},
        patch=patch,
    )
