"""The main job on a real failing run: diagnose, show the gate, apply the approved fix, verify it by running.

    python examples/demo.py          a prepared answer is given at the gate, and said to be
    python examples/demo.py --ask    you decide at the gate

Everything happens in a copy; the example itself stays as it is.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from traindx.at_terminal import ask_approval
from traindx.model import Decision, Diagnosis, Verify
from traindx.page import coloured, columns
from traindx.session import run_debug_session_sync
from traindx.session_result import SessionResult
from traindx.terminal import render_gate

EXAMPLE = Path(__file__).resolve().parent / "numpy-lr"
SYMPTOM = "loss is nan after about 1,150 good steps"


def title(text: str) -> None:
    print(f"\n{'=' * 100}\n{text}\n{'=' * 100}\n", flush=True)


def prepared_answer(diagnosis: Diagnosis) -> Decision | None:
    """What a person who agrees with the targeted fix would answer."""
    print(render_gate(diagnosis, colour=coloured(sys.stdout), width=columns(sys.stdout)))
    print("Answer, prepared for this demo: approve option A. (--ask lets you decide.)", flush=True)
    return Decision(verdict="approve", diagnosis_digest=diagnosis.digest(), option="A", by="demo")


def losses(log: str) -> list[str]:
    """The log's validation lines: what a person compares."""
    return [line for line in log.splitlines() if line.startswith("eval step")]


def show_before_and_after(workspace: Path, result: SessionResult) -> None:
    attempt = result.attempts[-1]
    seen = attempt.verification
    if seen is None:
        return
    for reason in seen.reasons:
        print(f"  {reason}")
    output = Path(result.folder) / seen.output if seen.output else None
    after = losses(output.read_text(encoding="utf-8", errors="replace")) if output and output.is_file() else []
    print(f"\n  {'before':<52}after")
    for before, now in zip(losses((EXAMPLE / "log.txt").read_text()), after, strict=False):
        print(f"  {before:<52}{now}")
    print(f"\n  changed: {workspace / 'train.py'}")
    for row in [r for r in seen.table if r.before != "-" and r.after != "-"][:8]:
        print(f"  {row.name:<24}{row.before:>14}  ->  {row.after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ask", action="store_true", help="decide at the gate yourself")
    ask = parser.parse_args().ask
    with tempfile.TemporaryDirectory(prefix="traindx-demo-") as scratch:
        workspace = Path(scratch) / "pump"
        shutil.copytree(EXAMPLE, workspace, ignore=shutil.ignore_patterns("README.md", "__pycache__", "scratch"))
        python = sys.executable

        title(f'1. traindx diagnose {workspace} --symptom "{SYMPTOM}"')
        seen = subprocess.run([python, "-m", "traindx", "diagnose", str(workspace), "--symptom", SYMPTOM, "--out",
                               str(Path(scratch) / "report")], stdout=subprocess.PIPE, text=True, encoding="utf-8")
        print(seen.stdout, flush=True)
        if seen.returncode != 1:
            print(f"expected a diagnosis (exit code 1), got exit code {seen.returncode}", file=sys.stderr)
            return 1

        command = f"{python} train.py --csv new_metrics.csv"
        title(f'2. traindx debug {workspace} --verify "python train.py"')
        result = run_debug_session_sync(
            SYMPTOM, workspace, verify=Verify(command=command, new_run=("new_metrics.csv",), timeout=60),
            approve=ask_approval if ask else prepared_answer, allow_run=True)

        title("3. Verified by running it again" if result.status == "fixed" else f"3. {result.status}: {result.reason}")
        if result.attempts:
            show_before_and_after(workspace, result)
        return 0 if result.status == "fixed" else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
