"""Which script wrote a log: the one that can write lines which the others cannot.

What every script prints ("loss 0.5") says nothing of any; a form of line that only one of them has says nearly all. A
script stands with everything that it imports: its prints may be in another file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.nodes import last_name
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_logs.readers.prefixes import parse_prefix
from traindx_tools.scope.model import LogLines
from traindx_tools.scope.templates import label_words, prints_values_alone, templates, words_of_line
from traindx_tools.scope.templates import share as of_line
from traindx_tools.scope.tree import Tree

MOST_FORMS = 250
"""Forms of lines that are looked at: lines that differ in numbers only are of one form."""
EXAMPLES = 3
"""Lines of a form that are compared."""
LEAST_SHARE = 0.6
"""Share of a line that a print has to explain: a remark within a longer line is no sign of it."""
LEAST_WORDS = 0.5
"""Share of a line's words that a script has to hold."""
NEARLY = 0.9
"""A script that explains this share of what the best one explains of a line may have written it as well."""
TIMES = 3
"""A script is out where another explains so many times more of the lines that only one of both can have written."""
_USUAL = frozenset({"loss", "epoch", "step", "steps", "iter", "iteration", "batch", "train", "val", "valid", "test",
                    "validation", "training", "acc", "accuracy", "learning_rate", "grad_norm", "time", "eval", "eta",
                    "info"})
"""Words that any log has: a library writes them as well."""
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?")
_BARS = frozenset({"tqdm", "trange", "set_postfix"})
"""Calls that draw a bar with values, in a form that a library decides."""
_RECORDERS = words("roles.toml", "logged") | frozenset({"log_metrics"})
"""Calls that take a name and a value, or a mapping of them."""
_ROWS = frozenset({"writerow", "writerows", "dump", "dumps", "to_csv", "to_json", "savetxt"})
"""Calls that write rows or records: of a log of plain lines they are no sign."""
_ROW = re.compile(r"\s*[\[{]|[^,;\t]*(?:[,;\t][^,;\t]*){2,}$")
_WRITES_ITSELF = re.compile(r"\b(?:import|from)\s+(?:transformers|trl|lightning|pytorch_lightning|keras|tensorflow|"
                            r"accelerate|fastai|mmengine|ultralytics|deepspeed|composer|sklearn|xgboost|lightgbm|hydra|"
                            r"ray)\b")
"""Libraries that write a log's lines themselves."""


@dataclass(frozen=True)
class Form:
    """Lines of one form: the number of the first, and some of them."""

    line: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """The scripts that can have written the log, the likeliest first, and how they are known."""

    scripts: tuple[Path, ...]
    how: str


def written_by(log: LogLines, tree: Tree, scripts: Sequence[Path]) -> Written | None:
    """The scripts that can have written a log; None where its lines tell none from another."""
    forms = forms_of(log)
    parts = {s: tree.closure([s]) for s in scripts}
    parsed = {f: _syntax(f, tree) for f in dict.fromkeys(f for p in parts.values() for f in p)}
    for share, least in ((_by_print(parsed), LEAST_SHARE), (_by_words(parsed), LEAST_WORDS)):
        winners = [_winners(form, parts, share, least) for form in forms]
        found = _told_apart(scripts, winners)
        if found is not None:
            telling = [f for f, won in zip(forms, winners, strict=True) if found[0] in won and len(won) < len(scripts)]
            first = min(telling, key=lambda f: f.line)
            what = "writes" if least == LEAST_SHARE else "names what stands in"
            others = "no other script here" if len(found) == 1 else "not every script here"
            return Written(found, f"it {what} line {first.line} of {Path(log.name).name}, {others} does")
    return None


