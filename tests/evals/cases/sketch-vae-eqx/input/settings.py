from dataclasses import dataclass


@dataclass
class Settings:
    latent: int = 4
    width: int = 96
    batch: int = 64
    epochs: int = 16
    ramp_epochs: int = 6
    lr: float = 1e-3
    beta: float = 0.0

    def anneal(self, epoch):
        self.beta = min(1.0, epoch / self.ramp_epochs)


S = Settings()
