"""Which checks and fixes of a failure mode fit this run: its device, its libraries, what was measured already.

The catalog writes checks for every run; a run needs the ones that can tell it something. A check of CUDA memory tells
nothing of a run on the CPU, a search of the code nothing where the line was found, and a rerun under instruments
nothing that they have said already. What a check needs is read from its own text (`_DERIVED`), or told in its file
(`needs`, `unless`). What is not known of a run speaks against no check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx_tools.catalog.catalog import FailureMode, Step
from traindx_tools.finding import Bearing, Finding

MOST_TEXT = 2_000_000
"""Characters of code that are looked through."""

_DERIVED = tuple((re.compile(pattern), need) for pattern, need in (
    (r"torch\.cuda|nvidia-smi|compute-sanitizer|CUDA_|PYTORCH_CUDA|autocast\(\"cuda\"|another GPU", "cuda"),
    (r"JAX_DEBUG_KEY_REUSE", "typed-keys"),
    (r"\bJAX_[A-Z]|\bjax\.(?!key)|\bjnp\.", "jax"),
    (r"\btorch\.(?!cuda)|\bTORCH|\bbackward\(|before backward|(?<!jax)\.grad\b|zero_grad|\.parameters\(\)|param_groups"
     r"|named_parameters|state_dict\(\)|requires_grad|grad_fn", "torch"),
))  # fmt: skip
"""(what a check says, what it needs)."""
_INSTRUMENTS = re.compile(r"\b[TJ]\d{3}\b")
_RERUN = re.compile(r"^traindx (diagnose PATH --run|run )")
_ABSENCE = re.compile(r"\b(absent|missing|none|no|never|not|nothing)\b|^0\b", re.IGNORECASE)
_ACCELERATED = re.compile(r"cuda|nvidia|\bnccl\b|device-side|\bgpu", re.IGNORECASE)
_CHOOSES_ITSELF = re.compile(
    r"^[ \t]*(?:import|from)\s+(?:jax|flax|lightning|pytorch_lightning|transformers|accelerate|deepspeed|keras|"
    r"tensorflow|trl|ignite|fastai)\b|\bdevice\b", re.MULTILINE)  # fmt: skip
"""A program that may run on an accelerator without naming it."""
_JAX = frozenset({"jax", "flax", "optax", "equinox", "haiku", "orbax"})
_TORCH = frozenset({"torch", "torchvision", "lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed",
                    "trl", "peft", "timm", "fastai", "ignite", "ultralytics", "sentence_transformers"})  # fmt: skip
"""Libraries that a program of the framework may import alone."""
_LIBRARY = re.compile(r"^[ \t]*(?:import|from)\s+(\w+)", re.MULTILINE)
_SCHEDULED = re.compile(r"\wLR\(|Scheduler\(|_schedule\w*\(|WarmRestarts\(|\[.lr.\]\s*=[^=]")


@dataclass(frozen=True)
class Circumstances:
    """What is known of a run. None, or an empty text, where nothing is known."""

    device: str | None = None
    """"cuda" or "cpu"."""
    libraries: frozenset[str] | None = None
    keys: str | None = None
    """How a JAX program makes its keys: "typed" (`jax.random.key`) or "old" (`PRNGKey`)."""
    scheduled: bool | None = None
    seen: frozenset[str] = frozenset()
    """Rules of the findings."""
    code: str = ""

    @classmethod
    def of(cls, code: Sequence[Path], findings: Iterable[Finding], told: Iterable[str] = ()) -> Circumstances:
        """From the code files, the findings and the texts of errors."""
        found = tuple(findings)
        text = _read(code)
        words = " ".join((*told, *(f.statement for f in found)))
        device: str | None = None
        if _ACCELERATED.search(words):
            device = "cuda"
        elif text and not _ACCELERATED.search(text) and not _CHOOSES_ITSELF.search(text):
            device = "cpu"
        typed, old = "random.key(" in text, "PRNGKey(" in text
        return cls(
            device=device,
            libraries=frozenset(_LIBRARY.findall(text)) if text else None,
            keys="typed" if typed else "old" if old else None,
            scheduled=bool(_SCHEDULED.search(text)) if text else None,
            seen=frozenset(f.rule for f in found),
            code=text,
        )

    def has(self, need: str) -> bool:
        """Whether a need is met, or nothing is known of it."""
        if need in ("cuda", "cpu"):
            return self.device == need if need == "cpu" else self.device != "cpu"
        if need == "typed-keys":
            return self.keys != "old"
        if need in ("schedule", "no-schedule"):
            return bool(self.scheduled) == (need == "schedule")
        if self.libraries is None:
            return True
        of_jax, of_torch = bool(self.libraries & _JAX), bool(self.libraries & _TORCH)
        if need == "jax":
            return of_jax
        return of_torch or not (of_jax or "numpy" in self.libraries)


NEEDS = frozenset({"cuda", "cpu", "typed-keys", "schedule", "no-schedule", "jax", "torch"})
"""What a check may need."""


def _read(code: Sequence[Path]) -> str:
    texts: list[str] = []
    left = MOST_TEXT
    for path in code:
        try:
            with path.open("rb") as file:
                texts.append(file.read(left).decode("utf-8", "replace"))
        except OSError:
            continue
        left -= len(texts[-1])
        if left <= 0:
            break
    return "\n".join(texts)


def needs_of(step: Step) -> frozenset[str]:
    """What a check needs: what it says itself, and what its words and its command imply."""
    text = f"{step.do} {step.command}"
    implied = {need for pattern, need in _DERIVED if pattern.search(text)}
    return frozenset({*step.needs, *implied})


def said_by(step: Step) -> frozenset[str]:
    """The rules after which a check tells nothing new: those named, and those that a rerun is to report."""
    reported = _INSTRUMENTS.findall(f"{step.do} {step.expect}") if _RERUN.match(step.command) else []
    return frozenset({*step.unless, *reported})


def fits(step: Step, here: Circumstances, line_found: bool = False) -> bool:
    """Whether a check can tell something of this run. `line_found`: the code's fault was seen at its line."""
    if not all(here.has(need) for need in needs_of(step)) or said_by(step) & here.seen:
        return False
    if step.command.startswith("grep ") and "train.py" in step.command:
        return not line_found and _would_find(step, here.code)
    return True


def _would_find(step: Step, code: str) -> bool:
    """Whether a search of the code finds a line, or finding none is what it is to tell; True where no code is known."""
    pattern = re.match(r"grep -(\w*)\s+(['\"])(.*?)\2 ", step.command)
    if not code or pattern is None or _ABSENCE.search(step.expect):
        return True
    text = pattern[3] if "E" in pattern[1] else re.sub(r"([()+?{}|])", r"\\\1", pattern[3])
    try:
        return any(re.search(text, line) for line in code.splitlines())
    except re.error:
        return True


def fitted(mode: FailureMode, findings: Sequence[tuple[Finding, Bearing]], here: Circumstances) -> FailureMode:
    """The mode as it reads for this run: what was measured chooses its words and fixes, the run its checks.

    `findings`: what speaks for it, the strongest first, each with how near it is to the cause.
    """
    chosen = mode.in_case([f for f, _ in findings])
    line = any(f.rule.startswith("C") and s is Bearing.CAUSE and f.where.line is not None for f, s in findings)
    return replace(
        chosen,
        confirm=tuple(s for s in chosen.confirm if fits(s, here, line)),
        rule_out=tuple(s for s in chosen.rule_out if fits(s, here, line)),
    )
