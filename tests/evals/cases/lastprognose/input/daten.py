import numpy as np
import torch
from torch.utils.data import Dataset

FENSTER = 48


class Skalierer:
    def fit(self, a):
        self.mittel, self.streuung = float(a.mean()), float(a.std())
        return self

    def transform(self, a):
        return (a - self.mittel) / self.streuung

    def fit_transform(self, a):
        return self.fit(a).transform(a)

    def zurueck(self, a):
        return a * self.streuung + self.mittel


def netzlast(tage=420, seed=3):
    """Stuendliche Last eines Verteilnetzes in MW: Tagesgang, Wochengang, Zubau."""
    rng = np.random.default_rng(seed)
    h = np.arange(tage * 24)
    tagesgang = 60 * np.sin(2 * np.pi * (h % 24 - 7) / 24)
    woche = -35.0 * ((h // 24) % 7 >= 5)
    zubau = 140.0 / (1 + np.exp(-(h / 24 - 300) / 25))
    return 400 + tagesgang + woche + zubau + rng.normal(0, 6, len(h))


class LastFenster(Dataset):
    def __init__(self, werte):
        self.werte = torch.tensor(werte, dtype=torch.float32)

    def __len__(self):
        return len(self.werte) - FENSTER - 1

    def __getitem__(self, i):
        return self.werte[i : i + FENSTER], self.werte[i + FENSTER]


def aufteilen():
    last = netzlast()
    schnitt = int(0.8 * len(last))
    lern, pruef = last[:schnitt], last[schnitt:]
    skal = Skalierer()
    lern_z = skal.fit_transform(lern)
    pruef_z = Skalierer().fit_transform(pruef)
    return LastFenster(lern_z), LastFenster(pruef_z), pruef, skal
