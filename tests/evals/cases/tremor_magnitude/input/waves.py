import numpy as np

N_SAMPLES = 128


def synth_event(mag, rng):
    """Seismogram (single vertical channel): P onset, S onset, coda, noise."""
    t = np.arange(N_SAMPLES) / 20.0
    p_at = rng.uniform(0.6, 1.2)
    s_at = p_at + rng.uniform(1.0, 2.0)
    corner = 4.5 - 0.6 * mag
    trace = rng.normal(0, 0.08, N_SAMPLES)
    for onset, gain in ((p_at, 0.35), (s_at, 1.0)):
        dt = np.clip(t - onset, 0, None)
        env = np.where(t > onset, dt * np.exp(-dt * (2.6 - 0.35 * mag)), 0)
        trace += gain * env * np.sin(2 * np.pi * corner * dt + rng.uniform(0, 0.5)) * 10 ** (0.25 * (mag - 3))
    return trace


def catalogue(n, seed):
    rng = np.random.default_rng(seed)
    mags = 2.0 + rng.gamma(2.0, 0.55, n).clip(0, 3.5)
    x = np.stack([synth_event(m, rng) for m in mags])
    return x.astype(np.float32), mags.astype(np.float32)
