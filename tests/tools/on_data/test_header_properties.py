"""Header properties that are not the same in all files, and whether the code of the run reads them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import data_making as making
import headers
import numpy as np
import pytest

from traindx_tools.artifact import Artifact
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.readers.orientation import orientation_of, upright
from traindx_tools.on_data.rules import d163_header_property
from traindx_tools.on_data.run_data import of_run
from traindx_tools.on_logs.run import Run

Seen = Callable[[ModuleType, Path], list[Finding]]
SITES = ("lake", "moor", "pond", "wood")


def files(make: Callable[[str, int], bytes]) -> dict[str, bytes]:
    """Twelve of each site, by its name."""
    return {f"{site}_{k:02d}": make(site, k) for site in SITES for k in range(12)}


@pytest.mark.parametrize(("ending", "make"), [
    (".jpg", headers.jpeg), (".png", headers.png), (".tif", headers.tiff),
])
def test_the_orientation_of_one_site(ending: str, make: Callable[[int | None], bytes], tmp_path: Path,
                                     seen_by: Seen) -> None:
    headers.folder_of(tmp_path, ending, files(lambda site, k: make(6 if site == "pond" else None)))
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert finding.severity is Severity.INFO  # without code nothing is wrong yet
    assert (finding.measured["field"], finding.measured["value"], finding.measured["count"]) == ("orientation", 6.0, 12)
    assert "25.0 %" in finding.statement
    assert "pond" in finding.statement
    assert finding.statement.count("a reader that gives the numbers alone drops it") == 1


def test_headers_that_differ_are_no_alarm_as_long_as_no_code_is_known(tmp_path: Path) -> None:
    headers.folder_of(tmp_path, ".jpg", files(lambda site, k: headers.jpeg(6 if site == "pond" else None)))
    report = examine([tmp_path])
    assert [f.severity for f in report.findings if f.rule == "D163"] == [Severity.INFO]
    assert not report.wrong


def test_a_column_of_a_table_goes_along(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    sites = rng.choice(SITES, 60)
    headers.folder_of(tmp_path / "img", ".jpg", {
        f"{k:03d}": headers.jpeg(8 if s == "moor" else 1) for k, s in enumerate(sites)})
    (tmp_path / "meta.csv").write_text("file,site\n" + "".join(f"{k:03d}.jpg,{s}\n" for k, s in enumerate(sites)))
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert finding.measured["common"] == "all those with site in meta.csv moor"


def test_several_orientations_without_anything_in_common(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    headers.folder_of(tmp_path, ".jpg", files(lambda site, k: headers.jpeg(int(rng.choice([1, 1, 1, 3, 6, 8])))))
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert finding.measured["common"] == ""


def test_rates_within_a_folder(tmp_path: Path, seen_by: Seen) -> None:
    headers.folder_of(tmp_path, ".wav", files(
        lambda site, k: headers.sound(22050 if site == "pond" else 16000, seed=k)))
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert (finding.measured["field"], finding.measured["usual"]) == ("rate", 16000.0)
    assert "22050 Hz in 12" in finding.statement
    assert "pond" in str(finding.measured["common"])


def test_rates_and_orientations_within_archives(tmp_path: Path, seen_by: Seen) -> None:
    with tarfile.open(tmp_path / "part.tar", "w") as archive:
        for k in range(40):
            pond = k % 4 == 1
            making.member(archive, f"{k:04d}.json", json.dumps({"site": "pond" if pond else f"s{k % 4}"}).encode())
            making.member(archive, f"{k:04d}.png", headers.png(3 if pond else None, seed=k))
            making.member(archive, f"{k:04d}.wav", headers.sound(8000 if pond else 16000, seed=k))
    found = seen_by(d163_header_property, tmp_path)
    assert {f.measured["field"]: f.measured["common"] for f in found} == {
        "orientation": "all those with site pond", "rate": "all those with site pond"}


def test_orientations_within_parquet(tmp_path: Path, seen_by: Seen) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sites = [SITES[k % 4] for k in range(40)]
    table = pa.table({"image": [headers.png(6 if s == "pond" else None, seed=k) for k, s in enumerate(sites)],
                      "site": sites})
    parquet.write_table(table, tmp_path / "train.parquet")
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert (finding.measured["field"], finding.measured["common"]) == ("orientation", "all those with site pond")


def test_depths_within_a_folder_are_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    headers.folder_of(tmp_path, ".png", files(lambda site, k: headers.png(None, 1, 16 if k % 3 else 8, k)))
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert (finding.measured["field"], finding.severity) == ("bits", Severity.INFO)


def test_byte_orders_that_are_declared_are_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(4):
        np.savez(tmp_path / f"part_{k}.npz", x=np.ones((30, 4), ">f4" if k == 2 else "<f4"), y=np.arange(30) % 3)
    (finding,) = seen_by(d163_header_property, tmp_path)
    assert (finding.measured["field"], finding.severity) == ("byte order", Severity.INFO)
    assert "part_2.npz" in finding.statement


@pytest.mark.parametrize("make", [
    lambda site, k: headers.jpeg(6),  # all alike
    lambda site, k: headers.jpeg(None if k else 1),  # upright, told or not
    lambda site, k: headers.jpeg(6 if (site, k) == ("pond", 3) else 1),  # one of many
])
def test_alike_headers(make: Callable[[str, int], bytes], tmp_path: Path, seen_by: Seen) -> None:
    headers.folder_of(tmp_path, ".jpg", files(make))
    assert not seen_by(d163_header_property, tmp_path)


def test_masks_beside_images(tmp_path: Path, seen_by: Seen) -> None:
    images = {f"images/{k:02d}": headers.png(None, 3, seed=k) for k in range(20)}
    masks = {f"masks/{k:02d}": headers.png(None, 1, 16, seed=k) for k in range(20)}
    headers.folder_of(tmp_path, ".png", images | masks)
    assert not seen_by(d163_header_property, tmp_path)


def found_with(folder: Path, code: str, rule: str) -> Finding:
    """The one finding of a rule of a run with that code."""
    (folder / "train.py").write_text(code)
    held = tuple(Artifact(str(p), "sound") for p in sorted(folder.rglob("*.*")) if p.suffix in (".jpg", ".wav"))
    run = Run(series=(), artifacts=held)
    (finding,) = [f for f in of_run([run], [folder / "train.py"], folder).findings if f.rule == rule]
    return finding


def told(folder: Path, code: str) -> tuple[str, Severity]:
    finding = found_with(folder, code, "D163")
    return str(finding.measured["kind"]), finding.severity


@pytest.mark.parametrize(("code", "kind", "severity"), [
    ("from PIL import Image\ndef load(p):\n    return Image.open(p).convert('RGB')\n", "unread", Severity.MEDIUM),
    ("from PIL import Image\ndef load(p):\n    'No exif_transpose yet.'\n    # nor orientation\n"
     "    return Image.open(p)\n", "unread", Severity.MEDIUM),
    ("from PIL import Image, ImageOps\ndef load(p):\n    return ImageOps.exif_transpose(Image.open(p))\n", "read",
     Severity.INFO),
    ("import cv2\ndef load(p):\n    return cv2.imread(p)\n", "read", Severity.INFO),
    ("import cv2\ndef load(p):\n    return cv2.imread(p, cv2.IMREAD_UNCHANGED)\n", "unread", Severity.MEDIUM),
    ("from ours import dataset\n", "unknown", Severity.INFO),
    ("def broken(:\n", "unknown", Severity.INFO),
])
def test_the_code_decides_of_orientations(code: str, kind: str, severity: Severity, tmp_path: Path) -> None:
    headers.folder_of(tmp_path / "img", ".jpg", files(lambda site, k: headers.jpeg(6 if site == "pond" else 1)))
    assert told(tmp_path, code) == (kind, severity)


@pytest.mark.parametrize(("code", "kind"), [
    ("import torchaudio\ndef load(p):\n    x, sr = torchaudio.load(p)\n    return x\n", "unread"),
    ("import torchaudio\ndef load(p):\n    return torchaudio.load(p)[0]\n", "unread"),
    ("from scipy.io import wavfile\ndef load(p):\n    _, x = wavfile.read(p)\n    return x / 32768\n", "unread"),
    ("import torchaudio\ndef load(p):\n    x, sr = torchaudio.load(p)\n    if sr != 16000:\n"
     "        raise ValueError(sr)\n    return x\n", "read"),
    ("import soundfile as sf\nfrom scipy.signal import resample_poly\ndef load(p):\n    x, sr = sf.read(p)\n"
     "    return resample_poly(x, 16000, sr)\n", "read"),
    ("import librosa\ndef load(p):\n    return librosa.load(p, sr=None)[0]\n", "read"),
])
def test_the_code_decides_of_rates(code: str, kind: str, tmp_path: Path) -> None:
    headers.folder_of(tmp_path / "wav", ".wav", files(
        lambda site, k: headers.sound(8000 if k % 5 == 1 else 16000, seed=k)))
    assert told(tmp_path, code)[0] == kind


@pytest.mark.parametrize(("load", "severity"), [
    ("librosa.load(p, sr=16000)[0]", Severity.INFO), ("ours.load(p, sr=16000)", Severity.MEDIUM),
])
def test_a_rate_that_the_code_names_and_resamples_to(load: str, severity: Severity, tmp_path: Path) -> None:
    headers.folder_of(tmp_path / "wav", ".wav", files(lambda site, k: headers.sound(8000, seed=k)))
    assert severity is found_with(tmp_path, f"def load(p):\n    return {load}\n", "D131").severity


def test_broken_headers_say_nothing(tmp_path: Path) -> None:
    whole = headers.jpeg(6)
    for broken in (b"", b"\xff\xd8\xff\xe1", whole[:20], whole.replace(b"\0\x06\0\0", b"\0\x63\0\0"),
                   b"MM\0*\xff\xff\xff\xff\0\0", headers.png(6)[:60], b"II*\0" + bytes(20)):
        assert orientation_of(broken) == 1
    headers.folder_of(tmp_path, ".tif", {f"{k:02d}": headers.tiff(6 if k % 2 else 1)[: None if k else 40]
                                         for k in range(20)})
    report = examine([tmp_path])
    assert not report.notes
    assert [f.rule for f in report.findings if f.rule in ("D118", "D163")] == ["D118", "D163"]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_as_pillow_does(orientation: int) -> None:
    pillow = pytest.importorskip("PIL.Image")
    ops = pytest.importorskip("PIL.ImageOps")
    data = headers.png(orientation, 1)
    with pillow.open(io.BytesIO(data)) as picture:
        stored, shown = np.asarray(picture), np.asarray(ops.exif_transpose(picture))
    assert np.array_equal(upright(stored, orientation), shown)
