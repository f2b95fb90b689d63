"""Words of other languages for what a log names: a script prints "Verlust" or "损失", others "loss".

Only names are put into English; what a line says beyond them stays as it is. Words that are ordinary English ones, or
that mean several things in a log, are left out.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache

_WORDS: dict[str, str] = {
    # what counts
    "step": "schritt trainingsschritt étape etape paso passo stap krok adım шаг шага 步 步数 步數 步骤 "
            "ステップ ステップ数 스텝 단계",
    "iteration": "itération iteración iteracion iteração iteracao iterazione iteratie итерация итер 迭代 迭代次数 反復 "
                 "イテレーション 반복",
    "epoch": "epoche époque epoque época epoca epok эпоха эпохи 轮次 轮数 轮 輪次 周期 エポック 에포크 에폭",
    "batch": "партия батч 批次 バッチ 배치",
    # on which data
    "train": "trainings entraînement entrainement apprentissage entrenamiento treino treinamento addestramento "
             "allenamento обучение обуч трейн трен 训练 訓練 訓練データ 训练集 学習データ 훈련",
    "val": "validierung validierungs validación validacion validação validacao validazione валидация валид вал 验证 "
           "驗證 验证集 検証 検証データ 검증",
    "test": "prueba teste тест тестовая 测试 測試 测试集 テスト 테스트",
    # what is measured
    "loss": "verlust verlustwert verlustfunktion kosten zielfunktion perte pertes coût pérdida perdida perda perdita "
            "verlies потери потеря лосс убыток 损失 損失 损失值 损失函数 손실 손실값 coste kayıp",
    "accuracy": "genauigkeit trefferquote treffergenauigkeit exactitude exactitud exatidão acurácia acuracia "
                "accuratezza nauwkeurigheid dokładność точность 准确率 準確率 精度 正确率 正解率 정확도 doğruluk",
    "error": "fehler fehlerrate erreur errore ошибка 错误率 誤差 误差 오차",
    "learning rate": "lernrate lernschrittweite leersnelheid 学习率 學習率 学習率 학습률",
    "step size": "schrittweite",
    "grad norm": "gradientennorm gradientnorm 梯度范数 梯度範數 勾配ノルム",
    "perplexity": "perplexität perplexitaet perplexité perplejidad perplexidade perplessità перплексия 困惑度",
    "reward": "belohnung récompense recompense recompensa ricompensa награда 奖励 獎勵 報酬 보상",
    "entropy": "entropie entropía entropia энтропия 熵 エントロピー 엔트로피",
    "memory": "speicher speicherverbrauch arbeitsspeicher mémoire memoria память 显存 内存 顯存 メモリ 메모리",
    "recall": "rappel 召回率 再現率 재현율 полнота",
    "mean": "mittlerer mittlere durchschnittlicher durchschnittliche durchschnitt moyenne moyen média médio "
            "средний средняя 平均",
    "throughput": "durchsatz débit пропускная 吞吐量",
    "mean squared error": "均方误差 均方誤差 平均二乗誤差",
}
_PHRASES: dict[str, tuple[str, ...]] = {
    "learning rate": ("taux d'apprentissage", "taux d’apprentissage", "tasa de aprendizaje", "taxa de aprendizado",
                      "taxa de aprendizagem", "tasso di apprendimento", "скорость обучения", "öğrenme oranı"),
    "grad norm": ("norme du gradient", "norme des gradients", "norma del gradiente", "norma do gradiente",
                  "norma gradiente", "норма градиента", "기울기 노름"),
    "train": ("d'entraînement", "d’entraînement", "d'entrainement", "de entrenamiento", "de treino", "de treinamento",
              "di addestramento", "на обучении"),
    "val": ("de validation", "de validación", "de validacion", "de validação", "di validazione", "на валидации"),
    "test": ("de prueba", "de teste", "на тесте"),
}
"""Phrases of several words."""
_COMPOUND = {"trainings": "train", "validierungs": "val", "evaluierungs": "val", "test": "test"}
_HEADS = {"verlust": "loss", "fehler": "error", "genauigkeit": "accuracy", "kosten": "loss"}
"""German writes both as one word: "Trainingsverlust"."""
COUNTED_OF = ("von", "de", "sur", "di", "van", "из")
"""Words between a count and its end: "20 von 600"."""

RESUME_WORDS = ("fortgesetzt", "fortsetzung", "wiederaufnahme", "wieder aufgenommen", "wiederaufgenommen", "reprise",
                "reanud", "retomad", "retomando", "ripresa", "ripreso", "возобновл", "恢复训练", "继续训练", "断点",
                "再開", "재개")
"""How other languages say that a run goes on from a checkpoint, in lower case."""
RESUMED = "|".join(map(re.escape, RESUME_WORDS))

_ENGLISH = {
    **{word: english for english, words in _WORDS.items() for word in words.split()},
    **{phrase: english for english, phrases in _PHRASES.items() for phrase in phrases},
    **{first + second: f"{_COMPOUND[first]} {_HEADS[second]}"
       for first, second in itertools.product(_COMPOUND, _HEADS)},
}
_OWN_BOUNDARIES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that write words without blanks between them."""


