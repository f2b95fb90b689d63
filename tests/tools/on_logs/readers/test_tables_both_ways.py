"""Odd tables of metrics tell the same whether pyarrow reads them in blocks or each row is read by itself."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import arrow_rows, block_source, delimited
from traindx_tools.on_logs.readers.recorder import keeping
from traindx_tools.on_logs.run import Run

ROWS = 3_000
HEADER = "step,epoch,train_loss,grad_norm,lr,val_loss"


def _row(step: int, rng: random.Random) -> list[str]:
    held_out = repr(rng.random()) if step % 100 == 0 else ""
    return [str(step), str(step // 1000), repr(rng.random()), repr(rng.gauss(2, 1)), f"{rng.random():.3e}", held_out]


def _table(change: Callable[[list[str], int], list[str]] = lambda row, _: row, rows: int = ROWS) -> str:
    rng = random.Random(0)
    return "\n".join([HEADER, *(",".join(change(_row(step, rng), step)) for step in range(1, rows + 1))]) + "\n"


def _with_cell(column: int, *texts: str, every: int = 97) -> str:
    def change(row: list[str], step: int) -> list[str]:
        if step % every == 0:
            row[column] = texts[step // every % len(texts)]
        return row
    return _table(change)


def _stops(row: list[str], step: int) -> list[str]:
    return row[:3] if step % 500 == 0 else row


ODD = {
    "plain": _table(),
    "quotes": _with_cell(2, '"0.5"', '" 0.25 "', '"1,5"', '"a ""quoted"" one"'),
    "empty cells": _with_cell(2, "", " ", "\t"),
    "no numbers": _with_cell(2, "NaN", "nan", "inf", "-Infinity", "INF", "None", "null", "N/A", "-"),
    "texts": _with_cell(3, "skipped", "0x1F", "1_000", "12%", "1e999", "1.", ".5", "+3", "1e+05", "٣"),
    "odd steps": _with_cell(0, "", "1.5", "nan", "inf", "1e3", "x"),
    "no loss at all": _table(lambda row, _: [*row[:2], "", "", "", ""]),
    "restart": _table() + _table(rows=500).split("\n", 1)[1],
    "header again": _table(rows=700) + _table(rows=900),
    "another header": _table(rows=700) + "step,epoch,train_loss,acc\n" + "\n".join(
        f"{i},1,{i / 900},{i / 1000}" for i in range(900)) + "\n",
    "damaged rows": _table(_stops),
    "comments and empty lines": _table(rows=500) + "\n# resumed\n\n" + _table(rows=500).split("\n", 1)[1],
    "carriage returns": _table().replace("\n", "\r\n"),
    "one carriage return": _table(rows=900).replace("\n", "\r\n", 40),
    "byte order mark": "\ufeff" + _table(),
    "no last newline": _table().rstrip("\n"),
    "tabs": _table().replace(",", "\t"),
    "semicolons": _table().replace(",", ";"),
    "nothing but a header": HEADER + "\n",
    "cut in a row": _table()[:-40],
    "binary in it": _table(rows=800) + "\0\0\0\n" + _table(rows=800).split("\n", 1)[1],
}


def _told(run: Run) -> tuple[object, ...]:
    series = [(s.name, s.original, s.group, s.rank, s.values.tobytes(), s.step.tobytes(), s.epoch.tobytes(),
               s.time.tobytes(), s.line.tobytes()) for s in run.series]
    return series, repr(run.notes), run.planned_steps, run.artifacts


def _read(text: str) -> tuple[object, ...]:
    return _told(delimited.read(Source("metrics.csv", data=text.encode())))


@pytest.mark.parametrize(("chunk", "cores"), [(block_source.CHUNK, 1), (20_000, 1), (20_000, 3)])
@pytest.mark.parametrize("what", ODD)
def test_both_ways_tell_the_same(what: str, chunk: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "CHUNK", chunk)
    monkeypatch.setattr(block_source, "_cores", lambda: cores)
    together = _read(ODD[what])
    monkeypatch.setattr(arrow_rows, "_pyarrow", lambda: None)
    assert together == _read(ODD[what])


def test_mangled_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    mangled = []
    for _ in range(30):
        text = list(_table(rows=400))
        for _ in range(rng.randint(1, 12)):
            text[rng.randrange(len(HEADER) + 1, len(text))] = rng.choice('",\n#\r .+-eEx_%é\0')
        mangled.append("".join(text))
    together = [_read(text) for text in mangled]
    monkeypatch.setattr(arrow_rows, "_pyarrow", lambda: None)
    assert together == [_read(text) for text in mangled]


_NAMES = ("step", "epoch", "train_loss", "grad_norm", "lr", "val_loss", "timestamp", "total_steps", "note")
_ODD_CELLS = ("nan", "NaN", "inf", "-inf", "", " ", "-0", "-0.0", ".5", "5.", "1e+05", "+3", "1e999", "1e-400", "007",
              " 7 ", "9" * 30, "0x1f", "1_000", "12%", '"0.5"', "x", "#", "1d5", "--1", "null", "nan(1)", "infinity",
              "\t", "٣")


def _random_table(rng: random.Random) -> str:
    """Rows of numbers with odd cells and odd lines at a rate of the table's own, which may be none."""
    names = ["step", *rng.sample(_NAMES[1:], rng.randint(1, 7))]
    delimiter, line_end = rng.choice(",,,\t;|"), rng.choice(("\n", "\n", "\n", "\r\n"))
    odd, other, absent = rng.choice((0, 0, 1e-3, 0.1)), rng.choice((0, 0, 1e-3, 0.02)), rng.choice((0, 0.5, 0.99))
    lines = [names]
    for step in range(rng.choice((0, 1, 70, 900, 2_500))):
        row = [str(step), *("" if rng.random() < absent else repr(rng.gauss(1, 1)) for _ in names[1:])]
        if rng.random() < odd:
            row[rng.randrange(len(row))] = rng.choice(_ODD_CELLS)
        lines.append(row)
        if rng.random() < other:
            lines[-1] = rng.choice(([], row[:-1], [*row, "1"], ["# resumed"], names, [*names[:-1], "more"],
                                    ["\r", *row[1:]]))
    text = line_end.join(map(delimiter.join, lines)) + rng.choice((line_end, ""))
    return text[: len(text) - rng.choice((0, 0, 0, rng.randint(0, 30)))]


