"""Padding counts as text.

A tokenizer that pads gives a mask with the tokens. An encoder that is not given it attends to the padding, so that what
it says of a text depends on the longest text of its batch. A mean over all positions divides by the padded length. And
labels that are the padded tokens themselves (no -100, no `ignore_index`) make most of the loss one easy token: it falls
quickly to a small value, and what is left of it for the text is a fraction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.on_code.tokenized import moved, padded, pads, part_of, pretrained
from traindx_tools.rules import Rule

RULE = Rule(
    id="C257",
    name="padding-counted",
    title="Padding counts as text",
    severity=Severity.HIGH,
    sees="An encoder called without the mask of padded tokens, a mean over padded positions, padded tokens as labels.",
    matters="Outputs depend on the padding of the batch, or the loss is mostly that of padding.",
    alike=("a causal model with padding on the right, whose text does not see it", "one text at a time",
           "labels that are set to -100 where they are padding"),
    confirm=("compare the output of a text alone with its output beside a longer one",
             "print((labels == tokenizer.pad_token_id).float().mean())"),
)
_CAUSAL = re.compile(r"CLIPText|CausalLM|LMHead|GPT|Llama|Mistral|Qwen|Gemma|Opt|Bloom", re.IGNORECASE)
_GENERATES = re.compile(r"CausalLM|LMHead|Seq2Seq|ConditionalGeneration|GPT|Llama|Mistral|Qwen|Gemma|T5|Bart", re.I)
_LEFT_OUT = re.compile(r"-\s*100\b|ignore_index|ForLanguageModeling\s*\(|DataCollatorForCompletionOnly|label_pad_tok")
_MASKED = re.compile(r"mask|length|lens\b|ignore_index|-\s*100\b|pack_padded|valid|nested|reduction", re.IGNORECASE)
_LABELS = re.compile(r"label|tag|target|trg|tgt|(^|_)ys?\d?$|output", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at models, means, labels and padded sequences."""
    files = [f for f in project.files if "padding" in f.text or "pretrained" in f.text or "pad_sequence" in f.text]
    codes = [syntax(f) for f in files]
    left_out = any(f.mentions(_LEFT_OUT) for f in project.files)
    padding = [(c, call) for c in codes if "padding" in c.file.text for call in c.of(ast.Call) if pads(c, call)]
    opened = [c for c in codes if "from_pretrained" in c.file.text]
    encoders = bool(padding) and any("pretrained" in c.file.text for c in codes)
    generates = any("labels" in c.file.text for c in codes) and any(c.file.mentions(_GENERATES) for c in opened)
    for code in codes:
        if encoders:
            yield from _without_mask(project, codes, code, padding)
        yield from _means(codes, code, padding)
        if not left_out:
            yield from _labels(codes, code, generates)
    yield from _sequences(project, codes)


_Padding = Sequence[tuple[Syntax, ast.Call]]


def _without_mask(project: Project, codes: Sequence[Syntax], code: Syntax, padding: _Padding) -> Iterator[Finding]:
    """Encoders that get padded tokens and not their mask."""
    for call in code.of(ast.Call):
        ids = argument(call, 0, "input_ids")
        if ids is None or len(call.args) > 1 or any(k.arg in (None, "attention_mask", "inputs_embeds")
                                                    for k in call.keywords):  # fmt: skip
            continue
        kind = pretrained(codes, code, call.func)
        if not kind[:1].isupper() or _CAUSAL.search(kind):
            continue  # a class that is chosen while it runs may be any
        encoding = part_of(code, ids, "input_ids")
        made = padded(code, encoding) if encoding is not None else None
        if made is None:
            if any("attention_mask" in f.text for f in project.files) or not _is_tokens(ids):
                continue
            made = padding[0][1]
        place = code.at(made) if encoding is not None and padded(code, encoding) else padding[0][0].at(padding[0][1])
        why = f"{written(call)[:90]} at {code.at(call)} gives {kind} tokens padded at {place} without their mask"
        yield _finding(code, call, f"{why}: it attends to the padding", "mask", Severity.HIGH, Bearing.CAUSE,
                       _with_mask(code, call, encoding))  # fmt: skip


