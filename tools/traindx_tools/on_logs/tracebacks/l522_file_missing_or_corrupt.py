"""A file is missing, damaged, not allowed, or the disk is full.

Checkpoints cut by a full disk or a killed writer ("failed finding central directory", "HeaderTooLarge", EOFError),
Git LFS pointers instead of weights, samples that do not decode, paths that exist only on another machine, files that
need code to be read (weights_only).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 50

RULE = Rule(
    id="L522",
    name="file-missing-or-corrupt",
    title="A file is missing or damaged",
    severity=Severity.CRITICAL,
    sees="FileNotFoundError, no space, permission, messages of archive, safetensors, pickle, JSON and image readers.",
    matters="The run does not start, or a rare sample ends it late.",
    alike=("A checkpoint of another architecture (L518).", "/dev/shm full (L510)."),
    confirm=("ls -l FILE; df -h; df -i", "python -m zipfile -t FILE.pt, or safetensors' safe_open(FILE) to check "
                                         "the header.",
             "head -c 200 FILE: a Git LFS pointer is text."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("no-space", r"No space left on device|Disk quota exceeded|file write failed|unexpected pos \d+ vs \d+",
     "the disk or quota is full"),
    ("weights-only", r"Weights only load failed|weights_only",
     "the file needs Python objects that weights_only loading refuses"),
    ("corrupt-checkpoint", r"failed finding central directory|PytorchStreamReader failed|invalid header or "
                           r"archive is corrupted"
                           r"|HeaderTooLarge|InvalidHeader|MetadataIncompleteBuffer|Error while deserializing header"
                           r"|not a ZIP archive|storage has wrong (?:byte )?size|Ran out of input|invalid load key"
                           r"|pickle data was truncated|Invalid argument in torch\.serialization|corrupted? "
                           r"(?:checkpoint|archive|file)",
     "the checkpoint is damaged or cut off"),
    ("corrupt-sample", r"image file is truncated|cannot identify image file|[Tt]runcated (?:File|file|JPEG)"
                       r"|broken data stream"
                       r"|Could not load (?:libtorchcodec|image|audio)|decod(?:e|ing) (?:error|failed)|moov atom "
                       r"not found"
                       r"|Error opening .*: (?:Format not recognised|System error)|Parquet magic bytes not found",
     "a data file does not decode"),
    ("corrupt-text", r"JSONDecodeError|Expecting (?:value|',' delimiter|property name)|Unterminated string|Extra "
                     r"data: line"
                     r"|codec can't decode byte|is not a valid JSON file|Error tokenizing data",
     "a text file does not parse"),
    ("permission", r"Permission denied|Read-only file system|PermissionError", "a path may not be read or written"),
    ("missing-on-hub", r"is not a local folder and is not a valid model identifier|does not appear to have (?:a"
                       r"|any) file named"
                       r"|Repository Not Found|Entry Not Found|We couldn't connect to|LocalEntryNotFoundError"
                       r"|OfflineMode"
                       r"|RepositoryNotFoundError|gated repo|Couldn't reach .{1,200} on the Hub|Can't load "
                       r".{1,100} for '",
     "a model or data set was not found on the hub or in the cache"),
    ("missing", r"No such file or directory|FileNotFoundError|does not exist|not found at|NotADirectoryError"
                r"|IsADirectoryError"
                r"|cannot find the path|Checkpoint at .* not found|FileExistsError",
     "a path does not exist"),
))
_TYPES = re.compile(r"(?:OSError|IOError|FileNotFoundError|PermissionError|NotADirectoryError|IsADirectoryError"
                    r"|RuntimeError"
                    r"|ValueError|EOFError|UnpicklingError|JSONDecodeError|UnicodeDecodeError|SafetensorError"
                    r"|BadZipFile"
                    r"|UnidentifiedImageError|ArrowInvalid|ReadError|ParserError|NotFound\w*|Error|FileExistsError"
                    r"|DataFilesNotFoundError|DatasetNotFoundError|ImageReadError|LibsndfileError"
                    r"|CheckpointException)$")
_PATH = re.compile(r"'(?P<quoted>(?:[A-Za-z]:)?[^'\n]*[/\\.][^'\n]*)'"
                   r"|(?<![\w/:])(?P<bare>\.{0,2}/(?:[\w.-]{1,200}/){0,20}[\w.-]{1,200})")


def claims(event: ErrorEvent) -> bool:
    """Errors about files, told by type and message together."""
    return event.kind == "exception" and _TYPES.search(event.type) is not None and _named(event) is not None


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    kind, words = _named(incident.error) or ("missing", "a path does not exist")
    measured: dict[str, Value] = {"kind": kind}
    path = _PATH.search(incident.text)
    if path is not None:
        measured["path"] = path["quoted"] or path["bare"]
        words += f" ({measured['path']})"
    else:
        words += f" ({short(incident.text)})"
    return report(RULE, incident, words, bearing=Bearing.CAUSE, measured=measured)


def _named(event: ErrorEvent) -> tuple[str, str] | None:
    loading = any(f.file.endswith("torch/serialization.py") for f in event.frames)
    torch_file = " in torch.serialization" if loading else ""
    text = f"{event.type}: {event.message[:3000]}{torch_file}"
    return next(((k, w) for k, p, w in _KINDS if p.search(text)), None)
