"""Tokenizer and embedding have different sizes: token ids exist that the model has no row for.

Tokens were added without `resize_token_embeddings`, the tokenizer belongs to another model, or the saved vocabulary and
the checkpoint differ. On a GPU it is a device-side assert (L501) or a cuBLAS error (L503).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 18

RULE = Rule(
    id="L527",
    name="tokenizer-embedding-size",
    title="Tokenizer and embedding differ in size",
    severity=Severity.CRITICAL,
    sees="Size mismatches of embeddings and heads in vocabulary size, ids at or above the vocabulary, missing pad "
         "tokens.",
    matters="The run is over, or ids are silently wrapped or padded on some backends.",
    alike=("Positions beyond the position table (L504).", "A different class head (L518)."),
    confirm=("len(tokenizer), model.get_input_embeddings().num_embeddings, max(input_ids).",
             "tokenizer.pad_token_id: None or at the vocabulary's end?"),
)

_SIZE = re.compile(r"size mismatch for (?P<key>\S*(?:embed_tokens|word_embeddings|wte|tok_embeddings|token_emb\w*"
                   r"|lm_head|"
                   r"embeddings\.weight|shared)\S*): .{0,60}?\[(?P<file>\d+), (?P<width>\d+)\]\)? from "
                   r"checkpoint.{0,60}?"
                   r"\[(?P<model>\d+), (?P=width)\]", re.DOTALL)
_OTHERS = re.compile(
    r"(?P<b>token id\w* .{0,60}(?:out of|exceed|larger|greater).{0,40}vocab\w*)"
    r"|(?P<c>(?:vocab(?:ulary)?[ _]size|tokenizer).{0,60}(?:does not match|mismatch|differs?|!=).{0,80})"
    r"|(?P<d>Asking to pad but the tokenizer does not have a padding token)"
    r"|(?P<e>Cannot handle batch sizes > 1 if no padding token is defined)"
    r"|(?P<f>`?pad_token_id`? .{0,40}(?:out of|exceed|larger|must be).{0,40})"
    r"|(?P<g>Padding_idx must be within num_embeddings)"
)


def claims(event: ErrorEvent) -> bool:
    """Messages about vocabulary sizes, also inside a state dict's size mismatches."""
    return event.kind == "exception" and bool(_SIZE.search(event.message) or _OTHERS.search(event.message))


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        match = _SIZE.search(incident.text)
        measured: dict[str, Value] = {"kind": "padding-token" if "pad" in incident.text.lower()[:200] else "vocabulary"}
        if match is None:
            yield report(RULE, incident, f"tokenizer and model do not fit ({short(incident.text)})",
                         bearing=Bearing.SIGN, measured=measured)
            continue
        measured = {"kind": "size", "key": match["key"], "checkpoint_rows": int(match["file"]),
                    "model_rows": int(match["model"])}
        yield report(RULE, incident, f"{match['key']} has {match['file']} rows in the checkpoint and "
                                     f"{match['model']} in the model: "
                     "the vocabularies differ", bearing=Bearing.CAUSE, measured=measured)
