"""Lines that are no metrics and no errors but say something of the run: resumed, saved, how many processes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from traindx_tools.on_logs.readers.languages import RESUME_WORDS, RESUMED
from traindx_tools.on_logs.readers.names import TEST, VALIDATION
from traindx_tools.on_logs.readers.numbers import value

MAX_NOTES = 2_000
"""Notes of one kind kept of one artifact: a file that is named at each step leaves room for the steps skipped."""
MAX_TEXT = 400

_NUMBER_OF = r"(?:num|number)[_ ](?:of[_ ])?(?:gpus|devices|processes|ranks|nodes)"
_COUNTED = r"(?:batches|samples|examples|images|sentences|sequences|documents|rows)"
_FILE = r"\S{1,120}\.(?:pt|pth|ckpt|safetensors)\b"
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple((kind, re.compile("|".join(parts), re.I)) for kind, parts in (
    ("step_skipped", (r"\bskip(?:ping|ped)\b.{0,40}\b(?:step|batch|update|iteration)", r"gradient overflow",
                      r"\bOVERFLOW!", r"non-?finite.{0,40}(?:skip|grad|loss)", r"reducing loss scale",
                      r"loss scale.{0,20}reduc")),
    ("resume", (r"\bresum(?:e|ing|ed)\b", r"\brestor(?:ing|ed)\b.{0,60}(?:checkpoint|state|from)",
                r"\bcontinu(?:e|ing)\b.{0,40}(?:from|training)", r"=> loaded",
                rf"load(?:ing|ed)\b.{{0,40}}(?:\b(?:checkpoint|optimizer|scheduler|state)\b|{_FILE})",
                r"starting (?:from|at) (?:epoch|step|iteration|checkpoint)", RESUMED)),
    ("checkpoint", (r"\b(?:sav(?:ed|ing|es)|writ(?:ing|ten|es))\b.{0,80}(?:checkpoint|model|weights|state)",
                    rf"\b(?:sav(?:ed|ing|es)|writ(?:ing|ten|es))\b.{{0,80}}{_FILE}",
                    r"checkpoint.{0,30}(?:saved|written)", r"^best model", r"new best")),
    ("world_size", (r"world[_ ]?size", r"\b(?:num_)?processes\b", r"\bnprocs?\b", rf"\b{_NUMBER_OF}\b",
                    r"\b(?:on|using|with|across)\s\d+\s(?:gpus|devices|accelerators|tpus?|ranks|processes)\b")),
    ("precision", (r"mixed[_ ]precision", r"\b(?:bf16|fp16|float16|bfloat16|fp32|tf32|fp8)\b", r"\bautocast\b",
                   r"\bGradScaler\b", r"\bamp\b")),
    ("parameters", (r"\bparam(?:eter)?s\b.{0,24}\d", r"\d\s?[MBK]?\s?(?:trainable )?param(?:eter)?s\b")),
    ("device", (r"\bdevices?\b\W{0,3}(?:cuda|cpu|gpu|tpu|mps|xla)", r"\bGPU available\b", r"\bNVIDIA\b",
                r"\bTPU v\d")),
    ("dataset", (rf"\d[\d,]*\s*(?:/|,|and)?\s*(?:train\w*|val\w*|test|eval\w*)?\s*\b{_COUNTED}\b(?!/)",
                 rf"\b(?:dataset|num examples|{_COUNTED})\b\W{{0,3}}\d")),
    ("change", (r"\bcurriculum\b", r"\b(?:stage|phase)\b.{0,12}\d",
                r"\b(?:enter|start|begin|switch|mov)\w*\b.{0,30}\b(?:stage|phase|task|data|dataset|mixture|source)\b",
                r"\bswitch(?:ing|ed)?\b.{0,24}\bto\b",
                r"\b(?:un)?fr(?:eez|oz)\w+\b.{0,40}\b(?:layer|encoder|backbone|trunk|embedding|block|param)",
                r"\b(?:increas|rais|extend|grow)\w*\b.{0,40}\b(?:sequence length|seq_?len|context|resolution|"
                r"difficulty|batch size|image size)\b", r"\bdifficulty\b")),
    ("other", (r"\btotal[_ ](?:optimization[_ ])?steps\b", r"\bmax[_ ]steps\b", r"\bnum[_ ]epochs\b",
               r"\bsteps ?/ ?epoch\b", r"\bsteps per epoch\b")),
))
NEEDS = {
    "step_skipped": ("skip", "overflow", "finite", "loss scale"),
    "resume": ("resum", "restor", "continu", "load", "starting ", *RESUME_WORDS),
    "checkpoint": ("sav", "writ", "checkpoint", "best"),
    "world_size": ("world", "process", "nproc", "gpu", "device", "accelerator", "tpu", "rank", "node"),
    "precision": ("precision", "f16", "p16", "t16", "p32", "f32", "fp8", "autocast", "gradscaler", "amp"),
    "parameters": ("param",),
    "device": ("device", "gpu available", "nvidia", "tpu v"),
    "dataset": ("batches", "samples", "examples", "images", "sentences", "sequences", "documents", "rows", "dataset"),
    "change": ("curriculum", "stage", "phase", "task", "data", "mixture", "source", "switch", "freez", "froz",
               "sequence length", "seq_len", "seqlen", "context", "resolution", "difficulty", "batch size",
               "image size"),
    "other": ("steps", "epochs"),
}
"""Words of which a line of a kind holds at least one, in lower case: told first, because the full look is slow."""
WORDS = frozenset(word for _, pattern in _KINDS
                  for word in re.findall("[a-z]{2,}", re.sub(r"\\[a-zA-Z]", " ", pattern.pattern.lower())))
"""The words, and parts of some, by which notes are known."""
_WITHOUT_METRICS = frozenset({"step_skipped", "resume", "world_size", "parameters", "device"})
_SAVES = re.compile(r"^\W*(?:sav(?:ed|ing)|writ(?:ing|ten)|checkpoint|best model|new best|model saved|=> saving)", re.I)

_NAME = r"([A-Za-z]\w{0,40}(?:[ /]\w{1,40}){0,4}?)"
_VALUE = r"([+-]?\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?)\s?([KMB]?)(?![\w.])"
_PAIR = re.compile(rf"{_NAME}\s*[:=]?\s+{_VALUE}|{_NAME}\s*[:=]\s*{_VALUE}")
_BATCHES = re.compile(r"(\d[\d,]*)\s+(train|val|valid|validation|test|eval)\w*"
                      r"(?=.*?\b(batches|samples|examples|images|sentences)\b)")
_WORDS = re.compile(r"\b([a-z_]*precision|dtype|device)\b\s*[:=]?\s*([A-Za-z][\w:-]*)", re.IGNORECASE)
_WORLD = re.compile(r"world[_ ]?size(?:\W{0,4}| \.{2,80} )(\d+)|(?:\bprocesses|num_processes|\bnprocs?|"
                    r"(?:number|num)[_ ](?:of[_ ])?(?:gpus|devices|processes|ranks))\W{1,3}(\d+)|"
                    r"\b(\d+)\s(?:processes|ranks)\b|"
                    r"\b(?:on|using|with|across)\s(\d+)\s(?:gpus|devices|accelerators|tpus?)\b", re.IGNORECASE)
_PLANNED = re.compile(r"\b(?:total[_ ](?:optimization[_ ]|training[_ ]|train[_ ])?steps|max[_ ]steps|max[_ ]iters|"
                      r"num[_ ]training[_ ]steps|train[_ ]iters)\b\W{0,4}(\d[\d,]*)", re.IGNORECASE)
_MAGNITUDE = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9}


_EVENT_NAMES = frozenset({"event", "event_type", "type", "kind", "message", "msg", "action", "status", "text"})
"""Members of a record of JSON by which loggers say what happened."""
_EVENT_OF_DATA = frozenset({"event", "event_type", "type", "kind", "message", "msg"})
"""Those whose words may say on which data the record was measured."""
_LONGEST_EVENT, _WORDS_OF_EVENT = 40, 3
_HELD_OUT = {**dict.fromkeys(("val", "valid", "validation", "validate", "eval", "evaluation", "evaluate"), VALIDATION),
             **dict.fromkeys(("test", "testing"), TEST)}
_OF_TRAINING = frozenset({"train", "training"})
_SETTINGS = frozenset({"never", "allow", "must", "auto", "false", "true", "no", "yes", "none", "null"})
"""Values of settings: `"resume": "allow"` is no resume."""


def kind_of(text: str) -> str | None:
    """The kind of note that a line is, None for none."""
    text = text[:MAX_TEXT]
    low = text.lower()
    kinds = ((kind, pattern) for kind, pattern in _KINDS if any(word in low for word in NEEDS[kind]))
    return next((kind for kind, pattern in kinds if pattern.search(text)), None)


def of_event(record: Mapping[str, Any], *, measured: bool) -> tuple[str, str] | None:
    """Kind and text of what a record of names and values says besides numbers; None where it says nothing.

    `measured`: it holds a metric; then only the member that names the event speaks, for its other texts are columns.
    """
    said = {n: v for n, v in record.items() if isinstance(v, str) and v.strip() and v.strip().lower() not in _SETTINGS}
    speaking = {n: v for n, v in said.items() if n.lower() in _EVENT_NAMES} if measured else said
    kind = kind_of(_spoken(speaking)) if speaking else None
    return None if kind is None else (kind, ", ".join(f"{n}: {v}" for n, v in said.items())[:MAX_TEXT])


def group_of_event(record: Mapping[str, Any]) -> str:
    """On which held-out data the record's numbers were measured, where its event is named so: `"event": "eval"`,
    `"msg": "validation done"`; "" where it is not. A sentence names no event."""
    for name, told in record.items():
        if isinstance(told, str) and len(told) <= _LONGEST_EVENT and name.lower() in _EVENT_OF_DATA:
            words = re.findall("[a-z]+", told.lower())
            groups = {_HELD_OUT.get(w, "") for w in words} - {""}
            if len(words) <= _WORDS_OF_EVENT and len(groups) == 1 and not _OF_TRAINING & set(words):
                return groups.pop()
    return ""


def _spoken(record: Mapping[str, str]) -> str:
    """The members as words: names of events are written with underscores."""
    return ", ".join(f"{n.replace('_', ' ')}: {v.replace('_', ' ') if n.lower() in _EVENT_NAMES else v}"
                     for n, v in record.items())


def hides_metrics(kind: str, text: str) -> bool:
    """Whether the numbers of such a line are settings or remarks rather than values of the run's metrics."""
    return kind in _WITHOUT_METRICS or (kind == "checkpoint" and _SAVES.search(text) is not None)


