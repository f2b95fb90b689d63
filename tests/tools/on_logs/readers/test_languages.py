"""Logs whose names are in other languages, and tables that frame or wrap theirs."""

from __future__ import annotations

import pytest

from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.readers.languages import in_english
from traindx_tools.on_logs.readers.names import identify


def read(text: str) -> Run:
    return read_run(["-"], stdin=text.encode())


def told(run: Run) -> dict[str, list[float]]:
    return {str(s): s.values.tolist() for s in run.series}


LINES = {
    "German": "Schritt {s:4d} von 500 | Verlust {loss} | Lernrate 1e-04 | Gradientennorm 0.5",
    "French": "[étape {s}] perte : {loss} | taux d'apprentissage : 1e-04 | norme du gradient : 0.5",
    "Spanish": "Paso {s} de 500 - pérdida: {loss} - tasa de aprendizaje: 1e-04 - norma del gradiente: 0.5",
    "Portuguese": "passo={s} perda={loss} taxa de aprendizado=1e-04 norma do gradiente=0.5",
    "Russian": "шаг {s} из 500, потери {loss}, скорость обучения 1e-04, норма градиента 0.5",
    "Chinese": "2026-11-28 10:00:00 [INFO] 步数：{s}，损失：{loss}，学习率：1e-04，梯度范数：0.5",
    "Japanese": "ステップ {s}: 損失 {loss} 学習率 1e-04 勾配ノルム 0.5",
}


@pytest.mark.parametrize("language", LINES)
def test_the_names_of_a_step_are_read_in(language: str) -> None:
    run = read("\n".join(LINES[language].format(s=20 * i, loss=2.5 - i / 10) for i in range(1, 9)))
    assert set(told(run)) == {"loss", "learning_rate", "grad_norm"}
    assert run.loss is not None
    assert run.loss.step.tolist() == [20.0 * i for i in range(1, 9)]
    assert run.loss.values[0] == 2.4
    assert run.loss.original != "loss", "what was written is kept"


EPOCHS = {
    "German": "Epoche {e}/9: Trainingsverlust = {t}, Validierungsverlust = {v}",
    "Spanish": "Época {e} de 9 - pérdida de entrenamiento: {t} - pérdida de validación: {v}",
    "Russian": "Эпоха {e} из 9: потери на обучении {t}; потери на валидации {v}",
    "Chinese": "第 {e}/9 轮：训练损失={t}，验证损失={v}",
    "Korean": "에포크 {e}/9 | 훈련 손실: {t} | 검증 손실: {v}",
}


@pytest.mark.parametrize("language", EPOCHS)
def test_both_groups_and_the_end_of_the_epochs_are_read_in(language: str) -> None:
    run = read("\n".join(EPOCHS[language].format(e=e, t=3 - e / 10, v=3 - e / 20) for e in range(1, 8)))
    assert set(told(run)) == {"loss", "validation loss"}
    assert run.loss is not None
    assert run.loss.epoch.tolist() == list(range(1, 8))
    assert (run.planned_steps, run.planned_unit) == (9, "epoch")


def test_a_resume_is_understood_in_other_languages() -> None:
    run = read("Schritt 1 | Verlust 2.0\n== fortgesetzt bei Schritt 1 ==\nSchritt 2 | Verlust 1.9\n")
    assert [n.kind for n in run.notes] == ["resume"]


@pytest.mark.parametrize("name", ["loss", "train/loss", "media", "lot", "rate", "step_time", "passthrough", "verlusty"])
def test_english_names_stay(name: str) -> None:
    assert in_english(name) == name


def test_a_possessive_is_no_word_of_the_name() -> None:
    assert (identify("valid's recall").canonical, identify("valid's recall").group) == ("recall", "validation")


