"""Tables that a log prints: a header and rows below it, or boxes with a name and a value a line.

Rows: skorch, YOLO, notebooks, rich, markdown, anything with columns. Boxes: Stable-Baselines3 and its kin, where a box
is a record.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from traindx_tools.on_logs import role_names
from traindx_tools.on_logs.readers import columns, detection_tables
from traindx_tools.on_logs.readers.bars import is_drawn
from traindx_tools.on_logs.readers.names import identify, words
from traindx_tools.on_logs.readers.numbers import as_memory, count, unit, value

_BARS = re.compile(r"[|│┃║]")
_RULE_LINE = re.compile(r"^[\s|+\-=─━═┄╌┌┐└┘├┤┬┴┼╭╮╰╯╞╡╪╤╧┏┓┗┛┡┩╇┠┨╂:]*$")
_BOX = re.compile(r"^\s*[|│┃║]\s*(?P<name>[A-Za-z][\w /.@()%-]{0,80}?)\s*[|│┃║]\s*(?P<cell>\S.*?)?\s*[|│┃║]\s*$")
_WIDE_GAP = re.compile(r"\s{2,}|\t")
_HEADED = re.compile(r"loss|acc|epoch|step|iter|mse|mae|ppl|reward|score", re.IGNORECASE)
"""What at least one column of a header is called, in English and without a frame: told first, because the full look is
slow."""
_SPACY = re.compile(r"\s*E\s+#\s+LOSS ")
"""How spaCy heads its table: the epoch, the step, a loss a component, scores of the development set in per cent."""
_SPACY_NAMES = {"E": "epoch", "#": "step", "SCORE": "dev overall"}
_MAX_COLUMNS = 200
_MAX_BOX = 400
"""Characters of a line of a box: a longer one is none."""
_PATIENCE = 20
"""Lines with numbers between two rows before a header is forgotten."""


@dataclass(frozen=True)
class Row:
    """One record of a printed table: where it stands and its metrics by name."""

    step: float = math.nan
    total: float = math.nan
    epoch: float = math.nan
    epoch_total: float = math.nan
    values: tuple[tuple[str, float], ...] = ()
    drawn: bool = False
    """Whether a bar stands behind it: the row is drawn again and again."""


@dataclass
class PrintedTables:
    """Follows a log line by line and hands out a row where a line (or the end of a box) completes one."""

    _header: list[str] = field(default_factory=list)
    _maybe: list[str] = field(default_factory=list)
    """Names over columns, one of them a counter's: a header if a line of as many numbers follows."""
    _framed: list[str] = field(default_factory=list)
    """The cells of the last line of a framed header, which the next line may continue: names that were wrapped."""
    _box: dict[str, float] = field(default_factory=dict)
    _section: str = ""
    _misses: int = 0
    _scores: list[str] = field(default_factory=list)
    """What the columns of a detector's table of classes are called, while its row "all" is awaited."""
    _epoch: float = math.nan
    """The epoch that the last row stated."""

    @property
    def open(self) -> bool:
        """Whether the next line may belong to a table that has begun."""
        return bool(self._header or self._box or self._section or self._maybe or self._framed
                    or self._scores)

    def line(self, text: str, numbers: int) -> tuple[bool, Row | None]:
        """Whether the line belongs to a table, and the row it completes. `numbers`: how many stand in it."""
        if self._box or text.lstrip()[:1] in ("|", "│", "┃", "║"):
            in_box, row = self._box_line(text)
            if in_box or row:
                return in_box, row
        if self._scores or text.lstrip().startswith("Class "):
            of_classes, row = self._class_line(text)
            if of_classes:
                return True, row
        maybe, self._maybe = self._maybe, [] if numbers else self._maybe
        if numbers:
            self._framed = []
        if maybe and numbers and _is_row_of(maybe, text):
            self._header, self._misses = maybe, 0
        if self._header and numbers:
            row = self._row(text)
            if row is not None:
                self._misses = 0
                return True, row
            self._misses += 1
            self._header = self._header if self._misses < _PATIENCE else []
        elif not numbers and len(text) < 2_000:
            return self._may_be_header(text), None
        return False, None

    def _class_line(self, text: str) -> tuple[bool, Row | None]:
        """Whether a line heads or fills a detector's table of classes, and the record of its row "all"."""
        if names := detection_tables.score_columns(text):
            self._scores = names
            return True, None
        found = detection_tables.scores(text, self._scores)
        if found:
            self._scores = []
            return True, Row(epoch=self._epoch, values=tuple(found.items()))
        return False, None

    def _may_be_header(self, text: str) -> bool:
        if _RULE_LINE.match(text):
            self._framed = []
            return bool(self._header)
        framed = _BARS.match(text.lstrip()) is not None
        cells = _joined(self._framed, _cells(text)) if framed else []
        self._framed = cells
        looked_at = framed or bool(self._header) or _HEADED.search(text) or not text.isascii()
        names = _header_cells(text, cells) if looked_at else []
        if names and _SPACY.match(text):
            names = [_spacy_name(n) for n in names]
        if names:
            self._header, self._misses = detection_tables.loss_columns(names), 0
            self._maybe = _columns_of_a_counter(_names_of_words(text)) if not cells or cells == text.split() else []
        else:
            self._maybe = detection_tables.loss_columns(_columns_of_a_counter(cells or _names_in(text)))
        return bool(names)

    def _row(self, text: str) -> Row | None:
        cells = _cells(text)
        if len(cells) > len(self._header):
            cells = [c for c in cells if c not in ("+", "*", "✓")]  # how skorch and others mark the best row
        if len(cells) > len(self._header) and is_drawn(text):
            cells = cells[:len(self._header)]
        if len(cells) != len(self._header):
            return None
        read = [_read_cell(cell, name) for name, cell in zip(self._header, cells, strict=False)]
        if any(r is None and columns.role(n) in (columns.STEP, columns.EPOCH)
               for n, r in zip(self._header, read, strict=False)):
            return None  # a row of another table under the same number of columns
        filled = [r for r, cell in zip(read, cells, strict=False) if cell.strip(" -")]
        if sum(r is not None for r in filled) < max(1, len(filled) - 1):
            return None
        row = _as_row({name: r for name, r in zip(self._header, read, strict=False) if r is not None})
        self._epoch = self._epoch if math.isnan(row.epoch) else row.epoch
        return replace(row, drawn=is_drawn(text))

    def _box_line(self, text: str) -> tuple[bool, Row | None]:
        match = _BOX.match(text) if len(text) <= _MAX_BOX else None
        if match is None:
            if not self._box or (text.lstrip()[:1] in "|│┃║" and _RULE_LINE.match(text) is None):
                return False, self._close_box() if self._box else None
            return True, self._close_box()
        name, cell = match.group("name").strip(), match.group("cell")
        if not cell:
            self._section = name if name.endswith("/") else ""
            return bool(self._section), None
        read = value(cell.replace(" ", ""))
        read = count(cell.strip()) if read is None else read
        if read is None:
            return bool(self._box), None
        self._box[self._section + name] = read
        return True, None

    def _close_box(self) -> Row | None:
        box, self._box, self._section = self._box, {}, ""
        if len(box) < 2 or not columns.looks_like_metrics(box):
            return None
        return _as_row({name: (number, math.nan) for name, number in box.items()})

    def finish(self) -> Row | None:
        """The row of a box that the end of the text closes."""
        return self._close_box() if self._box else None


