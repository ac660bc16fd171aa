"""Sentences about RoPE."""

import torch

from posviz import rotation, similarity, trained
from posviz.encodings import make
from posviz.myths.base import NOISE, Case, Finding, Myth, not_yet, number
from posviz.types import Text


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
            number(
                "kernel: rises in 1,023 steps",
                "核函数：1,023 步里上升的次数",
                len(rises),
                Text("0 if it only fell", "若只降不升，则为 0"),
            ),
            number("bound, mean of distances 0 … 31", "上界：距离 0 … 31 的平均", near),
            number(
                "bound, mean of distances 992 … 1023",
                "上界：距离 992 … 1023 的平均",
                far,
                Text("this falls", "它在下降"),
            ),
        ],
        Text(
            "The kernel is {a} at distance {k} and {b} at {n}.", "核函数在距离 {k} 处是 {a}，在 {n} 处是 {b}。"
        ).filled(a=f"{kernel[k]:.5f}", b=f"{kernel[min(k + 1, 1023)]:.5f}", k=k, n=min(k + 1, 1023)),
    )


def _rope_endless(case: Case) -> Finding:
    e = case.dims.d_head - case.dims.d_head % 2 or 2
    lengths = rotation.wavelengths(rotation.inv_freq(e, case.base))
    unseen = int((lengths > case.max_len).sum())
    numbers = [
        number(
            "pairs that make no full turn within max_len",
            "在 max_len 之内没转满一圈的维度对",
            unseen,
            Text("of {n}: beyond, their angles are new", "共 {n} 对：再往后角度是新的").filled(n=len(lengths)),
        ),
        number("positions for a full turn of the slowest pair", "最慢的一对转一圈要多少个位置", float(lengths.max())),
    ]
    grown = trained.stretch("rope")
    if grown is None:
        return not_yet(numbers)
    numbers.append(
        number("trained twin: loss grows by, at 4 times its length", "训练好的孪生模型：长度为 4 倍时损失增加", grown)
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
            number(
                "largest difference after reordering the dimensions",
                "重排维度之后的最大差",
                permuted,
                Text("0: the same encoding", "0：同一种编码"),
            ),
            number("largest difference without reordering", "不重排时的最大差", raw),
        ],
        Text(
            "Mixing them up is a bug all the same: dimensions 0, 1, 2 of half are {a} of interleaved.",
            "混用仍然是真正的错误：前后配对的第 0、1、2 维对应相邻配对的第 {a} 维。",
        ).filled(a=", ".join(map(str, order[:3].tolist()))),
    )


MYTHS = (
    Myth("rope_decays", Text("RoPE makes scores decay with distance.", "RoPE 让分数随距离衰减。"), Text("The paper bounds the score, and the bound falls; the score itself ripples under it.", "论文给的是分数的上界，上界在下降；分数本身在上界之下起伏。"), _rope_decays),
    Myth("rope_endless", Text("RoPE needs no maximum length.", "RoPE 不需要最大长度。"), Text("It is defined everywhere, but slow pairs reach angles that training never showed.", "处处有定义，但转得慢的维度对会遇到训练中没见过的角度。"), _rope_endless, True),
    Myth("pairings", Text("Interleaved and half RoPE are different encodings.", "相邻配对和前后配对的 RoPE 是两种不同的编码。"), Text("A permutation of the dimensions turns one into the other; training does not notice.", "把维度重排一下就互相变换；训练察觉不到。"), _pairings),
)  # fmt: skip
