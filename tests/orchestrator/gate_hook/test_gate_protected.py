"""The runner that lets code run while the kernel keeps the project as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[3] / "tools" / "hooks" / "protected.py"
UNPROTECTED = 75


def environment(work: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(work.parent), "TRAINDX_RUNS": str(work.parent / "runs")}


def run(work: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUNNER), *arguments], cwd=work, capture_output=True, text=True,
                          timeout=60, check=False, env=environment(work) | more)


@pytest.fixture
def kept(work: Path) -> Path:
    if run(work, "--", "true").returncode == UNPROTECTED:
        pytest.skip("this kernel has no Landlock: nothing is run, which another test checks")
    return work


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not {"probes", "runs"} & {*p.parts}}


ATTACKS = ["echo x > train.py", "echo x >> train.py", "rm train.py", "mv train.py scratch/debug/probes/",
           "touch new.py",
           "ln train.py scratch/debug/probes/hard && echo x > scratch/debug/probes/hard", "mkdir new", "rm -rf .",
           "ln -s ../../../train.py scratch/debug/probes/soft && echo x > scratch/debug/probes/soft",
           "python3 -c \"open('train.py', 'w').write('x')\"", "python3 -c \"import os; os.truncate('train.py', 0)\"",
           "git init -q . || true", "echo x > ../outside.txt", "sed -i s/EPS/X/ train.py",
           "(sleep 0.1; echo x > train.py) & wait", "cp train.py ~/copy.py", "mkfifo pipe", "truncate -s 0 train.py"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_is_run_the_project_stays(kept: Path, attack: str) -> None:
    (kept.parent / "outside.txt").write_text("not yours")
    before = contents(kept.parent)
    assert before
    run(kept, "--", "sh", "-c", attack)
    assert contents(kept.parent) == before


def test_diagnostics_may_be_written_and_temporary_files_work(kept: Path) -> None:
    done = run(kept, "--", "sh", "-c", "echo 1 > scratch/debug/probes/out.txt; echo 2 > scratch/debug/x; "
               "echo x > /dev/null; python3 -c 'import tempfile; print(tempfile.mkdtemp())'")
    assert done.returncode == 0, done.stderr
    assert (kept / "scratch" / "debug" / "probes" / "out.txt").read_text() == "1\n"
    assert (kept / "scratch" / "debug" / "x").read_text() == "2\n"
    assert (kept / "scratch" / "debug" / ".gitignore").read_text() == "*\n"


def test_where_a_session_lies_only_the_probes_may_be_written(kept: Path) -> None:
    session = kept / "scratch" / "debug" / "s1"
    session.mkdir(parents=True)
    (session / "journal.jsonl").write_text("")
    done = run(kept, "--", "sh", "-c", "echo x > scratch/debug/x; echo x > scratch/debug/s1/journal.jsonl; "
               "rm -rf scratch/debug/s1; echo x > scratch/debug/probes/x")
    assert done.returncode == 0
    assert (session / "journal.jsonl").read_text() == ""
    assert not (kept / "scratch" / "debug" / "x").exists()


def test_a_ledger_is_not_written(kept: Path) -> None:
    (kept / "scratch" / "debug").mkdir(parents=True, exist_ok=True)
    ledger = kept / "scratch" / "debug" / "strikes.jsonl"
    ledger.write_text("{}\n")
    run(kept, "--", "sh", "-c", "echo x > scratch/debug/strikes.jsonl; rm -f scratch/debug/strikes.jsonl; "
        "mv scratch/debug scratch/d2")
    assert ledger.read_text() == "{}\n"


def test_the_exit_code_and_the_arguments_are_the_commands_own(kept: Path) -> None:
    done = run(kept, sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "--copy", "a b")
    assert done.returncode == 7
    assert done.stdout.strip() == "['--copy', 'a b']"
    assert run(kept, "--", "no-such-program").returncode == 127


def test_a_copy_may_be_changed_and_large_files_are_linked_not_copied(kept: Path) -> None:
    with (kept / "data.bin").open("wb") as file:
        file.truncate(33 * 2**20)
    done = run(kept, "--copy", "--", "sh", "-c", "echo x > train.py; cat train.py; echo y > data.bin; pwd")
    assert "x\n" in done.stdout
    assert "EPS" in (kept / "train.py").read_text()
    assert (kept / "data.bin").stat().st_size == 33 * 2**20


def copied(kept: Path, command: str = "true") -> Path:
    """The folder of the copy that this command ran in."""
    return Path(run(kept, "--copy", "--", "sh", "-c", f"pwd; {command}").stdout.splitlines()[0])


def test_a_copy_is_used_again_and_what_was_touched_in_it_is_copied_anew(kept: Path) -> None:
    (kept / "gone.py").write_text("x")
    first = copied(kept, "touch -r train.py mark; echo bad > train.py; touch -r mark train.py; echo x > planted.py")
    (kept / "gone.py").unlink()
    (kept / "new.py").write_text("y")
    again = copied(kept)
    assert again == first
    assert (again / "train.py").read_text() == (kept / "train.py").read_text()
    assert sorted(p.name for p in again.iterdir()) == ["new.py", "train.py"]
    made = (again / "new.py").stat().st_ctime_ns
    assert copied(kept) == first
    assert (first / "new.py").stat().st_ctime_ns == made, "an untouched file is not copied again"


def test_links_of_the_workspace_lead_from_the_copy_to_where_they_led(kept: Path) -> None:
    data = kept.parent / "datasets"
    data.mkdir()
    (data / "rows.csv").write_text("1\n")
    (kept / "data").symlink_to("../datasets")
    (kept / "inner").symlink_to("train.py")
    (kept / "absolute").symlink_to(data)
    (kept / ".venv").mkdir()
    (kept / ".venv" / "x").write_text("venv\n")
    (kept / "rows").mkdir()
    for number in range(1_001):
        (kept / "rows" / str(number)).touch()
    done = run(kept, "--copy", "--", "sh", "-c", "cat data/rows.csv absolute/rows.csv .venv/x; echo changed > inner; "
               "cat train.py; ls rows | wc -l; echo y > data/rows.csv; echo y > rows/1; echo y > .venv/x")
    assert done.stdout.split() == ["1", "1", "venv", "changed", "1001"]
    assert (data / "rows.csv").read_text() == "1\n"
    assert (kept / "rows" / "1").read_text() == ""
    assert (kept / ".venv" / "x").read_text() == "venv\n"


def test_copies_in_use_are_left_alone_and_their_number_is_bounded(kept: Path) -> None:
    from traindx.runner.copying import COPIES

    waits = [subprocess.Popen([sys.executable, str(RUNNER), "--copy", "--", "sh", "-c", "pwd; read x"], cwd=kept,
                              env=environment(kept), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for _ in range(COPIES)]
    try:
        assert len({one.stdout.readline() for one in waits if one.stdout}) == COPIES
        done = run(kept, "--copy", "--", "true")
        assert done.returncode == UNPROTECTED
        assert "wait for a run to end" in done.stderr
    finally:
        for one in waits:
            one.communicate("\n")
    assert run(kept, "--copy", "--", "true").returncode == 0


def test_private_folders_of_other_workspaces_go_when_they_are_old_or_many(kept: Path, tmp_path: Path) -> None:
    from traindx.runner.folders import KEPT_AT_MOST

    runs = tmp_path / "runs"
    run(kept, "--", "true")
    for number in range(KEPT_AT_MOST + 2):
        (runs / f"old{number}" / "keep").mkdir(parents=True)
        os.utime(runs / f"old{number}", (number, number))
    for _ in range(6):
        run(kept, "--", "true")
    assert [p.name for p in runs.iterdir() if p.name.startswith("old")] == []


def test_caches_are_read_and_filled_in_private(kept: Path) -> None:
    cache = kept.parent / ".cache"
    (cache / "huggingface" / "hub" / "model").mkdir(parents=True)
    (cache / "huggingface" / "hub" / "model" / "w").write_text("weights\n")
    done = run(kept, "--", "sh", "-c", "cat $HF_HUB_CACHE/model/w $XDG_CACHE_HOME/huggingface/hub/model/w; "
               "echo x > $HF_HUB_CACHE/lock && echo locked; echo x > $HF_HUB_CACHE/model/w; echo x > ~/.cache/new")
    assert done.stdout.split() == ["weights", "weights", "locked"]
    assert (cache / "huggingface" / "hub" / "model" / "w").read_text() == "weights\n"
    assert [p.name for p in cache.iterdir()] == ["huggingface"]


def test_a_link_in_place_of_the_folder_is_refused(kept: Path) -> None:
    shutil.rmtree(kept / "scratch")
    (kept / "scratch").symlink_to(kept.parent)
    done = run(kept, "--", "true")
    assert done.returncode == UNPROTECTED
    assert "leads to" in done.stderr
    assert not (kept.parent / "debug").exists()


def test_without_landlock_nothing_is_run(work: Path) -> None:
    code = ("import runpy, sys; sys.platform = 'darwin'; sys.argv = sys.argv[1:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code, str(RUNNER), "--", "sh", "-c", "echo x > train.py"], cwd=work,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == UNPROTECTED
    assert '"allow runs"' in done.stderr
    assert "EPS" in (work / "train.py").read_text()


@pytest.mark.parametrize("arguments", [[], ["--"], ["--copy"], ["--unknown", "ls"]])
def test_bad_usage_is_said(work: Path, arguments: list[str]) -> None:
    done = run(work, *arguments)
    assert done.returncode == 2
    assert "protected.py [--copy]" in done.stderr


def test_a_command_that_a_signal_ends_ends_the_runner_alike(kept: Path) -> None:
    assert run(kept, "--", "sh", "-c", "kill -TERM $$").returncode == -15
    assert run(kept, "--", "sh", "-c", "kill -KILL $$").returncode == -9


def test_what_a_command_leaves_behind_ends_with_it(kept: Path) -> None:
    done = run(kept, "--", "sh", "-c", "sleep 600 & echo $!")
    assert not Path(f"/proc/{done.stdout.strip()}").exists()


def test_ending_the_runner_ends_the_command(kept: Path) -> None:
    runner = subprocess.Popen([sys.executable, str(RUNNER), "--", "sh", "-c", "echo $$; sleep 600"], cwd=kept,
                              text=True, env=environment(kept), stdout=subprocess.PIPE)
    assert runner.stdout is not None
    child = runner.stdout.readline().strip()
    runner.terminate()
    assert runner.wait(30) == -15
    assert not Path(f"/proc/{child}").exists()


def test_a_private_folder_that_others_can_write_is_refused(kept: Path) -> None:
    shared = kept.parent / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    done = run(kept, "--", "true", TRAINDX_RUNS=str(shared))
    assert done.returncode == UNPROTECTED
    assert "only you can write" in done.stderr
    assert run(kept, "--", "true", TRAINDX_RUNS=str(kept / "runs")).returncode == UNPROTECTED


def test_a_working_folder_brings_no_modules_of_its_own(kept: Path) -> None:
    for name in ("traindx", "ctypes", "os", "json"):
        (kept / f"{name}.py").write_text("raise SystemExit('taken')")
    assert run(kept, "--", "true").returncode == 0


def test_a_fresh_run_uses_nothing_that_an_earlier_command_left(kept: Path) -> None:
    left = "echo x > $TMPDIR/left; echo x > $TORCH_EXTENSIONS_DIR/left; echo $TMPDIR"
    run(kept, "--", "sh", "-c", left)
    looks = 'ls $TMPDIR/left $TORCH_EXTENSIONS_DIR/left 2>/dev/null | wc -l'
    assert run(kept, "--", "sh", "-c", looks).stdout.strip() == "2"
    done = run(kept, "--fresh", "--", "sh", "-c", f"{looks}; {left}")
    assert done.stdout.split()[0] == "0"
    run(kept, "--fresh", "--", "true")
    assert not Path(done.stdout.split()[1]).exists(), "what a fresh run left goes with the next one"


def test_a_run_that_only_reads_makes_no_folder_in_the_workspace(kept: Path) -> None:
    shutil.rmtree(kept / "scratch", ignore_errors=True)
    done = run(kept, "--read-only", "--", "sh", "-c", "cat train.py; touch new; mkdir scratch")
    assert "EPS" in done.stdout
    assert [p.name for p in kept.iterdir()] == ["train.py"]
