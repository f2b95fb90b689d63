import numpy as np
import torch
from torch import nn

torch.manual_seed(2)
WORDS = ["yes", "no", "stop", "go"]
SR, CLIP = 8000, 4000


def pcm_clip(word, rng, gain):
    """16-bit PCM, as delivered by the recorder."""
    t = np.arange(CLIP) / SR
    f = [220, 340, 510, 760][word]
    wave = np.sin(2 * np.pi * f * t) * np.hanning(CLIP) + 0.1 * rng.standard_normal(CLIP)
    return np.clip(gain * wave, -32768, 32767).astype(np.int16)


def recordings(n, rng, loud=False):
    y = rng.integers(0, len(WORDS), n)
    gains = rng.uniform(40, 90, n)
    if loud:
        gains[rng.random(n) < 0.03] = 6000
    return np.stack([pcm_clip(w, rng, g) for w, g in zip(y, gains)]), y


def frame_features(pcm, frame=200):
    x = torch.from_numpy(pcm).half()
    frames = x.unfold(-1, frame, frame)
    energy = frames.pow(2).mean(-1, keepdim=True)
    frames = frames / (energy.sqrt() + 1)
    spec = torch.fft.rfft(frames.float()).abs()[..., 1:33]
    log_e = energy.float().add(1).log()
    return torch.cat([spec.log1p(), log_e - log_e.mean(1, keepdim=True)], -1)


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(33, 32, batch_first=True)
        self.cls = nn.Linear(32, len(WORDS))

    def forward(self, f):
        return self.cls(self.gru(f)[0].mean(1))


rng = np.random.default_rng(2)
net = Spotter()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
studio = recordings(400, rng)
field = recordings(400, rng, loud=True)
for name, (pcm, y) in (("studio", studio), ("field", field)):
    target = torch.from_numpy(y)
    print(f"--- {name}: {len(y)} clips, {pcm.dtype}, peak {np.abs(pcm.astype(int)).max()}")
    for epoch in range(2):
        for k, idx in enumerate(np.array_split(rng.permutation(len(y)), 25)):
            logits = net(frame_features(pcm[idx]))
            loss = nn.functional.cross_entropy(logits, target[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if k % 3 == 0:
                print(f"{name} e{epoch} b{k:02d} xent={loss.item():.4f} acc={(logits.argmax(1) == target[idx]).float().mean():.2f}")
