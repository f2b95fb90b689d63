"""What has the name of a script and cannot be audited is named with its reason, and counted among what is there."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.code_reports.report import audit_report
from traindx_tools.code_reports.selection import Selection, read_selection
from traindx_tools.source_files.texts import FOLDER


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


SPECIAL: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pipe.py": (os.mkfifo, "not read: a pipe, no file; give - and pipe into standard input"),
    "socket.py": (a_socket, "not read: a socket, no file"),
    "device.py": (lambda p: p.symlink_to(os.devnull), "not read: a device, no file"),
    "nowhere.py": (lambda p: p.symlink_to("gone.py"), "a link that leads nowhere"),
    "loop.py": (lambda p: p.symlink_to("loop.py"), "a link that leads to itself"),
    "bytes.py": (lambda p: p.write_bytes(b'x = "\xff"\n'), "not read: neither UTF-8 nor its declared encoding"),
    "wide.py": (lambda p: p.write_bytes("x = 1\n".encode("utf-16")),
                "not read: neither UTF-8 nor its declared encoding"),
    "nul.py": (lambda p: p.write_bytes(b"x = 1\ny = '\0'\n"),
               "not parsed: a NUL byte in line 2, which no Python source holds"),
    "syntax.py": (lambda p: p.write_text("x = (\n"), "not parsed: '(' was never closed in line 1"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One script that is audited, and a folder with the name of a script, which is a folder like any other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text("x = 1\n")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "folder.py" / "inner.py").write_text("y = 2\n")
    return tmp_path


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("found", [True, False], ids=["in a folder", "named"])
def test_what_is_no_readable_source_is_named_and_counted(folder: Path, name: str, found: bool) -> None:
    make, why = SPECIAL[name]
    make(folder / name)
    report = audit_report(["."] if found else ["good.py", "folder.py", name])
    assert [(n.path, n.note) for n in report.notes] == [(name, why)]
    assert (report.judged, report.found) == (2, 3)


def test_every_one_of_many_is_told(folder: Path) -> None:
    for name, (make, _) in SPECIAL.items():
        make(folder / name)
    report = audit_report(["."])
    assert {n.path: n.note for n in report.notes} == {name: why for name, (_, why) in SPECIAL.items()}
    assert (report.judged, report.found) == (2, 2 + len(SPECIAL))


def test_what_is_nobodys_script_is_not_mentioned(folder: Path) -> None:
    """The lock of an editor, a second name of a file, a link to the folder itself, and what is excluded."""
    (folder / ".#good.py").symlink_to("somebody@host.123:456")
    (folder / "again.py").symlink_to("good.py")
    (folder / "around").symlink_to(".")
    (folder / "generated.py").symlink_to("gone.py")
    report = audit_report(["."], selection=Selection(home=folder, exclude=("generated.py",)))
    assert not report.notes
    assert (report.judged, report.found) == (2, 2)


def refusing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The system refuses to list the folder `name`; a test may run as root, whom no permission stops."""
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


@pytest.mark.parametrize(("excluded", "told"), [((), ["folder.py"]), (("folder.py",), [])])
def test_a_folder_that_cannot_be_listed_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                 excluded: tuple[str, ...], told: list[str]) -> None:
    refusing(monkeypatch, "folder.py")
    report = audit_report(["."], selection=Selection(home=folder, exclude=excluded))
    assert [n.path for n in report.notes] == told
    assert {(n.format, n.note) for n in report.notes} <= {(FOLDER, "folder not read: Permission denied")}
    assert (report.judged, report.found) == (1, 1)  # nobody knows how many lie in it


def test_a_file_that_the_system_refuses_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refused(self: Path, *given: Any, **named: Any) -> Any:
        if self.name == "inner.py":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *given, **named)

    monkeypatch.setattr(Path, "open", refused)
    report = audit_report(["."])
    assert [(n.path, n.note) for n in report.notes] == [("folder.py/inner.py", "not read: Permission denied")]
    assert (report.judged, report.found) == (1, 2)


def test_settings_above_a_folder_that_cannot_be_entered_are_still_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Path.is_file` raises where the folder refuses."""
    (folder / "pyproject.toml").write_text('[tool.traindx.audit]\nselect = ["C101"]\n')
    real = os.stat

    def refused(path: Any, *given: Any, **named: Any) -> Any:
        if "folder.py" in Path(os.fspath(path)).parent.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *given, **named)

    monkeypatch.setattr(os, "stat", refused)
    assert read_selection(folder / "folder.py").select == ("C101",)
