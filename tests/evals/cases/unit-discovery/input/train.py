"""Discover discrete units in synthetic phone-like frames (wav2vec-style quantizer, reconstruction objective)."""
import math

import torch
import torch.nn as nn

from quantizer import GumbelUnits

FRAMES, FEATS, PHONES = 20, 24, 30
LOSS_WEIGHTS = {"diversity": 3.0, "features_pen": 1e-3}


def utterances(n, prototypes):
    dur = torch.randint(0, 2, (n, FRAMES))
    phones = torch.randint(0, PHONES, (n, FRAMES))
    for t in range(1, FRAMES):  # phones last one to three frames
        phones[:, t] = torch.where(dur[:, t] == 1, phones[:, t - 1], phones[:, t])
    return prototypes[phones] + 0.25 * torch.randn(n, FRAMES, FEATS), phones


class UnitModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(FEATS, 64), nn.GELU(), nn.Linear(64, 64), nn.LayerNorm(64))
        self.quantizer = GumbelUnits(64)
        self.dec = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, FEATS))

    def forward(self, x):
        h = self.enc(x)
        out = self.quantizer(h)
        out["features_pen"] = h.pow(2).mean()
        out["recon"] = self.dec(out["q"])
        return out

    def extra_losses(self, out):
        return {
            "diversity": out["prob_perplexity"] / out["num_vars"],
            "features_pen": out["features_pen"],
        }


def criterion(model, x):
    out = model(x)
    parts = {"mse": (out["recon"] - x).pow(2).mean()}
    loss = parts["mse"]
    for name, value in model.extra_losses(out).items():
        parts[name] = value * LOSS_WEIGHTS[name]
        loss = loss + parts[name]
    return loss, parts, out


def main(updates=500):
    torch.manual_seed(14)
    prototypes = torch.randn(PHONES, FEATS)
    model = UnitModel()
    opt = torch.optim.Adam(model.parameters(), 2e-3, betas=(0.9, 0.98))
    for num_updates in range(updates + 1):
        model.quantizer.anneal(num_updates)
        x, _ = utterances(16, prototypes)
        loss, parts, out = criterion(model, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if num_updates % 50 == 0:
            fields = {"loss": loss, **parts, "prob_perplexity": out["prob_perplexity"], "code_perplexity": out["code_perplexity"]}
            line = ", ".join(f"'{k}': '{v.item():.3f}'" for k, v in fields.items())
            print(f"{{'num_updates': {num_updates}, {line}, 'temp': '{model.quantizer.tau:.3f}', 'baseline_mse': '{x.var().item():.3f}'}}")
    model.eval()
    with torch.no_grad():
        x, phones = utterances(100, prototypes)
        code = model.quantizer.score(model.enc(x)).view(-1, 2, 24).argmax(-1)
        units = code[:, 0] * 24 + code[:, 1]
        joint = torch.zeros(PHONES, 576).index_put_((phones.flatten(), units), torch.ones(len(units)), accumulate=True)
        purity = joint.max(0).values.sum() / joint.sum()
    print(f"{len(units.unique())} distinct units used, phone purity {purity.item():.3f} (chance {1 / PHONES:.3f}, log2 phones {math.log2(PHONES):.2f})")


if __name__ == "__main__":
    main()
