"""The blank of a CTC loss has the number of a real character.

CTC needs a class of its own for "no character here". Its number is 0 unless another is given, and an alphabet that is
numbered from 0 has a character there. That character can never be written: decoding drops it, and the loss takes it for
silence, so that its targets cannot be aligned. Everything else is learned, the loss falls, and the error rate of words
or of texts with that character stays high. A blank behind the alphabet needs one more output than there are characters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.alphabets import DATA, Table, tables
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.values import whole

(RULE,) = pages("recipes", ("C273",))
_CALLS = {"CTCLoss": (0, "blank"), "ctc_loss": (4, "blank"), "ctc_loss_with_forward_probs": (4, "blank_id")}
_MARKER = re.compile(r"^$|^[<\[({|]{1,2}.+[>\])}|]{1,2}$|blank|pad|null|none|eps|ctc|unk|sil|bos|start|^[^\w ]+$|^_+$",
                     re.IGNORECASE)  # fmt: skip
_TEXTS = re.compile(r"char|letter|alphabet|symbol|vocab|token|phon|glyph|grapheme|digit|zeichen|buchstab|stoi|c2i"
                    r"|[\"'] ?[\"']\.join", re.IGNORECASE)  # fmt: skip
_WORDS = re.compile(r"\.split\(\)|[\"'] [\"']\.join|[\"']\w+ \w+")
_FEWEST = 4
_ONE_PROGRAM = 40
"""In more files than this there are several programs: a table belongs to a loss of its own folder."""
_LAYERS = ("Linear", "LazyLinear", "Dense", "Conv1d", "Conv2d")


def check(project: Project) -> Iterator[Finding]:
    """Compare the blank of every CTC loss with the project's tables."""
    if not any("CTCLoss" in f.text or "ctc_loss" in f.text for f in project.files):
        return
    look = lookup(project)
    calls = [(c, call) for c in look.codes for call in c.calls(*_CALLS)]
    if not calls:
        return
    all_tables = [t for t in tables(look) if _of_texts(t)]
    one_program = len(look.codes) <= _ONE_PROGRAM
    near: dict[str, list[Table]] = {}
    for table in all_tables:
        near.setdefault("" if one_program else _folder(table.code), []).append(table)
    layers: _Layers | None = None
    for code, call in calls:
        position, name = _CALLS[last_name(call.func)]
        given = argument(call, position, name) or argument(call, 99, "blank_id")
        if look.function(code, call.func) is not None or _shifted(look, code, call):
            continue
        blank = 0 if given is None else whole(look.number(code, given))
        if blank is not None:
            finding = _collision(look, code, call, near.get("" if one_program else _folder(code), []), blank)
            if finding is not None:
                yield finding
                return
        if given is not None:
            layers = layers or _Layers.of(look)
            yield from _beyond(look, code, call, given, layers)


def _collision(look: Lookup, code: Syntax, call: ast.Call, found: list[Table], blank: int) -> Finding | None:
    """The table that gives a real character the number of the blank, if none leaves it free."""
    bearings: list[tuple[Bearing, Table, str]] = []
    for table in found:
        entry = table.at(blank)
        bearing = _real(look, table, entry)
        if bearing is None:
            return None
        bearings.append((bearing, table, entry or ""))
    if not bearings:
        return None
    bearing, table, entry = min(bearings, key=lambda s: (
        s[0] is not Bearing.CAUSE, not isinstance(s[1].node, (ast.DictComp, ast.Dict))))  # fmt: skip
    shown = "the first of the sorted ones" if entry == DATA else "the space" if entry == " " else repr(entry)
    own_number = argument(call, 99, "blank") is not None or bool(call.args[4:])
    own = "" if own_number else " by default"
    return RULE.finding(
        f"{table.name} at {table.code.at(table.node)} gives a real character ({shown}) the index {blank}, which is "
        f"the blank of {last_name(call.func)} at {code.at(call)}{own}: the two collide, and it can never be written",
        table.code.place(table.node),
        table.code.file.path,
        bearing=bearing,
        measured={"kind": "collision", "blank": blank, "character": shown},
    )


