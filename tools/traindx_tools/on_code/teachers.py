"""Teachers of a distillation: networks that were trained before and whose outputs are targets for another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.on_code.bootstrapping import suspended
from traindx_tools.on_code.flows import places_of
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.teacher_sources import Call, Named, Sources

_NAMED = re.compile(r"(^|_)(teacher|tchr|tutor)(_|\d|$)|^teacher", re.IGNORECASE)
_OUTPUT = re.compile(r"logit|out|pred|feat|score|prob|soft|target|loss|hidden|label|temp|dim|config|name|path|ckpt|arg"
                     r"|weight|state|forc|ratio|cls|size|type", re.IGNORECASE)  # fmt: skip
_FACTORIES = re.compile(r"(resnet|densenet|mobilenet|efficientnet|regnet|shufflenet|inception|vit_|googlenet|resnext"
                        r"|mnasnet|convnext|alexnet|vgg)", re.IGNORECASE)  # fmt: skip
_MODES = re.compile(r"\b(nn\.)?(Dropout\w*|BatchNorm\w*|SyncBatchNorm|AlphaDropout|DropPath|MultiheadAttention|"
                    r"TransformerEncoderLayer|TransformerDecoderLayer)\(")  # fmt: skip
_CUTS = re.compile(r"\.detach\(|\.data\b|stop_gradient|\.numpy\(|\.item\(|no_grad|inference_mode")
_STEPS = re.compile(r"distil|kd(_|$)|train|loss|step|update")
_MOST_CALLS = 50
"""More calls than this are of several functions of one name."""
_MOVES = frozenset({"to", "cuda", "half"})


@dataclass(frozen=True)
class Teacher:
    """A call of a teacher in a training step, with how the teacher was made (None where that is not known)."""

    sources: Sources
    code: Syntax
    call: ast.Call
    made: ast.expr | None
    made_in: Syntax
    handed: str = ""
    """Its name where it is handed over to the function or class that asks it."""

    @cached_property
    def name(self) -> str:
        """The last part of its name: "teacher" of `self.teacher`."""
        return last_name(self.call.func)

    @cached_property
    def called(self) -> Named:
        """What it is called where it is asked and where it was made."""
        return Named(frozenset({self.name, self.handed} - {""}))

    def mentions(self, pattern: str) -> list[Call]:
        """Calls of a method of the teacher, or of a function that gets it, by a pattern of their names."""
        return self.sources.mentions(self.called, pattern)

    @cached_property
    def text_of_making(self) -> str:
        """The call that makes it, and the body of a function of the project that does."""
        if self.made is None:
            return ""
        maker = last_name(getattr(self.made, "func", None))
        return "\n".join([written(self.made), *map(written, self.sources.functions(self.made_in, maker))])

    @cached_property
    def averaged(self) -> bool:
        """Whether it is a moving average or copy of its student: its parameters are written in a loop."""
        return "deepcopy" in self.text_of_making or self.sources.averaged(self.called)

    @cached_property
    def loaded(self) -> bool:
        """Whether its weights were there before: loaded from a file, or pretrained."""
        if re.search(r"pretrained|weights=|torch\.load|load_state_dict|load_from_checkpoint|\bload\(",
                     self.text_of_making):  # fmt: skip
            return True
        return bool(self.mentions(r"^load_state_dict$|^load_checkpoint$|^load_weights$|^load_model$"))

    @cached_property
    def in_eval_mode_by(self) -> list[tuple[Syntax, ast.Call | None]]:
        """Where it is put into eval mode: a call on it, a function that gets it, or the code that makes it."""
        found: list[tuple[Syntax, ast.Call | None]] = list(self.mentions(r"^eval$"))
        found += [(c, k) for c, k in self.mentions(r"^train$") if k.args and written(k.args[0]) == "False"]
        if re.search(r"\.eval\(|\.train\(False|from_pretrained|load_from_checkpoint", self.text_of_making):
            found.append((self.made_in, None))
        return found + self.sources.helpers(self.called)

    @cached_property
    def frozen(self) -> bool:
        """Whether something keeps its parameters from gradients."""
        if re.search(r"requires_grad|freeze", self.text_of_making) or self.mentions(r"requires_grad|freeze|frozen"):
            return True
        return self.sources.frozen(self.called)

    @cached_property
    def cut(self) -> bool:
        """Whether its output has no graph in the step."""
        if suspended(self.code, self.call):
            return True
        for place in places_of(self.code, self.call):
            statement = self.code.statement(place)
            simple = isinstance(statement, (ast.Assign, ast.Return, ast.Expr))
            if _CUTS.search(written(statement if simple else place)):
                return True
        function = self.code.function(self.call)
        text = written(function) if function is not None else self.code.file.text
        later = (rf"\b{re.escape(n)}\b[^\n]*(\.detach\(|\.data\b)" for n in _targets(self.code, self.call))
        return any(re.search(pattern, text) for pattern in later) or self._tagged()

    def _tagged(self) -> bool:
        """Whether the teacher's own forward suspends gradients."""
        maker = last_name(getattr(self.made, "func", None))
        owners = self.sources.classes(self.made_in, maker)
        return any(re.search(r"no_grad|inference_mode", written(owner)) for owner in owners)

    @cached_property
    def mode_dependent(self) -> str:
        """The layers whose output depends on the mode, as far as the project says; "" where none is known."""
        maker = last_name(getattr(self.made, "func", None))
        qualified = self.made_in.qualified(self.made.func) if isinstance(self.made, ast.Call) else ""
        if qualified.startswith(("torchvision.models.", "timm.")):
            text = written(self.made)
            found = _FACTORIES.search(text)
            return found[0] if found else ""
        found = _MODES.search(self.text_of_making)
        if found:
            return found[2]
        makers = self.sources.functions(self.made_in, maker)
        inside = {last_name(c.func) for f in makers for c in below(f) if isinstance(c, ast.Call)}
        classes = [maker, *sorted(n for n in inside if n[:1].isupper())]
        return next((layer for name in classes if (layer := self._in_class(name, 4))), "")

    def _in_class(self, name: str, left: int) -> str:
        for owner in self.sources.classes(self.made_in, name) if left > 0 else ():
            text = written(owner)
            found = _MODES.search(text)
            if found and not re.search(rf"{found[2]}\(0(\.0)?\)|{found[2]}\(p=0(\.0)?\)", text):
                return found[2]
            for call in (n for n in below(owner) if isinstance(n, ast.Call)):
                inner = last_name(call.func)
                if inner[:1].isupper() and inner != name and (deeper := self._in_class(inner, left - 1)):
                    return deeper
        return ""

    @cached_property
    def trained_by(self) -> Call | None:
        """An optimizer that holds its parameters."""
        by_name = self.sources.trained(self.called)
        held = isinstance(self.call.func, ast.Attribute) and written(self.call.func.value) == "self"
        owner = self.code.owner(self.call) if held else None
        return by_name[0] if by_name else self.sources.trained_whole.get(id(owner)) if owner is not None else None


