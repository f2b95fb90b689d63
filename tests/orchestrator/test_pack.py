"""The pack (skills, agents, templates, plugin manifest) is found in a checkout, an editable install and a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from traindx import pack
from traindx_tools.errors import UnreadableInput

CHECKOUT = Path(__file__).resolve().parents[2]
TEMPLATES = ("diagnosis.md.j2", "strike_report.md.j2", "root_cause_analysis.md.j2", "retrospective.md.j2",
             "report.html.j2", "report.css")


def test_in_a_checkout_it_is_the_root():
    assert pack.pack_root() == CHECKOUT
    assert all((pack.pack_folder("templates") / name).is_file() for name in TEMPLATES)


def test_an_unknown_part_is_refused():
    with pytest.raises(ValueError, match="not 'secrets'"):
        pack.pack_folder("secrets")


def test_an_installation_that_lost_its_files_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "__file__", str(tmp_path / "traindx" / "pack.py"))
    with pytest.raises(UnreadableInput, match=r"skills, agents, templates, \.claude-plugin.*Install traindx again"):
        pack.pack_root()


def test_beside_the_code_it_wins_over_the_folder_above(tmp_path, monkeypatch):
    for root in (tmp_path / "site" / "traindx" / "_pack", tmp_path):
        for part in pack.PARTS:
            (root / part).mkdir(parents=True)
    monkeypatch.setattr(pack, "__file__", str(tmp_path / "site" / "traindx" / "pack.py"))
    assert pack.pack_root() == tmp_path / "site" / "traindx" / "_pack"


def build_wheel(folder: Path) -> Path:
    pytest.importorskip("hatchling")
    code = ("import os, sys; os.chdir(sys.argv[1]); from hatchling.build import build_wheel; "
            "print(build_wheel(sys.argv[2]))")
    done = subprocess.run([sys.executable, "-c", code, str(CHECKOUT), str(folder)], capture_output=True, text=True,
                          timeout=100)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.strip().splitlines()[-1]


@pytest.mark.slow
def test_in_a_wheel_it_lies_beside_the_code_and_works_from_anywhere(tmp_path):
    wheel = build_wheel(tmp_path)
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = ("import sys; sys.path.insert(0, sys.argv[1]); sys.path = [p for p in sys.path if p not in sys.argv[2:]]\n"
            "import traindx, traindx_tools; from traindx.pack import pack_root, pack_folder\n"
            "assert traindx.__file__.startswith(sys.argv[1]), traindx.__file__\n"
            "assert traindx_tools.__file__.startswith(sys.argv[1]), traindx_tools.__file__\n"
            "from traindx.render import render_report_html\n"
            "page = render_report_html({'status': 'healthy', 'findings': []}, reason='all is well')\n"
            "assert 'all is well' in page and '.meter' in page\n"
            "print(pack_root()); print(*sorted(p.name for p in pack_folder('templates').iterdir()))")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code, str(site), str(CHECKOUT / "orchestrator"),
                           str(CHECKOUT / "tools")], cwd=elsewhere, env=environment, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    root, names = done.stdout.splitlines()
    assert Path(root) == site / "traindx" / "_pack"
    assert set(TEMPLATES) <= set(names.split())


def test_an_editable_install_finds_the_checkout(tmp_path):
    done = subprocess.run([sys.executable, "-c", "from traindx.pack import pack_root; print(pack_root())"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == CHECKOUT