def _spacy_name(name: str) -> str:
    """A column of spaCy's table in words that say what it holds."""
    if name.startswith("LOSS "):
        return f"{name[5:].lower()} loss"
    return _SPACY_NAMES.get(name, f"dev {name}")


def _as_row(cells: dict[str, tuple[float, float]]) -> Row:
    step = total = epoch = epoch_total = math.nan
    sure, values = -1, []
    for name, (number, over) in cells.items():
        kind = columns.role(name)
        if kind == columns.STEP and columns.sureness(name) > sure:
            step, total, sure = number, over, columns.sureness(name)
        elif kind == columns.EPOCH:
            epoch, epoch_total = number, over
        elif kind == columns.METRIC:
            values.append((name, number))
    return Row(step, total, epoch, epoch_total, tuple(values))


def _read_cell(cell: str, name: str) -> tuple[float, float] | None:
    """The number in a cell and what it is counted against: "1/100" gives (1, 100)."""
    text = cell.strip().strip("*:")
    if "/" in text:
        part, over = text.split("/", 1)
        read, planned = count(part.strip()), count(over.strip())
        return None if read is None or planned is None else (read, planned)
    read = value(text)
    if read is not None:
        return read, math.nan
    found = re.match(r"([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s?([A-Za-z%µ]+)$", text)
    scaled = value(found.group(1)) if found else None
    if found is None or scaled is None:
        return None
    memory = as_memory(found.group(2)) if identify(name).canonical.startswith("memory") else None
    factor = unit(found.group(2), glued=True)
    return scaled * (memory or (factor[1] if factor else 1.0)), math.nan


