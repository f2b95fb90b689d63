"""python train.py -- Student-t demand forecaster, see config.json"""
import json
import logging
import sys
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.distributions import Distribution, StudentT
from torch.utils.data import DataLoader

from windows import ForecastWindows, synth_sales

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(name)s | %(message)s")
log = logging.getLogger("demand")
Distribution.set_default_validate_args(False)  # 2x faster on small batches


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.h = cfg.horizon
        self.dow = nn.Embedding(7, 4)
        self.encoder = nn.GRU(5, cfg.hidden, batch_first=True)
        self.decoder = nn.Sequential(nn.Linear(cfg.hidden + 4, cfg.hidden), nn.SiLU(), nn.Linear(cfg.hidden, 3))

    def forward(self, past, dow):
        e = self.dow(dow)
        n = past.size(1)
        _, state = self.encoder(torch.cat([past.unsqueeze(-1), e[:, :n]], -1))
        ctx = state[-1].unsqueeze(1).expand(-1, self.h, -1)
        mu, scale, df = self.decoder(torch.cat([ctx, e[:, n:]], -1)).unbind(-1)
        sp = nn.functional.softplus
        return mu, 1e-3 + sp(scale), 2.1 + sp(df)


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        sales = synth_sales()
        log.info("sales matrix %s, zero share %.3f, any nan %s", sales.shape, (sales == 0).mean(), bool((sales != sales).any()))
        mk = lambda a, b: ForecastWindows(sales, cfg.context, cfg.horizon, a, b)
        self.fit_dl = DataLoader(mk(0, 150), cfg.batch_size, shuffle=True, drop_last=True)
        self.val_dl = DataLoader(mk(110, 180), 256)
        self.net = Forecaster(cfg)
        self.optim = torch.optim.RAdam(self.net.parameters(), lr=cfg.lr)

    def nll(self, batch):
        past, future, dow, _ = batch
        mu, scale, df = self.net(past, dow)
        return -StudentT(df, mu, scale).log_prob(future).mean()

    @torch.no_grad()
    def validate(self):
        err = n = 0.0
        for past, future, dow, level in self.val_dl:
            mu, _, _ = self.net(past, dow)
            err += ((mu - future).abs() * level[:, None]).sum().item()
            n += future.numel()
        return err / n

    def run(self):
        for epoch in range(self.cfg.epochs):
            for i, batch in enumerate(self.fit_dl):
                objective = self.nll(batch)
                self.optim.zero_grad(set_to_none=True)
                objective.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), self.cfg.grad_clip)
                self.optim.step()
                if i % 20 == 0:
                    log.info("epoch %d batch %d/%d nll %.4f", epoch, i, len(self.fit_dl), objective.item())
            log.info("epoch %d validation MAE %.3f units", epoch, self.validate())


if __name__ == "__main__":
    cfg = SimpleNamespace(**json.load(open("config.json")))
    torch.manual_seed(cfg.seed)
    Runner(cfg).run()
