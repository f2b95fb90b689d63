import lightning as L
import torch
import torch.nn.functional as F
from torch import nn


class AttnPool(nn.Module):
    """weights every frame by a learned relevance and sums over time"""

    def __init__(self, dim, hidden=24):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, frames, valid):
        s = self.score(frames)
        s = s.masked_fill(~valid[..., None], -1e4)
        alpha = torch.softmax(s, dim=-1)
        return (alpha * frames).sum(dim=1), alpha.squeeze(-1)


class KeywordNet(L.LightningModule):
    def __init__(self, n_mels, n_words, width=32, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.frontend = nn.Sequential(nn.Conv1d(n_mels, width, 5, padding=2), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1), nn.ReLU())
        self.pool = AttnPool(width)
        self.out = nn.Linear(width, n_words)

    def forward(self, mel, valid):
        frames = self.frontend(mel.transpose(1, 2)).transpose(1, 2)
        pooled, alpha = self.pool(frames, valid)
        return self.out(pooled), alpha

    def _shared(self, batch, stage):
        mel, valid, word = batch
        logits, alpha = self(mel, valid)
        loss = F.cross_entropy(logits, word)
        acc = (logits.argmax(-1) == word).float().mean()
        self.log(f"{stage}/loss", loss, on_step=False, on_epoch=True, batch_size=len(word))
        self.log(f"{stage}/acc", acc, on_step=False, on_epoch=True, batch_size=len(word))
        if stage == "val":
            self.log("val/attn_mass", alpha.sum(1).mean(), batch_size=len(word))
        return loss

    def training_step(self, batch, _):
        return self._shared(batch, "train")

    def validation_step(self, batch, _):
        self._shared(batch, "val")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
