"""From paths to a run: find the files, let the surest reader read each, join what they tell."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx_tools.artifact import Artifact
from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.announced import with_announced
from traindx_tools.on_logs.artifacts import Discovery, Source, discover, refusal
from traindx_tools.on_logs.beyond_double import without_unheld
from traindx_tools.on_logs.configs import read_config, read_config_lines
from traindx_tools.on_logs.groups_of_files import with_groups
from traindx_tools.on_logs.launchers import rank_in_name
from traindx_tools.on_logs.notebook_source import SUFFIX, of_outputs, printed_below_cells, why_unreadable
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers import Head, Reader, delimited, head_of, json_records, sniff, text_log
from traindx_tools.on_logs.readers.after_training import placed_by_training
from traindx_tools.on_logs.readers.apart import set_apart
from traindx_tools.on_logs.readers.forms_met import require_matches
from traindx_tools.on_logs.readers.line_blocks import each_block
from traindx_tools.on_logs.readers.line_forms import LineForm, parse_forms
from traindx_tools.on_logs.readers.messages import as_messages
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.readers.torn import with_steps
from traindx_tools.on_logs.renaming import (
    FEWEST_ROWS,
    LabelledSource,
    RenamedSource,
    checked,
    renamed_series,
    renamed_source,
    rows_of,
)
from traindx_tools.on_logs.roles import assign_roles, trusted_names, unresolved
from traindx_tools.on_logs.run import ErrorEvent, Run, merge
from traindx_tools.on_logs.stores import StoredRun, expanded
from traindx_tools.on_logs.tracebacks.parse import ErrorReading
from traindx_tools.on_torch.cuda_memory.snapshot import is_memory_snapshot

if TYPE_CHECKING:
    from traindx_tools.printed_values.columns import BarePrint
    from traindx_tools.printed_values.names import Printed

_CODE = {".py": "python", ".ipynb": "notebook", ".sh": "shell", ".slurm": "shell", ".sbatch": "shell",
         ".md": "markdown", ".rst": "markdown", ".html": "html", ".patch": "patch", ".diff": "patch"}
"""Files that stand beside a run's logs and are no log: read elsewhere, or not at all."""
_CONFIG = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
DATA = frozenset({"archive", "numpy", "hdf5", "parquet"})
"""Files that are no log and hold data or weights."""
MAX_CODE_FILES = 60
"""Python files that are asked what the names in a log mean."""
MAX_CONFIG = 4 * 2**20
"""Bytes of a configuration file that is read."""
MEMORY_SNAPSHOT = "cuda_memory_snapshot"
"""Format of what `torch.cuda.memory._dump_snapshot` writes; read by `on_torch.cuda_memory`, without unpickling."""
LIVE_SUMMARY = "traindx summary"
"""Format of the page that a recorded process leaves beside its record: what it measured of itself is no setting."""
SUMMARY = b'"traindx": "live-summary"'
_WRITTEN_IN_TURN = frozenset({text_log.READER.name, json_records.READER.name, delimited.READER.name})
"""Formats in which what is measured stands behind the training that it measures."""
_WITHOUT_ERRORS = frozenset({"tensorboard", "csv", "hf_trainer_state", "wandb", "wandb_summary",
                             "wandb_debug"})


def read_run(paths: Sequence[str | Path] | str | Path, *, stdin: bytes | None = None,
             names: Mapping[str, str] | None = None, lines: Sequence[str | LineForm] = ()) -> Run:
    """Everything that the artifacts of one run tell: series, errors, notes, configuration.

    `paths`: files, folders, globs, "-" (then `stdin`, or the process's standard input), fsspec URLs or names of runs
    ("wandb:ENTITY/PROJECT/RUN", "mlflow:RUN", "tensorboard:FOLDER", see `traindx_tools.sources`). Formats are told
    by content; nothing is executed or unpickled; a file that cannot be used stands in `Run.artifacts` with the reason.
    `names`: what the log's own names stand for, as in {"Kosten": "loss", "Runde": "epoch"}. `lines`: examples of its
    lines with names in place of their numbers, as in "{step} | {loss} | {lr}" (see `readers.line_forms`).

    Raises UnreadableInput where a path names nothing, where nothing of what it names could be read, where a name stands
    for nothing that is known, or where no line is like an example.
    """
    return joined(read_parts(paths, stdin=stdin, names=names, lines=lines))


