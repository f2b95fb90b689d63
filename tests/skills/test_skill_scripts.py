"""The script of each skill, from an installed copy alone: Python, numpy, no network, no traindx."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKILLS = sorted(p.parent for p in (ROOT / "skills").glob("*/SKILL.md"))

SCRIPT = Path("ml-debug", "scripts", "traindx_run.py")

_spec = importlib.util.spec_from_file_location("bare_python", HERE / "bare_python.py")
assert _spec is not None
assert _spec.loader is not None
bare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bare)

def line(step: int) -> str:
    """A record of a run whose gradient norm ramps from step 300 and whose loss is NaN from step 400 on."""
    norm = 1.0 if step < 300 else 1.1 ** (step - 300)
    loss = 2.3 - step * 0.001 + (0 if step < 340 else 0.02 * (step - 340))
    values = ("nan", "nan") if step >= 400 else (f"{loss:.4f}", f"{norm:.3f}")
    return f"step {step} loss {values[0]} grad_norm {values[1]} lr 0.001"


LOG = "\n".join(line(s) for s in range(0, 600, 2))
CODE = """
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=-1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare.bare_folder(tmp_path_factory.mktemp("bare") / "packages")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All skills as a copy, outside of the checkout."""
    return bare.copy_dereferenced(ROOT / "skills", tmp_path_factory.mktemp("copy") / "skills")


@pytest.fixture
def run(packages: Path, installed: Path, tmp_path: Path):
    def call(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return bare.run_bare(packages, installed / SCRIPT, *arguments, cwd=tmp_path, stdin=stdin)

    return call


READ = (("log", "log.txt"), (0,))
INSTRUMENTS = ((("diagnose", "log.txt"), (1, 3)), READ, (("audit", "train.py"), (1,)),
               (("explain", "lr.too-high"), (0,)))
"""What one skill that does not bring the archive is asked for; the others load the same file, and read a log."""


@pytest.mark.slow
@pytest.mark.parametrize("skill", SKILLS, ids=lambda p: p.name)
def test_every_skill_finds_the_instruments_in_the_copy_alone(skill: Path, installed: Path, packages: Path,
                                                             tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOG, encoding="utf-8")
    (tmp_path / "train.py").write_text(CODE, encoding="utf-8")
    script = installed / skill.name / "scripts" / "traindx_run.py"
    before = sorted(p for p in installed.rglob("*"))
    for arguments, codes in INSTRUMENTS if skill.name == "jax-debugging" else (READ,):
        done = bare.run_bare(packages, script, *arguments, cwd=tmp_path)
        assert done.returncode in codes, done.stderr
        assert json.loads(done.stdout)
    assert sorted(p for p in installed.rglob("*")) == before, "nothing is unpacked or written beside the skills"


def test_a_skill_that_was_added_without_the_archive_says_what_to_add(packages: Path, tmp_path: Path) -> None:
    alone = bare.copy_dereferenced(ROOT / "skills" / "jax-debugging", tmp_path / "skills" / "jax-debugging")
    done = bare.run_bare(packages, alone / "scripts" / "traindx_run.py", "log", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "add the skill ml-debug" in done.stderr
    assert "pip install traindx" in done.stderr


def _cut(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-1000])


def _another_page(archive: Path) -> None:
    """The same archive, with one more line in one file: its own checksums are right, its digest is the old one."""
    changed = archive.with_suffix(".new")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            more = b"print('ran')\n" if name == "traindx_tools/__init__.py" else b""
            new.writestr(name, old.read(name) + more)
        new.comment = old.comment
    changed.replace(archive)


def _no_digest(archive: Path) -> None:
    with zipfile.ZipFile(archive, "a") as stored:
        stored.comment = b""


@pytest.mark.parametrize("damage", [_cut, _another_page, _no_digest], ids=lambda d: d.__name__)
def test_an_archive_that_is_not_as_it_was_built_is_not_run(damage: Callable[[Path], None], packages: Path,
                                                          tmp_path: Path) -> None:
    for name in ("ml-debug", "jax-debugging"):
        bare.copy_dereferenced(ROOT / "skills" / name, tmp_path / "skills" / name)
    shutil.copy(ROOT / "skills" / SCRIPT, tmp_path / "skills" / "jax-debugging" / "scripts")
    damage(tmp_path / "skills" / "ml-debug" / "scripts" / "traindx.zip")
    done = bare.run_bare(packages, tmp_path / "skills" / "jax-debugging" / "scripts" / "traindx_run.py", "explain",
                         "lr.too-high", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "", "nothing of it was run"
    assert "its digest is not the one that it was built with" in done.stderr
    assert "add the skill ml-debug anew" in done.stderr


@pytest.mark.parametrize("skill", SKILLS, ids=lambda p: p.name)
def test_help_works_without_any_package(skill: Path, tmp_path: Path) -> None:
    nothing = bare.bare_folder(tmp_path / "nothing", with_numpy=False)
    done = bare.run_bare(nothing, skill / "scripts" / "traindx_run.py", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "exit codes: 0 nothing wrong found" in done.stdout


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    """A run whose cause its log and its code prove together, as a path from the project."""
    shutil.copytree(ROOT / "examples" / "torch-softmax-ce", tmp_path / "run")
    return "run"


@pytest.mark.slow
def test_a_faulty_run_is_diagnosed_from_the_copy_alone(run, faulty: str) -> None:
    done = run("diagnose", faulty, "--symptom", "loss does not fall")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert result["engine"] == "bundled"
    assert result["status"] == "diagnosis_complete"
    cause = result["root_causes"][0]
    assert cause["failure_mode"] == "loss.softmax-before-ce"
    assert re.fullmatch(r"run/\w+\.py:\d+", cause["location"])
    assert set(cause["fix"]) == {"A", "B"}
    assert cause["fix"]["A"]["verify"]


@pytest.fixture(scope="module")
def whole(packages: Path, installed: Path, tmp_path_factory: pytest.TempPathFactory
          ) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The faulty run's diagnosis without any limit, and the folder from which it was asked for."""
    home = tmp_path_factory.mktemp("whole")
    shutil.copytree(ROOT / "examples" / "torch-softmax-ce", home / "run")
    return home, bare.run_bare(packages, installed / SCRIPT, "diagnose", "run", cwd=home)


