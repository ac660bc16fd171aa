"""Sentences about who knows the order: two sentences with the same words, and longer ones than in training."""

import numpy as np
import torch

from posviz import trained
from posviz.compare import match, outputs, weights
from posviz.encodings import make
from posviz.myths.base import NOISE, Case, Finding, Myth, not_yet, number, traces
from posviz.types import Text


def _identical(case: Case) -> Finding:
    a, b = traces("none", "none", case)
    pairs = match(a.tokens, b.tokens)
    raw = float(np.abs(a.weights - b.weights).max())
    matched = float(np.abs(weights(a, b, pairs)).max())
    pooled = float(np.abs(a.pooled - b.pooled).max())
    h, i, j = (int(n) for n in np.unravel_index(np.abs(a.weights - b.weights).argmax(), a.weights.shape))
    return Finding(
        "depends" if raw > NOISE > matched else "true" if raw < NOISE else "false",
        [
            number("largest difference of the two weight matrices as they stand", "两个权重矩阵直接相减的最大值", raw),
            number(
                "after matching the words",
                "词对齐后",
                matched,
                Text("0: the same, permuted", "0：只是换了次序"),
            ),
            number("difference of the sentence vectors", "两个句向量之差", pooled),
        ],
        Text(
            "Head {h}, row {i}, column {j}: {x} for 我爱你, {y} for 你爱我.",
            "头 {h}，第 {i} 行第 {j} 列：“我爱你”是 {x}，“你爱我”是 {y}。",
        ).filled(h=h, i=i, j=j, x=f"{a.weights[h, i, j]:.3f}", y=f"{b.weights[h, i, j]:.3f}"),
    )


def _extrapolate(case: Case) -> Finding:
    grown, best = trained.stretch("sinusoidal"), trained.stretch("alibi")
    row = make("sinusoidal").table([1_000_000], 64)
    defined = number(
        "finite cells in the row of position 1,000,000",
        "第 1,000,000 行中有限的格子数",
        int(torch.isfinite(row).sum()),
        Text("of 64: defined", "共 64 个：有定义"),
    )
    if grown is None:
        return not_yet([defined])
    numbers = [
        defined,
        number("trained twin: loss grows by, at 4 times its length", "训练好的孪生模型：长度为 4 倍时损失增加", grown),
    ]
    if best is not None:
        numbers.append(number("the same for ALiBi", "ALiBi 的同一数值", best))
    return Finding(
        "false" if grown > 0.1 else "true",
        numbers,
        Text(
            "Loss {x} nats a token higher at four times the trained length.",
            "四倍训练长度上，每个词元的损失高出 {x} nat。",
        ).filled(x=f"{grown:.3f}"),
    )


def _alibi(case: Case) -> Finding:
    gaps = {}
    for name, mask, given in (("symmetric", "none", {}), ("causal", "causal", {"causal": True})):
        a, b = traces("alibi", mask, case, **given)
        gaps[name] = outputs(a, b, match(a.tokens, b.tokens)).tokens
    return Finding(
        "depends" if gaps["symmetric"] < NOISE < gaps["causal"] else "true" if gaps["symmetric"] > NOISE else "false",
        [
            number(
                "symmetric form: difference of outputs, words matched",
                "对称形式：词对齐后输出之差",
                gaps["symmetric"],
                Text("0: it does not", "0：分不清"),
            ),
            number(
                "causal form with its mask",
                "因果形式加掩码",
                gaps["causal"],
                Text("above 0: the mask does", "大于 0：靠的是掩码"),
            ),
        ],
        Text(
            "我爱你 and 你爱我 under the symmetric form: difference {x}.", "对称形式下的“我爱你”与“你爱我”：相差 {x}。"
        ).filled(x=f"{gaps['symmetric']:.1e}"),
    )


def _nope(case: Case) -> Finding:
    gaps = {}
    for mask in ("none", "causal"):
        a, b = traces("none", mask, case)
        gaps[mask] = outputs(a, b, match(a.tokens, b.tokens)).tokens
    return Finding(
        "depends" if gaps["none"] < NOISE < gaps["causal"] else "false" if gaps["none"] > NOISE else "true",
        [
            number(
                "without a mask: difference of outputs, words matched",
                "没有掩码：词对齐后输出之差",
                gaps["none"],
                Text("0: it knows nothing", "0：什么都不知道"),
            ),
            number(
                "with the causal mask",
                "有因果掩码",
                gaps["causal"],
                Text("above 0: it can count", "大于 0：它能数出位置"),
            ),
        ],
        Text(
            "With the causal mask the first word sees one word, the last all three.",
            "有因果掩码时，第一个词只看见一个词，最后一个看见三个。",
        ),
    )


MYTHS = (
    Myth("identical", Text("Without positions, 我爱你 and 你爱我 get identical attention.", "没有位置编码时，“我爱你”和“你爱我”的注意力完全相同。"), Text("Identical up to the order of the rows and columns; a mean over words is identical outright.", "只差行列的次序；对词取平均就完全相同。"), _identical),
    Myth("extrapolate", Text("Sinusoids extrapolate, because they are defined everywhere.", "正弦编码处处有定义，所以能外推。"), Text("A formula goes on; whether the trained weights can use what they never saw is another matter.", "公式可以延伸；训练好的权重会不会用没见过的值，是另一回事。"), _extrapolate, True),
    Myth("alibi", Text("ALiBi knows left from right.", "ALiBi 分得清左右。"), Text("The penalty is for distance; direction comes from the causal mask.", "它只按远近扣分；方向来自因果掩码。"), _alibi),
    Myth("nope", Text("Without position encoding a model knows nothing about order.", "没有位置编码的模型对词序一无所知。"), Text("Under a causal mask every word sees a different number of words: that can be counted.", "有因果掩码时，每个词看见的词数不同，据此就能数出位置。"), _nope),
)  # fmt: skip
