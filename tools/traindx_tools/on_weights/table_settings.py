"""What the configuration beside a checkpoint says of the tables in it, under any of the names that settings have.

JSON and YAML files in the checkpoint's folder and the one above, and what the checkpoint keeps itself. A setting that
is told with several values has all of them: several tables may be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.on_data.hints import read_settings
from traindx_tools.on_weights.checkpoint import Checkpoint

NAMES: Mapping[str, tuple[str, ...]] = {
    "sample_rate": ("samplerate", "samplingrate", "sr", "fs", "targetsr", "targetsamplerate", "samplefreq",
                    "samplingfreq", "samplingfrequency", "samplefrequency", "audiosamplerate"),
    "n_fft": ("nfft", "fftsize", "fftlength", "fftlen", "filterlength", "nffts"),
    "win_length": ("winlength", "winsize", "windowlength", "winlen", "framelength", "windowsizesamples"),
    "n_mels": ("nmels", "nummels", "melbins", "nummelbins", "nmelchannels", "nummelfilters", "nmel", "melchannels",
               "nummelchannels", "nmelbins"),
    "f_min": ("fmin", "melfmin", "lowfreq", "minfrequency", "lowfrequency", "freqmin", "minfreq", "mellowfreq"),
    "f_max": ("fmax", "melfmax", "highfreq", "maxfrequency", "highfrequency", "freqmax", "maxfreq", "melhighfreq"),
    "window": ("window", "windowtype", "windowfn", "windowname"),
    "timesteps": ("numtraintimesteps", "timesteps", "numtimesteps", "ntimesteps", "diffusionsteps",
                  "numdiffusionsteps", "diffusiontimesteps", "traintimesteps", "numdiffusiontimesteps"),
    "beta_start": ("betastart", "betamin", "linearstart", "beta1start", "beta0"),
    "beta_end": ("betaend", "betamax", "linearend", "betat"),
    "beta_schedule": ("betaschedule", "noiseschedule", "schedule", "scheduler", "scheduletype"),
    "rope_theta": ("ropetheta", "rotarybase", "rotaryembbase", "ropebase", "rotarytheta"),
    "max_period": ("maxperiod", "maxtimescale", "posbase", "positionbase", "pebase", "sinusoidalbase"),
    "heads": ("numattentionheads", "nhead", "nheads", "numheads", "nhead"),
    "alibi_bias_max": ("alibibiasmax",),
    "v_min": ("vmin", "valuemin"), "v_max": ("vmax", "valuemax"),
    "buckets": ("relativeattentionnumbuckets", "numbuckets", "relposbuckets", "relativepositionbuckets"),
    "max_distance": ("relativeattentionmaxdistance", "maxdistance", "relposmaxdistance", "maxrelativedistance"),
}  # fmt: skip
"""Without separators and in small letters: of torchaudio, librosa, Kaldi, Tacotron, transformers, diffusers, DDPM."""
_KNOWN = {alias: name for name, aliases in NAMES.items() for alias in aliases}
_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
_MOST_FILES, _MOST_BYTES, _MOST_VALUES, _DEEPEST, _LONGEST = 12, 2**18, 4000, 5, 4096


@dataclass(frozen=True)
class Settings:
    """`values`: what each setting is told to be; `lists`: lists of numbers by their names; `files`: who said so."""

    values: Mapping[str, tuple[Any, ...]]
    lists: Mapping[str, tuple[float, ...]]
    files: tuple[str, ...] = ()

    def numbers(self, name: str) -> tuple[float, ...]:
        """The numbers that are told for a setting; without any it is free."""
        return tuple(float(v) for v in self.values.get(name, ()) if isinstance(v, (int, float)) and v == v)

    def number(self, name: str) -> float | None:
        """The one number that is told, None without or with several."""
        told = self.numbers(name)
        return told[0] if len(told) == 1 else None

    def word(self, name: str) -> str | None:
        """The one word that is told, in small letters."""
        told = [v for v in self.values.get(name, ()) if isinstance(v, str)]
        return told[0].lower() if len(told) == 1 else None


def settings_of(checkpoint: Checkpoint) -> Settings:
    """The settings in the files around a checkpoint, and in it."""
    path = Path(checkpoint.path)
    homes = (path, path.parent) if path.is_dir() else (path.parent, path.parent.parent)
    values: dict[str, list[Any]] = {}
    lists: dict[str, tuple[float, ...]] = {}
    files = []
    found = [f for home in homes for f in _files(home)]
    trees = [*read_settings(found), ("the checkpoint", dict(checkpoint.values))]
    for where, tree in trees:
        told = list(_items(tree))
        for key, value in told[:_MOST_VALUES]:
            name = _KNOWN.get(_plain(key))
            if name is not None and value not in values.setdefault(name, []) and _is_plain(value):
                values[name].append(value)
                files.append(where)
            elif (row := _row(value)) is not None:
                lists.setdefault(key, row)
    return Settings({k: tuple(v) for k, v in values.items()}, lists, tuple(dict.fromkeys(files)))


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.rpartition(".")[2].lower())


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _row(value: Any) -> tuple[float, ...] | None:
    """A list of numbers, of lists of them, or numbers by 0, 1, 2, ... as one row; None for anything else."""
    if isinstance(value, Mapping) and all(str(k).isdigit() for k in value):
        value = [value[k] for k in sorted(value, key=lambda k: int(str(k)))]
    if not isinstance(value, (list, tuple)) or not 1 < len(value) <= _LONGEST:
        return None
    flat = [v for one in value for v in (one if isinstance(one, (list, tuple)) else (one,))]
    sound = 4 <= len(flat) <= _LONGEST and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in flat)
    return tuple(float(v) for v in flat) if sound else None


def _files(home: Path) -> list[Path]:
    try:
        files = sorted(f for f in home.iterdir() if f.suffix in _SUFFIXES and f.is_file() and not f.is_symlink()
                       and f.stat().st_size <= _MOST_BYTES and not f.name.endswith((".index.json", "tokenizer.json")))
    except OSError:
        return []
    return files[:_MOST_FILES]


def _items(tree: Any, depth: int = _DEEPEST) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping) and depth:
        for key, value in list(tree.items())[:_MOST_VALUES]:
            yield str(key), value
            yield from _items(value, depth - 1)
