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

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.alphabets import DATA, Table, tables
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C273",
    name="blank-is-a-character",
    title="The CTC blank has the number of a real character",
    severity=Severity.HIGH,
    sees="A table of characters or tokens that gives a real one the number of the CTC blank (0 by default), or a blank "
         "behind the last output.",
    matters="That character is never recognised, and the loss of texts that hold it is wrong.",
    alike=("a table that starts at 1, or with an entry for the blank",
           "a blank behind the alphabet with its own output"),
    confirm=("count how often the first character of the table is in hypotheses and references",),
)  # fmt: skip
_CALLS = {"CTCLoss": (0, "blank"), "ctc_loss": (4, "blank"), "ctc_loss_with_forward_probs": (4, "blank_id")}
_MARKER = re.compile(r"^$|^[<\[({|]{1,2}.+[>\])}|]{1,2}$|blank|pad|null|none|eps|ctc|unk|sil|bos|start|^[^\w ]+$|^_+$",
                     re.IGNORECASE)  # fmt: skip
_TEXTS = re.compile(r"char|letter|alphabet|symbol|vocab|token|phon|glyph|grapheme|digit|zeichen|buchstab|stoi|c2i"
                    r"|[\"'] ?[\"']\.join", re.IGNORECASE)  # fmt: skip
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
    found = [t for t in tables(look) if _of_texts(t)]
    for code, call in calls:
        position, name = _CALLS[last_name(call.func)]
        given = argument(call, position, name) or argument(call, 99, "blank_id")
        if look.function(code, call.func) is not None or _shifted(look, code, call):
            continue
        blank = 0.0 if given is None else look.number(code, given)
        if blank is not None:
            finding = _collision(look, code, call, found, int(blank))
            if finding is not None:
                yield finding
                return
        if given is not None:
            yield from _beyond(look, code, call, given, found)


def _collision(look: Lookup, code: Syntax, call: ast.Call, found: list[Table], blank: int) -> Finding | None:
    """The table that gives a real character the number of the blank, if none leaves it free."""
    strengths: list[tuple[Strength, Table, str]] = []
    near = [t for t in found if len(look.codes) <= _ONE_PROGRAM or _folder(t.code) == _folder(code)]
    for table in near:
        entry = table.at(blank)
        strength = _real(look, table, entry)
        if strength is None:
            return None
        strengths.append((strength, table, entry or ""))
    if not strengths:
        return None
    strength, table, entry = min(strengths, key=lambda s: (
        s[0] is not Strength.DIRECT, not isinstance(s[1].node, (ast.DictComp, ast.Dict))))  # fmt: skip
    shown = "the first of the sorted ones" if entry == DATA else "the space" if entry == " " else repr(entry)
    own = "" if argument(call, 99, "blank") is not None or call.args[4:] else " by default"
    return RULE.finding(
        f"{table.name} at {table.code.at(table.node)} gives a real character ({shown}) the index {blank}, which is "
        f"the blank of {last_name(call.func)} at {code.at(call)}{own}: the two collide, and it can never be written",
        table.code.place(table.node),
        table.code.file.path,
        strength=strength,
        measured={"kind": "collision", "blank": blank, "character": shown},
    )


def _real(look: Lookup, table: Table, entry: str | None) -> Strength | None:
    """How sure it is that an entry is a character of the texts; None where it may be the blank."""
    if entry is None:
        return None
    if entry == DATA:
        return Strength.DIRECT
    if entry.strip():
        return None if _MARKER.search(entry) else Strength.DIRECT
    if _one_more(look, table):
        return Strength.DIRECT
    spaced = any(re.search(r"\.split\(\)|[\"'] [\"']\.join|[\"']\w+ \w+", c.file.text) for c in look.codes)
    return Strength.CIRCUMSTANTIAL if spaced else None


def _one_more(look: Lookup, table: Table) -> bool:
    """Whether somewhere one class more is counted than the table has: the blank is meant to lie behind it."""
    for code in look.codes:
        for node in code.of(ast.BinOp):
            one = isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) and node.right.value == 1
            if one and isinstance(node.left, ast.Call) and last_name(node.left.func) == "len" and \
                    look.number(code, node.left) == table.size:  # fmt: skip
                return True
    return False


def _shifted(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether the targets are moved by one where the loss is called: `ctc(x, y + 1, ...)`."""
    calls = [(code, call)]
    if last_name(call.func) == "CTCLoss":
        statement = code.statement(call)
        name = last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        calls = [(c, use) for c in look.codes for use in c.calls(name)] if name else []
    for other, use in calls:
        for value in (*use.args, *(k.value for k in use.keywords)):
            for part in ast.walk(other.origin(value)):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add) and other.number(part.right) == 1:
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


def _beyond(look: Lookup, code: Syntax, call: ast.Call, given: ast.expr, found: list[Table]) -> Iterator[Finding]:
    """A blank of `len(chars)` where the last layer has `len(chars)` outputs."""
    origin = written(look.origin(code, given)[1])
    blank = look.number(code, given)
    widths = [(c, layer, width) for c in look.codes for layer in c.calls(*_LAYERS)
              if (width := argument(layer, 1, "out_features", "out_channels") or argument(
                  layer, 0 if last_name(layer.func) == "Dense" else 99, "features")) is not None]  # fmt: skip
    if not origin.startswith("len(") or any(_wider(look, c, w, blank) for c, _, w in widths):
        return
    for other, layer, width in widths:
        if written(look.origin(other, width)[1]) == origin:
            yield RULE.finding(
                f"The blank of {last_name(call.func)} at {code.at(call)} is {written(given)}, and the last layer at "
                f"{other.at(layer)} has {written(width)} outputs, numbered from 0: there is no output for the blank",
                code.place(call),
                code.file.path,
                strength=Strength.DIRECT,
                measured={"kind": "beyond", "blank": written(given)},
            )
            return


def _wider(look: Lookup, code: Syntax, width: ast.expr, blank: float | None) -> bool:
    number = look.number(code, width)
    return "+ 1" in written(look.origin(code, width)[1]) or (number is not None and number == (blank or 0) + 1)
