"""Sentences about a table of positions: how alike its rows are, how many differ, what adding one does."""

import math

import numpy as np
import torch

from posviz import rotation, similarity
from posviz.encodings import make
from posviz.myths.base import NOISE, Case, Finding, Myth, even_width, kernel, number
from posviz.types import Text

FAR = 100_000  # positions searched for a twin of position 1
ROWS = 8192  # positions among which rows are counted
WORDS = 4096  # random words among which the nearest is looked for


def _falls(case: Case) -> Finding:
    curve, _ = kernel(case, 2048)
    rises = similarity.rises(curve)
    if not len(rises):
        return Finding(
            "true",
            [
                number("rises in 2,047 steps", "2,047 步里上升的次数", 0),
                number("at distance 2,047", "距离 2,047 处", float(curve[-1])),
            ],
            Text("None within 2,048 positions for these sizes.", "按当前尺寸，2,048 个位置之内没有反例。"),
        )
    k = int(rises[0])
    return Finding(
        "false",
        [
            number(
                "rises in 2,047 steps",
                "2,047 步里上升的次数",
                len(rises),
                Text("0 if it only fell", "若只降不升，则为 0"),
            ),
            number("first rise at distance", "第一次上升的距离", k),
        ],
        Text(
            "Cosine {a} at distance {k}, but {b} at distance {n}.", "距离 {k} 处余弦 {a}，距离 {n} 处却是 {b}。"
        ).filled(a=f"{curve[k]:.5f}", b=f"{curve[k + 1]:.5f}", k=k, n=k + 1),
    )


def nearest_rows(table: torch.Tensor) -> np.ndarray:
    """(rows,): for each row of a table the index of the other row whose cosine with it is largest."""
    alike = similarity.matrix(table, "cosine")
    np.fill_diagonal(alike, -np.inf)
    return alike.argmax(axis=1)


def _beside(nearest: np.ndarray) -> float:
    """The share of rows whose nearest one is the one before or after."""
    return float((np.abs(nearest - np.arange(len(nearest))) == 1).mean())


def _neighbours(case: Case) -> Finding:
    length = min(max(case.max_len, 4), 512)
    curve, _ = kernel(case, length)
    sinusoidal = 1.0 if int(curve[1:].argmax()) == 0 else 0.0  # the same for every position: only distance counts
    module = make("learned").build(case.dims, length, torch.Generator().manual_seed(case.seed))
    nearest = nearest_rows(module.weight.detach())
    learned = _beside(nearest)
    p = int(np.flatnonzero(np.abs(nearest - np.arange(length)) != 1)[0]) if learned < 1 else 0
    numbers = [
        number(
            "sinusoidal: share of positions whose most similar one is a neighbour",
            "正弦：最像的位置正好是邻居的比例",
            sinusoidal,
        ),
        number("learned, untrained: the same share", "可学习（未训练）：同样的比例", learned),
    ]
    rows = _trained_rows()
    if rows is not None:
        found = nearest_rows(rows)
        steps = np.bincount(np.abs(found - np.arange(len(found))))
        numbers.append(
            number(
                "learned, trained twin, positions it has seen: the same share",
                "可学习（训练好的孪生模型，见过的位置）：同样的比例",
                _beside(found),
                Text("most often {k} positions away", "最常相隔 {k} 个位置").filled(k=int(steps.argmax())),
            )
        )
    return Finding(
        "depends" if sinusoidal == 1 and learned < 1 else "true" if learned == 1 else "false",
        numbers,
        Text(
            "In the untrained table position {p} is most like position {q}.", "在未训练的表里，位置 {p} 最像位置 {q}。"
        ).filled(p=p, q=int(nearest[p])),
    )


def _trained_rows() -> torch.Tensor | None:
    """The rows of the trained learned twin's table that its training has used; None where none is shipped."""
    from posviz.models.twins import corpus, store  # only here: the core does without trained models

    if "learned" not in store.available():
        return None
    return store.load("learned").model.position.weight.detach()[: corpus.TRAINED_LEN - 1]


