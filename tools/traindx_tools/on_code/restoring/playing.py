"""Plays a program in the order of its text, from the top of each file, with the functions that it calls.

What a file gave is marked until somebody reads it. A read that only prints is none. Where a marked name or attribute is
written over, or the object that took a state is another one, under no condition and in no loop that the load is not
under, the mark is lost; it counts where what stands there instead is read afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from traindx_tools.on_code.lookup import Body, Lookup
from traindx_tools.on_code.restoring.held import (
    CONVERTS,
    QUIET,
    Frame,
    Held,
    Loss,
    Mark,
    is_own_source,
    is_source,
    key_of,
    keys_written,
    kind_of,
    puts_in,
)
from traindx_tools.on_code.source import children
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters

MOST_CALLS, MOST_STATEMENTS, DEEPEST = 400, 20_000, 12
_Place = tuple[int, str]


class Player:
    """One program. `losses`: what was lost, in order."""

    def __init__(self, look: Lookup) -> None:
        self.look = look
        self.losses: list[Loss] = []
        self.pending: dict[_Place, Mark] = {}
        self.written = keys_written(look)
        self.files: dict[int, Frame] = {id(code): Frame() for code in look.codes}
        self.waiting: list[Loss] = []
        """What was emptied by the call that is being played."""
        self.restored: set[str] = set()
        """The kinds of objects into which a state of a file was put."""
        self.conditions: tuple[tuple[int, int], ...] = ()
        self.loops: tuple[int, ...] = ()
        self.quiet = 0
        self._calls, self._statements = MOST_CALLS, MOST_STATEMENTS
        self._active: list[Body] = []
        self._calls_around: list[tuple[Syntax, ast.AST]] = []
        self._keep: list[object] = []

    def play(self) -> list[Loss]:
        """Every file from its top."""
        for code in self.look.codes:
            self.block(code, self.files[id(code)], code.file.tree.body)
        return [loss for loss in self.losses if loss.sure and loss.old.uses <= loss.uses]

    # ---- statements

    def block(self, code: Syntax, frame: Frame, body: Sequence[ast.stmt]) -> bool:
        """Statements in order; True where they end the function or turn."""
        return any(self._statement(code, frame, one) for one in body)

    def _statement(self, code: Syntax, frame: Frame, one: ast.stmt) -> bool:
        self.losses += self.waiting  # the call that emptied it is no reading
        self.waiting = []
        self._statements -= 1
        if self._statements < 0 or isinstance(one, (*FunctionNode, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return self._statements < 0
        if isinstance(one, (ast.Global, ast.Nonlocal)):
            frame.shared |= set(one.names)
        elif isinstance(one, ast.If):
            return self._branch(code, frame, one)
        elif isinstance(one, (ast.For, ast.AsyncFor, ast.While)):
            self._loop(code, frame, one)
        elif isinstance(one, (ast.Try, ast.With, ast.AsyncWith)):
            return self._around(code, frame, one)
        elif isinstance(one, (ast.Assign, ast.AnnAssign)):
            if one.value is not None:
                held = self.value(code, frame, one.value)
                for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                    self.store(code, frame, target, held)
        elif isinstance(one, ast.AugAssign):
            self._again(code, frame, one)
        elif isinstance(one, ast.Return):
            found = self.value(code, frame, one.value) if one.value is not None else None
            frame.result = found if frame.result is None or (found is not None and _is_telling(found)) else frame.result
        else:
            for part in children(one):
                if isinstance(part, ast.expr):
                    self.value(code, frame, part)
        return isinstance(one, (ast.Return, ast.Raise, ast.Continue, ast.Break))

    def _again(self, code: Syntax, frame: Frame, one: ast.AugAssign) -> None:
        self.value(code, frame, one.value)
        load = _as_load(one.target)
        self._keep.append(load)
        self.value(code, frame, load)
        if not isinstance(one.target, ast.Subscript):
            self.store(code, frame, one.target, Held())

    def _branch(self, code: Syntax, frame: Frame, one: ast.If) -> bool:
        self.value(code, frame, one.test)
        before, outer, ends, after = dict(self.pending), self.conditions, [], []
        for way, body in enumerate((one.body, one.orelse)):
            self.pending, self.conditions = dict(before), (*outer, (id(one), way))
            ends.append(self.block(code, frame, body))
            after.append(self.pending)
        self.conditions = outer
        went = [p for p, ended in zip(after, ends, strict=True) if not ended] or after
        self.pending = {k: m for p in went for k, m in p.items() if all(k in q or before.get(k) is not m for q in went)}
        return all(ends)

    def _loop(self, code: Syntax, frame: Frame, one: ast.For | ast.AsyncFor | ast.While) -> None:
        if isinstance(one, ast.While):
            self.value(code, frame, one.test)
        else:
            given = self.value(code, frame, one.iter)
            begins = self._method(given, "__iter__")
            if begins is not None:
                self._inline(code, frame, ast.Call(one.iter, [], []), begins, given)
            self.store(code, frame, one.target, Held(), turns=True)
        self.loops = (*self.loops, id(one))
        self.block(code, frame, one.body)
        self.loops = self.loops[:-1]
        self.block(code, frame, one.orelse)

    def _around(self, code: Syntax, frame: Frame, one: ast.Try | ast.With | ast.AsyncWith) -> bool:
        if isinstance(one, ast.Try):
            ended = self.block(code, frame, one.body)
            outer = self.conditions
            for way, handler in enumerate(one.handlers):
                before, self.conditions = dict(self.pending), (*outer, (id(one), way))
                self.block(code, frame, handler.body)
                self.pending, self.conditions = before, outer
            self.block(code, frame, [*one.orelse, *one.finalbody])
            return ended and not one.handlers
        for item in one.items:
            held = self.value(code, frame, item.context_expr)
            if item.optional_vars is not None:
                self.store(code, frame, item.optional_vars, held)
        return self.block(code, frame, one.body)

    # ---- stores

    def store(self, code: Syntax, frame: Frame, target: ast.expr, held: Held, *, turns: bool = False) -> None:
        """What an assignment does."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for i, part in enumerate(target.elts):
                given = held.parts[i] if i < len(held.parts) else Held(loaded=held.loaded)
                self.store(code, frame, part, given, turns=turns)
        elif isinstance(target, ast.Name):
            self._write(code, target, frame.home(target.id, stores=True), target.id, held, turns)
        elif isinstance(target, ast.Attribute):
            owner = self.value(code, frame, target.value, reads=False)
            self._write(code, target, owner.attrs, target.attr, held, turns)
            if held.loaded is not None:
                self._put_in(code, frame, target.value, held.loaded)
        elif isinstance(target, ast.Subscript):
            self.value(code, frame, target.value, reads=held.loaded is None)
            self.value(code, frame, target.slice)
            if held.loaded is not None:
                self._put_in(code, frame, target.value, held.loaded)

    def _put_in(self, code: Syntax, frame: Frame, owner: ast.expr, mark: Mark) -> None:
        """An object, and those that it is a part of, took a state."""
        while True:
            self.value(code, frame, owner, reads=False).pending = self._now(mark)
            if not isinstance(owner, ast.Attribute):
                return
            owner = owner.value

    def _now(self, mark: Mark) -> Mark:
        return Mark(mark.entry, mark.code, mark.node, self.conditions, self.loops, mark.any_file)

    def _write(self, code: Syntax, target: ast.expr, home: dict[str, Held], name: str, held: Held, turns: bool) -> None:
        place, old = (id(home), name), home.get(name)
        mark = self.pending.pop(place, None)
        if mark is not None and old is not None and held.loaded is None and self._always(mark):
            self.losses.append(Loss(mark, ast.unparse(target), code, target, old, held, place, turns=turns,
                                    uses=old.uses, called=self._calls_around[-1] if self._calls_around else None))
        elif (old is not None and old.pending is not None and held is not old and held.loaded is None and held.made
              and self._always(old.pending)):
            self.losses.append(Loss(old.pending, ast.unparse(target), code, target, old, held, place, replaced=True,
                                    uses=old.uses))
        home[name] = held
        self._keep.append(home)
        if held.loaded is not None and not held.loaded.any_file:
            self.pending[place] = self._now(held.loaded)

    def _always(self, mark: Mark) -> bool:
        """Whether what happens now happens wherever the load did, once."""
        return (self.conditions == mark.conditions[:len(self.conditions)]
                and self.loops == mark.loops[:len(self.loops)])

    # ---- reads

    def touched(self, held: Held, place: _Place | None = None) -> Held:
        """Somebody reads it."""
        if not self.quiet:
            held.uses += 1
            held.pending = None
            if place is not None:
                self.pending.pop(place, None)
            for loss in self.losses:
                if loss.new is held or (loss.turns and loss.place == place):
                    loss.sure = True
        return held

    def value(self, code: Syntax, frame: Frame, node: ast.expr | None, *, reads: bool = True) -> Held:
        """What an expression gives. `reads`: False where only what it names is asked for."""
        if isinstance(node, ast.Name):
            home = frame.home(node.id)
            held = home.setdefault(node.id, Held())
            return self.touched(held, (id(home), node.id)) if reads else held
        if isinstance(node, ast.Attribute):
            owner = self.value(code, frame, node.value, reads=reads)
            held = owner.attrs.setdefault(node.attr, Held(loaded=self.entry(owner, code, node, node.attr)))
            return self.touched(held, (id(owner.attrs), node.attr)) if reads else held
        if isinstance(node, ast.Subscript):
            return self._entry(code, frame, node, reads)
        if isinstance(node, ast.Call):
            return self.called(code, frame, node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return Held(parts=tuple(self.value(code, frame, e) for e in node.elts))
        if isinstance(node, ast.NamedExpr):
            held = self.value(code, frame, node.value)
            self.store(code, frame, node.target, held)
            return held
        return self._whole(code, frame, node)

    def _whole(self, code: Syntax, frame: Frame, node: ast.expr | None) -> Held:
        """Any other expression: it is of a file where a part of it is."""
        found = [self._below(code, frame, part) for part in (children(node) if node is not None else ())]
        carries = isinstance(node, (ast.BinOp, ast.IfExp, ast.BoolOp, ast.Starred, ast.Await, ast.UnaryOp))
        mark = next((h.loaded for h in found if h.loaded is not None), None) if carries else None
        return Held(loaded=mark)

    def _below(self, code: Syntax, frame: Frame, part: ast.AST) -> Held:
        if isinstance(part, ast.expr):
            return self.value(code, frame, part)
        found = [self._below(code, frame, p) for p in children(part)]
        return found[0] if found else Held()

    def _entry(self, code: Syntax, frame: Frame, node: ast.Subscript, reads: bool) -> Held:
        owner = self.value(code, frame, node.value, reads=reads)
        self.value(code, frame, node.slice)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and owner.parts:
            return owner.parts[node.slice.value] if -len(owner.parts) <= node.slice.value < len(owner.parts) else Held()
        return Held(loaded=self.entry(owner, code, node, key_of(node))) if owner.loaded is not None else owner

    def entry(self, owner: Held, code: Syntax, node: ast.expr, key: str | None) -> Mark | None:
        """What is taken out of something that a file gave."""
        whole = owner.loaded
        if whole is None or key is None:
            return whole
        if whole.any_file and key not in self.written:
            return None
        return Mark(code.file.segment(node), code, node)

    # ---- calls

    def called(self, code: Syntax, frame: Frame, node: ast.Call) -> Held:
        """A call: of the project's own functions and classes their bodies; of others what is known of them."""
        if last_name(node.func) in QUIET:
            self.quiet += 1
            held = self._unknown(code, frame, node, None)
            self.quiet -= 1
            return held
        if is_source(code, node) or is_own_source(code, node):
            self._unknown(code, frame, node, None)
            return Held(loaded=Mark(code.file.segment(node), code, node, any_file=is_own_source(code, node)))
        owner = self.value(code, frame, node.func.value, reads=False) if isinstance(node.func, ast.Attribute) else None
        kind = self._class(code, node.func)
        target = self._method(owner, node.func.attr) if owner is not None and isinstance(
            node.func, ast.Attribute) else None
        target = target or (self.look.function(code, node.func) if kind is None else None)
        this = owner if target is not None and owner is not None and _takes_self(target[1]) else None
        if target is None and kind is None and isinstance(node.func, (ast.Name, ast.Attribute)):
            this = self.value(code, frame, node.func, reads=False)
            target = self._method(this, "__call__") or self._method(this, "forward")
        if kind is not None:
            made = Held(made=kind[1].name, klass=kind)
            init = self._method(made, "__init__")
            if init is None or not self._inline(code, frame, node, init, made):
                self._unknown(code, frame, node, None)
            return made
        if target is not None and len(self._active) < DEEPEST:
            given = self._inline(code, frame, node, target, this)
            if given is not None:
                return given
        return self._unknown(code, frame, node, owner)

    def _unknown(self, code: Syntax, frame: Frame, node: ast.Call, owner: Held | None) -> Held:
        """A call of a library's: what it is given is read, and a state that is put into an object marks that."""
        given = [self.value(code, frame, part) for part in (*node.args, *(k.value for k in node.keywords))]
        mark = next((h.loaded for h in given if h.loaded is not None), None)
        name = code.qualified(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "clear" and not given:
            self._emptied(code, frame, node, node.func.value)
        if owner is None or not isinstance(node.func, ast.Attribute):
            self.value(code, frame, node.func)
        elif mark is not None and puts_in(node):
            self.restored.add(kind_of(owner.made))
            self._put_in(code, frame, node.func.value, mark)
            return Held()
        else:
            owner = self.value(code, frame, node.func.value)
            if owner.loaded is not None and node.func.attr in CONVERTS:
                return Held(loaded=self.entry(owner, code, node, key_of(node)))
        converts = last_name(node.func) in CONVERTS
        return Held(loaded=mark if converts else None, made=name or _made_by(node, owner))

    def _emptied(self, code: Syntax, frame: Frame, node: ast.Call, target: ast.expr) -> None:
        """`memory.clear()`: what came out of a file is gone, and the same object is used on."""
        held = self.value(code, frame, target, reads=False)
        place, mark = None, held.pending
        if isinstance(target, (ast.Name, ast.Attribute)):
            home, name = (frame.home(target.id), target.id) if isinstance(target, ast.Name) else (
                self.value(code, frame, target.value, reads=False).attrs, target.attr)
            place = (id(home), name)
            mark = self.pending.get(place, mark)
        if place is not None and mark is not None and self._always(mark):
            self.waiting.append(Loss(mark, ast.unparse(target), code, node, Held(), held, place))

    def _class(self, code: Syntax, func: ast.expr) -> tuple[Syntax, ast.ClassDef] | None:
        found = self.look.classes.get(last_name(func), []) if isinstance(func, (ast.Name, ast.Attribute)) else []
        return found[0] if len(found) == 1 else None

    def _method(self, owner: Held | None, name: str) -> tuple[Syntax, Body] | None:
        kind = owner.klass if owner is not None else None
        for _ in range(6):
            if kind is None:
                return None
            code, node = kind
            found = next((b for b in node.body if isinstance(b, ast.FunctionDef) and b.name == name), None)
            if found is not None:
                return code, found
            kind = next((k for b in node.bases if (k := self._class(code, b)) is not None), None)
        return None

    def _give(self, code: Syntax, frame: Frame, inner: Frame, name: str, part: ast.expr) -> None:
        """An argument: a name that is handed on is read where the function reads it."""
        plain = isinstance(part, (ast.Name, ast.Attribute)) and bool(name)
        held = self.value(code, frame, part, reads=not plain)
        if not name:
            return
        inner.names[name] = held
        home = frame.home(part.id) if isinstance(part, ast.Name) else None
        mark = self.pending.pop((id(home), part.id), None) if isinstance(part, ast.Name) else None
        if mark is not None:
            self.pending[id(inner.names), name] = mark

    def _inline(self, code: Syntax, frame: Frame, node: ast.Call, target: tuple[Syntax, Body],
                this: Held | None) -> Held | None:
        """Plays the body of a function; None where it is not played."""
        where, body = target
        self._calls -= 1
        if self._calls < 0 or body in self._active or isinstance(body, ast.Lambda):
            return None
        inner = Frame(around=frame if where.function(body) is not None and where is code else self.files[id(where)])
        names = list(parameters(body))
        if this is not None and names:
            inner.names[names.pop(0)] = this
        for name, default in parameters(body).items():
            if default is not None and name in names:
                inner.names[name] = Held()
        given = [*zip([*names, *[""] * len(node.args)], node.args, strict=False),
                 *((str(k.arg), k.value) for k in node.keywords)]
        for name, part in given:
            self._give(code, frame, inner, name if name in names else "", part)
        self._active.append(body)
        self._calls_around.append((code, node))
        self._keep.append(inner)
        self.block(where, inner, body.body)
        self._active.pop()
        self._calls_around.pop()
        return inner.result or Held()


def _made_by(node: ast.Call, owner: Held | None) -> str:
    """`optax.adam.init` of a method of what optax made."""
    return f"{owner.made}.{last_name(node.func)}" if owner is not None and owner.made else last_name(node.func)


def _takes_self(body: Body) -> bool:
    names = list(parameters(body))
    return bool(names) and names[0] == "self"


def _is_telling(held: Held) -> bool:
    return held.loaded is not None or bool(held.parts)


def _as_load(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body