@pytest.mark.slow
def test_facts_come_before_suspects_no_fix_before_a_proof_and_nothing_is_changed(run, whole, tmp_path: Path) -> None:
    _, whole = whole
    keys = list(json.loads(whole.stdout))
    assert keys.index("findings") < keys.index("first_lead") < keys.index("hypotheses") < keys.index("root_causes")
    assert re.search(r"right in \d+ of \d+ judgements", json.loads(whole.stdout)["first_lead"])
    (tmp_path / "train.py").write_text(CODE, encoding="utf-8")
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    unproven = run("diagnose", "train.py")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before
    assert unproven.returncode == 3
    assert json.loads(unproven.stdout)["hypotheses"]
    for text in (unproven.stdout, json.dumps(json.loads(whole.stdout)["hypotheses"])):
        assert '"fix"' not in text
        assert "verify" not in text


@pytest.mark.slow
def test_a_log_from_standard_input_is_read(run) -> None:
    done = run("diagnose", "-", stdin=LOG)
    assert done.returncode in (1, 3), done.stderr
    result = json.loads(done.stdout)
    assert {"L101", "L102"} <= {f["rule"] for f in result["findings"]}
    assert result["hypotheses"][0]["confirm"]


@pytest.mark.slow
def test_a_healthy_run_exits_with_0(run, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join(f"step {s} loss {0.2 + 2 * 0.99 ** s + 0.01 * ((s * 7) % 5):.4f}"
                                                for s in range(300)), encoding="utf-8")
    done = run("diagnose", "log.txt")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["status"] == "healthy"


