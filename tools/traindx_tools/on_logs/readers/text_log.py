"""Any log that people read: prints, loggers, progress bars, printed dicts, and several of these in one file.

What a line says is worked out once for each shape of line (its text with every digit replaced). Lines of a shape seen
before, nearly all of a log, cost one lookup and the conversion of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.launched import launched
from traindx_tools.on_logs.readers.line_blocks import Beside, each_block
from traindx_tools.on_logs.readers.line_columns import ByColumns
from traindx_tools.on_logs.readers.lines import LineStats, read_lines
from traindx_tools.on_logs.readers.numbers import has_decimal_commas, with_points
from traindx_tools.on_logs.readers.reader import Head, Reader, head_of
from traindx_tools.on_logs.readers.text_reading import TextReading
from traindx_tools.on_logs.run import Run


def lines_of(source: Source, stats: LineStats | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a source. Raises OSError."""
    with source.text() as stream:
        yield from read_lines(stream, "utf-8-sig", stats)


def read(source: Source, beside: Beside | None = None) -> Run:
    """Reads any text log; `beside` is handed the same lines. Raises OSError."""
    stats, reading = LineStats(), TextReading(source.name, launched=launched(source),
                                               forms=source.forms)
    if has_decimal_commas(head_of(source).text):
        for number, text in lines_of(source, stats):
            reading.line(number, with_points(text))
            if beside is not None:
                beside.line(number, text)
    else:
        each_block(source, ByColumns(reading).take, reading.line, stats, beside, recorder=reading.recorder)
    source.formed.update(reading.formed)
    return reading.finish(f"{stats.cut} lines longer than 64 KiB were cut" if stats.cut else "")


def sniff(head: Head) -> float:
    """Whatever is text may be a log; the sniffers of other formats are surer where it is theirs."""
    return 0.0 if is_binary(head.data) else 0.1


READER = Reader("free_text", sniff, read)