@pytest.mark.parametrize("seed", range(40))
def test_random_tables(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _random_table(random.Random(seed))
    monkeypatch.setattr(block_source, "CHUNK", 20_000)
    monkeypatch.setattr(block_source, "_cores", lambda: 1 + seed % 3)
    together = _read(text)
    with keeping(2_000):
        thinned = _read(text)
    monkeypatch.setattr(arrow_rows, "number_rows", lambda *_: None)
    assert together == _read(text), "cells that are looked for one comparison a separator"
    with keeping(2_000):
        assert thinned == _read(text)
    monkeypatch.setattr(arrow_rows, "_pyarrow", lambda: None)
    assert together == _read(text), "each line by itself"


def test_numbers_alone_are_cut_with_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of the shortest of the ways: a table of plain numbers does not come by any other."""
    monkeypatch.setattr(arrow_rows.ArrowRows, "_parts", None)
    monkeypatch.setattr(block_source, "CHUNK", 20_000)
    head, rows = ODD["plain"].split("\n", 1)
    run = delimited.read(Source("metrics.csv", data=(head + "\n" * 20_002 + rows).encode()))
    loss = run.first("loss", group="train")
    assert loss is not None
    assert len(loss) == ROWS


def test_a_plain_table_is_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that both ways are alike would pass as well where there is one way only."""
    alone: list[int] = []
    line = delimited._Table.line

    def counted(table: delimited._Table, number: int, text: str) -> None:
        alone.append(number)
        line(table, number, text)

    monkeypatch.setattr(delimited._Table, "line", counted)
    run = delimited.read(Source("metrics.csv", data=ODD["plain"].encode()))
    assert alone == [1], "the header"
    loss = run.first("loss", group="train")
    assert loss is not None
    assert (len(loss), loss.step[-1], loss.line[-1]) == (ROWS, ROWS, ROWS + 1)