def _is_tokens(ids: ast.expr) -> bool:
    return bool(re.search(r"ids|token", written(ids), re.IGNORECASE))


def _with_mask(code: Syntax, call: ast.Call, encoding: ast.expr | None) -> tuple[Patch, ...]:
    ids = argument(call, 0, "input_ids")
    if encoding is None or ids is None or "input_ids" not in written(ids):
        return ()
    mask = written(ids).replace("input_ids", "attention_mask")
    return Change(code.file, "give the mask too").pass_argument(call, "attention_mask", mask).patches()


def _means(codes: Sequence[Syntax], code: Syntax, padding: _Padding) -> Iterator[Finding]:
    """Means over all positions of a model's last hidden states, in functions that use the mask for nothing else."""
    for call in code.calls("mean"):
        plain = bool(code.qualified(call.func))
        states = (call.args[0] if call.args else None) if plain else getattr(call.func, "value", None)
        if not isinstance(states, ast.expr) or code.number(argument(call, 1 if plain else 0, "dim", "axis")) != 1:
            continue
        model = _states_of(code, states)
        if model is None or not pretrained(codes, code, model.func) or _uses_mask(code, model):
            continue
        given = next((k.value for k in model.keywords if k.arg is None), None)
        here = padded(code, given) if given is not None else None
        masked = any(k.arg == "attention_mask" for k in model.keywords) or len(model.args) > 1
        if here is None and not masked:
            continue
        sure = here is not None or bool(padding)
        where = f", padded at {code.at(here)}" if here is not None else ""
        yield _finding(
            code, call, f"{written(call)[:90]} at {code.at(call)} averages over all positions of {written(model.func)}"
            f"{where}: padding counts as text", "mean", Severity.MEDIUM,
            Bearing.CAUSE if sure else Bearing.SIGN, (),
        )  # fmt: skip


