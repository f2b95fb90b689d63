"""What a program can write: the texts of its prints, log calls and formats, as patterns with the values left open.

`on_code.printed` tells what a printed value means; here only the form of the line counts. `f"step {i} loss {x:.4f}"`
writes "step 10 loss 0.1234" and neither "step 10 loss 0.12" nor "step 10 train loss 0.1234".
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_code.nodes import last_name

MOST_PIECES = 60
LONGEST = 600
"""Characters of one pattern's fixed text."""
FEWEST_LETTERS = 3
"""Letters of fixed text that a pattern needs: with fewer it says nothing."""
PARTS = 0.8
"""What a line that is put together of several texts counts, beside one that a single template writes."""
_ANY = r".{0,300}?"
_WORDS = re.compile(r"[A-Za-z][\w/@.-]*[A-Za-z0-9]")
_PERCENT = re.compile(r"%(?:\([^)]*\))?[#0\- +]*(?:\*|\d+)?(?:\.(?P<digits>\*|\d+))?[hlL]?"
                      r"(?P<kind>[diouxXeEfFgGcrsa%])")
_SPEC = re.compile(r"[^\d.,]*?\d*,?(?:\.(?P<digits>\d+))?(?P<kind>[bcdeEfFgGnosxX%]?)")
_NUMBER = r" *[+-]?"


@dataclass(frozen=True)
class Template:
    """One form of a line: its fixed text, with a group for each value. `anchor`: a fixed text that every line holds."""

    pattern: re.Pattern[str]
    anchor: str

    def told(self, line: str) -> frozenset[int]:
        """The characters of a line that it fixes: its text, and the digits whose number a format gives."""
        found = self.pattern.search(line) if self.anchor in line else None
        if found is None:
            return frozenset()
        at = set(range(*found.span()))
        for group in range(1, self.pattern.groups + 1):
            at.difference_update(range(*found.span(group)))
        return frozenset(at)


def share(made: Sequence[Template], line: str) -> float:
    """How much of a line a program's templates explain, from 0 to 1: nearly all is its text, a little its digits.

    Parts that are put together to one line before it is written count for less than one template of the whole line.
    """
    told = [t for t in (one.told(line) for one in made) if t]
    if not told:
        return 0.0
    together = frozenset().union(*told)
    return max(max(_share(t, line) for t in told), PARTS * _share(together, line))


def _share(told: frozenset[int], line: str) -> float:
    text = [i for i, c in enumerate(line) if not (c.isdigit() or c.isspace() or c in "+-.")]
    digits = [i for i, c in enumerate(line) if c.isdigit()]
    of_text = sum(i in told for i in text) / len(text) if text else 0.0
    return 0.9 * of_text + (0.1 * sum(i in told for i in digits) / len(digits) if digits else 0.0)


def templates(tree: ast.Module) -> tuple[Template, ...]:
    """The forms of the lines that a program can write, each once."""
    found: dict[str, Template] = {}
    for pieces in _all_pieces(tree):
        made = _template(pieces)
        if made is not None:
            found.setdefault(made.pattern.pattern, made)
    return tuple(found.values())


def prints_values_alone(tree: ast.Module, without: frozenset[str] = frozenset()) -> bool:
    """Whether a program prints something of which its text fixes nothing: `print(row)`, `log.write(line)`.

    `without`: calls whose results are left out (`log.write(json.dumps(record))`).
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) in ("print", "write", "info"):
            pieces = _of_print(node)
            made = {last_name(n.func) for a in node.args for n in ast.walk(a) if isinstance(n, ast.Call)}
            if pieces and not made & without and all(is_value or not text.strip() for text, is_value in pieces):
                return True
    return False


def label_words(tree: ast.Module) -> frozenset[str]:
    """The words in a program's texts and keywords, under which it may log a value."""
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < LONGEST:
            words.update(w.lstrip("-").replace("-", "_") for w in _WORDS.findall(node.value))
        elif isinstance(node, ast.keyword) and node.arg:
            words.add(node.arg)
    return frozenset(words)


def words_of_line(line: str) -> frozenset[str]:
    """The words of a log's line that may be labels."""
    return frozenset(w.replace("-", "_") for w in _WORDS.findall(line) if len(w) > 2)


Piece = tuple[str, bool]
"""Text, and whether it is a pattern for a value (True) or stands as it is (False)."""


