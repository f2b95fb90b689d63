"""`--line`: a shape of line is learned from one example; and which lines of a log were not used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import Run, Series, read_run
from traindx_tools.on_logs.each_run import each_run
from traindx_tools.on_logs.readers.line_forms import parse_form
from traindx_tools.on_logs.reading import read_parts


def read(text: str, *lines: str) -> Run:
    return read_run(["-"], stdin=text.encode(), lines=lines)


def only(run: Run, name: str, group: str = "train") -> Series:
    found = [s for s in run.series if (s.name, s.group) == (name, group)]
    assert len(found) == 1, [(s.name, s.group) for s in run.series]
    return found[0]


SHAPES = [
    ("{step} | {loss} | {lr}", "{s} | {a} | {b}"),
    ("{step}|{loss}|{lr}", "{s}|{a}|{b}"),
    ("{step},{loss},{lr},{}", "{s},{a},{b},7.5"),
    ("<<{step}>> ~{loss}~ blub {lr}", "<<{s}>> ~{a}~ blub {b}"),
    ("T{step}: {loss} @ {lr}", "2026-11-27 10:00:00,123 INFO T{s}: {a} @ {b}"),
    ("[{step}] x {loss} ({}) y={lr}", "[{s}] x {a} (0.3, 0.2) y={b}"),
    ("{step}  {loss}  {lr}", "{s}   {a}  {b}"),
    ("gpu0 {step} {loss} {lr}", "gpu13 {s} {a} {b} rest of the line 12"),
    ("{step}/1000 L {loss}; {lr}", "{s}/9999 L {a}; {b}"),
    ("Schritt {step} Kosten {loss} Rate {lr}", "Schritt {s} Kosten {a} Rate {b}"),
]


@pytest.mark.parametrize(("example", "line"), SHAPES, ids=[e for e, _ in SHAPES])
def test_a_shape_is_learned_from_one_example(example: str, line: str) -> None:
    text = "hello\n" + "".join(line.format(s=i * 10, a=f"{3 - i / 100:.4f}", b=f"{1e-3 / (i + 1):.2e}") + "\n"
                               for i in range(100))
    run = read(text, example)
    assert only(run, "loss").values.tolist() == [float(f"{3 - i / 100:.4f}") for i in range(100)]
    assert only(run, "learning_rate").values.tolist() == [float(f"{1e-3 / (i + 1):.2e}") for i in range(100)]
    assert only(run, "loss").step.tolist() == [10.0 * i for i in range(100)]
    assert only(run, "loss").line.tolist() == list(range(2, 102))


@pytest.mark.parametrize("number", ["nan", "-inf", "1e-05", "-0.5", ".5", "1,234.5"])
def test_a_number_is_one_however_it_is_written(number: str) -> None:
    text = "".join(f"{i}: {number}\n" for i in range(3))
    expected = np.array([float(number.replace(",", ""))] * 3)
    np.testing.assert_array_equal(only(read(text, "{step}: {loss}"), "loss").values, expected)


def test_other_lines_are_read_as_before_and_epochs_ranks_and_groups_are_understood() -> None:
    text = "".join(f"e{i} r1 > {2 - i / 10:.1f} ^ {3 - i / 10:.1f}\nstep {i} grad_norm 0.{i + 1}\n" for i in range(5))
    run = read(text, "e{epoch} r{rank} > {loss} ^ {val_loss}")
    assert only(run, "loss").epoch.tolist() == [0, 1, 2, 3, 4]
    assert only(run, "loss").rank == 1
    assert only(run, "loss", "validation").values[0] == 3.0
    assert only(run, "grad_norm").step.tolist() == [0, 1, 2, 3, 4]


def test_several_examples_and_colours() -> None:
    text = "".join(f"\x1b[32m{i}\x1b[0m | {2 - i / 10:.1f}\nV {i} ~ {3 - i / 10:.1f}\n" for i in range(5))
    run = read(text, "{step} | {loss}", "V {step} ~ {val_loss}")
    assert only(run, "loss").step.tolist() == only(run, "loss", "validation").step.tolist() == [0, 1, 2, 3, 4]


def test_a_number_within_a_word_or_another_number_is_none() -> None:
    with pytest.raises(UnreadableInput, match="no line is like it"):
        read("x1 2.5.3\nab12 0.5\n", "{step} {loss}")


def test_a_table_whose_rows_an_example_explains_is_read_by_it(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("".join(f"{i},{2 - i / 10:.1f},9\n" for i in range(5)))
    assert only(read_run(path, lines=["{step},{loss},{}"]), "loss").values.tolist() == [2.0, 1.9, 1.8, 1.7, 1.6]


def test_two_runs_in_one_file_keep_the_example(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(f"{i} ~ {2 - i / 100:.2f}\n" for _ in range(2) for i in range(60)))
    runs = each_run(read_parts(path, lines=["{step} ~ {loss}"]))
    assert [len(r.reading.parts[0].series[0]) for r in runs] in ([60, 60], [120])
    assert all(s.name == "loss" for r in runs for p in r.reading.parts for s in p.series)


@pytest.mark.parametrize(("example", "why"), [
    ("", "expected one line"), ("x" * 500, "expected one line"), ("a\nb {loss}", "expected one line"),
    ("no names", "names no metric"), ("{step}", "names no metric"), ("{}", "names no metric"),
    ("{loss} {loss}", "twice"), ("{step}{loss}", "parts their numbers"), ("{0} {loss}", "no name of a metric"),
    ("{a\x07} {loss}", "no name of a metric")])
def test_an_example_that_says_nothing_is_refused(example: str, why: str) -> None:
    with pytest.raises(UnreadableInput, match=why) as refused:
        parse_form(example)
    assert "An example: --line" in str(refused.value)


def test_an_example_that_no_line_is_like_is_told_with_lines_that_there_are() -> None:
    with pytest.raises(UnreadableInput, match=r"no line is like it.*line 2: \"1 ~ 0.5\""):
        read("hello\n1 ~ 0.5\n2 ~ 0.4\n", "{step} | {loss}")


@pytest.mark.parametrize("example", ["(.*)+{loss}", "[[[{loss}", "\\{loss}", "{loss}{{}}", "a*{}b*{}c*{}{x}"])
def test_signs_of_patterns_are_meant_as_they_are(example: str) -> None:
    try:
        form = parse_form(example)
    except UnreadableInput:
        return
    assert form.spans("a" * 5_000, 0) is None


def test_many_places_that_are_passed_over_cost_no_more_than_a_few() -> None:
    form = parse_form("{} ; " * 40 + "{loss} !")
    assert form.spans("1 ; 2 " * 5_000, 0) is None
    assert parse_form("{loss}x").spans("9" * 3_000, 0) is None


# lines that were not used


def test_lines_that_were_not_used_are_told_with_their_share_and_the_first() -> None:
    text = "".join(f"step {i} loss {2 - i / 100:.2f}\n<{i}> ~ {i * 7}\n" for i in range(40))
    (artifact,) = read(text).artifacts
    assert artifact.unused == 40
    assert '40 of 80 lines (50 %) hold numbers and were not used, as in line 2: "<0> ~ 0"; line 4: "<1> ~ 7"; ' \
           'line 6: "<2> ~ 14"' in artifact.note
    assert "--line" in artifact.note


def test_of_several_shapes_one_line_each_is_shown() -> None:
    text = "".join(f"step {i} loss {2 - i / 100:.2f}\n<{i}> ~\n({i}) ;\n/{i}/ ?\n" for i in range(40))
    (artifact,) = read(text).artifacts
    assert [n for n in ("line 2:", "line 3:", "line 4:") if n in artifact.note] == ["line 2:", "line 3:", "line 4:"]


@pytest.mark.parametrize("line", ["hello", "epoch {i}", "saved checkpoint-{i}.pt", "WARNING: {i} retries",
                                  "  accumulate_steps ........ {i}", "CUDA error: device-side assert triggered {i}"])
def test_prose_headings_remarks_warnings_and_settings_are_not_counted(line: str) -> None:
    text = "".join(f"step {i} loss {2 - i / 100:.2f}\n{line.format(i=i)}\n" for i in range(40))
    assert read(text).artifacts[0].unused == 0


def test_a_banner_is_counted_and_not_told() -> None:
    text = "<3> ~ 4\n" + "".join(f"step {i} loss {2 - i / 100:.2f}\n" for i in range(40))
    (artifact,) = read(text).artifacts
    assert (artifact.unused, artifact.note) == (1, "")


def test_as_many_are_counted_a_block_at_a_time_as_line_by_line() -> None:
    text = "".join(f"step {i} loss {2 - i / 1000:.3f}\n<{i}> ~ {i * 7}\n" for i in range(900))
    bars = text.replace("<5>", "\r<5>")  # a redrawn line: the block is read line by line
    assert read(text).artifacts[0].unused == read(bars).artifacts[0].unused == 900