FRAMED = """\
         orchard
┏━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━┓
┃       ┃ train   ┃ validation ┃
┃ Ep    ┃ bce     ┃ F1         ┃
┡━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━┩
│ 1     │ 0.7     │ 0.10       │
│ 2     │ 0.6     │ 0.20       │
│ 3     │ 0.5     │ 0.30       │
└───────┴─────────┴────────────┘
"""


def test_a_framed_table_with_wrapped_names_is_read() -> None:
    run = read(FRAMED)
    assert told(run) == {"loss": [0.7, 0.6, 0.5], "validation f1": [0.1, 0.2, 0.3]}
    assert run.series[0].epoch.tolist() == [1, 2, 3]


def test_columns_under_a_counter_are_read_whatever_they_are_called() -> None:
    run = read("  upd   fit_err/n   out(std)\n" + "".join(f"{45 * i:5d} {2 - i / 20:11.5f} 2.39e-07\n"
                                                        for i in range(1, 12)))
    assert [len(s) for s in run.series] == [11, 11]
    assert run.series[0].step[-1] == 495


def test_a_table_of_data_is_not_read_as_columns_under_a_counter() -> None:
    run = read("age income label\n23 1000 1\n24 1100 0\n25 1200 1\n31 900 0\n")
    assert run.series == ()


def test_a_process_number_at_the_head_of_its_lines_is_no_step() -> None:
    run = read("\n".join(f"[29667] recon={1 - i / 50:.4f} |e|=0.04" for i in range(20)))
    assert run.series[0].unit == "line"
    counted = read("\n".join(f"[{20 * i}] recon={1 - i / 50:.4f}" for i in range(20)))
    assert counted.series[0].unit == "step"


@pytest.mark.parametrize("line", ["step {s} loss 1.2 grad_norms: [1.9e-09, 5.6e-07, 0.07] lr 0.1",
                                  "step {s} | loss 1.2 | grad norms: 1.9e-09 5.6e-07 0.07 | lr 0.1"])
def test_norms_in_a_row_are_the_layers(line: str) -> None:
    run = read("\n".join(line.format(s=s) for s in range(1, 9)))
    assert {s.name: s.values[-1] for s in run.series} == {
        "loss": 1.2, "grad_norm/0": 1.9e-09, "grad_norm/1": 5.6e-07, "grad_norm/2": 0.07, "learning_rate": 0.1}


def test_a_number_behind_a_norm_is_no_layer() -> None:
    run = read("\n".join(f"step {s} loss 1.2 grad_norm=0.5 12.5" for s in range(1, 9)))
    assert {s.name for s in run.series} == {"loss", "grad_norm"}


def with_commas(number: float) -> str:
    return f"{number:.4f}".replace(".", ",")


def test_decimal_commas_are_read_as_what_they_are() -> None:
    losses = [2.4483 - i * 0.0987 for i in range(20)]
    run = read("\n".join(f"2026-11-28 10:00:{i:02d},123 Epoche {i}: Verlust {with_commas(y)} Genauigkeit "
                         f"{with_commas(0.1 + i / 50)}" for i, y in enumerate(losses)))
    assert told(run)["loss"] == pytest.approx(losses, abs=1e-4)
    assert told(run)["accuracy"][-1] == 0.48


def test_decimal_commas_in_columns_with_semicolons() -> None:
    run = read("étape;perte;exactitude\n" + "".join(f"{i};{with_commas(1.234 - i / 50)};{with_commas(i / 50)}\n"
                                                    for i in range(20)))
    assert told(run)["loss"][0] == 1.234


@pytest.mark.parametrize("line", ["[1,{i}] loss: 0.5{i} seen 12,000", "step {i} gpus 0,1 loss 0.5{i}",
                                  "10:00:00,{i} step {i} betas=0.9,0.999 loss 0.5{i}"])
def test_commas_that_are_none_stay(line: str) -> None:
    run = read("\n".join(line.format(i=i) for i in range(10, 30)))
    assert told(run)["loss"] == [float(f"0.5{i}") for i in range(10, 30)]
