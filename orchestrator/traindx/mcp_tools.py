"""The instruments as tools of an MCP server: a table, and the call of one by its name.

What answers is in `mcp_answers`. Nothing here knows the MCP SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from traindx import mcp_answers
from traindx import mcp_arguments as asked
from traindx.mcp_answers import GATE, Say
from traindx.mcp_page import page
from traindx.mcp_paths import Reach
from traindx.safe_text import block
from traindx_tools.errors import BadUsage, TraindxError, UnreadableInput


@dataclass(frozen=True)
class Tool:
    """One tool: what the client is told of it, its arguments, and what answers."""

    name: str
    title: str
    description: str
    arguments: type[asked.Arguments]
    answer: Callable[[Reach, Any, Say], str]
    narrower: str = ""
    """How to ask for less, for an answer that was cut."""
    read_only: bool = True
    idempotent: bool = True
    executes: bool = False
    """It runs the user's code, where the person agreed to it when they started the server; elsewhere it refuses."""
    protected: bool = False
    """It runs code where nothing can change the project, or not at all; the host asks the person as for a command."""

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints of the MCP specification, but those that mean nothing of a tool that only reads. The title stands
        in the definition and is not sent twice."""
        reads = self.read_only and not self.executes and not self.protected
        more = {} if reads else {"destructiveHint": False, "idempotentHint": self.idempotent}
        return {"readOnlyHint": reads, **more, "openWorldHint": self.protected}

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as the protocol lists it."""
        return {"name": self.name, "title": self.title, "description": self.description,
                "inputSchema": asked.schema_of(self.arguments), "annotations": self.annotations}


def call(name: str, arguments: dict[str, Any] | None, reach: Reach, say: Say) -> str:
    """The answer of a tool, bounded. Raises TraindxError, and nothing else for what a client or a file can cause."""
    tool = TOOLS.get(name)
    if tool is None:
        raise BadUsage(f"there is no tool {name!r}. There are: {', '.join(TOOLS)}")
    try:
        given = tool.arguments.model_validate(arguments or {})
    except ValidationError as error:
        raise BadUsage(f"{name}: {'; '.join(_complaint(e) for e in error.errors()[:3])}") from error
    try:
        text = tool.answer(reach, given, say)
    except TraindxError as error:
        raise _shortened(error, reach) from error
    except OSError as error:
        raise UnreadableInput(f"{name}: {error.filename or 'a file'}: {error.strerror or error}") from error
    return page(_safe(reach.shorten(text)), given.max_chars, given.offset, tool.narrower)


def _complaint(error: Any) -> str:
    where = ".".join(str(p) for p in error["loc"]) or "arguments"
    return f"{where}: {error['msg']}, got {str(error['input'])[:80]!r}"


def _shortened(error: TraindxError, reach: Reach) -> TraindxError:
    return BadUsage(_safe(reach.shorten(str(error)))[:2000])


def _safe(text: str) -> str:
    return block(text, most=len(text) + 1)