def values_of(text: str) -> dict[str, float | str]:
    """What a note states, by name in lower snake case: numbers, precision and device words."""
    found: dict[str, float | str] = {}
    for match in _PAIR.finditer(text[:MAX_TEXT]):
        name, number, magnitude = match.group(1) or match.group(4), match.group(2) or match.group(5), (
            match.group(3) or match.group(6) or "")
        read = value(number)
        if read is not None:
            found["_".join(name.lower().replace("/", " per ").split())] = read * _MAGNITUDE[magnitude]
    for match in _BATCHES.finditer(text[:MAX_TEXT]):
        found[f"{match.group(2)}_{match.group(3)}"] = float(match.group(1).replace(",", ""))
    for match in _WORDS.finditer(text[:MAX_TEXT]):
        found.setdefault(match.group(1).lower(), match.group(2))
    return found


def world_size(text: str) -> int | None:
    """How many processes a line says there are."""
    match = _WORLD.search(text[:MAX_TEXT])
    count = next((g for g in match.groups() if g), None) if match else None
    return int(count) if count and len(count) < 8 and int(count) > 0 else None


def planned_steps(text: str) -> float | None:
    """How many steps a line says are planned."""
    match = _PLANNED.search(text[:MAX_TEXT])
    return float(match.group(1).replace(",", "")) if match else None
