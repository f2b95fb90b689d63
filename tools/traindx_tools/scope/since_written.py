"""Lines of code that a log names, in the files as they are now: a traceback quotes the text of each line that ran.

Where the quoted text stands at another line, the file was changed since the log was written, and the place that a
person opens is the new one. Where it stands nowhere, or at several lines, the log's number stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx_tools.on_logs.run import ErrorEvent, Frame, Run
from traindx_tools.source_files.texts import MAX_BYTES

SHORTEST = 8
"""Characters from which a quoted text says which line it is: `else:` and `return x` stand everywhere."""
CUT = 200
"""Characters from which a quoted text may be only the beginning of its line."""
MOST_TOLD = 2
"""Files of which a person is told; what is said of more of them has the same reason."""


@dataclass(frozen=True)
class SinceWritten:
    """The text of each judged file, by which the lines that logs name are found again."""

    texts: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[Path], errors: Iterable[ErrorEvent]) -> SinceWritten:
        """Reads the files that an error names; no file where none does."""
        named = {_last_name(f.file) for e in errors for f in _frames(e)}
        return cls({f: _lines(f) for f in files if f.suffix == ".py" and f.name in named})

    def of_run(self, run: Run) -> Run:
        """The run with the frames of its errors at the lines where their texts stand now."""
        return replace(run, errors=tuple(map(self._error, run.errors))) if self.texts and run.errors else run

    def told(self, errors: Iterable[ErrorEvent]) -> tuple[str, ...]:
        """What a person should know: one sentence for each file that a log knows otherwise."""
        changed: dict[tuple[str, Path], _Changed] = {}
        for error in errors:
            for frame in _frames(error):
                file = self._file(frame)
                if file is None:
                    continue
                of = changed.setdefault((error.source, file), _Changed())
                now = self._now(frame, file)
                if now is None:
                    of.lost.setdefault(frame.line, error.kind == "exception" and self._nowhere(frame, file))
                    of.quoted.setdefault(frame.line, " ".join(frame.code.split())[:60])
                elif now != frame.line:
                    of.moved.setdefault(frame.line, now)
        said = (of.in_words(file.name, source) for (source, file), of in changed.items())
        return tuple(filter(None, said))[:MOST_TOLD]

    def _error(self, error: ErrorEvent) -> ErrorEvent:
        return replace(error, frames=tuple(map(self._frame, error.frames)),
                       cause=None if error.cause is None else self._error(error.cause))

    def _frame(self, frame: Frame) -> Frame:
        file = self._file(frame)
        now = None if file is None else self._now(frame, file)
        return frame if now in (None, frame.line) else replace(frame, line=now)

    def _file(self, frame: Frame) -> Path | None:
        """The one judged file that a frame means: with the most names of folders alike; None where two have as many."""
        if frame.library or frame.cell is not None or not frame.code.strip():
            return None
        same = {f: _alike(f, frame.file) for f in self.texts if f.name == _last_name(frame.file)}
        best = [f for f, alike in same.items() if alike == max(same.values())]
        return best[0] if len(best) == 1 and self.texts[best[0]] else None

    def _now(self, frame: Frame, file: Path) -> int | None:
        """The line at which the quoted text stands; None where it is not known which one that is."""
        lines, quoted = self.texts[file], " ".join(frame.code.split())
        if 0 < frame.line <= len(lines) and _is(quoted, lines[frame.line - 1]):
            return frame.line
        if len(quoted) < SHORTEST:
            return None
        found = [number for number, text in enumerate(lines, 1) if _is(quoted, text)]
        if len(found) > 1:
            head = f"def {frame.function.rpartition('.')[2]}("
            begins = [n for n, text in enumerate(lines, 1) if head in text]
            after = [n for n in found if len(begins) == 1 and begins[0] < n < _end(lines, begins[0])]
            found = after
        return found[0] if len(found) == 1 else None

    def _nowhere(self, frame: Frame, file: Path) -> bool:
        quoted, told = " ".join(frame.code.split()), frame.file
        same = _alike(file, told) > 1 or _last_name(told) == told  # a stranger's file may have the same name
        return same and len(quoted) >= SHORTEST and not any(
            quoted in " ".join(text.split()) for text in self.texts[file])


UNCHANGED = SinceWritten()


@dataclass
class _Changed:
    """Of one file in one log: lines that stand elsewhere now, and those of which it is not known where, or nowhere."""

    moved: dict[int, int] = field(default_factory=dict)
    lost: dict[int, bool] = field(default_factory=dict)
    quoted: dict[int, str] = field(default_factory=dict)

    def in_words(self, name: str, source: str) -> str:
        """One sentence; "" where nothing shows that the file was changed."""
        gone = next((line for line, nowhere in self.lost.items() if nowhere), None)
        if not self.moved and gone is None:
            return ""
        parts = [f"its line {old} is line {new} now, and is told as that" for old, new in [*self.moved.items()][:1]]
        if gone is not None:
            parts.append(f"its line {gone}, `{self.quoted[gone]}`, does not stand there any more")
        elif self.lost:
            parts.append(f"where its line {next(iter(self.lost))} stands now is not known")
        return f"{name} was changed since {source} was written: {'; '.join(parts)}"


def _frames(error: ErrorEvent) -> Iterator[Frame]:
    """The frames of the user's own code, the innermost first, then those of what it was raised from."""
    yield from (f for f in reversed(error.frames) if not f.library)
    if error.cause is not None:
        yield from _frames(error.cause)


def _is(quoted: str, text: str) -> bool:
    plain = " ".join(text.split())
    return plain == quoted or (len(quoted) >= CUT - 1 and plain.startswith(quoted))


def _end(lines: Sequence[str], begin: int) -> int:
    """The line behind a function that begins at a line: the first that is indented no deeper."""
    depth = _depth(lines[begin - 1])
    return next((n for n, text in enumerate(lines[begin:], begin + 1) if text.strip() and _depth(text) <= depth
                 and not text.lstrip().startswith((")", "#"))), len(lines) + 1)


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip())


def _last_name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


def _alike(file: Path, told: str) -> int:
    same = 0
    theirs = told.replace("\\", "/").split("/")
    for mine, other in zip(reversed(file.absolute().parts), reversed(theirs), strict=False):
        if mine != other:
            break
        same += 1
    return same


def _lines(file: Path) -> tuple[str, ...]:
    if not file.is_file():
        return ()
    try:
        with file.open("rb") as stream:
            return tuple(stream.read(MAX_BYTES).decode("utf-8", "replace").splitlines())
    except OSError:
        return ()
