"""`traindx isolate`: the smallest difference between a good and a bad run that makes the symptom come."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traindx_tools.errors import BadUsage

if TYPE_CHECKING:
    from traindx.isolation import Answer, EqualAnswer, Request

CODES = """\b
Exit codes: 0 the bad run is not bad here, or nothing differs; 1 the difference
was found; 2 bad usage or unreadable input; 3 undecided (noise, both are bad, a
run that does not work, the budget is spent).
"""
CONDITIONS = """\b
--fails-if says when a run is bad (several: one is enough):
  exit, exit=3          an exit code other than 0 (the default), or this one
  output~REGEX          a text in the output
  nan, nan(METRIC)      a loss, or this metric, that is not finite
  'loss>1'              where a metric ends; max(loss)>1, min(..), mean(..)
  timeout               not over after --timeout seconds

"""
CODES_OF_RUNS = """\b
Exit codes: 0 all runs were equal, 1 they part (where, and what removes it),
2 bad usage, 3 undecided (the command fails, or the budget is spent).
"""
EPILOG = CONDITIONS + "\n" + CODES


def _options(symptom: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that the kinds of difference share; without a symptom two of them make no sense."""
    kinds = [
        click.option("--run", "run", metavar="CMD", default="",
                     help="Your consent to run CMD again and again, in copies of the workspace."),
        click.option("--fails-if", "--symptom", "fails_if", metavar="CONDITION", multiple=True,
                     help="When a run is bad; see below."),
        click.option("--workspace", type=click.Path(path_type=Path), default=Path(), metavar="FOLDER",
                     help="The folder of the training code, which is copied for each run (default: this one)."),
        click.option("--at", metavar="PATH", help="Where in the workspace the run reads what is tried, where the "
                                                  "command does not say so."),
        click.option("--budget", type=int, default=100, show_default=True, help="Most runs."),
        click.option("--timeout", type=float, default=600.0, show_default=True, help="Most seconds of one run."),
        click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER",
                     help="Where outcomes are kept (default: below scratch/debug); the same command goes on there."),
        click.option("--json", "as_json", is_flag=True, help="The answer as JSON on standard output."),
    ]

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for number, option in reversed(list(enumerate(kinds))):
            function = option(function) if symptom or number not in (1, 3) else function
        return function

    return add


def _say_runs(answer: EqualAnswer, as_json: bool) -> int:
    from traindx.isolation.words import lines_of_runs

    return _print(answer.to_json(), lines_of_runs(answer), as_json, answer.result.exit_code)


def _request(run: str, fails_if: tuple[str, ...], workspace: Path, at: str | None, budget: int, timeout: float,
             out: Path | None, **_: Any) -> Request:
    from traindx.isolation import Request
    from traindx.safe_text import line

    quiet = not sys.stderr.isatty()
    told = (lambda text: None) if quiet else (lambda text: click.echo(f"traindx: {line(text)}", err=True))
    return Request(run, workspace, fails_if, budget, timeout, out, at, told)


def _say(answer: Answer, as_json: bool) -> int:
    from traindx.isolation.words import lines_of

    return _print(answer.to_json(), lines_of(answer), as_json, answer.exit_code)


def _print(told: dict[str, Any], lines: Iterable[str], as_json: bool, code: int) -> int:
    from traindx.safe_text import line

    if as_json:
        click.echo(json.dumps(told, indent=1, allow_nan=False))
    else:
        for text in lines:
            click.echo(" " * (len(text) - len(text.lstrip())) + line(text))
    return code


@click.group("isolate", epilog=CODES)
def command() -> None:
    """Between a run that works and one that does not: the smallest difference that makes the symptom come.

    Every run happens in a protected copy of the workspace; your files are not changed.
    """


@command.command("config", epilog=EPILOG)
@click.argument("good")
@click.argument("bad")
@_options()
def config(good: str, bad: str, as_json: bool, **options: Any) -> int:
    """Keys of two files of settings (YAML, JSON, TOML), variables of two environments, or options of two commands.

    \b
    traindx isolate config good.yaml bad.yaml --run 'python train.py {config}' --fails-if nan
    traindx isolate config 'python train.py --lr 0.1' 'python train.py --lr 1 --fp16' --fails-if 'loss>1'
    traindx isolate config good.env bad.env --run 'python train.py'
    """
    from traindx.isolation import isolate_config

    return _say(isolate_config(good, bad, _request(**options)), as_json)


@command.command("commits", epilog=EPILOG)
@click.argument("commits", metavar="GOOD..BAD")
@_options()
def commits(commits: str, as_json: bool, **options: Any) -> int:
    """The commit after GOOD, up to BAD, with which the symptom came. The repository is only read.

    \b
    traindx isolate commits v1.2..HEAD --run 'python train.py --steps 50' --fails-if 'loss>2'
    """
    from traindx.isolation import isolate_commits

    return _say(isolate_commits(commits, _request(**options)), as_json)


@command.command("data", epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[GOOD] BAD", type=click.Path(path_type=Path))
@_options()
def data(paths: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Files of two folders and rows in them, or rows of two files. With BAD alone: its shards or rows, left out.

    \b
    traindx isolate data data_v1/ data_v2/ --run 'python train.py --data {data}' --fails-if nan
    traindx isolate data data/ --run 'python train.py' --fails-if 'loss>1'
    traindx isolate data train.npz --run 'python train.py' --fails-if nan
    """
    from traindx.isolation import isolate_data

    if not 1 <= len(paths) <= 2:
        raise BadUsage("give one folder or file of data, or two: the one that works and the one that does not")
    good = paths[0] if len(paths) == 2 else None
    return _say(isolate_data(good, paths[-1], _request(**options)), as_json)


@command.command("weights", epilog=EPILOG)
@click.argument("good", type=click.Path(path_type=Path))
@click.argument("bad", type=click.Path(path_type=Path))
@_options()
def weights(good: Path, bad: Path, as_json: bool, **options: Any) -> int:
    """Tensors of two checkpoints (torch.save, safetensors, npz). Nothing of them is executed.

    \b
    traindx isolate weights step100.pt step200.pt --run 'python evaluate.py {weights}' --fails-if 'accuracy<0.9'
    """
    from traindx.isolation import isolate_weights

    return _say(isolate_weights(good, bad, _request(**options)), as_json)


@command.command("runs", epilog=CODES_OF_RUNS)
@click.option("--steps", type=int, default=100, show_default=True, help="Optimizer steps (calls for JAX) to record.")
@_options(symptom=False)
def runs(steps: int, as_json: bool, **options: Any) -> int:
    """Where two runs of one command part that should be equal, and which of seeds, workers, threads and deterministic
    kernels makes them equal.

    \b
    traindx isolate runs --run 'python train.py --steps 50'
    """
    from traindx.isolation import isolate_runs

    return _say_runs(isolate_runs(_request(fails_if=(), at=None, **options), steps), as_json)
