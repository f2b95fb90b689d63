"""The reach of the MCP server: below its root, no secrets, links resolved."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.mcp_paths import Reach, Refused
from traindx.mcp_tools import call
from traindx_tools.errors import BadUsage, TraindxError

LOG = "".join(f"step {i} loss {2.0 - i / 100:.3f}\n" for i in range(40))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with one log; beside the root lies what must not be read."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.log").write_text(LOG)
    (tmp_path / "outside" / "private.py").write_text("import torch\n")
    inside = tmp_path / "root"
    (inside / "run").mkdir(parents=True)
    (inside / "run" / "log.txt").write_text(LOG)
    return inside


def admitted(root: Path, *paths: str) -> list[str]:
    """The admitted files, as seen from the root."""
    return [str(f.relative_to(root.resolve())) for f in Reach.of(root).logs(paths).files]


def test_files_folders_and_globs_below_the_root_are_read(root: Path) -> None:
    for named in ("run/log.txt", "run", ".", "**/*.txt", "run/*", str(root / "run" / "log.txt")):
        assert admitted(root, named) == ["run/log.txt"], named


@pytest.mark.parametrize("path", [
    "../outside/private.log", "run/../../outside", "../outside/*.log", "*/../../outside/*.log", "~", "-", "",
    "file:///etc/passwd", "https://example.org/log.txt", "a\0b", "x" * 5000, "/etc/hostname", "/etc/host*",
])
def test_what_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(Refused):
        Reach.of(root).logs([path])


@pytest.mark.parametrize("where", ["named", "in a folder", "as a folder", "by a glob"])
def test_links_that_lead_out_are_not_followed(root: Path, where: str) -> None:
    (root / "run" / "link.log").symlink_to(root.parent / "outside" / "private.log")
    (root / "elsewhere").symlink_to(root.parent / "outside")
    if where in ("named", "as a folder"):
        with pytest.raises(Refused, match="outside"):
            Reach.of(root).logs(["run/link.log" if where == "named" else "elsewhere"])
    else:
        found = Reach.of(root).logs(["." if where == "in a folder" else "**/*"])
        assert [f.name for f in found.files] == ["log.txt"]
        assert any("link" in note for note in found.left_out)


def test_a_link_within_the_root_is_read_once(root: Path) -> None:
    (root / "latest.txt").symlink_to(root / "run" / "log.txt")
    assert admitted(root, "latest.txt", "run/log.txt") == ["run/log.txt"]


@pytest.mark.parametrize("name", [".env", "secrets.json", "api_key.txt", "id_rsa", "hf_token.txt", ".aws/config.txt"])
def test_secrets_are_refused_by_name_and_left_out_of_folders(root: Path, name: str) -> None:
    secret = root / "run" / name
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("loss 1.0\n")
    with pytest.raises(Refused, match="may hold secrets"):
        Reach.of(root).logs([f"run/{name}"])
    assert admitted(root, "run") == ["run/log.txt"]


def test_a_harmless_name_that_links_to_a_secret_is_refused(root: Path) -> None:
    (root / ".env").write_text("loss 1.0\n")
    (root / "run" / "notes.txt").symlink_to(root / ".env")
    with pytest.raises(Refused, match="may hold secrets"):
        Reach.of(root).logs(["run/notes.txt"])


def test_code_beside_a_log_must_not_lead_out(root: Path) -> None:
    (root / "run" / "train.py").symlink_to(root.parent / "outside" / "private.py")
    with pytest.raises(Refused, match=r"train\.py is a link"):
        Reach.of(root).logs(["run/log.txt"])
    with pytest.raises(Refused, match="outside"):
        Reach.of(root).code(["run/train.py"])
    with pytest.raises(BadUsage, match="leads out of the root"):
        Reach.of(root).code(["run"])


def test_folders_of_environments_are_not_audited(root: Path) -> None:
    for folder in ("run", "run/venv/lib", "run/.hidden", "run/site-packages"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "train.py").write_text("x = 1\n")
    assert [str(f.relative_to(root.resolve())) for f in Reach.of(root).code(["."]).files] == ["run/train.py"]


@pytest.mark.parametrize("session", ["../../outside", "/etc", "a/b", ".", "..", "x\0", "*"])
def test_a_session_is_named_by_its_id_only(root: Path, session: str) -> None:
    with pytest.raises(Refused, match="no session id"):
        Reach.of(root).session(session)


def test_sessions_elsewhere_are_not_reached_through_links(root: Path) -> None:
    far = root.parent / "outside" / "scratch" / "debug" / "one"
    far.mkdir(parents=True)
    (far / "journal.jsonl").write_text("")
    (root / "scratch" / "debug").mkdir(parents=True)
    (root / "scratch" / "debug" / "one").symlink_to(far)
    assert list(Reach.of(root).sessions()) == []
    with pytest.raises(Refused, match="outside"):
        Reach.of(root).session("one")


def _link_scratch(root: Path) -> None:
    (root / "scratch").symlink_to(root.parent / "outside")


def _link_plots(root: Path) -> None:
    (root / "scratch" / "debug").mkdir(parents=True)
    (root / "scratch" / "debug" / "plots").symlink_to(root / "run")


def _link_picture(root: Path) -> None:
    (root / "scratch" / "debug" / "plots").mkdir(parents=True)
    (root / "scratch" / "debug" / "plots" / "run.png").symlink_to(root / "run" / "log.txt")


@pytest.mark.parametrize("trap", [_link_scratch, _link_plots, _link_picture])
def test_a_picture_is_written_below_scratch_debug_or_not_at_all(root: Path, trap: Callable[[Path], None]) -> None:
    trap(root)
    with pytest.raises(TraindxError, match="no picture may be written"):
        call("plot_run", {"paths": ["run/log.txt"]}, Reach.of(root), lambda said: None)
    assert (root / "run" / "log.txt").read_text() == LOG
    assert sorted(os.listdir(root.parent / "outside")) == ["private.log", "private.py"]


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "x" * 80])
def test_a_picture_has_a_plain_name(root: Path, name: str) -> None:
    with pytest.raises(BadUsage, match="name"):
        call("plot_run", {"paths": ["run"], "name": name}, Reach.of(root), lambda said: None)
