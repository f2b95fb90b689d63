"""Cell type classification, SGD with the classic 30/60/80 percent step decay, Keras 3 (torch backend)."""
import os

os.environ["KERAS_BACKEND"] = "torch"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import numpy as np

EPOCHS, BATCH, LR0 = 15, 128, 0.02


def cells(n, seed):
    rng = np.random.default_rng(123)
    centre = rng.normal(size=(7, 30))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 7, n)
    x = 0.6 * centre[y] + rng.normal(size=(n, 30))
    return x.astype("float32"), y


def schedule(epoch, lr):
    drops = sum(epoch >= m for m in (5, 9, 12))
    return LR0 * 0.1 ** drops


def build():
    inp = keras.Input((30,))
    h = keras.layers.Dense(64, activation="relu")(inp)
    h = keras.layers.Dense(32, activation="relu")(h)
    return keras.Model(inp, keras.layers.Dense(7)(h))


def main():
    keras.utils.set_random_seed(3)
    model = build()
    model.compile(optimizer=keras.optimizers.SGD(LR0, momentum=0.9), metrics=["sparse_categorical_accuracy"],
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(*cells(4000, 1), validation_data=cells(500, 2), epochs=EPOCHS, batch_size=BATCH, verbose=2,
              callbacks=[keras.callbacks.LearningRateScheduler(schedule, verbose=1), keras.callbacks.CSVLogger("metrics.csv")])


if __name__ == "__main__":
    main()