def _targets(code: Syntax, call: ast.Call) -> set[str]:
    statement = code.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {n.id for t in targets for n in below(t) if isinstance(n, ast.Name)}


def teachers(codes: Sequence[Syntax]) -> Iterator[Teacher]:
    """Every call of a teacher, by its name, in a function that trains; each teacher once in a function."""
    seen: set[tuple[int, str]] = set()
    sources = Sources(codes)
    for code in codes:
        if "teacher" not in code.file.text.lower() and "tutor" not in code.file.text and "tchr" not in code.file.text:
            continue
        for call in code.of(ast.Call):
            name = last_name(call.func)
            key = (id(code.scope(call)), name)
            if key in seen or not _NAMED.search(name) or _OUTPUT.search(name) or not call.args:
                continue
            if not isinstance(call.func, (ast.Name, ast.Attribute)) or name[:1].isupper() or not _trains(code, call):
                continue
            made, made_in, handed = _maker(sources, code, call.func)
            if isinstance(call.func, ast.Name) and made is None and call.func.id not in _given(code, call):
                continue
            seen.add(key)
            yield Teacher(sources, code, call, made, made_in, handed)


def _given(code: Syntax, call: ast.Call) -> set[str]:
    function = code.function(call)
    return set(parameters(function)) if isinstance(function, FunctionNode) else set()


def _trains(code: Syntax, call: ast.Call) -> bool:
    """Whether the function sends a loss backward, or is a training step, or the forward of a class that has one."""
    function = code.function(call)
    owner = code.owner(call)
    if function is not None and (_STEPS.search(function.name) or (
            function.name == "forward" and owner is not None and "student" in written(owner))):  # fmt: skip
        return True
    scope = code.scope(call)
    return any(code.scope(c) is scope for c in code.calls("backward", "manual_backward"))


_Made = tuple[ast.expr | None, Syntax, str]


def _maker(sources: Sources, code: Syntax, callee: ast.expr) -> _Made:
    """The expression that made what is called: the one binding, or what the one caller hands over."""
    values = [v for _, v in code.bindings(callee) if not _same(v, callee)]
    if not values:
        return _passed(sources, code, callee) if isinstance(callee, ast.Name) else (None, code, "")
    if len(values) > 1:
        return None, code, ""
    return _passed(sources, code, values[0]) if isinstance(values[0], ast.Name) else (peeled(values[0]), code, "")


def _same(value: ast.expr, callee: ast.expr) -> bool:
    return written(getattr(getattr(value, "func", None), "value", None)) == written(callee)


def peeled(node: ast.expr | None) -> ast.expr | None:
    """`Net().to(device)` without what is done to it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        node = node.func.value
    return node


def _passed(sources: Sources, code: Syntax, name: ast.Name) -> _Made:
    """What the one caller of a function, or maker of a class, gives for a parameter."""
    function = code.function(name)
    if not isinstance(function, FunctionNode) or name.id not in parameters(function):
        return None, code, ""
    owner = code.owner(function)
    called = owner.name if owner is not None and function.name == "__init__" else function.name
    position = list(parameters(function)).index(name.id) - (1 if owner is not None else 0)
    near = [(code, call) for call in code.calls(called)] or sources.calls.get(called, [])
    if len(near) > _MOST_CALLS:
        return None, code, ""
    calls = [(argument(call, position, name.id), other) for other, call in near]
    found = [(given, other) for given, other in calls if given is not None]
    if len(found) != 1:
        return None, code, ""
    given, other = found[0]
    made = other.bindings(given) if isinstance(given, (ast.Name, ast.Attribute)) else []
    values = [given] if isinstance(given, ast.Call) else [v for _, v in made if not _same(v, given)]
    return (peeled(values[0]), other, last_name(given)) if len(values) == 1 else (None, other, last_name(given))