TOOLS: dict[str, Tool] = {t.name: t for t in (
    Tool("diagnose_run", "Diagnose a training run",
         "Reads a run's logs, errors, configuration and code. Facts first: scope, the symptom, a timeline, findings "
         "with values and places. Then suspects, with how often such leads were right; a fix only for a proven cause "
         "(status diagnosis_complete).",
         asked.DiagnoseRun, mcp_answers.diagnose_run, "detail=brief, or name fewer paths"),
    Tool("compare_ranks", "Which rank is odd",
         "The logs of all ranks, hosts and restarts of a job as one, by steps and sequence numbers, never by clocks: "
         "who "
         "failed first, left the common collectives, has a batch fewer, waits for data, is NaN first, runs another "
         "version.",
         asked.CompareRanks, mcp_answers.compare_ranks, "lines=false, or name fewer paths"),
    Tool("extract_metrics", "Metrics of a run",
         "The metrics of a run under canonical names, as CSV. Without `metrics` a summary line each (range, first "
         "non-finite value with its line); with `metrics` their values, thinned, every extreme kept.",
         asked.ExtractMetrics, mcp_answers.extract_metrics, "fewer metrics, start and end, a smaller max_rows"),
    Tool("list_findings", "Findings in logs and code",
         "Every finding in a run's artifacts, one JSON object a line: id, rule, severity, strength (how it was seen: "
         "ran, derived, guessed), bearing (cause, sign, companion), statement with values, place.",
         asked.ListFindings, mcp_answers.list_findings, "rule, min_severity, fewer paths"),
    Tool("audit_code", "Audit training code",
         "Static audit of PyTorch and JAX training code, never imported or run: one finding a line with file, line, "
         "quoted code and measured values.",
         asked.AuditCode, mcp_answers.audit_code, "rule, min_severity, fewer paths"),
    Tool("examine_data", "What data files hold",
         "Judges data files by shard, field and row: NaN, extremes, other scale or label "
         "map, shuffled labels, leaks across splits, damage.",
         asked.ExamineData, mcp_answers.examine_data, "min_severity, fewer paths"),
    Tool("jaxpr", "What a JAX function became",
         "The jaxpr of a JAX function in few lines: what each line became, loops, keys used twice, unguarded "
         "logarithms and divisions, what cuts gradients. Importing the file executes it: only where the server runs "
         "with --run.",
         asked.Jaxpr, mcp_answers.jaxpr, "a smaller function", executes=True),
    Tool("run_probe", "Run a probe",
         "Runs your Python, or with shell a command, in a protected copy of the project, which cannot change: load "
         "data and weights, count, train some steps. The numbered output is kept as P001 ...: cite P001:LINE.",
         asked.RunProbe, mcp_answers.run_probe, "print less", read_only=False, idempotent=False, protected=True),
    Tool("replay_batch", "The batch a program failed on",
         "The batch that `traindx run` kept when a program failed: which index or label lies outside of which table, "
         "and where in the batch. Nothing is unpickled or run.",
         asked.ReplayBatch, mcp_answers.replay_batch),
    Tool("examine_weights", "What a checkpoint holds",
         "Judges each tensor of a checkpoint against its siblings, executing nothing: NaN, scale, blocks left at their "
         "initialisation, dead units, statistics, optimizer state; against another one names and what moved.",
         asked.ExamineWeights, mcp_answers.examine_weights, "min_severity"),
    Tool("list_experiments", "What can be changed",
         "The changes run_experiment takes, or the page of one.",
         asked.ListExperiments, mcp_answers.list_experiments),
    Tool("run_experiment", "Prove a cause by one change",
         "Trains with and without one change, and with other seeds, in copies, until decided: removes the symptom, "
         "moves it, no effect, inconclusive. Evidence X001... Only where the server runs with --run.",
         asked.RunExperiment, mcp_answers.run_experiment, read_only=False, idempotent=False, executes=True),
    Tool("replay_step", "Replay a captured step",
         "Starts the program in a copy up to its first step, puts in a step that `traindx run --snapshot` kept, and "
         "runs it as it is and with one change at a time. Only where the server runs with --run.",
         asked.ReplayStep, mcp_answers.replay_step, read_only=False, idempotent=False, executes=True),
    Tool("explain", "Page of a rule or failure mode",
         "Mechanism, thresholds with sources, evidence for and against with weights, how to confirm and rule out, "
         "look-alikes, fixes.",
         asked.Explain, mcp_answers.explain),
    Tool("plot_run", "Picture of a run",
         "Draws the metrics with the findings marked, to scratch/debug/plots/NAME.png below the root.",
         asked.PlotRun, mcp_answers.plot_run, read_only=False),
    Tool("list_failure_modes", "Known failure modes",
         "The catalogue of known ways in which training fails, filtered by family, symptom or text.",
         asked.ListFailureModes, mcp_answers.list_failure_modes, "family, symptom, text"),
    Tool("session_status", "Where a debug session stands",
         f"Status, phase, strikes, attempts and next step of a debug session; without an id, all sessions. {GATE}",
         asked.SessionStatus, mcp_answers.session_status),
    Tool("read_diagnosis", "Diagnosis of a debug session",
         "The diagnosis a session presents at its gate: its six sections, and the questions for the person. "
         f"{GATE}",
         asked.ReadDiagnosis, mcp_answers.read_diagnosis),
)}
"""Every tool by name, in the order in which they are listed."""

PREFIXES = ("mcp__traindx__", "mcp__plugin_traindx_traindx__")
"""How Claude Code names the tools: of a server called `traindx`, and of that server inside the plugin `traindx`."""


def read_only_names() -> frozenset[str]:
    """The full names of the tools that write nothing, for `policy.Scope.mcp_read_only`."""
    return frozenset(prefix + t.name for t in TOOLS.values() if t.read_only for prefix in PREFIXES)