@dataclass(frozen=True, eq=False)
class Reading:
    """What each file told by itself, before it is joined to one run."""

    found: Discovery
    sources: tuple[Source, ...]
    """The sources as they were read, with the user's own names replaced."""
    parts: tuple[Run, ...]
    """What each source told, in the same order."""

    def without(self, paths: Container[str]) -> Reading:
        """The same without some files, by their real path."""
        every = self.found.sources
        kept = [i for i, s in enumerate(every) if s.local is None or os.path.realpath(s.local) not in paths]
        return self.only(kept)

    def only(self, kept: Sequence[int]) -> Reading:
        """The same with the sources of these indices alone."""
        return Reading(replace(self.found, sources=[self.found.sources[i] for i in kept]),
                       tuple(self.sources[i] for i in kept), tuple(self.parts[i] for i in kept))


def read_parts(paths: Sequence[str | Path] | str | Path, *, stdin: bytes | None = None,
               names: Mapping[str, str] | None = None, lines: Sequence[str | LineForm] = (),
               found: Discovery | None = None, data: bool = False) -> Reading:
    """Finds the files and reads each by itself; arguments and errors as of `read_run`. `found`: what was found
    already. `data`: where nothing but files of data is there,
    the caller judges those, and asks `require_something` where it could not."""
    from traindx_tools.sources import resolved

    own, forms = checked(names or {}), parse_forms(lines)
    found = expanded(discover(resolved(paths), stdin=stdin) if found is None else found)
    found = replace(found, sources=[of_outputs(s) for s in found.sources])
    sources = tuple(s if isinstance(s, StoredRun) else replace(renamed_source(s, own), forms=forms, formed=set())
                    for s in found.sources)
    parts = with_groups([renamed_series(read_source(source), own) for source in sources])
    artifacts = [a for p in parts for a in p.artifacts] + found.left_out
    if not (data and any(a.format in DATA or a.format == "image" for a in artifacts)):
        require_something(artifacts, found)
    require_matches(forms, sources)
    return Reading(found, sources, parts)


def joined(reading: Reading, code: Sequence[Path] | None = None) -> Run:
    """One run of what its files told. `code`: the Python files that say what the names in the logs mean; by default
    those among the files, else those beside them."""
    sources = reading.sources
    every = reading.found.sources if code is None else [Source(str(p), local=p) for p in code]
    parts, columns = _with_columns(sources, list(reading.parts), every)
    printed = (*columns, *_printed(every)) if unresolved(merge(parts)) else columns
    parts = _with_ranks([_read_again(s, p, trusted_names(printed)) for s, p in zip(sources, parts, strict=True)])
    run = merge([*parts, Run(artifacts=tuple(reading.found.left_out))])
    written = {k: v for p in parts if _is_config(p) for k, v in p.config.items()}
    return assign_roles(replace(run, config={**run.config, **written}), printed)


def _with_columns(sources: Sequence[Source], parts: list[Run],
                  every: Sequence[Source]) -> tuple[list[Run], tuple[Printed, ...]]:
    """Texts of numbers alone, read under the names of the one print of the code that writes so many values."""
    bare = [not p.series and bool(p.artifacts) and p.artifacts[0].format == "free_text" for p in parts]
    if not any(bare):
        return parts, ()
    from traindx_tools.printed_values.columns import bare_prints

    prints = bare_prints(_code_texts(every))
    used: dict[tuple[str, int], BarePrint] = {}
    told = list(parts)
    for at, source in enumerate(sources):
        fits = [p for p in prints if bare[at] and rows_of(source, len(p.names)) >= FEWEST_ROWS]
        if len({p.names for p in fits}) != 1:
            continue
        names = source.names if isinstance(source, RenamedSource) else {}
        read = read_source(LabelledSource(source.name, source.local, source.data, source.filesystem, names=names,
                                           columns=fits[0].names))  # fmt: skip
        if any(identify(s.original).known for s in read.series) or (read.series and fits[0].printed):
            why = f"columns are {', '.join(fits[0].names)}, as {fits[0].file}:{fits[0].line} prints them"
            first = replace(read.artifacts[0], note="; ".join(filter(None, (read.artifacts[0].note, why))))
            told[at] = replace(read, artifacts=(first, *read.artifacts[1:]))
            used[fits[0].file, fits[0].line] = fits[0]
    return list(with_groups(told)), tuple(p for one in used.values() for p in one.printed)


