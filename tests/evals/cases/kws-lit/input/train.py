import logging
import warnings

import lightning as L
from lightning.pytorch.loggers import CSVLogger

from clips import N_MELS, N_WORDS, loaders
from model import KeywordNet

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Report(L.Callback):
    def on_validation_epoch_end(self, trainer, module):
        if trainer.sanity_checking:
            return
        m = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items() if k.startswith("val")}
        print(f"[epoch {trainer.current_epoch:02d}] {m}", flush=True)


if __name__ == "__main__":
    L.seed_everything(3)
    train_dl, val_dl = loaders()
    net = KeywordNet(N_MELS, N_WORDS)
    trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=CSVLogger("."), callbacks=[Report()], enable_progress_bar=False,
                        enable_model_summary=True, enable_checkpointing=False, log_every_n_steps=10)
    trainer.fit(net, train_dl, val_dl)
    print("train:", {k: round(float(v), 4) for k, v in trainer.callback_metrics.items() if k.startswith("train")})
