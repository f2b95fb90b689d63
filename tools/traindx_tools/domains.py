"""Which special parts a run has: adversaries, a policy, a codebook, a latent code, diffusion, tokens, JAX.

A failure mode of such a part is no rival where there is no such part: a collapsed codebook explains nothing in a
classifier. Told generously, by the names of the metrics, the words of the person and the code that was read; what
cannot be told is taken to be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from traindx_tools.on_logs.run import Run

_TRACES: dict[str, str] = {
    "adversarial": r"discriminator|generator_loss|adversar|critic|\bw?gans?\b|(?<![a-z])gan(?![a-z])|\bd_loss|\bg_loss|"
                   r"loss_[dg]\b|gradient.penalty",
    "reinforcement": r"reward|advantage|episode|polic(?:y|ies)|rollout|\bppo|\bgrpo|\bdpo|\breinforce|env\.step",
    "codebook": r"codebook|quanti[sz]er|quanti[sz]ation|\bvq|commitment|n_codes|used_codes",
    "latent": r"\bkl\b|kld|kl_|\belbo|\bvae|posterior|latent|reparam",
    "diffusion": r"diffusion|denois|noise_sched|add_noise|alphas?_(?:cum|bar)|\bddpm|\bddim|eps_(?:pred|mse)|timestep",
    "tokens": r"token|vocab|lm_head|causal|\bgpt|llama|\bbert|language.?model|perplexity|\bppl\b|input_ids|"
              r"\bcharacters?\b|\bchars?\b|\btexts?\b|transformer|next_(?:char|word)|nn\.embedding|seq_?len|block_size",
    "jax": r"\bjax\b|\bflax\b|\boptax\b|\bjnp\b|\bxla\b",
}
DOMAINS = frozenset(_TRACES)
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _TRACES.items()}
_MOST = 400_000
"""Characters of a file of code that are looked at."""
_ENVIRONMENT = re.compile(r"\bep_?(?:rew|len|ret)|episod|env_?steps?\b|total_timesteps", re.I)
"""A policy that acts in an environment, by the names of its metrics: it reads no tokens unless something says so."""
_FRAMEWORK = re.compile(r"\btorch\b|\btensorflow\b|\bkeras\b|\bcuda\b", re.IGNORECASE)


def domains_of(run: Run, code: Iterable[Path] = (), symptom: str = "") -> frozenset[str]:
    """The special parts that something of the run speaks of. Files that cannot be read speak of nothing."""
    told, texts = texts_of(run, code, symptom)
    found = {name for name, pattern in _PATTERNS.items() if any(pattern.search(t) for t in (*told, *texts))}
    if not texts and not any(_ENVIRONMENT.search(t) for t in told):
        found.add("tokens")  # a log of losses alone does not say what they are of
    if not texts and not any(_FRAMEWORK.search(t) for t in told):
        found.add("jax")  # a log alone seldom says what wrote it
    return frozenset(found)


def texts_of(run: Run, code: Iterable[Path], symptom: str) -> tuple[list[str], list[str]]:
    """What the run and the person tell in texts, and the beginnings of the code files that can be read."""
    told = [symptom[:4_000], *(s.original for s in run.series), *(s.name for s in run.series),
            *(f"{e.type} {e.message[:400]}" for e in run.errors), *(f.file for e in run.errors for f in e.frames),
            *(n.text for n in run.notes), *(f"{k} {v}"[:200] for k, v in run.config.items())]
    told = [switched_on(t.replace("/", " / ")) for t in told]
    return told, [_text(path) for path in code]


_OFF = re.compile(r"(?<![\w.-])[\w.-]+['\"]?\s*(?:(?:\.{2,}|[:=])\s*['\"]?(?:false|none|null|off)\b|\s(?:false|none)$)",
                  re.IGNORECASE)


def switched_on(text: str) -> str:
    """A text of a log without the settings that are off: "bf16 ..... False" speaks of no bf16."""
    return _OFF.sub(" ", text)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST)
    except OSError:
        return ""
