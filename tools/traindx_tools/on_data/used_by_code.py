"""Whether the code of a run does what its data ask for: reads a header's property, a field of numbers, a time zone.

Files that do not agree in a property of their headers (D163), links that name rows by a field (D171), tables of two
zones (D173), keys that are written in two ways (D177), numbers in two units (D185) and ends without a mark (D186) do
harm only where the code pays no heed. The text of the code is looked at, as the catalog's checks are fitted to it: for
calls that honour the property (resampling, `exif_transpose`), for readers that do so by themselves, for the name of the
field, for conversions. What is not known speaks for the code: a text that reads no such file decides nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx_tools.finding import Bearing, Finding, Severity

RULE_ID, BY_FIELD, ZONES, KEYS, MIXED, ENDS, STATED = "D163", "D171", "D173", "D177", "D185", "D186", "D210"
_RESCALES = re.compile(r"[*/]=?\s*(?:1(?:000){1,3}|60|3600|0\.001|1e-0?[369]|1e\+?0?[369])(?:\.0)?\b|\bunit=")
"""Texts that show that numbers are brought from one unit to another."""
_CONVERTS = re.compile(r"tz_convert|astimezone|utc=True|ZoneInfo|pytz|tz_localize\((?!None)|convert_time_zone|Timedelta"
                       r"|timedelta|DateOffset")
"""Texts that show that times are brought to one zone."""
_NORMALISES = re.compile(r"\.(?:strip|lstrip|rstrip|lower|upper|casefold|zfill|normalize|removeprefix|removesuffix)\("
                         r"|:0\d+d?\}")
"""Texts that show that keys are brought to one form, wherever they stand."""
_CONVERTS_KEY = re.compile(r"\bint\(|\bstr\(|astype\(|to_numeric|dtype=|converters=|\.replace\(")
"""Texts that do so in a line that names the key; elsewhere they are about anything."""
_READS_SETS = re.compile(r"\bh5py\b|\btables\.|\bnp\.load\(|\bnumpy\.load\(|read_hdf|\bxarray\b|\bxr\.|\bload_npz\b")
_READS_ALL = re.compile(r"attrs\.(?:items|values|keys)\(|dict\([^()]*\.attrs\)|\.files\b|\bxarray\b|\bxr\."
                        r"|\bin [\w.]*\.attrs\b(?!\[)|dict\(\*?\*?np\.load|\*\*np\.load")
"""Texts that read arrays with what files say of themselves; and those that take all of that."""
UNKNOWN, READ, UNREAD = "unknown", "read", "unread"
HARMFUL = frozenset({"rate", "orientation"})
"""Properties that change what the numbers of a file show, where a reader drops them."""
MOST_CODE = 2 * 2**20
"""Characters of one file that are looked through."""

_READERS = {
    "sounds": re.compile(r"torchaudio\.load|\b(?:sf|soundfile)\.read|wavfile\.read|\bwave\.open|librosa\."
                         r"(?:core\.)?load|decode_wav"),
    "pictures": re.compile(r"Image\.open|\bimread\(|\bImageFolder\(|\bread_image\(|\bdecode_(?:jpe?g|png|image)\("),
    "arrays": re.compile(r"\b(?:fromfile|memmap|frombuffer)\("),
}
_HONOURS = {
    "rate": re.compile(r"resampl|librosa\.(?:core\.)?load|target_s|orig_freq|getframerate|set_frame_rate|\bAudio\("
                       r"|\bsox|ffmpeg|\binterp\w*\(|sampling_rate\s*[!=]=|sample_?rate\s*[!=]=|\.samplerate\b|\.frame_rate\b",
                       re.IGNORECASE),
    "orientation": re.compile(r"exif|orientation|0x0112|\bYOLO\(|ultralytics|load_dataset|load_from_disk|datasets\."
                              r"Image|\bcv2\.imread\((?![^)]*(?:-1|UNCHANGED|IGNORE_ORIENTATION))", re.IGNORECASE),
    "bits": re.compile(r"65535|uint16|IMREAD_|cv2\.imread|getsampwidth|sampwidth|iinfo|\.max\(|torchaudio|soundfile"
                       r"|\bsf\.|librosa|\.convert\(|read_image|ImageFolder|32768|2\s*\*\*\s*(?:15|16|23)|load_dataset|decode_"),
    "channels": re.compile(r"\.convert\(|cv2\.imread|ImageFolder|channels|\.mean\(|ndim|\.mode\b|load_dataset|\[0\]"),
    "byte order": re.compile(r"newbyteorder|byteswap|byteorder|['\"][<>][iuf]\d|\bnp\.load\("),
}
"""Texts that show that a property is read, or that the reader honours it by itself."""
_TURNED_BY_READER = frozenset({"tif", "tiff"})
"""Pillow turns these when it opens them."""
_RATE_AT = {"load": 1, "read": 1, "decode_wav": 1}
"""Where the rate stands in what a reader gives; `wavfile.read` gives it first."""


@dataclass(frozen=True)
class _Text:
    """The code of a run: without comments and docstrings, and the rates that it asks for."""

    text: str
    rate_used: bool


def severity_of(what: str, use: str) -> Severity:
    """How much harm: a remark unless the code is known not to read it; less where readers bring files to one form.

    Files whose headers say rightly how they are to be read are no faulty data: without the code nothing is wrong yet.
    """
    if use != UNREAD or what == "channels":
        return Severity.INFO
    return Severity.MEDIUM if what in HARMFUL else Severity.LOW


def with_use(findings: Iterable[Finding], code: Sequence[Path]) -> list[Finding]:
    """The findings; those of headers as the code decides. Files that are no Python, or do not parse, say nothing."""
    found = list(findings)
    if not any(f.rule in _BY_CODE or _asks(f) for f in found):
        return found
    text = _text_of(code)
    judged = (_BY_CODE[f.rule](f, text) if f.rule in _BY_CODE else _answered(f, text) if _asks(f) else f for f in found)
    return [f for f in judged if f is not None]


def _joined(finding: Finding, code: _Text) -> Finding:
    """Keys that are written otherwise: a remark where the code normalises them, an alarm where it reads the key."""
    field = str(finding.measured["field"])
    naming = [line for line in code.text.splitlines() if field in line]
    if finding.measured["way"] != "written" or not naming:
        return finding
    if _NORMALISES.search(code.text) or any(map(_CONVERTS_KEY.search, naming)):
        return replace(finding, severity=Severity.INFO, measured={**finding.measured, "kind": READ})
    return replace(finding, severity=Severity.HIGH, measured={**finding.measured, "kind": UNREAD})


def _looked_up(finding: Finding, code: _Text) -> Finding | None:
    """Links that name rows by a field: nothing where the code names the field, an alarm where it reads and does not."""
    name, files = str(finding.measured["field"]), {finding.measured["shard"], finding.measured["beside"]}
    if re.search(rf"\b{re.escape(name)}\b|\bset_index\(|\bindex_col\b", code.text):
        return None
    if not all(str(f) in code.text or Path(str(f)).suffix in code.text for f in files):
        return finding
    said = finding.statement.replace("code that takes the numbers for places", f"the code never names {name}: it")
    return replace(finding, severity=Severity.HIGH, statement=said, measured={**finding.measured, "kind": UNREAD})


def _converted(finding: Finding, code: _Text) -> Finding | None:
    """Times of two zones: nothing where the code converts any, an alarm where it reads the table and does not."""
    if _CONVERTS.search(code.text):
        return None
    if str(finding.measured["field"]) not in code.text:
        return finding
    said = finding.statement.replace("joined without a conversion", "the code converts none: joined by them")
    return replace(finding, severity=Severity.HIGH, statement=said, measured={**finding.measured, "kind": UNREAD})


def _stated(finding: Finding, code: _Text) -> Finding:
    """What a file says of itself: a remark where the code names it or reads all of it, an alarm where it does not."""
    name = re.escape(str(finding.measured["field"]))
    if not _READS_SETS.search(code.text):
        return finding
    read = re.search(rf"['\"]{name}['\"]|\.{name}\b", code.text) or _READS_ALL.search(code.text)
    said = "and the code of the run reads it" if read else f"and nothing in the code reads {finding.measured['field']}"
    head, found, _ = finding.statement.rpartition("; a loader that")
    return replace(finding, severity=Severity.INFO if read else Severity.HIGH,
                   bearing=finding.bearing if read else Bearing.CAUSE,
                   statement=f"{head}, {said}" if found else finding.statement,
                   measured={**finding.measured, "kind": READ if read else UNREAD})


def _in_one_unit(finding: Finding, code: _Text) -> Finding:
    """Numbers in two units: a remark where the code multiplies or divides by a unit's factor, else an alarm."""
    if not _names(code, finding.measured["field"]):
        return finding
    if _RESCALES.search(code.text):
        return replace(finding, severity=Severity.INFO, measured={**finding.measured, "kind": READ})
    severity = finding.severity if finding.severity is Severity.LOW else Severity.HIGH
    return replace(finding, severity=severity, measured={**finding.measured, "kind": UNREAD})