def by_none(logs: Sequence[LogLines], tree: Tree, scripts: Sequence[Path]) -> bool:
    """Whether it is sure that no script wrote any line of these logs: each prints lines of its own and no others."""
    forms = [form for log in logs for form in forms_of(log)]
    parts = {s: tree.closure([s]) for s in scripts}
    if not forms or not parts:
        return False
    parsed = {f: _syntax(f, tree) for f in dict.fromkeys(f for p in parts.values() for f in p)}
    rows = any(_ROW.match(x) for form in forms for x in form.examples)
    if not all(any(_prints(parsed[f]) for f in p) and not any(_is_open(parsed[f], tree.text(f), rows) for f in p)
               for p in parts.values()):
        return False
    kinds = ((_by_print(parsed), LEAST_SHARE), (_by_words(parsed), LEAST_WORDS))
    return not any(_winners(form, parts, share, least) for form in forms for share, least in kinds)


def _prints(tree: ast.Module | None) -> bool:
    return tree is not None and bool(templates(tree))


def _is_open(tree: ast.Module | None, text: str, rows: bool) -> bool:
    """Whether a program may write lines whose form its text does not tell; `rows`: the log holds rows or records."""
    left_out = frozenset() if rows else _ROWS
    if tree is None or _WRITES_ITSELF.search(text) or prints_values_alone(tree, without=left_out):
        return True
    calls = [(last_name(n.func), n.args[:1]) for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return any(name in _BARS or (rows and (name in _ROWS or (name in _RECORDERS and any(map(_names_a_value, first)))))
               for name, first in calls)


def _names_a_value(node: ast.expr) -> bool:
    """Whether an argument is a name for a value (a text) or a mapping of them, which `torch.log(p)` has not."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, (ast.JoinedStr, ast.Dict))


def forms_of(log: LogLines) -> list[Form]:
    """The forms of a log's lines, in the order in which they come."""
    found: dict[str, Form] = {}
    for number, text in log.lines:
        body = text[parse_prefix(text).end :].strip()[:600]
        key = _NUMBER.sub("0", body)
        known = found.get(key)
        if known is None and len(found) < MOST_FORMS and sum(c.isalpha() for c in key) >= 3:
            found[key] = Form(number, (body,))
        elif known is not None and len(known.examples) < EXAMPLES:
            found[key] = Form(known.line, (*known.examples, body))
    return list(found.values())


Share = Callable[[Path, str], float]


def _by_print(parsed: Mapping[Path, ast.Module | None]) -> Share:
    known = {f: templates(t) if t is not None else () for f, t in parsed.items()}

    @cache
    def share(file: Path, line: str) -> float:
        return of_line(known[file], line)

    return share


def _by_words(parsed: Mapping[Path, ast.Module | None]) -> Share:
    known = {f: label_words(t) if t is not None else frozenset() for f, t in parsed.items()}

    @cache
    def share(file: Path, line: str) -> float:
        words = frozenset(w for w in words_of_line(line) if w.lower() not in _USUAL)
        return len(words & known[file]) / len(words) if words else 0.0

    return share


def _winners(form: Form, parts: Mapping[Path, Sequence[Path]], share: Share, least: float) -> frozenset[Path]:
    """The scripts that explain lines of this form as well as any."""
    told = {script: sum(max(share(f, line) for f in files) for line in form.examples) / len(form.examples)
            for script, files in parts.items()}
    best = max(told.values(), default=0.0)
    return frozenset(s for s, t in told.items() if t >= NEARLY * best) if best >= least else frozenset()


def _told_apart(scripts: Sequence[Path], winners: Sequence[frozenset[Path]]) -> tuple[Path, ...] | None:
    """The script that explains the most, and those that it does not rule out."""
    telling = [won for won in winners if won and len(won) < len(scripts)]
    if not telling:
        return None
    best = max(scripts, key=lambda s: sum(1.0 / len(won) for won in telling if s in won))

    def ruled_out(other: Path) -> bool:
        mine = sum(best in won and other not in won for won in telling)
        its = sum(other in won and best not in won for won in telling)
        return mine > TIMES * its

    return (best, *(s for s in scripts if s != best and not ruled_out(s)))


def _syntax(file: Path, tree: Tree) -> ast.Module | None:
    parsed = tree.source(file).parsed
    return parsed.tree if isinstance(parsed, SourceFile) else None
