"""Lines that say something of a run and are no metrics: each kind by each of its wordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.readers.notes import kind_of, of_event

WORDINGS = {
    "step_skipped": ["Skipping the step", "gradient overflow", "OVERFLOW! 3", "non-finite gradients, skip",
                     "nonfinite loss", "reducing loss scale to 2", "loss scale was reduced"],
    "resume": ["Resuming", "restored the state", "continuing from 3", "continue training", "=> loaded x",
               "loading checkpoint", "loaded weights.pt", "Starting from epoch 3"],
    "checkpoint": ["Saved the model", "writing weights", "saves to a.safetensors", "checkpoint was written",
                   "best model: 3", "new best"],
    "world_size": ["world size 8", "WORLD_SIZE=8", "8 processes", "nprocs 2", "number of gpus: 4", "num_nodes 2",
                   "across 8 accelerators", "on 4 tpus"],
    "precision": ["mixed precision", "bf16", "fp16", "float16", "bfloat16", "fp32", "tf32", "fp8", "autocast on",
                  "GradScaler", "amp"],
    "parameters": ["parameters: 124", "124 M trainable params"],
    "device": ["device: cuda", "GPU available: True", "NVIDIA A100", "TPU v4"],
    "dataset": ["1,000 train samples", "dataset: 5", "num examples = 100", "rows 7"],
    "change": ["curriculum begins", "stage of 2", "phase 3", "entering another task", "switch the mixture",
               "switched over to images", "unfreezing the backbone", "increasing the sequence length", "raise seq_len",
               "extending seqlen", "growing resolution", "difficulty up"],
    "other": ["total optimization steps 5", "max_steps", "num epochs", "steps per epoch", "steps/epoch"],
    None: ["", "loss 0.5", "hello world peace", "a sample", "stage"],
}


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, texts in WORDINGS.items() for t in texts])
def test_every_wording_is_told(kind: str | None, text: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.slow
def test_prose_of_which_no_line_comes_again_is_read_quickly(within: Any) -> None:
    words = ["river", "stone", "under", "green", "light", "paper", "winter", "garden", "silver", "bread", "cloud"]
    lines = "".join(" ".join(words[(i // 11 ** k) % 11] for k in range(5)) + f" {words[i % 11]} of the\n"
                    for i in range(30_000))
    with within(30):
        run = read_run(["-"], stdin=f"{lines}step 1 loss 0.5\nstep 2 loss 0.4\n".encode())
    assert run.loss is not None
    assert len(run.loss) == 2


@pytest.mark.parametrize(("record", "measured", "kind"), [
    ({"event": "resume", "checkpoint": "ckpt/step_3000.pt"}, False, "resume"),
    ({"event": "checkpoint_saved", "step": 100, "path": "a.pt"}, False, "checkpoint"),
    ({"message": "Resuming from a.pt", "step": 100, "loss": 1.0}, True, "resume"),
    ({"resume": "allow", "project": "x"}, False, None),
    ({"event": "train_step", "loss": 1.0}, True, None),
    ({"source": "resumed from", "loss": 1.0}, True, None),
    ({"loss": 1.0}, True, None),
    ({}, False, None),
])
def test_what_a_record_says_in_words(record: dict[str, object], measured: bool, kind: str | None) -> None:
    told = of_event(record, measured=measured)
    assert (told[0] if told else None) == kind


@pytest.mark.parametrize("events", [1, 40])
def test_events_among_records_of_json(events: int, tmp_path: Path) -> None:
    """Also where they are so many that their lines would be read together."""
    rows = []
    for i in range(200):
        rows.append(f'{{"step": {i}, "loss": {2 - i / 200:.4f}}}')
        if i < events:
            rows.append(f'{{"event": "resume", "checkpoint": "a.pt", "at": {i}}}')
    (tmp_path / "run.jsonl").write_text("\n".join(rows) + "\n")
    run = read_run([tmp_path / "run.jsonl"])
    assert [n.line for n in run.notes if n.kind == "resume"] == [2 * i + 2 for i in range(events)]
    assert len(run.first("loss") or ()) == 200