def _states_of(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The model's call whose hidden states a value is: `.last_hidden_state`, `[0]`, `.hidden_states[-1]`."""
    node = moved(code.origin(moved(node)))
    part = code.number(node.slice) if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and part is not None:
        inner = node.value.value if node.value.attr == "hidden_states" else node
    elif isinstance(node, (ast.Attribute, ast.Subscript)) and (
            part == 0 or (isinstance(node, ast.Attribute) and node.attr == "last_hidden_state")):  # fmt: skip
        inner = node.value
    else:
        return None
    inner = code.origin(inner)
    return inner if isinstance(inner, ast.Call) else None


def _uses_mask(code: Syntax, model: ast.Call) -> bool:
    """Whether the function does something with a mask beside giving it to the model."""
    inside = {id(n) for n in below(model)}
    for node in below(code.scope(model)):
        named = isinstance(node, (ast.Name, ast.Attribute)) and "mask" in last_name(node).lower()
        keyed = isinstance(node, ast.Constant) and isinstance(node.value, str) and "mask" in node.value
        if (named or keyed) and id(node) not in inside and not isinstance(getattr(node, "ctx", None), ast.Store):
            return True
    return False


def _labels(codes: Sequence[Syntax], code: Syntax, generates: bool) -> Iterator[Finding]:
    """Padded tokens given as labels, where nothing in the project leaves padding out."""
    for call in code.of(ast.Call):
        given = argument(call, 99, "labels")
        if given is None:
            continue
        encoding = part_of(code, given, "input_ids")
        made = padded(code, encoding) if encoding is not None else None
        kind = pretrained(codes, code, call.func) if made is not None else ""
        if made is not None and kind and _GENERATES.search(kind):
            yield _as_labels(code, given, made)
    if "labels" not in code.file.text or not generates:
        return
    for node, given in _entries(code):
        encoding = part_of(code, given, "input_ids")
        made = padded(code, encoding) if encoding is not None else None
        if made is not None:
            yield _as_labels(code, node, made)
        elif isinstance(encoding, ast.Name) and (first := _padded_before(codes, code, encoding)) is not None:
            where, made = first
            yield _as_labels(code, node, made, where)


def _entries(code: Syntax) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What is put under "labels": by an assignment, in a dictionary, by dict() or update()."""
    for assign in code.of(ast.Assign):
        target = assign.targets[0]
        key = target.slice if isinstance(target, ast.Subscript) else None
        if isinstance(key, ast.Constant) and key.value == "labels":
            yield assign, assign.value
    for table in code.of(ast.Dict):
        for name, value in zip(table.keys, table.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == "labels":
                yield value, value
    for call in code.calls("dict", "update"):
        named = argument(call, 99, "labels")
        if named is not None:
            yield named, named


def _padded_before(codes: Sequence[Syntax], code: Syntax, row: ast.Name) -> tuple[Syntax, ast.Call] | None:
    """The padding call of another map or collate step, where the row of this one comes from a data set."""
    body = code.function(row)
    around = next((a for a in code.above(row) if isinstance(a, ast.Lambda)), None) or body
    if around is None or code.bindings(row) or row.id not in parameters(around):
        return None
    mapped = [c for o in codes for c in o.calls("map", "set_transform", "with_transform") for a in c.args[:1]
              if a is around or (body is not None and around is body and last_name(a) == body.name)]  # fmt: skip
    calls = [(o, c) for o in codes if "padding" in o.file.text for c in o.of(ast.Call)
             if last_name(c.func) != "pad" and pads(o, c)]  # fmt: skip
    longest = [(o, c) for o, c in calls if _says(c, "max_length")]
    return longest[0] if mapped and longest and len(calls) == len(longest) else None


def _says(call: ast.Call, word: str) -> bool:
    given = argument(call, 99, "padding")
    return isinstance(given, ast.Constant) and given.value == word


def _as_labels(code: Syntax, node: ast.AST, made: ast.Call, other: Syntax | None = None) -> Finding:
    place = (other or code).at(made)
    why = f"{written(node)[:90]} at {code.at(node)} takes the padded tokens (from {place}) as labels"
    return _finding(code, node, f"{why}, and nothing sets padding to -100: the loss counts it", "labels",
                    Severity.HIGH, Bearing.CAUSE if other is None else Bearing.SIGN, ())  # fmt: skip


def _sequences(project: Project, codes: Sequence[Syntax]) -> Iterator[Finding]:
    """pad_sequence over labels in a project that leaves nothing out of its cross entropy."""
    calls = [(c, call) for c in codes for call in c.calls("pad_sequence")]
    if not calls or any(f.mentions(_MASKED) for f in project.files):
        return
    losses = [c for f in project.files for c in syntax(f).calls("cross_entropy", "CrossEntropyLoss", "NLLLoss")]
    for code, call in calls:
        value = code.number(argument(call, 2, "padding_value"))
        first = call.args[0] if call.args else None
        statement = code.statement(call)
        name = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        if losses and first is not None and value != -100 and _LABELS.search(last_name(first) or name):
            why = f"{written(call)} at {code.at(call)} pads labels with {value or 0:g}, and the cross entropy has no"
            yield _finding(code, call, f"{why} ignore_index: padding is a class of the loss", "sequence",
                           Severity.HIGH, Bearing.CAUSE, ())  # fmt: skip


def _finding(
    code: Syntax, node: ast.AST, why: str, kind: str, severity: Severity, bearing: Bearing, patch: tuple[Patch, ...]
) -> Finding:
    return RULE.finding(
        why,
        code.place(node),
        code.file.path,
        bearing=bearing,
        severity=severity,
        measured={"kind": kind},
        patch=patch,
    )