def _ends_read(finding: Finding, code: _Text) -> Finding:
    """Ends that no field marks: low where the code reads the next state and no field that should mark them."""
    flags = finding.measured["fields"]
    read = isinstance(flags, tuple) and any(_names(code, f) for f in flags)
    if read or not _names(code, finding.measured["following"]):
        return finding
    return replace(finding, severity=min(finding.severity, Severity.LOW, key=lambda s: s.rank))


def _names(code: _Text, name: object) -> bool:
    return re.search(rf"\b{re.escape(str(name))}\b", code.text) is not None


def _asks(finding: Finding) -> bool:
    """Whether a finding asks if the loader resamples: D131 of files against the rate that a setting names."""
    return finding.rule == "D131" and finding.measured.get("kind") == "configuration"


def _answered(finding: Finding, code: _Text) -> Finding:
    if _use("rate", "sounds", code, None) != READ:
        return finding
    said = finding.statement.replace("does the loader resample?", "the code of the run reads the rate")
    return replace(finding, severity=Severity.INFO, statement=said, measured={**finding.measured, "kind": READ})


def _decided(finding: Finding, code: _Text) -> Finding:
    what, of = str(finding.measured["field"]), str(finding.measured["of"])
    use = _use(what, of, code, finding.measured.get("endings"))
    said = {READ: "the code of the run reads it", UNREAD: "and nothing in the code of the run reads it"}.get(use)
    statement = finding.statement.replace("a reader that gives the numbers alone drops it", said) if said else (
        finding.statement)
    return replace(finding, severity=severity_of(what, use), statement=statement,
                   measured={**finding.measured, "kind": use})