def test_metrics_come_sampled_with_the_first_value_that_is_not_finite(run, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOG, encoding="utf-8")
    done = run("log", "log.txt", "--samples", "10")
    series = {s["metric"]: s for s in json.loads(done.stdout)["series"]}
    assert series["loss"]["first_not_finite"] == 400
    assert series["loss"]["records"] == 300
    assert len(series["loss"]["sampled"]) <= 11
    assert series["loss"]["last"] == "nan"


@pytest.mark.slow
def test_code_is_audited_and_pages_are_explained(run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE, encoding="utf-8")
    done = run("audit", "train.py")
    assert done.returncode == 1
    assert "C102" in [f["rule"] for f in json.loads(done.stdout)["findings"]]
    assert "How to confirm it" in json.loads(run("explain", "lr.too-high").stdout)["page"]
    everything = run("explain", "--list")
    assert "L204" in json.loads(everything.stdout)["rules"]
    assert "lr.too-high" in json.loads(everything.stdout)["failure_modes"]
    assert len(everything.stdout) < 30_000, "an agent reads this"
    some = json.loads(run("explain", "--list", "warmup").stdout)
    assert "lr.missing-warmup" in some["failure_modes"]
    assert len(some["rules"]) < 10
    assert json.loads(run("explain", "--list", "no such word").stdout) == {"rules": {}, "failure_modes": {}}


@pytest.mark.slow
def test_the_answer_is_bounded_and_says_what_was_left_out(packages: Path, installed: Path, whole) -> None:
    home, unbounded = whole
    whole = json.loads(unbounded.stdout)
    most = len(json.dumps({k: whole[k] for k in ("root_causes", "reason", "first_lead")}, indent=1)) + 1500
    done = bare.run_bare(packages, installed / SCRIPT, "diagnose", "run", "--max-chars", str(most), cwd=home)
    assert len(done.stdout) <= most + 1
    short = json.loads(done.stdout)
    assert short["root_causes"] == whole["root_causes"], "the causes go last"
    left_out = {k: v for k, v in short.items() if k.endswith("_left_out")}
    assert left_out
    for name, count in left_out.items():
        key = name.removesuffix("_left_out")
        assert len(short[key]) + count == len(whole[key])


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("diagnose", "missing.log"), ("explain", "L999"), ("frobnicate",)])
def test_what_cannot_be_served_is_one_message_and_exit_2(run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_a_missing_numpy_is_named_with_the_command(installed: Path, tmp_path: Path) -> None:
    nothing = bare.bare_folder(tmp_path / "nothing", with_numpy=False)
    done = bare.run_bare(nothing, installed / SCRIPT, "explain", "L204", cwd=tmp_path)
    assert done.returncode == 2
    assert "-m pip install numpy" in done.stderr


def test_a_copy_that_lost_the_instruments_says_what_to_install(packages: Path, tmp_path: Path) -> None:
    lonely = tmp_path / "traindx_run.py"
    lonely.write_bytes((ROOT / "skills" / "ml-debug" / "scripts" / "traindx_run.py").read_bytes())
    done = bare.run_bare(packages, lonely, "explain", "L204", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install traindx" in done.stderr


@pytest.mark.slow
def test_the_installed_traindx_is_preferred(faulty: str, tmp_path: Path) -> None:
    script = ROOT / "skills" / SCRIPT
    done = subprocess.run([sys.executable, str(script), "diagnose", faulty], cwd=tmp_path, capture_output=True,
                          text=True, timeout=100, check=False)
    result = json.loads(done.stdout)
    assert done.returncode == 1
    assert result["engine"].endswith("-m traindx")
    assert result["root_causes"][0]["failure_mode"] == "loss.softmax-before-ce"
    assert list(result).index("findings") < list(result).index("hypotheses")
