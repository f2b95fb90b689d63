"""The journal: whole or torn, never half; altered lines are found; a full disk is said plainly."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx import journal as journal_module
from traindx.durable import StateNotWritable, write_durably
from traindx.journal import Journal, JournalDamaged, read_journal


def filled(path: Path, count: int = 3) -> bytes:
    with Journal(path) as journal:
        for n in range(count):
            journal.append("event", {"n": n, "text": "zeile ü \u2028 \n"})
    return path.read_bytes()


def test_records_are_numbered_and_come_back_as_written(tmp_path: Path):
    filled(tmp_path / "j")
    records = read_journal(tmp_path / "j")
    assert [r.number for r in records] == [1, 2, 3]
    assert records[1].body == {"n": 1, "text": "zeile ü \u2028 \n"}


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0, max_value=10_000))
def test_cut_off_anywhere_it_holds_the_whole_records_before_the_cut_and_takes_more(tmp_path_factory, cut: int):
    path = tmp_path_factory.mktemp("j") / "j"
    content = filled(path)
    path.write_bytes(content[: min(cut, len(content))])
    whole = content[: min(cut, len(content))].count(b"\n")
    with Journal(path) as journal:
        assert len(journal.records) == whole
        journal.append("event", {"n": "after"})
    assert [r.number for r in read_journal(path)] == list(range(1, whole + 2))


def test_a_torn_page_of_zeros_at_the_end_is_cut_off(tmp_path: Path):
    content = filled(tmp_path / "j")
    (tmp_path / "j").write_bytes(content + b"\0" * 100 + b"\n")
    with Journal(tmp_path / "j") as journal:
        assert len(journal.records) == 3


@pytest.mark.parametrize("damage", ["alter", "drop", "swap", "garbage"])
def test_a_damaged_line_before_the_last_is_an_error_that_names_it(tmp_path: Path, damage: str):
    lines = filled(tmp_path / "j").splitlines(keepends=True)
    changed = {"alter": [lines[0].replace(b'"n":0', b'"n":7', 1), *lines[1:]], "drop": lines[1:],
               "swap": [lines[1], lines[0], lines[2]], "garbage": [b"hello\n", *lines[1:]]}[damage]
    (tmp_path / "j").write_bytes(b"".join(changed))
    with pytest.raises(JournalDamaged, match=r"j:1: "):
        Journal(tmp_path / "j")


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"n":1,"at":"x","kind":"y","body":NaN,"hash":"z"}',
                                  b'{"n":1,"at":"x","kind":"y","body":{"a":Infinity},"hash":"z"}'],
                         ids=["deep", "nan", "infinity"])
def test_a_line_that_we_never_write_is_damage_wherever_it_stands(tmp_path: Path, line: bytes):
    lines = filled(tmp_path / "j").splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join([line + b"\n", *lines[1:]]))
    with pytest.raises(JournalDamaged, match=r"j:1: "):
        Journal(tmp_path / "j")


def test_an_altered_last_line_is_not_taken_for_a_torn_one(tmp_path: Path):
    content = filled(tmp_path / "j")
    (tmp_path / "j").write_bytes(content.replace(b'"n":2,"text"', b'"n":9,"text"'))
    with pytest.raises(JournalDamaged, match=r"j:3: the record was altered"):
        Journal(tmp_path / "j")


def test_a_full_disk_leaves_no_half_record_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    filled(tmp_path / "j")
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return real(descriptor, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path / "j") as journal:
        monkeypatch.setattr(journal_module.os, "write", full)
        with pytest.raises(StateNotWritable, match=r"No space left on device.*resume"):
            journal.append("event", {"n": 3, "long": "x" * 25})
        monkeypatch.undo()
        journal.append("event", {"n": 4})
    assert [r.body["n"] for r in read_journal(tmp_path / "j")] == [0, 1, 2, 4]


def test_a_read_only_folder_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(journal_module.os, "open", refuse)
    with pytest.raises(StateNotWritable, match="Read-only file system"):
        Journal(tmp_path / "j")


def test_a_begun_effect_without_an_end_is_known_after_a_restart(tmp_path: Path):
    with Journal(tmp_path / "j") as journal:
        journal.begin("apply", file="a")
        journal.finish("other")
    with Journal(tmp_path / "j") as journal:
        assert journal.begun("apply") == {"key": "apply", "file": "a"}
        assert journal.finished("apply") is None


def test_a_failed_replacement_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "f"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_durably(target, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert target.read_text() == "old"


def test_non_finite_numbers_never_reach_the_journal(tmp_path: Path):
    with Journal(tmp_path / "j") as journal, pytest.raises(ValueError, match="not JSON compliant"):
        journal.append("event", {"value": float("nan")})
    assert json.loads("[]") == read_journal(tmp_path / "j")