def _pattern(phrase: str) -> str:
    if _OWN_BOUNDARIES.match(phrase):
        return re.escape(phrase)
    return rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])"


_ANY = re.compile("|".join(_pattern(p) for p in sorted(_ENGLISH, key=len, reverse=True)), re.IGNORECASE)
_RUN = re.compile(r"[^\W_]+")
_FIRST = frozenset(_RUN.findall(p)[0].translate({ord("ı"): "i"}).lower() for p in _ENGLISH)
"""What each phrase begins with; a name in ASCII that holds none of these holds no phrase ("ı" is "I" in lower case)."""
_SIGNS = str.maketrans({"：": ":", "，": ",", "；": ";", "（": "(", "）": ")", "＝": "=", "｜": "|", "、": ",",
                        "％": "%", "【": "[", "】": "]", "\u3000": " ", "\u00a0": " ", "\u202f": " "})
_BEHIND = re.compile(r"^\s*(轮次|轮|輪|エポック目?|에포크|步|ステップ目?|스텝|次迭代|回目|epoch(?=:))")
"""Counters that stand behind their number: "第 3 轮", and "3epoch:train:" of ESPnet."""
_BEFORE = re.compile(r"第\s*$|(?:^|[\[(|,;:])\s*$")


@lru_cache(maxsize=8192)
def in_english(name: str) -> str:
    """A name with its words put into English where they are known in another language."""
    if not any(not w.isascii() or w.lower() in _FIRST for w in _RUN.findall(name)) or not _ANY.search(name):
        return name
    return " ".join(_ANY.sub(lambda m: f" {_ENGLISH.get(m.group().lower(), m.group())} ", name).split())


def plain_signs(text: str) -> str:
    """The text with full-width signs as their plain ones: colons, commas, brackets, blanks."""
    return text if text.isascii() else text.translate(_SIGNS)


def counters_first(parts: list[str]) -> list[str]:
    """Text and numbers in turn, with a counter that stands behind its number before it: "第 3 轮" as "轮 3"."""
    if not any(_BEHIND.match(p) for p in parts[2::2]):
        return parts
    moved = list(parts)
    for at in range(1, len(moved) - 1, 2):
        behind, first = _BEHIND.match(moved[at + 1]), at
        if behind and at >= 3 and moved[at - 1].strip() == "/":  # "第 3/10 轮"
            first = at - 2
        if behind and _BEFORE.search(moved[first - 1]):
            moved[first - 1] = f"{_BEFORE.sub('', moved[first - 1])} {behind.group(1)} "
            moved[at + 1] = moved[at + 1][behind.end():] or " "
    return moved