def _coincide(case: Case) -> Finding:
    frequencies = rotation.inv_freq(even_width(case), 10_000.0)
    curve = similarity.rope_kernel(torch.arange(FAR), frequencies)
    nearest = int(curve[1:].argmax()) + 1
    d = 2 * len(frequencies)
    gap = math.sqrt(max(0.0, d * (1 - float(curve[10_000]))))
    close = math.sqrt(max(0.0, d * (1 - float(curve[1]))))
    return Finding(
        "true" if gap < NOISE else "false",
        [
            number(
                "distance of PE(1) and PE(10001)",
                "PE(1) 与 PE(10001) 的距离",
                gap,
                Text("0 if they coincided", "若重合，则为 0"),
            ),
            number("distance of PE(1) and PE(2)", "PE(1) 与 PE(2) 的距离", close),
            number(
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
    width = even_width(case)
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
            number("different rows in float64", "float64：不同的行数", counts[0], whole),
            number("rounded to bfloat16 at the end", "最后才舍入到 bfloat16：不同的行数", counts[1], whole),
            number("positions and angles in bfloat16", "位置和角度都用 bfloat16：不同的行数", counts[2], whole),
        ],
        Text("bfloat16 has no 257: position {a} becomes {b}.", "bfloat16 里没有 257：位置 {a} 变成 {b}。").filled(
            a=257, b=int(torch.tensor(257).to(torch.bfloat16))
        ),
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
            number(f"d_model {d}: angle between neighbours, degrees", f"d_model {d}：相邻位置的夹角（度）", a)
            for d, a in angles.items()
        ],
        Text(
            "From 16 to 1024 dimensions the angle goes from {a}° to {b}°: more frequencies, the same mixture of fast and slow.",
            "从 16 维到 1024 维，夹角从 {a}° 变到 {b}°：频率多了，快慢的比例没变。",
        ).filled(a=f"{angles[16]:.1f}", b=f"{angles[1024]:.1f}"),
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
    width = even_width(case)
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
        number(
            "angle of x and x + PE, x of norm √d (times √d, as the paper does), degrees",
            "x 与 x + PE 的夹角，x 的长度 √d（像论文那样乘 √d），度",
            found["scaled"][0],
            _still_found(found["scaled"][1]),
        ),
        number(
            "angle, x drawn with 0.02 and not multiplied, degrees",
            "夹角，x 的标准差 0.02 且不乘，度",
            found["small"][0],
            _still_found(found["small"][1]),
        ),
    ]
    twin = _trained_angle()
    if twin is not None:
        numbers.append(
            number(
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


MYTHS = (
    Myth("falls", Text("The similarity of two positions falls with their distance.", "两个位置的相似度随距离下降。"), Text("It is a sum of cosines: it falls on the whole and ripples on the way.", "它是许多余弦之和：总体下降，途中起伏。"), _falls),
    Myth("neighbours", Text("Neighbouring positions are the most similar.", "相邻的位置最相似。"), Text("In a sinusoidal table its slow waves see to it; a learned one learns what its texts need: in verse, places of a line.", "正弦表靠它的慢波；可学习的表学到的是文本需要的东西：在诗里，是句中的位置。"), _neighbours),
    Myth("coincide", Text("With base 10000, positions 1 and 10001 coincide.", "base 取 10000 时，位置 1 与 10001 重合。"), Text("The base is no period: each pair has its own wavelength.", "base 不是周期：每一对都有自己的波长。"), _coincide),
    Myth("unique", Text("Every position has its own vector.", "每个位置都有独一无二的向量。"), Text("In exact numbers yes; a dtype with 8 significant bits runs out of whole numbers at 256.", "精确计算时成立；只有 8 位有效位的类型超过 256 就分不清相邻的整数了。"), _unique),
    Myth("width", Text("A larger d_model resolves positions better.", "d_model 越大，位置分得越清。"), Text("More pairs sample the same range of frequencies more finely; the mixture stays.", "维度对更多，只是把同一频率范围取得更密；比例不变。"), _width),
    Myth("destroys", Text("Adding a position to the embedding destroys the meaning.", "把位置加到词嵌入上会破坏词义。"), Text("It depends on the sizes: that is why the paper multiplies embeddings by √d.", "取决于两者的大小：所以论文把词嵌入乘以 √d。"), _destroys),
)  # fmt: skip
