"""Kinds of settings: which names belong together, and how often a change of one explains anything.

The first family whose pattern matches the whole last part of a key counts, so that "warmup_steps" is no "length".
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A kind of setting: names that belong to it, the anchors and words of failure modes that are about it.

    `weight` is how much a change of it explains before anything is known of the run, from 0 to 3: an estimate by hand,
    learning rate and precision first, names and folders last.
    """

    name: str
    keys: str
    weight: float
    anchors: tuple[str, ...] = ()
    words: str = ""


FAMILIES = (
    Family(
        "label",
        r"(run|experiment|exp|project|group|job|wandb|mlflow)_?(name|id|project|entity|group|tags?)?|name|tags?|notes?"
        r"|(output|log|logging|save|ckpt|checkpoint|cache|work|run|result)s?_?(dir|path|root|file|folder)|out(put)?"
        r"|date|time(stamp)?|host(name)?|user|report_to|verbose|debug|_name_or_path"
        r"|(log|print|save|eval|checkpoint)\w*(every|interval|steps|freq\w*|strategy|limit)",
        0.1,
    ),
    Family("warm-up", r"\w*warm_?up\w*", 2.0, ("warmup", "warmup_setting"), r"warm-?up"),
    Family(
        "schedule", r"\w*(schedul|decay_(steps|rate|iters)|lr_decay|gamma|milestone|cosine|t_max|anneal)\w*", 2.0,
        ("scheduler", "scheduler_step"), r"schedule",
    ),
    Family(
        "learning rate", r"(\w+_)?(lr|learning_rate|step_size)(_\w+)?", 3.0,
        ("learning_rate", "lr_write", "lr_compound"), r"learning[- ]rate",
    ),
    Family(
        "optimizer", r"\w*(optim(izer)?|betas|beta_?[12]|momentum|nesterov|amsgrad|adam\w*)\w*|eps(ilon)?|\w+_eps", 2.2,
        ("optimizer",), r"optimizer|adam|momentum",
    ),
    Family("clipping", r"\w*(clip|max_(grad_)?norm)\w*", 2.2, ("clip",), r"clip"),
    Family(
        "precision", r"\w*(fp16|bf16|fp8|amp|precision|dtype|half|autocast|loss_scale|scaler|tf32|x64)\w*", 2.5,
        ("precision",), r"precision|float16|bfloat16|fp16|loss scale|dtype|half",
    ),
    Family("accumulation", r"\w*accum\w*", 2.2, ("count_division",), r"accumulat"),
    Family(
        "batch size", r"\w*(batch_?size|micro_?batch|global_batch|per_device\w*batch)\w*|bs|batch", 2.0,
        ("dataloader",), r"batch[- ]size|batch of|too small a batch",
    ),
    Family(
        "data",
        r"\w*(data(set|_?dir|_?path|_?root|_?file)?|train_file|split|shuffle|augment\w*|normali[sz]e|tokeni[sz]er\w*"
        r"|vocab\w*|max_(seq\w*|length|tokens)|seq\w*len\w*|block_size|mean|std|image_size|crop\w*|fold)",
        2.0, ("dataloader",), r"data|shuffl|label|tokeni|vocabular|normali",
    ),
    Family(
        "loss",
        r"\w*(loss|criterion|label_smoothing|reduction|alpha|beta|lambda|kl|entropy|commit\w*|coef\w*|weight)s?(_\w+)?"
        r"(?<!decay)",
        2.0, ("loss",), r"loss|term|coefficient|weight of",
    ),
    Family(
        "regularisation",
        r"\w*(weight_decay|dropout|drop_path|regulari[sz]\w*|stochastic_depth)\w*|(\w+_)?(wd|l2)(_\w+)?", 1.4,
        ("weight_decay",), r"weight decay|dropout|overfit|regulari",
    ),
    Family(
        "model",
        r"\w*(hidden|dim|width|depth|layers?|heads?|n_?embd?|d_?model|channels|model|arch\w*|backbone|activation|norm"
        r"|init\w*|bias|pretrained|frozen|freeze)\w*",
        1.6, ("model_size",), r"initiali|frozen|layer|model|width|depth",
    ),
    Family("checkpoint", r"\w*(resume|checkpoint|ckpt|load|restore)\w*", 1.6, ("resume",), r"resum|checkpoint|restor"),
    Family(
        "processes",
        r"\w*(world_size|n_?gpus?|num_(gpus|nodes|processes)|devices|nproc\w*|ddp\w*|fsdp\w*|zero_stage|strategy"
        r"|backend|rank)\w*",
        1.6, ("collective",), r"rank|process|distributed|world size",
    ),
    Family(
        "length", r"(num_?|n_?|max_?|total_?)?(train_?)?(epochs?|steps|iters|iterations|updates)", 1.2, ("epochs",),
        r"epochs|planned|too short",
    ),
    Family("seed", r"\w*(seed|deterministic|benchmark)\w*", 0.8, ("seed",), r"seed"),
    Family(
        "workers", r"\w*(workers?|prefetch\w*|pin_memory|persistent\w*|threads)\w*", 0.6, (),
        r"worker|data-bound|loading",
    ),
)  # fmt: skip
OTHER = Family("other", "", 0.8)
_PATTERNS = tuple((re.compile(f.keys, re.IGNORECASE), f) for f in FAMILIES)


def family_of(name: str) -> Family:
    """The kind of a setting by the last part of its key."""
    return next((f for pattern, f in _PATTERNS if pattern.fullmatch(name)), OTHER)
