"""Lines that say something of a run and are no metrics: each kind by each of its wordings."""

from __future__ import annotations

from typing import Any

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.readers.notes import kind_of

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
