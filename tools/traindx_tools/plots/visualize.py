"""The picture of a run from its paths, in one call: what a script or a notebook asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from traindx_tools.errors import UnreadableInput
from traindx_tools.plots.picture import plot_run


def visualize_loss_curve(paths: str | Path | Sequence[str | Path], out: str | Path = "traindx-plot.png", *,
                         names: Mapping[str, str] | None = None, lines: Sequence[str] = ()) -> Path:
    """Draws loss, gradient norm and learning rate over steps as a PNG, with what the rules found marked.

    Of several runs in one file the last one.

    `paths`: a log, a folder, a glob or several. `names`, `lines`: what the log's own names and lines mean (see
    `read_run`). Returns the path of the picture. Raises UnreadableInput where nothing can be read, where no metric was
    found, or where `out` cannot be written.
    """
    from traindx_tools.on_logs.each_run import read_last_run
    from traindx_tools.on_logs.judge import judge_run

    run = read_last_run([paths] if isinstance(paths, (str, Path)) else list(paths), names=names, lines=lines)
    try:
        return plot_run(run, judge_run(run), Path(out))
    except OSError as error:
        raise UnreadableInput(f"cannot write {out}: {error.strerror}. Name another file with --out") from error
