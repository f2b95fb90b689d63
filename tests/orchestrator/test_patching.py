"""Patches: bytes kept as they are, stale text refused, reverts exact, the user's own changes never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx import patching
from traindx.durable import StateNotWritable
from traindx.model import ProposedEdit
from traindx.patching import PatchRefused, Store, plan, plan_revert, put, undo
from traindx.workspace import PathRefused


def edit(line: int, end_line: int, original: str, replacement: str, path: str = "a.py") -> ProposedEdit:
    return ProposedEdit(path=path, line=line, end_line=end_line, original=original, replacement=replacement)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def applied(root: Path, store: Store, content: bytes, *edits: ProposedEdit) -> bytes:
    """The content after the edits; checks on the way that a revert gives every byte back."""
    (root / "a.py").write_bytes(content)
    states = plan(root, edits, store)
    assert (root / "a.py").read_bytes() == content, "planning writes nothing"
    put(root, states, store)
    after = (root / "a.py").read_bytes()
    put(root, states, store)
    assert (root / "a.py").read_bytes() == after, "applying twice changes nothing more"
    put(root, plan_revert(root, states, store), store)
    assert (root / "a.py").read_bytes() == content
    return after


@pytest.mark.parametrize(("content", "change", "after"), [
    (b"a\nb\nc\n", edit(2, 2, "b", "B"), b"a\nB\nc\n"),
    (b"a\r\nb\r\nc\r\n", edit(2, 2, "b", "B\nB2"), b"a\r\nB\r\nB2\r\nc\r\n"),
    (b"a\r\nb\nc\r\n", edit(2, 2, "b", "B"), b"a\r\nB\nc\r\n"),
    (b"a\nb", edit(2, 2, "b", "B"), b"a\nB"),
    (b"a\nb", edit(2, 2, "b\n", "B\nC\n"), b"a\nB\nC"),
    (b"a\r\nb", edit(2, 2, "b", "B\nC"), b"a\r\nB\r\nC"),
    (b"a\nb", edit(3, 2, "", "c"), b"a\nb\nc"),
    (b"a\nb\n", edit(3, 2, "", "c"), b"a\nb\nc\n"),
    (b"a\nb\n", edit(1, 0, "", "new"), b"new\na\nb\n"),
    (b"a\nb\nc\n", edit(2, 2, "b", ""), b"a\nc\n"),
    (b"a\nb\nc\n", edit(1, 3, "a\nb\nc", "one"), b"one\n"),
    (b"a\n\nc\n", edit(2, 2, "", "b"), b"a\nb\nc\n"),
    (b"a\n\n\nc\n", edit(2, 3, "\n", "b"), b"a\nb\nc\n"),
    (b"a\nb\n", edit(2, 2, "b", "\n"), b"a\n\n"),
    ("x = 'größe'\ny = '数'\n".encode(), edit(2, 2, "y = '数'", "y = '数字'"), "x = 'größe'\ny = '数字'\n".encode()),
    ("# -*- coding: latin-1 -*-\nx = 'ü'\n".encode("latin-1"), edit(2, 2, "x = 'ü'", "x = 'ö'"),
     "# -*- coding: latin-1 -*-\nx = 'ö'\n".encode("latin-1")),
    (b"\xef\xbb\xbfa\nb\n", edit(1, 1, "a", "A"), b"\xef\xbb\xbfA\nb\n"),
    (b"\xef\xbb\xbfa\nb\n", edit(1, 0, "", "new"), b"\xef\xbb\xbfnew\na\nb\n"),
    (b"a\x0cb\nc\n", edit(2, 2, "c", "C"), b"a\x0cb\nC\n"),
    (b"\tif x:\n\t\ty\n", edit(2, 2, "\t\ty", "\t\tz  "), b"\tif x:\n\t\tz  \n"),
])
def test_an_edit_changes_its_lines_and_no_other_byte(root: Path, store: Store, content: bytes, change: ProposedEdit,
                                                      after: bytes):
    assert applied(root, store, content, change) == after


def test_several_edits_of_one_file_are_by_the_line_numbers_that_were_approved(root: Path, store: Store):
    edits = (edit(1, 1, "a", "1\n2\n3"), edit(3, 3, "c", ""), edit(5, 4, "", "end"))
    assert applied(root, store, b"a\nb\nc\nd\n", *edits) == b"1\n2\n3\nb\nd\nend\n"


lines = st.lists(st.text(alphabet="abü \t", max_size=4), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), old=lines, ends=st.sampled_from(["\n", "\r\n"]), closed=st.booleans())
def test_any_edit_of_any_file_touches_only_its_lines_and_is_taken_back(tmp_path_factory, data, old, ends, closed):
    base = tmp_path_factory.mktemp("p")
    (base / "w").mkdir()
    content = ends.join(old) + (ends if closed else "")
    present = content.split(ends)[:-1] if content.endswith(ends) or not content else content.split(ends)
    if not present:
        return
    start = data.draw(st.integers(1, len(present)))
    stop = data.draw(st.integers(start, len(present)))
    new = data.draw(st.lists(st.text(alphabet="xyzö ", min_size=1, max_size=3), min_size=1, max_size=4))
    change = edit(start, stop, "\n".join(present[start - 1:stop]) + "\n", "\n".join(new))
    after = applied(base / "w", Store(base / "s"), content.encode(), change)
    ends = ends if ends in content else "\n"  # a single open line says nothing of the file's line ends
    expected = ends.join([*present[:start - 1], *new, *present[stop:]]) + (ends if content.endswith(ends) else "")
    assert after == expected.encode()


def test_text_that_is_no_longer_there_is_refused_and_shown(root: Path):
    (root / "a.py").write_text("a\nlr = 0.5\nc\n")
    with pytest.raises(PatchRefused, match=r"a\.py:2: .*no longer there") as refused:
        plan(root, [edit(2, 2, "lr = 10.0", "lr = 0.1")])
    assert "-lr = 10.0" in str(refused.value)
    assert "+lr = 0.5" in str(refused.value)


@pytest.mark.parametrize(("change", "message"), [
    (edit(9, 9, "x", "y"), "the file has 2 now"),
    (edit(1, 1, "a", "y", "missing.py"), "does not exist"),
    (edit(1, 0, "", "y", "no/folder.py"), "folder does not exist"),
])
def test_a_place_that_is_not_there_is_refused(root: Path, change: ProposedEdit, message: str):
    (root / "a.py").write_text("a\nb\n")
    with pytest.raises(PatchRefused, match=message):
        plan(root, [change])


def test_overlapping_edits_are_refused(root: Path):
    (root / "a.py").write_text("a\nb\nc\n")
    with pytest.raises(PatchRefused, match="overlap at line 2"):
        plan(root, [edit(1, 2, "a\nb", "x"), edit(2, 2, "b", "y")])


def test_a_character_that_the_files_encoding_lacks_is_refused(root: Path):
    (root / "a.py").write_bytes("# coding: latin-1\nx = 'ü'\n".encode("latin-1"))
    with pytest.raises(PatchRefused, match="cannot hold '数'"):
        plan(root, [edit(2, 2, "x = 'ü'", "x = '数'")])


def test_a_read_only_file_is_refused_and_says_how_to_allow_it(root: Path):
    (root / "a.py").write_text("a\n")
    (root / "a.py").chmod(0o444)
    with pytest.raises(PatchRefused, match=r"read-only.*chmod u\+w \S*a\.py"):
        plan(root, [edit(1, 1, "a", "b")])


def test_permission_bits_are_kept(root: Path, store: Store):
    (root / "a.py").write_text("a\n")
    (root / "a.py").chmod(0o751)
    put(root, plan(root, [edit(1, 1, "a", "b")], store), store)
    assert (root / "a.py").stat().st_mode & 0o777 == 0o751


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hosts", "link/outside.py", "out.py", "", "a\0b", ".",
                                  ".git/config", "scratch/debug/s/journal.jsonl", "sub/../../outside.py"])
def test_a_path_that_leaves_the_workspace_or_belongs_to_git_or_a_session_is_refused(root: Path, path: str):
    outside = root.parent / "outside.py"
    outside.write_text("a\n")
    (root / "link").symlink_to(root.parent)
    (root / "out.py").symlink_to(outside)
    with pytest.raises(PathRefused, match="refused path"):
        plan(root, [edit(1, 1, "a", "b", path)])
    assert outside.read_text() == "a\n"


def test_a_link_inside_the_workspace_stays_a_link(root: Path, store: Store):
    (root / "real.py").write_text("a\n")
    (root / "a.py").symlink_to("real.py")
    put(root, plan(root, [edit(1, 1, "a", "b")], store), store)
    assert (root / "a.py").is_symlink()
    assert (root / "real.py").read_text() == "b\n"


def test_a_special_file_is_refused(root: Path):
    os.mkfifo(root / "a.py")
    with pytest.raises(PatchRefused, match="only regular files"):
        plan(root, [edit(1, 1, "a", "b")])


def test_a_new_file_is_made_and_taken_away_again(root: Path, store: Store):
    states = plan(root, [edit(1, 0, "", "x = 1", "new.py")], store)
    put(root, states, store)
    assert (root / "new.py").read_text() == "x = 1\n"
    put(root, plan_revert(root, states, store), store)
    assert not (root / "new.py").exists()


def test_a_file_that_changed_after_planning_is_never_overwritten(root: Path, store: Store):
    (root / "a.py").write_text("a\n")
    (root / "b.py").write_text("b\n")
    states = plan(root, [edit(1, 1, "a", "A"), edit(1, 1, "b", "B", "b.py")], store)
    (root / "b.py").write_text("mine\n")
    with pytest.raises(PatchRefused, match=r"left alone: b\.py"):
        put(root, states, store)
    assert (root / "a.py").read_text() == "a\n"
    assert (root / "b.py").read_text() == "mine\n"


def test_a_disk_that_refuses_the_second_file_leaves_the_first_as_it_was(root: Path, store: Store,
                                                                         monkeypatch: pytest.MonkeyPatch):
    (root / "a.py").write_text("a\n")
    (root / "b.py").write_text("b\n")
    states = plan(root, [edit(1, 1, "a", "A"), edit(1, 1, "b", "B", "b.py")], store)
    real = patching.write_durably

    def full(path: Path, content: bytes, **options: object) -> None:
        if path.name == "b.py":
            raise OSError(28, "No space left on device")
        real(path, content, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(patching, "write_durably", full)
    with pytest.raises(StateNotWritable, match="No space left"):
        put(root, states, store)
    assert ((root / "a.py").read_text(), (root / "b.py").read_text()) == ("a\n", "b\n")


def test_a_revert_keeps_what_the_user_changed_elsewhere_in_the_file(root: Path, store: Store):
    (root / "a.py").write_text("1\n2\n3\n4\n5\n6\n7\n8\n")
    states = plan(root, [edit(2, 2, "2", "two\ntwo and a half")], store)
    put(root, states, store)
    text = (root / "a.py").read_text().replace("7\n", "seven\n") + "nine\n"
    (root / "a.py").write_text(text)
    put(root, plan_revert(root, states, store), store)
    assert (root / "a.py").read_text() == "1\n2\n3\n4\n5\n6\nseven\n8\nnine\n"


def test_a_revert_that_would_lose_the_users_change_is_refused_and_nothing_is_written(root: Path, store: Store):
    (root / "a.py").write_text("1\n2\n3\n")
    states = plan(root, [edit(2, 2, "2", "two")], store)
    put(root, states, store)
    (root / "a.py").write_text("1\nmy own two\n3\n")
    with pytest.raises(PatchRefused, match="Your version is left as it is"):
        plan_revert(root, states, store)
    assert (root / "a.py").read_text() == "1\nmy own two\n3\n"


def test_a_missing_backup_is_said(root: Path, store: Store):
    (root / "a.py").write_text("a\n")
    states = plan(root, [edit(1, 1, "a", "b")], store)
    put(root, states, store)
    (store.folder / str(states[0].before)).write_bytes(b"damaged")
    with pytest.raises(PatchRefused, match="missing or damaged"):
        put(root, plan_revert(root, states, store), store)
    assert (root / "a.py").read_text() == "b\n"


texts = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]),
                 max_size=9).map(lambda x: "".join(f"{c}\n" for c in x))


@settings(max_examples=100, deadline=None)
@given(before=texts, after=texts, current=texts)
def test_undoing_never_loses_a_line_that_the_user_added(before: str, after: str, current: str):
    marked = current + "the user's own line\n"
    result = undo(before.encode(), after.encode(), marked.encode())
    assert result is None or b"the user's own line\n" in result


@settings(max_examples=100, deadline=None)
@given(before=texts, after=texts)
def test_undoing_without_later_changes_gives_the_old_content(before: str, after: str):
    assert undo(before.encode(), after.encode(), after.encode()) == before.encode()
