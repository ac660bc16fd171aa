"""Popular sentences about position encodings, each put to a measurement; the verdict comes from the numbers.

A verdict is "true", "false" or "depends"; None where it needs trained models and none are shipped.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from posviz import attention, rotation, similarity, text, trained
from posviz.compare import match, outputs, weights
from posviz.encodings import make
from posviz.encodings.base import Claim
from posviz.types import Dims, Text

VERDICTS = ("true", "false", "depends")
FAR = 100_000  # positions searched for a twin of position 1
ROWS = 8192  # positions among which rows are counted
WORDS = 4096  # random words among which the nearest is looked for
PAIR = ("我爱你", "你爱我")
NOISE = 1e-9
NOTHING = Text("", "")


@dataclass(frozen=True)
class Case:
    """What the sentences are tried on: sizes, positions and base of the moment."""

    dims: Dims
    max_len: int
    base: float
    seed: int = 0


@dataclass(frozen=True)
class Finding:
    """verdict: by the numbers. numbers: two to four. example: the counter-example, with its numbers."""

    verdict: str | None
    numbers: list[Claim]
    example: Text


@dataclass(frozen=True)
class Myth:
    """A sentence, how it is tried, and one line why. needs_training: it is about trained models."""

    key: str
    sentence: Text
    why: Text
    measure: Callable[[Case], Finding]
    needs_training: bool = False


def _number(en: str, zh: str, value: float, expected: Text = NOTHING) -> Claim:
    return Claim(Text(en, zh), value, expected)


def _kernel(case: Case, length: int) -> tuple[np.ndarray, torch.Tensor]:
    """(cosine of sinusoidal positions k apart for k < length, the frequencies)."""
    frequencies = rotation.inv_freq(case.dims.d_model - case.dims.d_model % 2 or 2, case.base)
    return similarity.rope_kernel(torch.arange(length), frequencies), frequencies


def _falls(case: Case) -> Finding:
    curve, _ = _kernel(case, 2048)
    rises = similarity.rises(curve)
    if not len(rises):
        return Finding(
            "true",
            [
                _number("rises in 2,047 steps", "2,047 步里上升的次数", 0),
                _number("at distance 2,047", "距离 2,047 处", float(curve[-1])),
            ],
            Text("None within 2,048 positions for these sizes.", "按当前尺寸，2,048 个位置之内没有反例。"),
        )
    k = int(rises[0])
    return Finding(
        "false",
        [
            _number(
                "rises in 2,047 steps", "2,047 步里上升的次数", len(rises), Text("0 if it only fell", "只降不升应为 0")
            ),
            _number("first rise at distance", "第一次上升的距离", k),
        ],
        Text(
            "Cosine {a} at distance {k}, but {b} at distance {n}.", "距离 {k} 处余弦 {a}，距离 {n} 处却是 {b}。"
        ).filled(a=f"{curve[k]:.5f}", b=f"{curve[k + 1]:.5f}", k=k, n=k + 1),
    )


def _neighbours(case: Case) -> Finding:
    length = min(max(case.max_len, 4), 512)
    curve, _ = _kernel(case, length)
    sinusoidal = 1.0 if int(curve[1:].argmax()) == 0 else 0.0  # the same for every position: only distance counts
    module = make("learned").build(case.dims, length, torch.Generator().manual_seed(case.seed))
    table = similarity.matrix(module.weight.detach(), "cosine")
    np.fill_diagonal(table, -np.inf)
    nearest = table.argmax(axis=1)
    learned = float((np.abs(nearest - np.arange(length)) == 1).mean())
    p = int(np.flatnonzero(np.abs(nearest - np.arange(length)) != 1)[0]) if learned < 1 else 0
    return Finding(
        "depends" if sinusoidal == 1 and learned < 1 else "true" if learned == 1 else "false",
        [
            _number(
                "sinusoidal: share of positions whose most similar one is a neighbour",
                "正弦：最像的位置正好是邻居的比例",
                sinusoidal,
            ),
            _number("learned, untrained: the same share", "可学习（未训练）：同样的比例", learned),
        ],
        Text(
            "In the untrained table position {p} is most like position {q}.", "在未训练的表里，位置 {p} 最像位置 {q}。"
        ).filled(p=p, q=int(nearest[p])),
    )


def _coincide(case: Case) -> Finding:
    frequencies = rotation.inv_freq(case.dims.d_model - case.dims.d_model % 2 or 2, 10_000.0)
    curve = similarity.rope_kernel(torch.arange(FAR), frequencies)
    nearest = int(curve[1:].argmax()) + 1
    d = 2 * len(frequencies)
    gap = math.sqrt(max(0.0, d * (1 - float(curve[10_000]))))
    close = math.sqrt(max(0.0, d * (1 - float(curve[1]))))
    return Finding(
        "true" if gap < NOISE else "false",
        [
            _number(
                "distance of PE(1) and PE(10001)",
                "PE(1) 与 PE(10001) 的距离",
                gap,
                Text("0 if they coincided", "重合应为 0"),
            ),
            _number("distance of PE(1) and PE(2)", "PE(1) 与 PE(2) 的距离", close),
            _number(
                "within 100,000 positions the nearest other one is so far away",
                "100,000 个位置里最近的另一个相隔",
                nearest,
            ),
        ],
        Text(
            "The longest wavelength is {w} positions, not 10,000: after 10,000 positions the hands stand elsewhere.",
            "最长的波长是 {w} 个位置，不是 10,000：过了 10,000 个位置，指针并不回到原处。",
        ).filled(w=f"{float(rotation.wavelengths(frequencies).max()):,.0f}"),
    )


def _unique(case: Case) -> Finding:
    width = case.dims.d_model - case.dims.d_model % 2 or 2
    exact = make("sinusoidal", base=case.base).table(range(ROWS), width)
    rounded = exact.to(torch.bfloat16).float()
    frequencies = rotation.inv_freq(width, case.base).to(torch.bfloat16)
    coarse = (
        torch.arange(ROWS).to(torch.bfloat16)[:, None] * frequencies
    )  # angles in bfloat16, as careless code has them
    careless = torch.cat([coarse.float().sin(), coarse.float().cos()], dim=1)
    counts = [len(torch.unique(rows, dim=0)) for rows in (exact, rounded, careless)]
    whole = Text("of {n}", "共 {n} 行").filled(n=f"{ROWS:,}")
    return Finding(
        "true" if min(counts) == ROWS else "depends" if counts[0] == ROWS else "false",
        [
            _number("different rows in float64", "float64：不同的行数", counts[0], whole),
            _number("rounded to bfloat16 at the end", "最后才舍入到 bfloat16：不同的行数", counts[1], whole),
            _number("positions and angles in bfloat16", "位置和角度都用 bfloat16：不同的行数", counts[2], whole),
        ],
        Text("bfloat16 has no 257: position {a} becomes {b}.", "bfloat16 里没有 257：位置 {a} 变成 {b}。").filled(
            a=257, b=int(torch.tensor(257).to(torch.bfloat16))
        ),
    )


def _traces(name: str, mask: str, case: Case, **given: bool):
    return [attention.attend(text.tokenize(s), make(name, **given), case.dims, seed=case.seed, mask=mask) for s in PAIR]


def _identical(case: Case) -> Finding:
    a, b = _traces("none", "none", case)
    pairs = match(a.tokens, b.tokens)
    raw = float(np.abs(a.weights - b.weights).max())
    matched = float(np.abs(weights(a, b, pairs)).max())
    pooled = float(np.abs(a.pooled - b.pooled).max())
    h, i, j = (int(n) for n in np.unravel_index(np.abs(a.weights - b.weights).argmax(), a.weights.shape))
    return Finding(
        "depends" if raw > NOISE > matched else "true" if raw < NOISE else "false",
        [
            _number("largest difference of the two weight matrices as they stand", "两个权重矩阵直接相减的最大值", raw),
            _number(
                "after matching the words",
                "把词对应起来之后",
                matched,
                Text("0: the same, permuted", "0：只是换了次序"),
            ),
            _number("difference of the sentence vectors", "两个句向量之差", pooled),
        ],
        Text(
            "Head {h}, row {i}, column {j}: {x} for 我爱你, {y} for 你爱我.",
            "头 {h}，第 {i} 行第 {j} 列：我爱你是 {x}，你爱我是 {y}。",
        ).filled(h=h, i=i, j=j, x=f"{a.weights[h, i, j]:.3f}", y=f"{b.weights[h, i, j]:.3f}"),
    )


def _not_yet(numbers: list[Claim]) -> Finding:
    return Finding(
        None,
        numbers,
        Text("Not measured yet: no trained models of this kind are shipped.", "尚未测量：还没有附带这类训练好的模型。"),
    )


def _extrapolate(case: Case) -> Finding:
    grown, best = trained.stretch("sinusoidal"), trained.stretch("alibi")
    row = make("sinusoidal").table([1_000_000], 64)
    defined = _number(
        "finite cells in the row of position 1,000,000",
        "第 1,000,000 行中有限的格子数",
        int(torch.isfinite(row).sum()),
        Text("of 64: defined", "共 64 个：有定义"),
    )
    if grown is None:
        return _not_yet([defined])
    numbers = [
        defined,
        _number("trained twin: loss grows by, at 4 times its length", "训练好的孪生模型：长度为 4 倍时损失增加", grown),
    ]
    if best is not None:
        numbers.append(_number("the same for ALiBi", "ALiBi 的同一数值", best))
    return Finding(
        "false" if grown > 0.1 else "true",
        numbers,
        Text(
            "Loss {x} nats a token higher at four times the trained length.",
            "四倍训练长度上，每个词元的损失高出 {x} nat。",
        ).filled(x=f"{grown:.3f}"),
    )


def _width(case: Case) -> Finding:
    angles = {}
    for d in (16, 64, 256, 1024):
        kernel = similarity.rope_kernel(torch.tensor([1]), rotation.inv_freq(d, case.base))
        angles[d] = math.degrees(math.acos(min(1.0, float(kernel[0]))))
    better = angles[1024] > 1.2 * angles[16]
    return Finding(
        "true" if better else "false",
        [
            _number(f"d_model {d}: angle between neighbours, degrees", f"d_model {d}：相邻位置的夹角（度）", a)
            for d, a in angles.items()
        ],
        Text(
            "From 16 to 1024 dimensions the angle goes from {a}° to {b}°: more frequencies, the same mixture of fast and slow.",
            "从 16 维到 1024 维，夹角从 {a}° 变到 {b}°：频率多了，快慢的比例没变。",
        ).filled(a=f"{angles[16]:.1f}", b=f"{angles[1024]:.1f}"),
    )


def _rope_decays(case: Case) -> Finding:
    frequencies = rotation.inv_freq(128, case.base)
    at = torch.arange(1024)
    kernel, bound = similarity.rope_kernel(at, frequencies), similarity.rope_bound(at, frequencies)
    rises = similarity.rises(kernel)
    k = int(rises[0]) if len(rises) else 0
    near, far = float(bound[:32].mean()), float(bound[-32:].mean())
    return Finding(
        ("depends" if far < near else "false") if len(rises) else "true",
        [
            _number(
                "kernel: rises in 1,023 steps",
                "核：1,023 步里上升的次数",
                len(rises),
                Text("0 if it only fell", "只降不升应为 0"),
            ),
            _number("bound, mean of distances 0 … 31", "上界：距离 0 … 31 的平均", near),
            _number(
                "bound, mean of distances 992 … 1023",
                "上界：距离 992 … 1023 的平均",
                far,
                Text("this falls", "它在下降"),
            ),
        ],
        Text("The kernel is {a} at distance {k} and {b} at {n}.", "核在距离 {k} 处是 {a}，在 {n} 处是 {b}。").filled(
            a=f"{kernel[k]:.5f}", b=f"{kernel[min(k + 1, 1023)]:.5f}", k=k, n=min(k + 1, 1023)
        ),
    )


def _rope_endless(case: Case) -> Finding:
    e = case.dims.d_head - case.dims.d_head % 2 or 2
    lengths = rotation.wavelengths(rotation.inv_freq(e, case.base))
    unseen = int((lengths > case.max_len).sum())
    numbers = [
        _number(
            "pairs that make no full turn within max_len",
            "在 max_len 之内没转满一圈的维度对",
            unseen,
            Text("of {n}: beyond, their angles are new", "共 {n} 对：再往后角度是新的").filled(n=len(lengths)),
        ),
        _number("positions for a full turn of the slowest pair", "最慢的一对转一圈要多少个位置", float(lengths.max())),
    ]
    grown = trained.stretch("rope")
    if grown is None:
        return _not_yet(numbers)
    numbers.append(
        _number("trained twin: loss grows by, at 4 times its length", "训练好的孪生模型：长度为 4 倍时损失增加", grown)
    )
    return Finding(
        "false" if grown > 0.1 else "true",
        numbers,
        Text(
            "Loss {x} nats a token higher at four times the trained length.",
            "四倍训练长度上，每个词元的损失高出 {x} nat。",
        ).filled(x=f"{grown:.3f}"),
    )


def _pairings(case: Case) -> Finding:
    e = 16
    x = torch.randn(8, e, generator=torch.Generator().manual_seed(case.seed), dtype=torch.float64)
    half, inter = (make("rope", base=case.base, pairing=p).rotate for p in ("half", "interleaved"))
    order = rotation.permutation(e)
    permuted = float((half(x[:, order], range(8)) - inter(x, range(8))[:, order]).abs().max())
    raw = float((half(x, range(8)) - inter(x, range(8))).abs().max())
    return Finding(
        "false" if permuted < NOISE < raw else "true",
        [
            _number(
                "largest difference after reordering the dimensions",
                "重排维度之后的最大差",
                permuted,
                Text("0: the same encoding", "0：同一种编码"),
            ),
            _number("largest difference without reordering", "不重排时的最大差", raw),
        ],
        Text(
            "Mixing them up is a bug all the same: dimensions 0, 1, 2 of half are {a} of interleaved.",
            "混用仍然是真正的错误：half 的第 0、1、2 维对应 interleaved 的第 {a} 维。",
        ).filled(a=", ".join(map(str, order[:3].tolist()))),
    )


def _alibi(case: Case) -> Finding:
    gaps = {}
    for name, mask, given in (("symmetric", "none", {}), ("causal", "causal", {"causal": True})):
        a, b = _traces("alibi", mask, case, **given)
        gaps[name] = outputs(a, b, match(a.tokens, b.tokens)).tokens
    return Finding(
        "depends" if gaps["symmetric"] < NOISE < gaps["causal"] else "true" if gaps["symmetric"] > NOISE else "false",
        [
            _number(
                "symmetric form: difference of outputs, words matched",
                "对称形式：词对应之后输出之差",
                gaps["symmetric"],
                Text("0: it does not", "0：分不清"),
            ),
            _number(
                "causal form with its mask",
                "因果形式加掩码",
                gaps["causal"],
                Text("above 0: the mask does", "大于 0：靠的是掩码"),
            ),
        ],
        Text(
            "我爱你 and 你爱我 under the symmetric form: difference {x}.", "对称形式下的 我爱你 与 你爱我：相差 {x}。"
        ).filled(x=f"{gaps['symmetric']:.1e}"),
    )


def _nope(case: Case) -> Finding:
    gaps = {}
    for mask in ("none", "causal"):
        a, b = _traces("none", mask, case)
        gaps[mask] = outputs(a, b, match(a.tokens, b.tokens)).tokens
    return Finding(
        "depends" if gaps["none"] < NOISE < gaps["causal"] else "false" if gaps["none"] > NOISE else "true",
        [
            _number(
                "without a mask: difference of outputs, words matched",
                "没有掩码：词对应之后输出之差",
                gaps["none"],
                Text("0: it knows nothing", "0：什么都不知道"),
            ),
            _number(
                "with the causal mask", "有因果掩码", gaps["causal"], Text("above 0: it can count", "大于 0：它能数")
            ),
        ],
        Text(
            "With the causal mask the first word sees one word, the last all three.",
            "有因果掩码时，第一个词只看见一个词，最后一个看见三个。",
        ),
    )


def _trained_angle() -> tuple[float, float] | None:
    """The same of the trained sinusoidal twin: mean angle over all characters and trained positions, share kept."""
    from posviz.models.twins import corpus, store  # only here: the core does without trained models

    if "sinusoidal" not in store.available():
        return None
    model = store.load("sinusoidal").model
    x = model.tokens[len(corpus.SPECIAL) :].double() * model.config.d_model**0.5
    rows = model.spec.table(torch.arange(corpus.TRAINED_LEN - 1), model.config.d_model)
    # cos = x.(x + r) / |x| |x + r| for every character and position, (V, P)
    dot, norm = x @ rows.T, x.norm(dim=1, keepdim=True)
    whole = (norm**2 + 2 * dot + rows.norm(dim=1) ** 2).sqrt()
    angle = torch.rad2deg(((norm**2 + dot) / (norm * whole)).clamp(-1, 1).acos()).mean()
    some = torch.arange(256)
    mixed = x[some] + rows[some % len(rows)]
    kept = (mixed @ torch.nn.functional.normalize(x).T).argmax(1) == some
    return float(angle), float(kept.double().mean())


def _still_found(share: float) -> Text:
    return Text("{share} of 256 words still nearest to themselves", "256 个词里 {share} 仍然最像自己").filled(
        share=f"{share:.0%}"
    )


def _destroys(case: Case) -> Finding:
    width = case.dims.d_model - case.dims.d_model % 2 or 2
    words = torch.randn(WORDS, width, generator=torch.Generator().manual_seed(case.seed), dtype=torch.float64)
    rows = make("sinusoidal", base=case.base).table(torch.arange(WORDS) % max(2, min(case.max_len, WORDS)), width)
    found = {}
    for name, size in (("scaled", 1.0), ("small", 0.02)):
        x = words * size
        mixed = x + rows
        angle = torch.rad2deg(torch.nn.functional.cosine_similarity(x, mixed).clamp(-1, 1).acos()).mean()
        kept = (mixed[:256] @ torch.nn.functional.normalize(words).T).argmax(1) == torch.arange(256)
        found[name] = (float(angle), float(kept.double().mean()))
    numbers = [
        _number(
            "angle of x and x + PE, x of norm √d (times √d, as the paper does), degrees",
            "x 与 x + PE 的夹角，x 的长度 √d（像论文那样乘 √d），度",
            found["scaled"][0],
            _still_found(found["scaled"][1]),
        ),
        _number(
            "angle, x drawn with 0.02 and not multiplied, degrees",
            "夹角，x 的标准差 0.02 且不乘，度",
            found["small"][0],
            _still_found(found["small"][1]),
        ),
    ]
    twin = _trained_angle()
    if twin is not None:
        numbers.append(
            _number(
                "angle in the trained sinusoidal twin, all its characters and positions, degrees",
                "训练好的正弦孪生模型里的夹角，所有的字和位置，度",
                twin[0],
                _still_found(twin[1]),
            )
        )
    return Finding(
        "depends" if found["scaled"][1] > 0.9 > found["small"][1] else "false" if found["small"][1] > 0.9 else "true",
        numbers,
        Text(
            "Embeddings drawn with 0.02 and not multiplied by √d: {a}° away, {b} of the words are still found.",
            "词嵌入标准差 0.02、不乘 √d：偏转 {a}°，还认得出的词占 {b}。",
        ).filled(a=f"{found['small'][0]:.0f}", b=f"{found['small'][1]:.0%}"),
    )


MYTHS: dict[str, Myth] = {
    myth.key: myth
    for myth in (
        Myth("falls", Text("The similarity of two positions falls with their distance.", "两个位置的相似度随距离下降。"), Text("It is a sum of cosines: it falls on the whole and ripples on the way.", "它是许多余弦之和：总体下降，途中起伏。"), _falls),
        Myth("neighbours", Text("Neighbouring positions are the most similar.", "相邻的位置最相似。"), Text("In a sinusoidal table by construction; in a learned one only if training makes it so.", "正弦表由公式保证；可学习的表要靠训练。"), _neighbours),
        Myth("coincide", Text("With base 10000, positions 1 and 10001 coincide.", "base 取 10000 时，位置 1 与 10001 重合。"), Text("The base is no period: each pair has its own wavelength.", "base 不是周期：每一对都有自己的波长。"), _coincide),
        Myth("unique", Text("Every position has its own vector.", "每个位置都有独一无二的向量。"), Text("In exact numbers yes; a dtype with 8 bits runs out of whole numbers at 256.", "精确计算时成立；只有 8 位有效位的类型到 256 就数不清整数了。"), _unique),
        Myth("identical", Text("Without positions, 我爱你 and 你爱我 get identical attention.", "没有位置编码时，我爱你 和 你爱我 的注意力完全相同。"), Text("Identical up to the order of the rows and columns; a mean over words is identical outright.", "只差行列的次序；对词取平均就完全相同。"), _identical),
        Myth("extrapolate", Text("Sinusoids extrapolate, because they are defined everywhere.", "正弦编码处处有定义，所以能外推。"), Text("A formula goes on; whether the trained weights can use what they never saw is another matter.", "公式可以延伸；训练好的权重会不会用没见过的值，是另一回事。"), _extrapolate, True),
        Myth("width", Text("A larger d_model resolves positions better.", "d_model 越大，位置分得越清。"), Text("More pairs sample the same range of frequencies more finely; the mixture stays.", "维度对更多，只是把同一频率范围取得更密；比例不变。"), _width),
        Myth("rope_decays", Text("RoPE makes scores decay with distance.", "RoPE 让分数随距离衰减。"), Text("The paper bounds the score, and the bound falls; the score itself ripples under it.", "论文给的是分数的上界，上界在下降；分数本身在上界之下起伏。"), _rope_decays),
        Myth("rope_endless", Text("RoPE needs no maximum length.", "RoPE 不需要最大长度。"), Text("It is defined everywhere, but slow pairs reach angles that training never showed.", "处处有定义，但转得慢的维度对会遇到训练中没见过的角度。"), _rope_endless, True),
        Myth("pairings", Text("Interleaved and half RoPE are different encodings.", "相邻配对和前后配对的 RoPE 是两种不同的编码。"), Text("A permutation of the dimensions turns one into the other; training does not notice.", "把维度重排一下就互相变换；训练察觉不到。"), _pairings),
        Myth("alibi", Text("ALiBi knows left from right.", "ALiBi 分得清左右。"), Text("The penalty is for distance; direction comes from the causal mask.", "它只按远近扣分；方向来自因果掩码。"), _alibi),
        Myth("nope", Text("Without position encoding a model knows nothing about order.", "没有位置编码的模型对词序一无所知。"), Text("Under a causal mask every word sees a different number of words: that can be counted.", "有因果掩码时，每个词看见的词数不同：这可以数。"), _nope),
        Myth("destroys", Text("Adding a position to the embedding destroys the meaning.", "把位置加到词嵌入上会破坏词义。"), Text("It depends on the sizes: that is why the paper multiplies embeddings by √d.", "取决于两者的大小：所以论文把词嵌入乘以 √d。"), _destroys),
    )
}  # fmt: skip


def measure(key: str, case: Case) -> Finding:
    """The finding for one sentence; the same case gives the same numbers."""
    return MYTHS[key].measure(case)