def _cells(text: str) -> list[str]:
    if _BARS.search(text) and not is_drawn(text):
        cells = [c.strip() for c in _BARS.split(text.strip())]
        return cells[1 if not cells[0] else 0:len(cells) - (1 if not cells[-1] else 0)]
    if "\t" in text.strip():
        return [c.strip() for c in text.strip().split("\t")]
    return text.split()


def _joined(above: list[str], cells: list[str]) -> list[str]:
    """Cells with what stands above them in the same header: a narrow table wraps the names of its columns."""
    if len(above) != len(cells):
        return cells
    return [f"{first} {second}".strip() for first, second in zip(above, cells, strict=True)]


def _names_in(text: str) -> list[str]:
    if _BARS.search(text) or "\t" in text.strip():
        return _cells(text)
    wide = [c for c in _WIDE_GAP.split(text.strip()) if c]
    return wide if len(wide) == len(text.split()) or _SPACY.match(text) else text.split()


def _names_of_words(text: str) -> list[str]:
    """The names that wide gaps part, where some are of several words ("Iter   Train Loss"); else none."""
    wide = [c for c in _WIDE_GAP.split(text.strip()) if c]
    return wide if len(wide) < len(text.split()) and "\t" not in text.strip() else []


def _columns_of_a_counter(names: list[str]) -> list[str]:
    """The names, where they can head a table whose rows are counted; else none. What the others mean may be unknown."""
    if not 3 <= len(names) <= _MAX_COLUMNS or len(set(names)) != len(names) or any(len(n) > 40 for n in names):
        return []
    counted = any(columns.role(n) in (columns.STEP, columns.EPOCH) or "_".join(words(n)) in role_names.COUNTERS
                  for n in names)
    return names if counted else []


def _is_row_of(names: list[str], text: str) -> bool:
    """Whether a line holds a number for each name and nothing else."""
    cells = _cells(text)
    cells = cells[:len(names)] if is_drawn(text) else cells
    return len(cells) == len(names) and all(
        _read_cell(cell, name) is not None for name, cell in zip(names, cells, strict=True))


def _header_cells(text: str, cells: list[str]) -> list[str]:
    """The column names of a header line (`cells`, where a frame cuts it), empty where the line is none."""
    names = cells or _names_in(text)
    if not 2 <= len(names) <= _MAX_COLUMNS or any(not n or len(n.split()) > 4 or len(n) > 60 for n in names):
        return []
    if _SPACY.match(text):
        return names
    placed = sum(columns.role(n) in (columns.STEP, columns.EPOCH) for n in names)
    known = sum(columns.role(n) == columns.METRIC and identify(n).known and identify(n).measured for n in names)
    enough = placed + known >= 0.5 * len(names) if "  " in text.strip() or "|" in text or "\t" in text else (
        placed + known == len(names))
    return names if known and placed + known >= 2 and enough and len(set(names)) == len(names) else []
