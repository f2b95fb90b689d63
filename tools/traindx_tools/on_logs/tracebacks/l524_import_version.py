"""Code and installed libraries are of different versions: a name, module or argument that is not there.

Aliases removed from NumPy, names moved between modules, arguments renamed in transformers (`evaluation_strategy`,
`tokenizer=`), extensions built for another torch ("undefined symbol"), packages that are not installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 60

RULE = Rule(
    id="L524",
    name="import-version",
    title="Code and installed libraries do not fit together",
    severity=Severity.CRITICAL,
    sees="ImportError, attributes missing on modules, arguments that a library renamed, undefined symbols, "
         "compiler support.",
    matters="The run does not start; pinning the wrong side only moves it.",
    alike=("A misspelled key of the project's own configuration (L525).",),
    confirm=("pip show PACKAGE; python -c 'import PACKAGE; print(PACKAGE.__version__, PACKAGE.__file__)'",
             "The library's change log for the missing name; a file of the project that shadows the package's name."),
)

_RENAMED = ("evaluation_strategy", "tokenizer", "use_auth_token", "torch_dtype", "no_cuda", "group_by_length",
            "gpus", "progress_bar_refresh_rate", "resume_from_checkpoint", "squared", "size_average", "logging_dir",
            "dispatch_batches", "fp16_backend", "per_gpu_train_batch_size", "max_seq_length", "dataset_text_field")
_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("attribute-missing", r"(?:partially initialized )?module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
     "module {module} has no {name}"),
    ("import-name", r"cannot import name '(?P<name>[\w.]+)' from (?:partially initialized module "
                    r")?'(?P<module>[\w.]+)'",
     "{module} has no {name} to import"),
    ("module-missing", r"No module named '(?P<module>[\w.]+)'", "package {module} is not installed"),
    ("undefined-symbol", r"undefined symbol|DLL load failed|cannot open shared object file|version "
                         r"`GLIBC\w*_[\d.]+' not found",
     "a compiled extension does not fit the installed libraries"),
    ("binary-mismatch", r"numpy\.\w+ size changed, may indicate binary incompatibility|compiled using NumPy 1\.x"
                        r"|_ARRAY_API"
                        r"|ABI (?:version|mismatch)",
     "a compiled extension was built for another NumPy"),
    ("version-required", r"(?P<module>[\w-]+)[<>=!~]=?[\d.]+ is required|requires (?:the )?[`']?(?P<name>[\w-]+)[`']? "
                         r"(?:library|version|package|>=)|(?:is not compatible with|requires at least) .{0,60}version"
                         r"|This example requires a (?:minimum|source install)",
     "a library of another version is required"),
    ("cuda-build", r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|NVIDIA driver on your system is "
                   r"too old"
                   r"|CUDA capability sm_\d+ is not compatible|no kernel image is available",
     "the installed torch does not fit the GPU or driver"),
    ("keyword-renamed", rf"unexpected keyword argument '(?P<name>{'|'.join(_RENAMED)})'",
     "argument {name} is not known to the installed version"),
))


def claims(event: ErrorEvent) -> bool:
    """Missing names, modules, symbols and renamed arguments."""
    if event.kind != "exception":
        return False
    return any(p.search(event.message) for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    kind, match, words = next((k, m, w) for k, p, w in _KINDS for m in [p.search(incident.text)] if m is not None)
    found: dict[str, Value] = {k: v for k, v in match.groupdict().items() if v is not None}
    statement = words.format(**found)
    if "partially initialized" in incident.text:
        kind = "attribute-missing-circular"
        statement += ": a circular import, or a file that shadows the package"
    return report(RULE, incident, statement, bearing=Bearing.SIGN, measured={"kind": kind, **found})
