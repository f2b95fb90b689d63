"""The arguments of each MCP tool: pydantic models, from which the JSON schemas with their descriptions are made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_CHARS = 8_000
"""Characters of an answer unless the client asks for more or less: about 2,000 tokens."""

Paths = Annotated[list[Annotated[str, Field(max_length=4096)]], Field(
    min_length=1, max_length=50,
    description="Files, folders, globs below the server's root.")]
Severity = Literal["critical", "high", "medium", "low", "info"]


class Arguments(BaseModel):
    """What every tool takes."""

    model_config = ConfigDict(extra="forbid")

    max_chars: int = Field(DEFAULT_CHARS, ge=500, le=100_000, description="Characters at most.")
    offset: int = Field(0, ge=0, description="Where a cut answer goes on.")


class DiagnoseRun(Arguments):
    """Arguments of diagnose_run."""

    paths: Paths
    symptom: str = Field("", max_length=4000, description="What the person saw, in their words. A hint, never a cause.")
    against: list[Annotated[str, Field(max_length=4096)]] = Field(default_factory=list, max_length=20, description=(
        "Paths of a run that works, to compare with."))
    entry: list[Annotated[str, Field(max_length=4096)]] = Field(default_factory=list, max_length=20, description=(
        "The Python files that start the training (default: found): they and what they import are judged."))
    everything: bool = Field(False, description="Judge all code that was given, also what the run does not use.")
    which: int | None = Field(None, ge=1, description="The run to judge where a log holds several (default: the last).")
    detail: Literal["brief", "full"] = Field("brief", description="full: mechanisms, checks and patches as well.")


class CompareRanks(Arguments):
    """Arguments of compare_ranks."""

    paths: Paths
    lines: bool = Field(False, description="The whole merged log by step, identical lines once.")


class ExtractMetrics(Arguments):
    """Arguments of extract_metrics."""

    paths: Paths
    metrics: list[str] = Field(default_factory=list, max_length=50, description=(
        "Names, canonical or original, globs too ('grad_norm*'). Empty: one summary line a metric."))
    group: Literal["", "train", "validation", "test"] = Field("", description="Only this group.")
    start: float | None = Field(None, description="First step (epoch or line where the log has no steps).")
    end: float | None = Field(None, description="Last step.")
    max_rows: int = Field(200, ge=1, le=10_000, description=(
        "Most rows a metric: a longer one is thinned, ends, extremes and changes to non-finite stay."))


class ListFindings(Arguments):
    """Arguments of list_findings."""

    paths: Paths
    rule: str = Field("", max_length=60, description="Only rules whose id begins so: 'L1', 'C107'.")
    min_severity: Severity = Field("info", description="Least severity shown.")


class AuditCode(Arguments):
    """Arguments of audit_code."""

    paths: Paths
    rule: str = Field("", max_length=60, description="Only rules whose id begins so: 'C1', 'C501'.")
    ignore: list[Annotated[str, Field(max_length=60)]] = Field(
        default_factory=list, max_length=50, description="Not rules whose id begins so.")
    diff: str = Field("", max_length=200, description=(
        "Only what belongs to the difference from this commit or branch ('HEAD': work that is not committed)."))
    min_severity: Severity = Field("low", description="Least severity shown.")
    patches: bool = Field(False, description="Show the proposed changes too. They are proposals: nothing is applied.")


class ExamineData(Arguments):
    """Arguments of examine_data."""

    paths: Paths
    all_rows: bool = Field(False, description="Every row of a large set in full, not a sample and one pass.")
    min_severity: Severity = Field("info", description="Least severity shown.")


class Jaxpr(Arguments):
    """Arguments of jaxpr."""

    file: str = Field(max_length=4096, description="The Python file, relative to the server's root.")
    function: str = Field(max_length=200, pattern=r"^[A-Za-z_][\w.]*$",
                          description="The function in it, dotted names allowed.")
    arguments: str = Field("", max_length=4000, description=(
        "Its arguments as types: \"f32[8,16], i32[8], {'w': f32[16,4]}, key, 0.1\"."))
    gradient: bool = Field(False, description="It is a loss: name parameters (first argument) that get no gradient.")


class ReplayBatch(Arguments):
    """Arguments of replay_batch."""

    file: str = Field(max_length=4096, description=(
        "The batch that `traindx run` kept when a program failed: traindx-run/TIME/rank00000.batch.npz."))


class ReplayStep(Arguments):
    """Arguments of replay_step."""

    file: str = Field(max_length=4096, description=(
        "A captured step (traindx-run/TIME/steps/*.step.npz), or the folder of its run."))
    command: str = Field(min_length=1, max_length=2000, description="What trained, run below the root.")
    budget: float = Field(300.0, ge=1, le=3600, description="Seconds.")


class ExamineWeights(Arguments):
    """Arguments of examine_weights."""

    file: str = Field(max_length=4096, description=(
        "A checkpoint, relative to the server's root: safetensors, torch zip, npz, msgpack, an index of shards, or a "
        "folder."))
    against: str = Field("", max_length=4096, description=(
        "Another checkpoint: names are matched, and what moved between the two is judged."))
    seconds: float = Field(60.0, gt=0, le=600, description="Time for measuring; what it does not suffice for is named.")
    min_severity: Severity = Field("info", description="Leave out what is less severe.")


class RunProbe(Arguments):
    """Arguments of run_probe."""

    code: str = Field(min_length=1, max_length=50_000, description="Python.")
    shell: bool = Field(False, description="It is a shell command.")
    seconds: float = Field(60.0, gt=0, le=600, description="Time limit.")


class ListExperiments(Arguments):
    """Arguments of list_experiments."""

    name: str = Field("", max_length=60, description="Its page.")


class RunExperiment(Arguments):
    """Arguments of run_experiment."""

    command: str = Field(min_length=1, max_length=2000, description="What trains, run below the root.")
    change: str = Field("", max_length=500, description=(
        "As in learning-rate:times=0.1; patch:file=DIFF is an edit of your own."))
    screen: str = Field("", max_length=60, description=(
        "Each of settings,files,stages (or code) changed, one at a time (600 s)."))
    plant: bool = Field(False, description="Or: values of data files changed; leaks, pairing.")
    symptom: str = Field("", max_length=4000, description="The person's words: they say what is measured.")
    outcome: str = Field("", max_length=200, description=(
        "Or: nonfinite, error:TEXT, exit, hang, level:METRIC<BOUND, fall, rise, gap, step-time, memory-growth."))
    paths: list[Annotated[str, Field(max_length=4096)]] = Field(default_factory=list, max_length=50,
                                                                description="Of its log.")
    budget: float | None = Field(None, ge=1, le=3600, description="Seconds.")
    seed_option: str = Field("", max_length=60, description="The program's own, as --seed.")


class Explain(Arguments):
    """Arguments of explain."""

    name: str = Field(max_length=100, description="A rule ('L204') or a failure mode ('lr.too-high').")


class PlotRun(Arguments):
    """Arguments of plot_run."""

    paths: Paths
    name: str = Field("run", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
                      description="Name of the picture: scratch/debug/plots/NAME.png.")


class ListFailureModes(Arguments):
    """Arguments of list_failure_modes."""

    family: str = Field("", max_length=60, description="Only this family, e.g. 'nan_inf', 'distributed'.")
    symptom: str = Field("", max_length=4000, description=(
        "Only modes with a symptom that these words name: 'loss is nan', 'hangs', or a word such as 'nonfinite'."))
    text: str = Field("", max_length=200, description="Only modes whose id, title or claim holds this text.")


class SessionStatus(Arguments):
    """Arguments of session_status."""

    session: str = Field("", max_length=100, description="A session's id or its beginning. Empty: list all sessions.")


class ReadDiagnosis(Arguments):
    """Arguments of read_diagnosis."""

    session: str = Field(max_length=100, description="A session's id or its beginning.")
    format: Literal["markdown", "json"] = Field("markdown", description="json: the diagnosis with its digest.")


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without what a reader of it does not need."""
    schema: dict[str, Any] = _without_noise(arguments.model_json_schema())
    schema.pop("description", None)
    return schema


_NOISE = frozenset({"title", "maxLength", "maxItems", "minimum", "exclusiveMinimum", "maximum", "minLength",
                    "minItems"})  # fmt: skip
"""Each client pays for the schema; who oversteps a bound is told it (`mcp_tools.call`)."""


def _without_noise(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_noise(v) for v in value]
    if not isinstance(value, dict):
        return value
    value = _one_type(value)
    return {k: _properties(v) if k == "properties" else _without_noise(v) for k, v in value.items()
            if k not in _NOISE and not (k == "default" and not v)}


def _one_type(value: dict[str, Any]) -> dict[str, Any]:
    """What may be left out is not told to be null as well."""
    kinds = [k for k in value.get("anyOf", ()) if k != {"type": "null"}]
    return {**kinds[0], **{k: v for k, v in value.items() if k != "anyOf"}} if len(kinds) == 1 else value


def _properties(named: dict[str, Any]) -> dict[str, Any]:
    """An argument may itself be called "title"."""
    return {name: _without_noise(schema) for name, schema in named.items()}
