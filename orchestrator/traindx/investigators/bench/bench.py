"""The bench: the tools by name, what a model is told of each, and what answers a call.

Search and instruments only read. A probe and an experiment run in the protected runner, and only where the person
agreed that code is run. What the latter three bring is kept under an id (`outputs.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx import mcp_tools, probing
from traindx.investigators.bench.outputs import Output, Outputs
from traindx.investigators.claude_code.redaction import redacted
from traindx.investigators.messages_api import file_tools
from traindx.mcp_paths import Reach
from traindx.safe_text import block
from traindx_tools.errors import BadUsage, TraindxError

SERVER = "traindx"
AT_ONCE = 2
"""Instruments and probes that work at the same time: they are this machine's work, not the API's."""
SHOWN_LINES, SHOWN_CHARACTERS = 120, 8_000
"""Of a run's output that is told to the model: its beginning and its end."""

SEARCH, PROBE, EXPERIMENT, INSTRUMENT = "search", "run_probe", "run_experiment", "instrument"
RUNS = (PROBE, EXPERIMENT)
OFFERED = tuple(name for name in (
    "extract_metrics", "list_findings", "audit_code", "examine_data", "examine_weights", "replay_batch", "jaxpr",
    "explain", "list_failure_modes", "list_experiments") if name in mcp_tools.TOOLS)
"""Instruments that measure or look up. What ranks causes is left out: an agent looks itself first."""


def full_name(name: str) -> str:
    """The tool as the model calls it."""
    return f"mcp__{SERVER}__{name}"


def _properties(**named: Any) -> dict[str, Any]:
    return {name: kind if isinstance(kind, dict) else {"type": kind} for name, kind in named.items()}


DEFINITIONS: dict[str, dict[str, Any]] = {
    SEARCH: {
        "description": "Lines of files that match a regular expression; with `names`, files whose path matches "
                       "(**/*.py).",
        "inputSchema": {"type": "object", "required": ["pattern"], "properties": _properties(
            pattern="string", path="string", glob="string", context="integer", names="boolean")}},
    PROBE: {
        "description": "Runs Python, or with `shell` a command, in a protected copy of the workspace: load data and "
                       "weights, count, compare, train some steps. The output is kept as P001 ..., lines numbered: "
                       "cite P001:LINE. Print what was measured, no verdict.",
        "inputSchema": {"type": "object", "required": ["code"], "properties": _properties(
            code="string", shell="boolean", seconds={"type": "number", "description": "at most 600"})}},
    INSTRUMENT: {
        "description": "Measures without running the project; the output is kept as I001 ...: cite it. "
                       "extract_metrics {paths, metrics?}; list_findings {paths}; audit_code {paths}; examine_data "
                       "{paths}; examine_weights {file, against?}; replay_batch {file}; jaxpr {file, function, "
                       "arguments}; explain {name}; list_failure_modes {symptom?, text?}; list_experiments {name?}.",
        "inputSchema": {"type": "object", "required": ["name", "arguments"], "properties": _properties(
            name="string", arguments="object")}},
    EXPERIMENT: {
        "description": "Trains with and without one change and with other seeds, in copies, until decided. Output X001 "
                       "...: cite it.",
        "inputSchema": {"type": "object", "required": ["command", "change"], "properties": _properties(
            command="string", change={"type": "string", "description": "learning-rate:times=0.1 (list_experiments)"},
            symptom="string", outcome={"type": "string", "description": "nonfinite, error:TEXT, exit, hang, "
                                       "level:METRIC<BOUND, fall, rise, gap, step-time, memory-growth"},
            paths={"type": "array", "items": {"type": "string"}}, budget="number", seed_option="string")}},
}
"""As short as a model can use them: they are sent with every conversation; an answer tells what is wrong in a call."""


def definitions() -> dict[str, dict[str, Any]]:
    """Every tool of the bench that there is, by its plain name: an experiment only where the experiments are there."""
    return {n: d for n, d in DEFINITIONS.items() if n != EXPERIMENT or EXPERIMENT in mcp_tools.TOOLS}


def names(runs: bool = True) -> tuple[str, ...]:
    """Full names of the bench's tools. `runs`: with those that run code."""
    return tuple(full_name(n) for n in definitions() if runs or n not in RUNS)


def run_names() -> frozenset[str]:
    """Full names of those that run code, for `policy.Scope.runs`."""
    return frozenset(full_name(n) for n in definitions() if n in RUNS)


