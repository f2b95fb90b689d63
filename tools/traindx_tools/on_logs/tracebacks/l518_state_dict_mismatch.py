"""A checkpoint does not fit the model: missing keys, unexpected keys, sizes.

When the missing and the unexpected keys are the same but for a prefix, only the wrapping differs: "module." is DDP or
DataParallel, "_orig_mod." is torch.compile, "model." a Lightning module, "base_model.model." PEFT. Sizes that differ
mean another architecture, head or vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 20

RULE = Rule(
    id="L518",
    name="state-dict-mismatch",
    title="A checkpoint does not fit the model",
    severity=Severity.CRITICAL,
    sees="Missing and unexpected keys, size mismatches, optimizer groups that differ.",
    matters="The run does not start; strict=False would start it with weights that were never loaded.",
    alike=("A corrupt file (L522).", "A tokenizer that grew (L527)."),
    confirm=("Compare set(checkpoint) and set(model.state_dict()): is there one prefix that makes them equal?",
             "Build the model from the checkpoint's own configuration."),
)

_CLAIM = re.compile(r"Error\(s\) in loading state_dict|(?:Missing|Unexpected) key\(s\) in state_dict|size "
                    r"mismatch for \S+:"
                    r"|loaded state dict (?:contains a parameter group|has a different number of parameter groups)"
                    r"|[Mm]issing keys? .{0,40}checkpoint|Trying to set a tensor of shape")
_MISSING = re.compile(r"Missing key\(s\) in state_dict: (.*)")
_UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: (.*)")
_KEY = re.compile(r'"([^"]+)"')
_SIZE = re.compile(r"size mismatch for (?P<key>\S+): copying a param(?:eter)? with shape "
                   r"(?:torch\.Size\()?(?P<file>[\[(][\d, ]*"
                   r"[\])])\)? from checkpoint, the shape in current model is "
                   r"(?:torch\.Size\()?(?P<model>[\[(][\d, ]*[\])])")
_WRAPPERS = {"module.": "DistributedDataParallel or DataParallel", "_orig_mod.": "torch.compile",
             "base_model.model.": "PEFT", "model.": "a wrapping module", "_forward_module.": "a Fabric or FSDP wrapper"}


def claims(event: ErrorEvent) -> bool:
    """load_state_dict's messages."""
    return event.kind == "exception" and _CLAIM.search(event.message) is not None


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    text = incident.text
    missing, unexpected = _keys(_MISSING, text), _keys(_UNEXPECTED, text)
    sizes = list(_SIZE.finditer(text))
    measured: dict[str, Value] = {"missing": len(missing), "unexpected": len(unexpected), "sizes": len(sizes)}
    if missing:
        measured["first_missing"] = missing[0]
    if unexpected:
        measured["first_unexpected"] = unexpected[0]
    prefix = _prefix(missing, unexpected)
    if prefix is not None:
        return _prefixed(incident, prefix, measured)
    if sizes:
        return _sized(incident, sizes, measured)
    if "parameter group" in text:
        return report(RULE, incident, f"the saved optimizer has other parameter groups than this one ({short(text)})",
                      bearing=Bearing.CAUSE, measured={**measured, "kind": "optimizer-groups"})
    kind = "missing-keys" if missing and not unexpected else "unexpected-keys" if unexpected and not missing else "keys"
    told = [f"{len(missing)} keys of the model are missing ({missing[0]} ...)"] if missing else []
    told += [f"{len(unexpected)} keys are unexpected ({unexpected[0]} ...)"] if unexpected else []
    return report(RULE, incident, "the checkpoint does not fit the model: " + (", ".join(told) or short(text)),
                  bearing=Bearing.SIGN, measured={**measured, "kind": kind})


def _prefixed(incident: Incident, prefix: tuple[str, str], measured: dict[str, Value]) -> Finding:
    text, side = prefix
    whose = "the checkpoint's keys" if side == "checkpoint" else "the model's keys"
    by = f", as {_WRAPPERS[text]} adds it" if text in _WRAPPERS else ""
    return report(RULE, incident, f"{whose} carry the prefix '{text}' and the other side's do not{by}; the names agree "
                  "otherwise", bearing=Bearing.CAUSE,
                  measured={**measured, "kind": "prefix-mismatch", "prefix": text, "prefix_on": side})


def _sized(incident: Incident, sizes: list[re.Match[str]], measured: dict[str, Value]) -> Finding:
    first = sizes[0]
    more = f" and {len(sizes) - 1} more" if len(sizes) > 1 else ""
    return report(RULE, incident, f"{first['key']} is {first['file']} in the checkpoint and {first['model']} in "
                                  f"the model{more}",
                  bearing=Bearing.SIGN,
                  measured={**measured, "kind": "size-mismatch", "key": first["key"], "checkpoint_shape": first["file"],
                            "model_shape": first["model"]})


def _keys(pattern: re.Pattern[str], text: str) -> list[str]:
    match = pattern.search(text)
    return _KEY.findall(match[1]) if match else []


def _prefix(missing: list[str], unexpected: list[str]) -> tuple[str, str] | None:
    """The prefix that one side has and the other lacks, and which side; judged by the keys that the message shows."""
    for longer, shorter, side in ((unexpected, missing, "checkpoint"), (missing, unexpected, "model")):
        if not longer or not shorter:
            continue
        plain = set(shorter)
        prefixes = {key[: -len(end)] for key in longer[:1] for end in plain if key.endswith("." + end)}
        for prefix in sorted(prefixes, key=len):
            agree = sum(key.startswith(prefix) and key[len(prefix) :] in plain for key in longer)
            if agree >= 0.5 * len(longer):
                return prefix, side
    return None
