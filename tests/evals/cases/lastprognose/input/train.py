import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from daten import FENSTER, aufteilen

torch.manual_seed(8)
DURCHGAENGE = 8


class Prognose(nn.Module):
    def __init__(self, breite=64):
        super().__init__()
        self.gru = nn.GRU(1, breite, batch_first=True)
        self.kopf = nn.Linear(breite, 1)

    def forward(self, x):
        h, _ = self.gru(x.unsqueeze(-1))
        return x[:, -1] + self.kopf(h[:, -1]).squeeze(-1)


def lernschritt(netz, lader, opt):
    netz.train()
    summe = 0.0
    for x, y in lader:
        verlust = nn.functional.mse_loss(netz(x), y)
        opt.zero_grad()
        verlust.backward()
        opt.step()
        summe += verlust.item() * len(x)
    return summe / len(lader.dataset)


@torch.no_grad()
def pruefen(netz, lader, roh, skal):
    netz.eval()
    vorhersage = torch.cat([netz(x) for x, _ in lader]).numpy()
    mw = skal.zurueck(vorhersage)
    wahr = roh[FENSTER : FENSTER + len(mw)]
    fehler = mw - wahr
    return np.sqrt((fehler ** 2).mean()), np.abs(fehler / wahr).mean() * 100


def main():
    lern, pruef, roh, skal = aufteilen()
    lader = DataLoader(lern, batch_size=128, shuffle=True)
    pruef_lader = DataLoader(pruef, batch_size=256)
    netz = Prognose()
    opt = torch.optim.Adam(netz.parameters(), lr=3e-3)
    print(f"Fenster {len(lern)} / {len(pruef)}, Parameter {sum(p.numel() for p in netz.parameters())}")
    for d in range(1, DURCHGAENGE + 1):
        v = lernschritt(netz, lader, opt)
        rmse, mape = pruefen(netz, pruef_lader, roh, skal)
        lern_mw = v ** 0.5 * skal.streuung
        print(f"Durchgang {d}: Lernverlust {v:.5f} (= {lern_mw:.1f} MW), Pruef-RMSE {rmse:.1f} MW, Pruef-MAPE {mape:.1f} %")


if __name__ == "__main__":
    main()