@dataclass
class Bench:
    """The tools of one session. `may_run`: the person agreed that code is run."""

    workspace: Path
    scratch: Path
    may_run: bool = False
    outputs: Outputs = field(init=False)
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _count: int = 0

    def __post_init__(self) -> None:
        self.outputs = Outputs(self.scratch)

    async def use(self, name: str, arguments: Mapping[str, Any], who: str) -> tuple[str, bool]:
        """What a call brought, and whether it is an error. Raises nothing but StateNotWritable and CancelledError."""
        try:
            async with self._turn:
                return block(redacted(await self._called(name, dict(arguments), who)), 120_000), False
        except TraindxError as error:
            return redacted(str(error)), True
        except Exception as error:  # noqa: BLE001 - a fault of a tool must not end the conversation
            return f"{name} failed inside traindx ({type(error).__name__})", True

    async def _called(self, name: str, arguments: dict[str, Any], who: str) -> str:
        if name == SEARCH:
            tool = file_tools.glob if arguments.get("names") else file_tools.grep
            return await tool(arguments, self.workspace)
        if name in RUNS and not self.may_run:
            raise BadUsage("the person did not agree that code is run (--run, allow_run=True): go on by reading, and "
                           "name the probe under `missing`")
        if name == PROBE:
            return await self._probe(arguments, who)
        if name == EXPERIMENT:
            return await self._by_instrument(EXPERIMENT, EXPERIMENT, arguments, who)
        inner = arguments.get("arguments", {})
        if arguments.get("name") not in OFFERED or not isinstance(inner, dict):
            raise BadUsage(f"expected {{name: one of {', '.join(OFFERED)}, arguments: an object}}")
        return await self._by_instrument(INSTRUMENT, str(arguments["name"]), inner, who)

    async def _by_instrument(self, kind: str, name: str, arguments: dict[str, Any], who: str) -> str:
        reach = Reach.of(self.workspace, allow_run=self.may_run)
        text = await asyncio.to_thread(mcp_tools.call, name, arguments, reach, lambda _: None)
        kept = self.outputs.add(kind, {"name": name, **arguments}, redacted(text), who)
        return f"[{kept.id}]\n{text}"

    async def _probe(self, arguments: dict[str, Any], who: str) -> str:
        probe = probe_of(arguments)
        self._count += 1
        ran = await probing.run(probe, self.workspace, self.scratch / "conversation" / f"running-{self._count}")
        kept = self.outputs.add(PROBE, arguments, ran.text, who)
        return told(kept, ran.ended)


def probe_of(arguments: Mapping[str, Any]) -> probing.Probe:
    """The probe in a call's arguments. Raises BadUsage."""
    code, seconds = arguments.get("code"), arguments.get("seconds", probing.SECONDS)
    if not isinstance(code, str) or not code.strip() or len(code) > probing.CODE_AT_MOST or "\0" in code:
        raise BadUsage(f"code: expected a text of at most {probing.CODE_AT_MOST} characters")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= probing.MOST_SECONDS:
        raise BadUsage(f"seconds: expected a number up to {probing.MOST_SECONDS:g}, got {str(seconds)[:40]!r}")
    return probing.Probe(code, bool(arguments.get("shell")), float(seconds))


def told(kept: Output, ended: str) -> str:
    """An output as the model is told of it: numbered lines, the middle left out where there are many."""
    rows = [f"{n}\t{row}" for n, row in enumerate(kept.lines, 1)]
    head = f"[{kept.id}] {ended}; {len(rows)} lines"
    if len(rows) > SHOWN_LINES:
        half = SHOWN_LINES // 2
        rows = [*rows[:half], f"[lines {half + 1} to {len(rows) - half} are in {kept.path}]", *rows[-half:]]
    text = "\n".join(rows)
    if len(text) > SHOWN_CHARACTERS:
        half = SHOWN_CHARACTERS // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    return f"{head}\n{text}"


_ID = re.compile(r"[`\[(]*(?P<id>[PXI]\d{3,6})\b[\])`]*(?::(?:L|line )?(?P<line>\d{1,9})\b)?")


def output_place(text: str) -> tuple[str, int | None] | None:
    """(id, line) of a place such as "P001:12" or "I003", or None."""
    found = _ID.match(text.strip())
    return (found["id"], int(found["line"]) if found["line"] else None) if found else None