def _printed(sources: Sequence[Source]) -> tuple[Printed, ...]:
    """What the Python files among the sources print; where there are none, those beside the files that were named."""
    from traindx_tools.printed_values.names import printed_names

    return printed_names(_code_texts(sources))


def _code_texts(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    """The Python files among the sources; where there are none, those beside the files that were named."""
    named = [s for s in sources if s.name.endswith(".py")]
    folders = dict.fromkeys(s.local.parent for s in sources if s.local is not None)
    beside = [Source(str(p), local=p) for folder in folders for p in sorted(folder.glob("*.py")) if p.is_file()]
    return _texts((named or beside)[:MAX_CODE_FILES])


def _texts(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    for source in sources:
        with suppress(OSError), source.text() as stream:  # what cannot be read explains nothing
            yield source.name, stream.read(MAX_CONFIG).decode("utf-8-sig", errors="replace")


def _read_again(source: Source, run: Run, trusted: frozenset[str]) -> Run:
    """Records that were taken for data are read where the code prints a metric under one of their names."""
    reader = {"data_records": json_records.read_lines, "data_table": delimited.read}.get(
        run.artifacts[0].format if run.artifacts else "")
    if reader is not None and trusted:
        with suppress(OSError):
            return reader(source, trusted)
    return run


def _is_config(part: Run) -> bool:
    """A configuration file: it says what was meant, and wins over what a log printed."""
    return bool(part.artifacts) and part.artifacts[0].format in (*_CONFIG.values(), "json")


def _with_ranks(parts: list[Run]) -> list[Run]:
    """Gives series and errors the rank that the files' names number, where the lines themselves name none.

    Launchers write a file a rank (`rank_3.log`, `log_rank3.txt`); two such files at least make it a convention.
    """
    named = [rank_in_name(p.artifacts[0].path) if p.artifacts else None for p in parts]
    if sum(m is not None for m in named) < 2:
        return parts
    return [p if m is None else of_rank(p, m) for p, m in zip(parts, named, strict=True)]


def of_rank(run: Run, rank: int) -> Run:
    """What a file told, as that of a rank where its lines name none."""
    return replace(run, series=tuple(s if s.rank is not None else replace(s, rank=rank) for s in run.series),
                   errors=tuple(e if e.rank is not None else replace(e, rank=rank) for e in run.errors),
                   notes=tuple(n if n.rank is not None else replace(n, rank=rank) for n in run.notes))


def read_source(source: Source) -> Run:
    try:
        return without_unheld(_read(source), source)
    except OSError as failed:
        return Run(artifacts=(Artifact(source.name, "unknown", note=f"not read: {failed.strerror or failed}"),))


def _read(source: Source) -> Run:
    if isinstance(source, StoredRun):
        return source.told
    if is_memory_snapshot(source.stored_head):
        return Run(artifacts=(Artifact(source.name, MEMORY_SNAPSHOT),))
    if SUMMARY in source.stored_head[:200]:
        return Run(artifacts=(Artifact(source.name, LIVE_SUMMARY),))
    refused = refusal(source)
    if refused is not None:
        return Run(artifacts=(refused,))
    suffix = Path(source.name).suffix.lower()
    if suffix in _CODE and not is_binary(source.head) and not printed_below_cells(source):
        note = why_unreadable(source) if suffix == SUFFIX else ""
        return Run(artifacts=(Artifact(source.name, _CODE[suffix], note=note),))
    if suffix in _CONFIG and source.head.strip() and not is_binary(source.head):
        return _read_config(source, _CONFIG[suffix])
    head = head_of(source)
    if not head.text.strip():
        what = "only blanks" if head.data else "an empty file"
        return Run(artifacts=(Artifact(source.name, "empty", note=what),))
    reader = text_log.READER if any(f.spans(t, 0) for f in source.forms for t in head.lines) else sniff(head)
    if reader is None:
        return Run(artifacts=(Artifact(source.name, "binary", note="refused: binary data of no known format"),))
    size = _size(source)
    run, errors = _with_errors(source, reader, head)
    run = placed_by_training(run) if reader.name in _WRITTEN_IN_TURN else run
    run = with_steps(set_apart(run)) if reader is text_log.READER else run
    left = _size(source)
    shorter = [f"became shorter while it was read ({size:,} bytes, then {left:,})"] if left < size else []
    run = _with_remark(run, "; ".join((*filter(None, [source.remark]), *shorter)))
    if suffix in _CODE:  # the outputs of a notebook, which is code all the same
        run = replace(run, artifacts=tuple(replace(a, format=_CODE[suffix]) for a in run.artifacts))
    if reader.name not in _WITHOUT_ERRORS:
        run = with_announced(merge([run, Run(errors=errors, config=read_config_lines(_lines(source)))]))
    if suffix == ".json" and not run.series and reader.name != "wandb_summary":
        return _with_config(run, source, reader)
    return run


def _size(source: Source) -> int:
    """Bytes as they are stored now; 0 where the file is not there any more, or nobody says so."""
    try:
        return source.size
    except OSError:
        return 0


def _with_config(run: Run, source: Source, reader: Reader) -> Run:
    """A JSON file without metrics, as a configuration; what is no JSON at all and tells nothing else is refused."""
    try:
        return replace(run, config=_config_of(source))
    except UnreadableInput as refused:
        text = all(a.format == "free_text" for a in run.artifacts)  # or no line is one of JSON
        if not (reader is text_log.READER or text) or run.errors or run.notes:
            return run
        return Run(artifacts=(Artifact(source.name, "json", note=f"refused: {' '.join(str(refused).split())}"),))


def _with_errors(source: Source, reader: Reader, head: Head) -> tuple[Run, tuple[ErrorEvent, ...]]:
    """What a source tells, and the errors in it: in one pass where its lines are read as they are."""
    errors = ErrorReading(source.name)
    if reader is text_log.READER:
        return text_log.read(source, errors), errors.finish()
    if reader is json_records.READER and json_records.by_lines(head):
        run = json_records.read_lines(source, beside=errors)
        told = _of_messages(source) if run.artifacts and run.artifacts[0].format == "data_records" else None
        return told or (run, errors.finish())
    run = reader.read(source)
    if reader.name not in _WITHOUT_ERRORS:
        each_block(source, errors.block, errors.line)
    return run, errors.finish()


def _of_messages(source: Source) -> tuple[Run, tuple[ErrorEvent, ...]] | None:
    """What the messages tell that a collector of logs put into records; None where they tell of no metric."""
    messages = as_messages(source)
    if messages is None:
        return None
    errors = ErrorReading(source.name)
    run, found = text_log.read(messages, errors), errors.finish()
    return (run, found) if any(identify(s.original).known for s in run.series) else None


def _with_remark(run: Run, remark: str) -> Run:
    if not remark:
        return run
    return replace(run, artifacts=tuple(replace(a, note="; ".join(n for n in (a.note, remark) if n), in_part=remark)
                                        for a in run.artifacts))


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    return lines_of(source)


def _read_config(source: Source, form: str) -> Run:
    try:
        config = _config_of(source)
    except UnreadableInput as refused:
        return Run(artifacts=(Artifact(source.name, form, note=f"refused: {' '.join(str(refused).split())}"),))
    return Run(config=config, artifacts=(Artifact(source.name, form),))


def _config_of(source: Source) -> dict[str, Any]:
    with source.text() as stream:
        data = stream.read(MAX_CONFIG + 1)
    if len(data) > MAX_CONFIG:
        raise UnreadableInput(f"larger than {MAX_CONFIG // 2**20} MiB, too large for a configuration")
    return read_config(source.name, data.decode("utf-8-sig", errors="replace"))


def require_something(artifacts: Sequence[Artifact], found: Discovery) -> None:
    """Raises UnreadableInput where every source was refused, so that nobody takes silence for health."""
    useless = ("refused", "not read", "not parsed", "an empty file", "only blanks")
    if found.sources and not all(a.note.startswith(useless) for a in artifacts):
        return
    reasons = "; ".join(f"{a.path}: {a.note}" for a in artifacts[:5])
    data = any(a.format in DATA for a in artifacts)
    raise UnreadableInput(f"Nothing could be read. {reasons}. Give a text log, CSV, JSON lines, trainer_state.json or "
                          f"TensorBoard event files.{' Data files alone: `traindx data PATH`.' if data else ''}")