def _all_pieces(tree: ast.Module) -> Iterator[list[Piece]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "print" or (name in ("write", "echo", "rule") and node.args):
                yield _of_print(node)
            elif name == "format" and isinstance(node.func, ast.Attribute):
                text = _text(node.func.value)
                if text is not None:
                    yield _of_format(text)
            elif node.args and isinstance(node.args[0], ast.Constant):
                yield _of_percent(str(node.args[0].value)) if len(node.args) > 1 else [(str(node.args[0].value), False)]
        elif isinstance(node, ast.JoinedStr):
            yield _of_f_string(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and (text := _text(node.left)) is not None:
            yield _of_percent(text)


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else left + right
    return None


def _of_print(call: ast.Call) -> list[Piece]:
    given = [k.value for k in call.keywords if k.arg == "sep"]
    separator = str(given[0].value) if given and isinstance(given[0], ast.Constant) else " "
    pieces: list[Piece] = []
    for argument in call.args:
        pieces += [(separator, False)] if pieces else []
        pieces += _of_value(argument)
    return pieces


def _of_value(node: ast.expr) -> list[Piece]:
    text = _text(node)
    if text is not None:
        return [(text, False)]
    if isinstance(node, ast.JoinedStr):
        return _of_f_string(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and (left := _text(node.left)) is not None:
        return _of_percent(left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _of_value(node.left) + _of_value(node.right)
    return [(_ANY, True)]


def _of_f_string(node: ast.JoinedStr) -> list[Piece]:
    pieces: list[Piece] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
            fixed = "".join(str(s.value) for s in spec if isinstance(s, ast.Constant))
            pieces.append((_of_spec(fixed) if all(isinstance(s, ast.Constant) for s in spec) else _ANY, True))
        elif isinstance(part, ast.Constant):
            pieces.append((str(part.value), False))
    return pieces


def _of_format(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    try:
        for before, name, spec, _ in string.Formatter().parse(text):
            pieces.append((before, False))
            if name is not None:
                pieces.append((_of_spec(spec or ""), True))
    except ValueError:
        return []
    return pieces


def _of_percent(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for found in _PERCENT.finditer(text):
        pieces.append((text[at : found.start()], False))
        pieces.append(("%", False) if found["kind"] == "%" else (_value(found["digits"], found["kind"]), True))
        at = found.end()
    return [*pieces, (text[at:], False)]


def _of_spec(spec: str) -> str:
    found = _SPEC.fullmatch(spec)
    return _ANY if found is None or not spec else _value(found["digits"], found["kind"])


def _value(digits: str | None, kind: str) -> str:
    """The pattern of a value: with so many decimals where the format says so. NaN and infinity have none."""
    if kind in ("d", "i"):
        return rf"{_NUMBER}[\d,_]+ *"
    if kind in ("f", "F", "%") and digits != "*":
        count = 6 if digits is None else int(digits)
        decimals = rf"\.\d{{{count}}}(?!\d)" if count else ""
        return rf"{_NUMBER}(?:[\d,_]+{decimals}|nan|inf) *" + ("%" if kind == "%" else "")
    if kind in ("e", "E") and digits != "*":
        count = 6 if digits is None else int(digits)
        return rf"{_NUMBER}(?:\d\.\d{{{count}}}[eE][+-]\d+|nan|inf) *" if count else _ANY
    return _ANY


def _template(pieces: Sequence[Piece]) -> Template | None:
    """The pattern of the first line of these pieces that holds enough fixed text."""
    for line in _lines(pieces):
        if not line[-1:] or not line[-1][1]:
            line = [*line[:-1], *((text.rstrip(), False) for text, _ in line[-1:])]
        fixed = [text for text, is_value in line if not is_value]
        letters = sum(c.isalpha() for text in fixed for c in text)
        if letters < FEWEST_LETTERS or len(line) > MOST_PIECES or sum(map(len, fixed)) > LONGEST:
            continue
        made = "".join((f"({t})" if t is _ANY else t) if is_value else re.escape(t) for t, is_value in line)
        return Template(re.compile(made), max(fixed, key=len).strip())
    return None


def _lines(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    line: list[Piece] = []
    for text, is_value in pieces:
        parts = [text] if is_value else re.split(r"[\r\n]+", text)
        for i, part in enumerate(parts):
            if i:
                yield line
                line = []
            if part:
                line.append((part, is_value))
    yield line
