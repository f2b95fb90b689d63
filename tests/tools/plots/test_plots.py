"""The pictures themselves: real PNGs of runs, looked at by their pixels."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.plots import draw_pictures, gradient_heatmap, plot_run, visualize_loss_curve

NAN = float("nan")
BLUE, BAND, CRITICAL = (0x00, 0x72, 0xB2), (0xFA, 0xEB, 0xDF), (0xC0, 0x39, 0x2B)
ZERO, NOT_FINITE = (0x11, 0x14, 0x18), (0xD5, 0x5E, 0x00)


def series(name, values, *, group="train", original=None, rank=None):
    values = np.asarray(values, dtype=np.float64)
    steps, none = np.arange(1.0, len(values) + 1), np.full(len(values), NAN)
    return Series(name, original or name, group, "log.txt", values, steps, none, none, steps.astype(np.int64), rank)


def finding(step, end, title="Non-finite value", statement="loss is nan from step 400"):
    return Finding("L101", title, Severity.CRITICAL, Bearing.SIGN, statement,
                   Location(file="log.txt", line=1, step=step, end_step=end), "log.txt")


def pixels(path):
    from matplotlib.image import imread

    return np.round(imread(path)[:, :, :3] * 255).astype(int)


def count(path, colour, tolerance=8):
    return int((np.abs(pixels(path) - np.array(colour)).max(axis=2) <= tolerance).sum())


def test_a_healthy_run_is_a_blue_line_without_any_warning_colour(tmp_path):
    run = Run(series=(series("loss", np.exp(-np.arange(50) / 20)),))
    picture = plot_run(run, [], tmp_path / "deep" / "loss.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert pixels(picture).shape[1] == 1500
    assert count(picture, BLUE) > 500
    assert count(picture, BAND) == 0
    assert count(picture, CRITICAL) == 0


def test_nan_steps_are_a_band_as_wide_as_the_nan_and_never_dropped(tmp_path):
    values = np.ones(100)
    values[50:] = NAN
    half = count(plot_run(Run(series=(series("loss", values),)), [], tmp_path / "half.png"), BAND)
    values[90:] = 1.0
    values[:90] = 1.0
    values[95] = NAN
    one = count(plot_run(Run(series=(series("loss", values),)), [], tmp_path / "one.png"), BAND)
    assert half > 20_000
    assert 0 < one < half / 10


def test_infinities_are_marked_like_nan(tmp_path):
    values = [1.0, 2.0, np.inf, -np.inf, 1.0, 1.0]
    assert count(plot_run(Run(series=(series("loss", values),)), [], tmp_path / "inf.png"), BAND) > 0


def test_a_finding_is_marked_in_the_colour_of_its_severity(tmp_path):
    run = Run(series=(series("loss", np.linspace(3, 1, 500)),))
    assert count(plot_run(run, [finding(400, 500)], tmp_path / "marked.png"), CRITICAL) > 200


def test_a_single_spike_among_a_million_values_is_seen(tmp_path, within):
    values = np.ones(1_000_000) + np.random.default_rng(0).normal(0, 0.01, 1_000_000)
    flat = plot_run(Run(series=(series("loss", values),)), [], tmp_path / "flat.png")
    values[700_000] = 50.0
    with within(30):
        spiked = plot_run(Run(series=(series("loss", values),)), [], tmp_path / "spiked.png")
    assert not np.array_equal(pixels(flat), pixels(spiked))
    part = pixels(spiked)[:, 900:1200]
    bluish = part[:, :, 2] - part[:, :, 0] > 60
    assert bluish.any(axis=1).sum() > 150, "the spike reaches up through the panel"


@pytest.mark.parametrize("values", [
    [1e308, -1e308, 1e-308, 5e-324], [5e-324] * 3, [1e308] * 3, [0.0, 0.0], [7.0], [NAN], [NAN, np.inf, -np.inf],
    [1e200, 1e-200, 0.0], [-5.0, -5.0, -5e12], [1e16, 1e16 + 2],
])
def test_any_values_can_be_drawn(tmp_path, values):
    run = Run(series=(series("loss", values), series("learning_rate", values), series("grad_norm", values)))
    assert plot_run(run, [finding(1, 1)], tmp_path / "loss.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["$\\frac{1}{0", "_hidden", "損失", "a\x00b\x1b[31m\n# x", "x" * 10_000, "%s {0}",
                                  "\u202eevil"])
def test_names_from_logs_are_text_and_nothing_else(tmp_path, name):
    run = Run(series=(series("loss", [2, 1], original=name), series("loss/a", [1, 1], original=name),
                      series("custom_" + name, [2, 1], original=name), series("grad_norm/" + name, [1, 1])))
    pictures = draw_pictures(run, [finding(1, 2, title=name, statement=name)], tmp_path)
    assert set(pictures) == {"loss_visualization", "gradient_analysis"}


def test_steps_that_start_again_and_steps_out_of_order_are_drawn(tmp_path):
    again = replace(series("loss", [3, 2, 1, 3, 2, 1]), step=np.array([1.0, 2, 3, 1, 2, 3]))
    assert plot_run(Run(series=(again,)), [], tmp_path / "again.png").exists()


def test_a_run_without_metrics_says_so(tmp_path):
    with pytest.raises(UnreadableInput, match="no metric to draw"):
        plot_run(Run(), [], tmp_path / "none.png")
    assert draw_pictures(Run(), [], tmp_path) == {}


def test_the_heat_map_shows_zero_and_non_finite_modules_apart(tmp_path):
    steps = np.ones(100)
    healthy = [series(f"grad_norm/layers.{i}", steps * 10.0**-i) for i in range(4)]
    clean = gradient_heatmap(Run(series=tuple(healthy)), tmp_path / "clean.png")
    dead = steps.copy()
    dead[50:] = 0.0
    burst = steps.copy()
    burst[80:] = NAN
    hurt = gradient_heatmap(Run(series=(*healthy, series("grad_norm/dead", dead), series("grad_norm/burst", burst))),
                            tmp_path / "hurt.png")
    assert count(clean, NOT_FINITE) == 0
    assert count(clean, ZERO, 3) < 200  # letters are dark as well
    assert count(hurt, NOT_FINITE) > 2000
    assert count(hurt, ZERO) > 4000


def test_the_heat_map_of_very_many_modules_keeps_the_ones_that_changed(tmp_path):
    many = [series(f"grad_norm/layer.{i}", np.full(20, 0.1)) for i in range(300)]
    many.append(series("grad_norm/last", [0.1] * 10 + [0.0] * 10))
    picture = gradient_heatmap(Run(series=tuple(many)), tmp_path / "many.png")
    assert count(picture, ZERO) > 1000
    assert pixels(picture).shape[0] < 2500


def test_no_modules_no_heat_map(tmp_path):
    assert gradient_heatmap(Run(series=(series("grad_norm", [1, 1]),)), tmp_path / "x.png") is None
    assert not (tmp_path / "x.png").exists()


def test_matplotlib_is_imported_only_to_draw_and_pyplot_never(tmp_path):
    code = ("import sys; import traindx_tools.plots as p; assert 'matplotlib' not in sys.modules\n"
            "import numpy as np; from traindx_tools.on_logs.run import Run, Series\n"
            "a = np.arange(3.0); s = Series('loss', 'loss', 'train', 'x', a, a, a, a, a.astype(int))\n"
            f"from pathlib import Path; p.plot_run(Run(series=(s,)), [], Path({str(tmp_path / 'x.png')!r}))\n"
            "assert 'matplotlib.pyplot' not in sys.modules")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_absurd_names_and_numbers_cost_at_most_the_picture(tmp_path):
    values = "".join(f"step {i} loss {1.7e308 if i % 2 else 5e-324} grad_norm 1e-300 $\\frac$=3\n" for i in range(40))
    path = tmp_path / os.fsdecode(b"a\xff$x^$\\frac.log")
    path.write_text(values)
    made = draw_pictures(read_run([path]), (), tmp_path / "out")
    assert made["loss_visualization"].stat().st_size > 1000
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"directory|exists"):
        draw_pictures(read_run([path]), (), tmp_path / "file")


def test_a_run_is_drawn_from_its_path_in_one_call(tmp_path):
    log = tmp_path / "run.log"
    log.write_text("".join(f"step {i} loss {2.0 / (1 + i):.4f}\n" for i in range(30))
                   + "".join(f"step {i} loss nan\n" for i in range(30, 40)))
    picture = visualize_loss_curve(log, tmp_path / "curve.png")
    assert picture == tmp_path / "curve.png"
    assert count(picture, BLUE) > 100
    assert count(picture, BAND) > 0


def test_a_picture_of_nothing_and_a_picture_that_cannot_be_written_are_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("nothing to see\n")
    with pytest.raises(UnreadableInput, match="no metric to draw"):
        visualize_loss_curve(text, tmp_path / "x.png")
    log = tmp_path / "run.log"
    log.write_text("step 1 loss 1.0\nstep 2 loss 0.5\n")
    with pytest.raises(UnreadableInput, match="cannot write"):
        visualize_loss_curve([log], tmp_path)


def test_a_drawn_picture_is_packed_on_white_and_one_that_shows_values_is_left_as_it_is(tmp_path: Path) -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    from traindx_tools.plots import style

    figure = Figure(figsize=(4, 3))
    figure.subplots().plot([1, 2, 3], color="#0072b2")
    drawn = Image.open(style.save(figure, tmp_path / "drawn.png"))
    assert drawn.mode == "P"
    assert drawn.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    many = Figure(figsize=(4, 3))
    many.subplots().imshow(np.arange(100.0).reshape(10, 10))
    assert Image.open(style.save(many, tmp_path / "many.png")).mode != "P"


def test_the_pictures_of_a_run_are_small_enough_for_a_page(tmp_path: Path) -> None:
    from traindx.diagnose import diagnose

    example = Path(__file__).resolve().parents[3] / "examples" / "numpy-lr"
    files = diagnose([example]).write(tmp_path)
    assert Path(files["loss_visualization"]).stat().st_size < 80_000
    assert Path(files["report"]).stat().st_size < 200_000


def test_the_picture_for_a_phone_is_narrow_and_its_words_stay_inside(tmp_path: Path) -> None:
    from PIL import Image

    from traindx_tools.plots.picture import NARROW, NARROW_INCHES, plot_run

    log = tmp_path / "a.log"
    log.write_text("".join(f"step {n} loss {2.0 - n / 100 if n < 60 else float('nan')}\n" for n in range(100)))
    run = read_run([str(log)])
    out = plot_run(run, judge_run(run), tmp_path / f"loss{NARROW}", NARROW_INCHES)
    picture = Image.open(out).convert("L")
    assert picture.width == round(NARROW_INCHES * 150)
    edge = picture.crop((picture.width - 4, 0, picture.width, picture.height))
    assert edge.getextrema()[0] > 200, "no word is cut at the edge"


def test_a_picture_replaces_pictures_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"step {i} loss {2 - i / 100}\n" for i in range(50)))
    before = log.read_bytes()
    (tmp_path / "named.png").symlink_to(log)
    for out in (log, tmp_path / "named.png"):
        with pytest.raises(BadUsage, match="is no PNG"):
            visualize_loss_curve([log], out)
    assert log.read_bytes() == before
    (tmp_path / "empty.png").touch()
    for out in (tmp_path / "a.png", tmp_path / "a.png", tmp_path / "empty.png"):
        visualize_loss_curve([log], out)
        assert out.read_bytes().startswith(b"\x89PNG")