def _use(what: str, of: str, code: _Text, endings: object) -> str:
    if _HONOURS[what].search(code.text) or (what == "rate" and code.rate_used):
        return READ
    if not _READERS[of].search(code.text):
        return UNKNOWN
    turned = isinstance(endings, tuple) and bool(endings) and set(endings) <= _TURNED_BY_READER
    if what == "orientation" and turned and "tifffile" not in code.text:
        return READ
    return UNREAD


def _text_of(code: Sequence[Path]) -> _Text:
    texts, used = [], False
    for path in code:
        try:
            if path.suffix == ".py" and path.stat().st_size <= MOST_CODE:
                tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
                used = used or _rate_used(tree)
                texts.append(ast.unparse(_without_prose(tree)))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return _Text("\n".join(texts), used)


def _without_prose(tree: ast.Module) -> ast.Module:
    """Without docstrings: what a comment promises is no use."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            said = [b for b in node.body if not (isinstance(b, ast.Expr) and isinstance(b.value, ast.Constant))]
            node.body = said or [ast.Pass()]
    return tree


def _rate_used(tree: ast.Module) -> bool:
    """Whether a name that takes the rate from a reader is asked for in the same function."""
    functions: list[ast.AST] = [
        n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return any(_rates(scope) & _asked(scope) for scope in (functions or [tree]))


def _asked(scope: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _rates(scope: ast.AST) -> set[str]:
    out = set()
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        function = node.value.func
        at = _RATE_AT.get(function.attr) if isinstance(function, ast.Attribute) else None
        if at is None or not _READERS["sounds"].search(f"{ast.unparse(function)}("):
            continue
        at = 0 if "wavfile" in ast.unparse(function) else at
        for target in node.targets:
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) > at:
                named = target.elts[at]
                out |= {named.id} if isinstance(named, ast.Name) else {ast.unparse(named)}
            elif isinstance(target, ast.Name):
                out.add(target.id)  # both in one name: what is done with it is not followed, and speaks for the code
    return out


_BY_CODE: Mapping[str, Callable[[Finding, _Text], Finding | None]] = {
    RULE_ID: _decided, BY_FIELD: _looked_up, ZONES: _converted, KEYS: _joined,
    MIXED: _in_one_unit, ENDS: _ends_read, STATED: _stated}
"""What the code decides of the findings of a rule."""
