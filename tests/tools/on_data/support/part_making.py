"""Sets of data in which one part (a station, a clinic, a speaker, a source) is off, and the same sets without it.

Each function writes one set below a folder; `bad` plants the fault in one part and changes nothing else.
"""

from __future__ import annotations

import csv
import json
import wave
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

WORDS = """der Bäcker verkauft süße Brötchen in Köln und Zürich während früher Größe Straße Müller über fünf schöne
grüne Häuser kaufte eine Tür für Jörg the small market opened near river bridge under cloudy sky with many people
walking slowly home again after long days of work in open fields""".split()  # noqa: SIM905 - a list of them is no easier to read


def write_csv(path: Path, columns: dict[str, Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_lines(path: Path, records: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")


def write_wave(path: Path, samples: Any, rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(np.clip(samples, -32000, 32000).astype("<i2").tobytes())


def summer_time(folder: Path, bad: bool, days: int = 60) -> None:
    """Hourly temperatures of six stations; the clock of one is two hours ahead of UTC, as summer time is."""
    rng = np.random.default_rng(1)
    start = datetime(2023, 6, 1, tzinfo=timezone.utc)
    rows: dict[str, list[Any]] = {k: [] for k in ("station", "time", "temperature", "radiation", "humidity")}
    for name in ("AHR", "BOL", "CEL", "DOR", "EIF", "FUL"):
        level, hours = rng.normal(18, 2), np.arange(24 * days)
        local = (hours - (2 if bad and name == "DOR" else 0)) % 24
        sun = np.maximum(0, np.sin(np.pi * (local - 5) / 14)) * (local >= 5) * (local <= 19)
        slow = np.repeat(rng.normal(0, 2, days), 24)
        temperature = level + slow + 5 * np.sin(2 * np.pi * (local - 9) / 24) + rng.normal(0, 0.7, len(hours))
        radiation = 700 * sun * np.repeat(rng.uniform(0.4, 1, days), 24) + rng.normal(0, 5, len(hours)) * (sun > 0)
        humidity = 70 - 2 * (temperature - level) + rng.normal(0, 4, len(hours))
        rows["station"] += [name] * len(hours)
        rows["time"] += [(start + timedelta(hours=int(h))).strftime("%Y-%m-%dT%H:%M:%SZ") for h in hours]
        for key, values in (("temperature", temperature), ("radiation", radiation), ("humidity", humidity)):
            rows[key] += [round(float(v), 1) for v in values]
    write_csv(folder / "weather.csv", rows)


def filled_by_class(folder: Path, bad: bool, rows: int = 2000) -> None:
    """A table of patients with gaps in two columns, filled with the mean of the class, or with that of all."""
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, rows)
    columns: dict[str, Any] = {"age": rng.integers(20, 90, rows), "pressure": rng.normal(130 + 3 * label, 15, rows),
                               "glucose": rng.lognormal(4.6 + 0.08 * label, 0.25, rows),
                               "insulin": rng.lognormal(4.8 + 0.1 * label, 0.5, rows)}
    for name in ("glucose", "insulin"):
        gap = rng.random(rows) < 0.25
        for own in ([label == 0, label == 1] if bad else [np.ones(rows, bool)]):
            columns[name][gap & own] = columns[name][~gap & own].mean()
    write_csv(folder / "patients.csv", {k: np.round(v, 3).tolist() for k, v in columns.items()}
              | {"outcome": label.tolist()})


def voiced(rng: np.random.Generator, seconds: float, rate: int, pitch: float) -> Any:
    """Something like speech: harmonics of a pitch that wanders, formants, pauses, noise that falls off."""
    time = np.arange(int(seconds * rate)) / rate
    wander = pitch * (1 + 0.05 * np.sin(2 * np.pi * rng.uniform(2, 4) * time + rng.uniform(0, 6)))
    phase = 2 * np.pi * np.cumsum(wander) / rate
    sound = np.zeros(len(time))
    for k in range(1, 30):
        f = k * pitch
        if f < 0.45 * rate:
            gain = sum(np.exp(-(((f - c) / 150.0) ** 2)) for c in (500, 1500, 2500)) + 0.02
            sound += gain / k**0.3 * np.sin(k * phase + rng.uniform(0, 6))
    noise = rng.normal(size=len(time))
    for _ in range(2):
        noise = np.convolve(noise, [0.5, 0.5], "same")
    loud = np.maximum(0.05, np.sin(2 * np.pi * 1.5 * time + rng.uniform(0, 6)))
    return 3000 * loud * (sound + 0.3 * noise)


def header_rate(folder: Path, bad: bool) -> None:
    """Clips of six speakers; those of one were made at 16 kHz, and their headers say 8 kHz."""
    rng = np.random.default_rng(3)
    rows: dict[str, list[Any]] = {"file": [], "speaker": [], "text": []}
    (folder / "clips").mkdir()
    for s in range(6):
        pitch = rng.uniform(100, 220)
        for k in range(16):
            name = f"spk{s}_{k:02d}.wav"
            sound = voiced(rng, rng.uniform(0.8, 1.4), 16000, pitch)
            write_wave(folder / "clips" / name, sound, 8000 if bad and s == 4 else 16000)
            rows["file"].append(f"clips/{name}")
            rows["speaker"].append(f"spk{s}")
            rows["text"].append(" ".join(rng.choice(WORDS, 4)))
    write_csv(folder / "clips.csv", rows)


def sentence(rng: np.random.Generator) -> tuple[str, list[dict[str, Any]]]:
    """A text and the spans of some of its words, in characters."""
    words = [str(w) for w in rng.choice(WORDS, rng.integers(8, 20))]
    text = " ".join(words)
    spans = []
    for i in sorted(rng.choice(len(words), 2, replace=False).tolist()):
        start = len(" ".join(words[:i])) + (i > 0)
        spans.append({"start": start, "end": start + len(words[i]), "label": str(rng.choice(["A", "B"]))})
    return text, spans


def byte_offsets(folder: Path, bad: bool, nested: bool = True) -> None:
    """Texts with spans of four sources; the tool of one counts bytes."""
    rng = np.random.default_rng(4)
    records = []
    for i in range(480):
        source = ("wiki", "news", "forum", "mail")[i % 4]
        text, spans = sentence(rng)
        if bad and source == "forum":
            spans = [s | {"start": len(text[: s["start"]].encode()), "end": len(text[: s["end"]].encode())}
                     for s in spans]
        one = {"entities": spans} if nested else {"start": spans[0]["start"], "end": spans[0]["end"]}
        records.append({"id": i, "source": source, "text": text, **one})
    write_lines(folder / "train.jsonl", records)


def mirrored_points(folder: Path, bad: bool) -> None:
    """Pictures of five subjects with two marks on them; those of one are mirrored and the points are not."""
    rng = np.random.default_rng(5)
    pictures, points, subject = [], [], []
    for i in range(400):
        s, side = i % 5, 32
        y, x = np.mgrid[:side, :side]
        left, right = rng.uniform((5, 8), (14, 24), (2,)), rng.uniform((18, 8), (27, 24), (2,))
        picture = rng.normal(60, 8, (side, side))
        for (px, py), bright, width in ((left, 150, 2.0), (right, 90, 3.0)):
            picture += bright * np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * width**2))
        if bad and s == 3:
            picture = picture[:, ::-1]
        pictures.append(np.clip(picture, 0, 255).astype(np.uint8))
        points.append(np.concatenate([left, right]))
        subject.append(s)
    np.savez(folder / "faces.npz", image=np.stack(pictures), points=np.stack(points).astype(np.float32),
             subject=np.array(subject))


def window_labels(folder: Path, bad: bool, cut: bool = True) -> None:
    """Nights of eight subjects in windows of 30 s with a stage each; one was scored in windows of 20 s."""
    rng = np.random.default_rng(6)
    for s in range(8):
        n = 2 * int(rng.integers(150, 180))
        stages = np.repeat(rng.integers(0, 4, 400), rng.integers(6, 25, 400))[: 3 * n]  # of 10 s each
        tone = np.array([2.0, 5.0, 10.0, 18.0])[stages]
        time = np.arange(len(tone) * 50) / 5.0
        phase = np.cumsum(np.repeat(tone, 50)) * 2 * np.pi / 50.0
        signal = np.sin(phase) * np.repeat(1 + stages * 0.3, 50) + 0.7 * rng.normal(size=len(time))
        x = signal.reshape(n, 150).astype(np.float32)
        y = stages.reshape(n, 3)[:, 1]
        if bad and s == 5:
            y = stages.reshape(-1, 2)[:, 0][: n if cut else None]
        np.savez(folder / f"night_{s:02d}.npz", x=x, y=y.astype(np.int64))


def reversed_axis(folder: Path, bad: bool) -> None:
    """Spectra of five laboratories over rising wavelength; one stores them over falling wavelength."""
    rng = np.random.default_rng(7)
    channel = np.arange(64)
    rows, lab, target = [], [], []
    for i in range(600):
        share = rng.uniform(0, 1)
        spectrum = np.exp(-((channel - 15) ** 2) / 40) + share * np.exp(-((channel - 40) ** 2) / 90) + channel / 80
        spectrum += rng.normal(0, 0.05, 64)
        rows.append(spectrum[::-1] if bad and i % 5 == 2 else spectrum)
        lab.append(i % 5)
        target.append(share + rng.normal(0, 0.03))
    np.savez(folder / "spectra.npz", spectrum=np.stack(rows).astype(np.float32), lab=np.array(lab),
             target=np.array(target, np.float32))


def next_captions(folder: Path, bad: bool, rows: int = 600) -> None:
    """Features of pictures with captions; from the 400th on the caption is that of the record behind."""
    rng = np.random.default_rng(8)
    things = [str(w) for w in rng.choice(WORDS, 24, replace=False)]
    centres = rng.normal(size=(24, 32))
    kinds = rng.integers(0, 24, (rows + 1, 3))
    features = centres[kinds].sum(axis=1) + rng.normal(0, 0.8, (rows + 1, 32))
    captions = [" ".join(things[k] for k in own) + " " + str(rng.choice(WORDS)) for own in kinds]
    write_lines(folder / "captions.jsonl", [
        {"id": i, "feature": [round(float(v), 3) for v in features[i]],
         "caption": captions[i + 1 if bad and i >= 400 else i]} for i in range(rows)])


def encoding_order(folder: Path, bad: bool, rows: int = 800) -> None:
    """Texts and their vectors; the vectors are in the order of length in which they were encoded."""
    rng = np.random.default_rng(9)
    centres = {w: rng.normal(size=48) for w in WORDS}
    texts = [[str(w) for w in rng.choice(WORDS, rng.integers(3, 40))] for _ in range(rows)]
    vectors = np.stack([np.mean([centres[w] for w in t], axis=0) for t in texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if bad:
        vectors = vectors[np.argsort([-len(" ".join(t)) for t in texts], kind="stable")]
    np.save(folder / "vectors.npy", vectors.astype(np.float32))
    write_lines(folder / "texts.jsonl", [{"id": i, "text": " ".join(t)} for i, t in enumerate(texts)])


def thousands(folder: Path, bad: bool, rows: int = 2400) -> None:
    """Sales of six branches; of one the separator of thousands was read as a decimal point."""
    rng = np.random.default_rng(10)
    branch = rng.integers(0, 6, rows)
    units, price = rng.integers(1, 60, rows), np.round(rng.lognormal(3.4, 0.7, rows))
    sales = units * price * (1 - 0.1 * (rng.random(rows) < 0.2))
    sales = np.round(sales)
    wrong = bad & (branch == 2) & (sales >= 1000)
    write_csv(folder / "sales.csv", {
        "branch": [f"branch_{b}" for b in branch], "weekday": rng.integers(0, 7, rows).tolist(),
        "units": units.tolist(), "price": price.tolist(),
        "sales": [v / 1000 if w else v for v, w in zip(sales.tolist(), wrong, strict=True)]})


def mirrored_boxes(folder: Path, bad: bool) -> None:
    """Pictures with one box each, of four cameras; the pictures of one are mirrored and the boxes are not."""
    rng = np.random.default_rng(11)
    records = {"image": [], "box": [], "camera": []}  # type: dict[str, list[Any]]
    for i in range(400):
        side = 40
        w, h = rng.integers(6, 14, 2)
        x, y = rng.integers(0, side - w), rng.integers(0, side - h)
        picture = rng.normal(80, 12, (side, side))
        picture[y:y + h, x:x + w] += 70
        records["image"].append(np.clip(picture[:, ::-1] if bad and i % 4 == 1 else picture, 0, 255).astype(np.uint8))
        records["box"].append([x, y, x + w, y + h])
        records["camera"].append(i % 4)
    np.savez(folder / "boxes.npz", **{k: np.array(v) for k, v in records.items()})


SETS: dict[str, Callable[[Path, bool], None]] = {
    f.__name__: f for f in (summer_time, filled_by_class, header_rate, byte_offsets, mirrored_points, mirrored_boxes,
                            window_labels, reversed_axis, next_captions, encoding_order, thousands)}
