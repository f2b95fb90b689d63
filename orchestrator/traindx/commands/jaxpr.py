"""`traindx jaxpr`: what a JAX function became when it was traced, in few lines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from traindx.safe_text import block, line
from traindx.sandbox import find_sandbox
from traindx.verify import clean_environment
from traindx_tools.errors import BadUsage, UnreadableInput

SECONDS = 120.0


@click.command("jaxpr")
@click.argument("target", metavar="FILE:FUNCTION")
@click.option("--args", "arguments", default="", metavar="TYPES",
              help="Arguments: types such as 'f32[8,16], i32[8]', `key`, dicts and tuples of them, numbers.")
@click.option("--gradient", is_flag=True,
              help="FUNCTION is a loss: floats of its first argument that get no gradient are a fault.")
@click.option("--wrt", metavar="ARG", default="", help="The same of another argument: its name or number.")
@click.option("--run", "consent", is_flag=True, help="Your consent that FILE is imported, which executes it.")
@click.option("--python", "interpreter", default=sys.executable, help="The Python that has your packages and traindx.")
@click.option("--timeout", default=SECONDS, show_default=True, type=click.FloatRange(min=1.0), help="Seconds at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(target: str, arguments: str, gradient: bool, wrt: str, consent: bool, interpreter: str, timeout: float,
            as_json: bool) -> int:
    """Summarise the jaxpr of FUNCTION in FILE: inputs, outputs, what each line became, what to look at.

    The function is traced for types and not run; FILE is imported in a process of its own, which executes its top
    level (not its `if __name__ == "__main__"` part). Exit codes: 0 nothing found, 1 a fault was proven, 2 bad usage.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not name or not Path(file).is_file():
        raise BadUsage(f"expected FILE:FUNCTION with a file that exists, such as train.py:loss_fn, got {line(target)}")
    if not consent:
        raise BadUsage(f"importing {line(file)} executes it: say so with --run "
                       f"(traindx jaxpr {line(target)} --run)")
    said = summary_of(file, name, arguments, gradient=wrt or gradient, interpreter=interpreter, timeout=timeout)
    summary = said["summary"]
    click.echo(json.dumps(summary, indent=1) if as_json else block(said["text"]))
    return 1 if summary["findings"] else 0


def summary_of(file: str, name: str, arguments: str, *, gradient: bool | str, interpreter: str = sys.executable,
               timeout: float = SECONDS) -> dict[str, Any]:
    """`{"summary": ..., "text": ...}` of a function, traced in a process of its own. Executes the file: ask first.

    The process runs in the sandbox of this machine, where there is one: it reads, and writes nothing of the project.

    `gradient`: it is a loss, of its first argument or of this one (its name or number). Raises UnreadableInput with
    what the file, the function or the arguments lack, or how they ended the process; BadUsage without an interpreter.
    """
    words = [interpreter, "-m", "traindx_tools.on_jax.summary.program", file, name, arguments,
             *([f"--gradient={gradient}" if isinstance(gradient, str) else "--gradient"] if gradient else [])]
    if shutil.which(interpreter) is None:
        raise BadUsage(f"cannot start {line(interpreter)}: there is no such program")
    try:
        done = subprocess.run(find_sandbox().reading(words, Path(file).parent), capture_output=True, text=True,
                              timeout=timeout, check=False, stdin=subprocess.DEVNULL,
                              env=clean_environment(os.environ))
    except subprocess.TimeoutExpired:
        raise UnreadableInput(f"importing and tracing did not end within {timeout:g} s: guard the training itself with "
                              'if __name__ == "__main__", or give more with --timeout') from None
    except OSError as error:
        raise BadUsage(f"cannot start {line(words[0])}: {error.strerror}") from error
    said = [told for text in done.stdout.splitlines() for told in [_parsed(text)] if told is not None]
    if not said or "stage" in said[-1]:
        raise UnreadableInput(_ended(done, file, name, str(said[-1]["stage"]) if said else ""))
    if "error" in said[-1]:
        raise UnreadableInput(line(str(said[-1]["error"]), 800))
    return said[-1]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        told = json.loads(text)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _ended(done: subprocess.CompletedProcess[str], file: str, name: str, stage: str) -> str:
    """How a process ended that gave no answer."""
    last = line((done.stderr.strip().splitlines() or ["nothing was printed"])[-1], 300)
    if not stage:
        return f"the file could not be imported: {last}"
    code = done.returncode
    how = f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code} (os._exit?)"
    what = line(Path(file).name if stage == "imported" else name)
    return f"{what} ended the process with {how} while it was {stage}; the last line that it printed: {last}"