def _real(look: Lookup, table: Table, entry: str | None) -> Bearing | None:
    """How sure it is that an entry is a character of the texts; None where it may be the blank."""
    if entry is None:
        return None
    if entry == DATA:
        return Bearing.CAUSE
    if entry.strip():
        return None if _MARKER.search(entry) else Bearing.CAUSE
    if _one_more(look, table):
        return Bearing.CAUSE
    return Bearing.SIGN if _spaced(look) else None


def _spaced(look: Lookup) -> bool:
    """Whether some text of the project has a space between words; looked for once."""
    known: bool | None = look.__dict__.get("_spaced")
    if known is None:
        known = look.__dict__["_spaced"] = any(c.file.mentions(_WORDS) for c in look.codes)
    return known


def _one_more(look: Lookup, table: Table) -> bool:
    """Whether somewhere one class more is counted than the table has: the blank is meant to lie behind it."""
    known: set[float | None] | None = look.__dict__.get("_one_more")
    if known is None:
        known = look.__dict__["_one_more"] = {
            look.number(code, node.left) for code in look.codes for node in code.of(ast.BinOp)
            if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) and node.right.value == 1
            and isinstance(node.left, ast.Call) and last_name(node.left.func) == "len"}  # fmt: skip
    return table.size in known


def _shifted(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether the targets are moved by one where the loss is called: `ctc(x, y + 1, ...)`."""
    if last_name(call.func) != "CTCLoss":
        return _moved(code, call)
    statement = code.statement(call)
    name = last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    known: dict[str, bool] = look.__dict__.setdefault("_shifted", {})
    if name not in known:
        known[name] = any(_moved(c, use) for c, use in look.calls.get(name, ())) if name else False
    return known[name]


def _moved(code: Syntax, use: ast.Call) -> bool:
    for value in (*use.args, *(k.value for k in use.keywords)):
        for part in below(code.origin(value)):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add) and code.number(part.right) == 1:
                return True
    return False


def _folder(code: Syntax) -> str:
    return code.file.path.rpartition("/")[0]


def _of_texts(table: Table) -> bool:
    """Whether a table numbers what texts are made of, and not classes, files or speakers."""
    if table.size is not None and table.size < _FEWEST:
        return False
    single = [e for e in table.entries if len(e) == 1 and e != DATA]
    if len(single) * 2 > len(table.entries) and DATA not in table.entries:
        return True
    return bool(_TEXTS.search(f"{table.name} {written(table.code.statement(table.node))}"))


@dataclass(frozen=True)
class _Layers:
    """The layers of a project by where their number of outputs comes from, and what those numbers are."""

    by_origin: dict[str, list[tuple[Syntax, ast.Call, ast.expr]]]
    numbers: frozenset[float | None]

    @classmethod
    def of(cls, look: Lookup) -> _Layers:
        """Look at every layer."""
        found: dict[str, list[tuple[Syntax, ast.Call, ast.expr]]] = {}
        numbers: set[float | None] = set()
        for code, layer in (w for name in _LAYERS for w in look.calls.get(name, ())):
            position = 0 if last_name(layer.func) == "Dense" else 99
            width = argument(layer, 1, "out_features", "out_channels") or argument(layer, position, "features")
            if width is not None:
                found.setdefault(written(look.origin(code, width)[1]), []).append((code, layer, width))
                numbers.add(look.number(code, width))
        return cls(found, frozenset(numbers))

    def one_wider(self, blank: float | None) -> bool:
        """Whether some layer has an output behind the last character."""
        return any("+ 1" in origin for origin in self.by_origin) or (blank or 0.0) + 1 in self.numbers


def _beyond(look: Lookup, code: Syntax, call: ast.Call, given: ast.expr, layers: _Layers) -> Iterator[Finding]:
    """A blank of `len(chars)` where the last layer has `len(chars)` outputs."""
    origin = written(look.origin(code, given)[1])
    blank = look.number(code, given)
    if not origin.startswith("len(") or layers.one_wider(blank):
        return
    for other, layer, width in layers.by_origin.get(origin, [])[:1]:
        yield RULE.finding(
            f"The blank of {last_name(call.func)} at {code.at(call)} is {written(given)}, and the last layer at "
            f"{other.at(layer)} has {written(width)} outputs, numbered from 0: there is no output for the blank",
            code.place(call),
            code.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "beyond", "blank": written(given)},
        )
