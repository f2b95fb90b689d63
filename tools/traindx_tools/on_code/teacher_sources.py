"""What all sources of a project say of a teacher by its name: who calls, averages, freezes or trains it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.on_code.names import is_optimizer
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written

_AVERAGING = ("update_ema", "ema_update", "update_moving_average", "momentum_update", "update_teacher")


@dataclass(frozen=True)
class Named:
    """What a teacher is called where it is asked and where it was made."""

    names: frozenset[str]

    def within(self, text: str) -> bool:
        """Whether a text has one of the names."""
        return any(n in text for n in self.names)

    def concerns(self, code: Syntax, call: ast.Call) -> bool:
        """Whether a call is on the teacher or gets it: by its name, or by a loop over it and others."""
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = [receiver, *call.args] if receiver is not None else [*call.args]
        for node in given:
            for part in below(node):
                if isinstance(part, (ast.Name, ast.Attribute)) and last_name(part) in self.names:
                    return True
                loops = [x for x in code.above(call) if isinstance(x, ast.For)]
                if isinstance(part, ast.Name) and any(
                        part.id in names_in(x.target) and self.within(written(x.iter)) for x in loops):  # fmt: skip
                    return True
        return False


Call = tuple[Syntax, ast.Call]


@dataclass(frozen=True, eq=False)
class Sources:
    """The sources of a project; what is asked of all of them is worked out once for teachers of one name."""

    codes: Sequence[Syntax]
    known: dict[tuple[str, Named], list[Call]] = field(default_factory=dict)
    averages: dict[Named, bool] = field(default_factory=dict)

    def mentions(self, called: Named, pattern: str) -> list[Call]:
        """Calls of a method of the teacher, or of a function that gets it, by a pattern of their names."""
        return self._once(f"/{pattern}", called, (n for n in self.calls if re.search(pattern, n)))

    def helpers(self, called: Named) -> list[Call]:
        """Calls that hand it to a function in which something is put into eval mode."""
        return self._once("helpers", called, self._into_eval_mode)

    @cached_property
    def _into_eval_mode(self) -> tuple[str, ...]:
        texts = (c for c in self.codes if ".eval(" in c.file.text)
        names = (f.name for code in texts for f in code.of(ast.FunctionDef) if ".eval(" in written(f))
        return tuple(dict.fromkeys(names))

    def _once(self, what: str, called: Named, names: Iterable[str]) -> list[Call]:
        found = self.known.get((what, called))
        if found is None:
            calls = (c for n in names for c in self.calls.get(n, ()))
            found = [(c, k) for c, k in calls if called.within(c.file.text) and called.concerns(c, k)]
            self.known[what, called] = found
        return found

    def averaged(self, called: Named) -> bool:
        """Whether parameters of something of this name are written in a loop, or loaded from another model."""
        if called not in self.averages:
            self.averages[called] = any(_averaged(code, called) for code in self.codes)
        return self.averages[called]

    def frozen(self, called: Named) -> bool:
        """Whether `requires_grad` is set for something of this name."""
        return any(in_function or not over or any(called.within(o) for o in over) for in_function, over in self._set)

    @cached_property
    def _set(self) -> frozenset[tuple[bool, tuple[str, ...]]]:
        """Where `requires_grad` is set: whether in a function, and what the loops around it run over."""
        found: set[tuple[bool, tuple[str, ...]]] = set()
        for code in (c for c in self.codes if "requires_grad" in c.file.text):
            for assign in code.of(ast.Assign):
                if any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in assign.targets):
                    over = tuple(written(x.iter) for x in code.above(assign) if isinstance(x, ast.For))
                    found.add((code.function(assign) is not None, over))
        return frozenset(found)

    @cached_property
    def optimizers(self) -> list[tuple[Syntax, ast.Call, str]]:
        """Every optimizer that is made, with what it is made over."""
        found: list[tuple[Syntax, ast.Call, str]] = []
        for code in self.codes:
            for call in code.of(ast.Call):
                full = code.qualified(call.func)
                if full and is_optimizer(full) and call.args:
                    found.append((code, call, written(code.origin(call.args[0]))))
        return found

    def trained(self, called: Named) -> list[Call]:
        """Optimizers over the parameters of something of this name."""
        found = self.known.get(("trained", called))
        if found is None:
            over = re.compile("|".join(rf"\b{re.escape(n)}\.(named_)?parameters\(\)" for n in sorted(called.names)))
            found = [(c, k) for c, k, text in self.optimizers if over.search(text)] if called.names else []
            self.known["trained", called] = found
        return found

    @cached_property
    def trained_whole(self) -> dict[int, Call]:
        """Optimizers over all parameters of the class that they are made in, by that class."""
        over = [(c, k) for c, k, text in self.optimizers if text == "self.parameters()"]
        return {id(c.owner(k)): (c, k) for c, k in reversed(over)}

    @cached_property
    def calls(self) -> dict[str, list[Call]]:
        """Calls by the last part of their name."""
        found: dict[str, list[Call]] = {}
        for code in self.codes:
            for call in code.of(ast.Call):
                found.setdefault(last_name(call.func), []).append((code, call))
        return found

    def functions(self, near: Syntax, name: str) -> list[ast.FunctionDef]:
        """The functions of a name, those of the same source alone where there are any."""
        found = self._functions.get(name, []) if name else []
        return [f for c, f in found if c is near] or [f for _, f in found]

    def classes(self, near: Syntax, name: str) -> list[ast.ClassDef]:
        """The classes of a name, those of the same source alone where there are any."""
        found = self._classes.get(name, []) if name else []
        return [o for c, o in found if c is near] or [o for _, o in found]

    @cached_property
    def _functions(self) -> dict[str, list[tuple[Syntax, ast.FunctionDef]]]:
        found: dict[str, list[tuple[Syntax, ast.FunctionDef]]] = {}
        for code in self.codes:
            for function in code.of(ast.FunctionDef):
                found.setdefault(function.name, []).append((code, function))
        return found

    @cached_property
    def _classes(self) -> dict[str, list[tuple[Syntax, ast.ClassDef]]]:
        found: dict[str, list[tuple[Syntax, ast.ClassDef]]] = {}
        for code in self.codes:
            for owner in code.of(ast.ClassDef):
                found.setdefault(owner.name, []).append((code, owner))
        return found


def _averaged(code: Syntax, called: Named) -> bool:
    if not called.within(code.file.text):
        return False
    zips = [written(c) for c in code.calls("zip")]
    if any(called.within(z) and re.search(r"param|state_dict|values", z) for z in zips):
        return True
    if any(called.concerns(code, c) for c in code.calls(*_AVERAGING)):
        return True
    copies = (c for c in code.calls("load_state_dict") if called.concerns(code, c) and c.args)
    return any(last_name(getattr(c.args[0], "func", None)) == "state_dict" for c in copies)
