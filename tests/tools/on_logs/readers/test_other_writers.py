"""Prints of writers that have habits of their own: each number under its name, in its group, at its step."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.on_logs import Run, Series, read_run


def read(text: str) -> Run:
    return read_run(["-"], stdin=text.encode())


def one(run: Run, name: str, group: str = "train") -> Series:
    found = [s for s in run.series if (s.name, s.group) == (name, group)]
    assert len(found) == 1, [(s.name, s.group, len(s)) for s in run.series]
    return found[0]


def test_xgboost_is_a_log_and_no_table() -> None:
    run = read("".join(f"[{i}]\ttrain-logloss:{0.6 - i / 100:.5f}\teval-logloss:{0.65 - i / 100:.5f}\n"
                       for i in range(9)))
    assert one(run, "loss").values[0] == 0.6
    assert one(run, "loss", "validation").step.tolist() == list(range(9))


def test_every_box_keeps_the_sections_of_its_names() -> None:
    box = "-----\n| rollout/ | |\n|    ep_rew_mean | {r} |\n| train/ | |\n|    loss | 0.5 |\n" \
          "| time/ | |\n|    total_timesteps | {t} |\n-----\n"
    run = read("".join(box.format(r=i * 1.5, t=i * 2048) for i in range(1, 6)))
    assert one(run, "reward").original == "rollout/ep_rew_mean"
    assert one(run, "reward").step.tolist() == [2048 * i for i in range(1, 6)]


def test_spacy_heads_two_word_columns_with_one_blank() -> None:
    run = read("E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n"
               "---  ------  ------------  --------  ------  ------  ------  ------\n"
               "  0       0          0.00     52.30    0.30    0.20    0.60    0.00\n"
               "  0     200         81.23   1871.21   41.20   42.00   40.40    0.41\n"
               "  1     400         75.10    512.90   63.10   65.00   61.30    0.63\n")
    assert one(run, "loss/ner").values.tolist() == [52.3, 1871.21, 512.9]
    assert one(run, "loss/ner").step.tolist() == [0, 200, 400]
    assert not any(s.name == "reward" for s in run.series)
    assert {s.group for s in run.series if "ENTS" in s.original} == {"validation"}


def test_paddle_costs_are_times() -> None:
    run = read("".join(f"[2026/03/02 12:00:{i:02d}] ppocr INFO: epoch: [1/10], global_step: {i * 10}, lr: 0.001000, "
                       f"loss: {9 - i / 2}, avg_reader_cost: 0.00120 s, avg_batch_cost: 0.21000 s, avg_samples: 64.0, "
                       "ips: 301.12 samples/s, eta: 0:04:10\n" for i in range(8)))
    assert one(run, "data_time").values[0] == 0.0012
    assert one(run, "step_time").values[0] == 0.21
    assert one(run, "loss").values[0] == 9


def test_a_number_that_begins_within_a_word_is_none() -> None:
    run = read("".join(f"ep{i:02d} lr5e-04 | trn {0.7 - i / 100:.4f} | dev 0.6800\n" for i in range(1, 8)))
    assert not any(s.name == "learning_rate" for s in run.series)
    assert one(run, "loss").values[0] == 0.69


def test_a_test_line_says_its_group_and_its_epoch() -> None:
    run = read("".join(f"Test: [{i}] Acc@1 {70 + i:.3f} Acc@5 90.100 Loss {1 - i / 10:.4f}\n" for i in range(5)))
    assert one(run, "accuracy", "test").values[0] == 70
    assert one(run, "loss", "test").values.tolist() == pytest.approx([1, 0.9, 0.8, 0.7, 0.6])
    assert {s.group for s in run.series} == {"test"}


def test_a_count_of_rows_is_no_loss() -> None:
    run = read("train: 6000 rows, 55 positive\n" + "".join(f"epoch {i} | train_loss {0.7 - i / 50:.4f}\n"
                                                           for i in range(6)))
    assert one(run, "loss").values.max() < 1


def test_ultralytics_measures_on_the_validation_set() -> None:
    run = read("epoch,train/box_loss,metrics/precision(B),metrics/mAP50-95(B),val/box_loss,lr/pg0\n"
               + "".join(f"{i},{1.5 - i / 10},{0.5 + i / 50},0.3,{1.6 - i / 10},0.01\n" for i in range(6)))
    assert one(run, "precision", "validation").values[0] == 0.5
    assert one(run, "map50_95", "validation").values[0] == 0.3


def test_the_adversaries_of_the_first_gan_tutorials() -> None:
    run = read("".join(f"iteration {i} errD={1.3 - i / 100:.4f} errG={0.7 + i / 100:.4f}\n" for i in range(9)))
    assert one(run, "discriminator_loss").values[0] == 1.3
    assert np.isfinite(one(run, "generator_loss").step).all()


def test_catboost_counts_seconds_that_are_no_loss() -> None:
    run = read("\n".join(f"{i}:\tlearn: {0.7 - i / 2000:.7f}\ttest: {0.72 - i / 2000:.7f}\tbest: 0.45 ({i})\t"
                         f"total: {i * 3}ms\tremaining: 3.2s" for i in range(0, 400, 20)))
    assert one(run, "loss").original == "learn"
    assert one(run, "loss", "test").values[0] == 0.72
    assert one(run, "time/total").values[-1] == pytest.approx(1.14)
    assert run.loss is not None
    assert run.loss.name == "loss"


def test_composer_names_perplexity_and_throughput_its_own_way() -> None:
    run = read("\n".join(f"[epoch=1][batch={b}/200]:\n\t Train LanguagePerplexity: {90 - b / 10:.2f}\n\t"
                         f" Train loss/train/total: {4 - b / 100:.4f}\n\t Train throughput/batches_per_sec: 1.9"
                         for b in range(10, 110, 10)))
    assert {s.name for s in run.series} == {"perplexity", "loss", "throughput"}
    assert one(run, "loss").step.tolist() == list(range(10, 110, 10))


def test_espnet_writes_the_epoch_before_its_word() -> None:
    run = read("\n".join(f"[host] 2026-11-28 10:00:00,001 (trainer:779) INFO: {1 + i // 5}epoch:train:{i % 5 * 50 + 1}-"
                         f"{i % 5 * 50 + 50}batch: iter_time=0.002, loss={70 - i:.3f}, acc=0.{10 + i}, optim0_lr0=1e-04"
                         for i in range(20)))
    assert one(run, "loss").epoch.tolist() == [1.0 + i // 5 for i in range(20)]
    assert {s.name for s in run.series} == {"step_time", "loss", "accuracy", "learning_rate"}


def test_the_table_of_the_evaluation_is_no_row_of_the_training_s() -> None:
    run = read("Epoch  GPU_mem  box_loss  cls_loss  Instances  Size\n" + "".join(
        f"{i}/9  3.5G  {2.5 - i / 20:.3f}  {3.5 - i / 10:.3f}  30  640: 100%|####| 20/20 [00:05<00:00, 3.8it/s]\n"
        f"all  128  929  0.{600 + i}  0.{500 + i}  0.{550 + i}\n" for i in range(1, 9)))
    assert one(run, "loss/box").values.max() < 2.5
    assert one(run, "loss/box").epoch.tolist() == list(range(1, 9))


@pytest.mark.parametrize("where", ["__main__:<module>:11", "src.trainer:fit.<locals>.step:45", "train:<lambda>:7",
                                   "__main__:train:118"])
def test_the_line_of_the_program_in_a_prefix_of_loguru_is_no_metric(where: str) -> None:
    before = f"2026-12-03 07:21:26.850 | INFO     | {where} - "
    text = "".join(f"{before}step {i} | loss {2 - i / 9:.4f}\n" for i in range(9))
    loss, = read_run(["-"], stdin=text.encode()).series
    assert (loss.name, loss.step.tolist(), loss.values[1]) == ("loss", list(range(9)), 1.8889)


@pytest.mark.parametrize("before", ["2026-12-03 07:21:26.850 | ", "[INFO] ", "07:21:26 - ", ""])
@pytest.mark.parametrize("counter", ["step", "Iter", "global_step"])
def test_a_counter_behind_a_clock_is_no_place_of_a_program(before: str, counter: str) -> None:
    text = "".join(f"{before}{counter}:{i} - loss: {2 - i / 9:.4f}\n" for i in range(9))
    loss, = read_run(["-"], stdin=text.encode()).series
    assert loss.step.tolist() == list(range(9))
