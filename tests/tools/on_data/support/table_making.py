"""Tables of named columns in several formats."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def table(path: Path, form: str, columns: Mapping[str, Any]) -> None:
    """Writes columns of equal length, arrays or lists of texts, as `csv`, `jsonl`, `parquet`, `npz` or `hdf5`."""
    lists = {n: v.tolist() if isinstance(v, np.ndarray) else list(v) for n, v in columns.items()}
    if form == "csv":
        with path.with_suffix(".csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(lists)
            out.writerows(zip(*lists.values(), strict=True))
    elif form == "jsonl":
        rows = (dict(zip(lists, r, strict=True)) for r in zip(*lists.values(), strict=True))
        path.with_suffix(".jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    elif form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(lists), path.with_suffix(".parquet"))
    elif form == "hdf5":
        import h5py

        with h5py.File(path.with_suffix(".h5"), "w") as file:
            for name, values in columns.items():
                file[name] = values
    else:
        np.savez(path.with_suffix(".npz"), **{n: np.asarray(v) for n, v in columns.items()})
