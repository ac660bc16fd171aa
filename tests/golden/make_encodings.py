"""Make encodings/NAME.json for every encoding: small cases worked out with 50 digits and without posviz.

    python tests/golden/make_encodings.py

Nothing here comes from numpy or torch: every formula is written once more, cell by cell, with mpmath, from
the paper that the file names. Weights and inputs are Python's ``random.Random(name)``, rounded to three decimals.
"""

import json
import random
from itertools import product
from pathlib import Path

from mpmath import cos, erf, exp, floor, log, mp, mpf, pi, sin, sqrt

mp.dps = 50
HERE = Path(__file__).parent / "encodings"
D, H, MAX_LEN = 8, 2, 8
E = D // H
BASE = 10_000
FAR = [0, 1, MAX_LEN - 1, MAX_LEN, 1000]  # 0, 1, the last row, one beyond, far beyond


def draw(rng: random.Random, *shape: int, low: float = -1.0, high: float = 1.0):
    """Nested lists of numbers with three decimals."""
    if not shape:
        return round(rng.uniform(low, high), 3)
    return [draw(rng, *shape[1:], low=low, high=high) for _ in range(shape[0])]


def dot(a, b):
    return sum((mpf(x) * mpf(y) for x, y in zip(a, b, strict=True)), mpf(0))


def sigmoid(x):
    return 1 / (1 + exp(-x))


def omega(i, width=D, base=BASE):
    return mpf(base) ** (-mpf(2 * i) / width)


def table(function, positions, width=D):
    return [[function(p, c) for c in range(width)] for p in positions]


def bias(function, positions, heads=H):
    return [
        [[function(h, i, j, positions[i], positions[j]) for j in range(len(positions))] for i in range(len(positions))]
        for h in range(heads)
    ]


def turned(row, thetas, pairing, factors=None):
    """A row (e,) with each pair turned, and multiplied by its factor."""
    n = len(row) // 2
    result = [mpf(x) for x in row]
    for i in range(n):
        a, b = (i, i + n) if pairing == "half" else (2 * i, 2 * i + 1)
        f = factors[i] if factors else 1
        result[a] = (mpf(row[a]) * cos(thetas[i]) - mpf(row[b]) * sin(thetas[i])) * f
        result[b] = (mpf(row[a]) * sin(thetas[i]) + mpf(row[b]) * cos(thetas[i])) * f
    return result


def none(rng, case):
    case["bias"] = bias(lambda h, i, j, m, n: mpf(0), case["positions"])


def sinusoidal(rng, case):
    case["embed"] = table(lambda p, c: (cos if c % 2 else sin)(p * omega(c // 2)), case["positions"])


def sinusoidal_fairseq(rng, case):
    half = D // 2
    case["given"] = {"layout": "fairseq"}
    case["embed"] = table(
        lambda p, c: (sin if c < half else cos)((p + 2) * mpf(BASE) ** (-mpf(c % half) / (half - 1))), case["positions"]
    )


def learned(rng, case):
    case["positions"] = [0, 1, MAX_LEN - 1]
    case["given"] = {"counting": "roberta"}
    case["weights"] = {"weight": draw(rng, MAX_LEN + 2, D)}
    case["embed"] = [case["weights"]["weight"][p + 2] for p in case["positions"]]


def rope(rng, case):
    thetas = [[p * omega(i, E) for i in range(E // 2)] for p in case["positions"]]
    for name in ("q", "k"):
        case[f"{name}_turned"] = [
            [turned(row, t, "half") for row, t in zip(head, thetas, strict=True)] for head in case[name]
        ]


def xpos(rng, case):
    case["positions"] = at = [0, 1, 7, 8, 500]
    zetas = [(mpf(2 * i) / E + mpf(4) / 10) / (mpf(14) / 10) for i in range(E // 2)]
    for name, power in (("q", 1), ("k", -1)):
        case[f"{name}_turned"] = [
            [
                turned(
                    row,
                    [p * omega(i, E) for i in range(E // 2)],
                    "interleaved",
                    [z ** (power * mpf(p) / 512) for z in zetas],
                )
                for row, p in zip(head, at, strict=True)
            ]
            for head in case[name]
        ]


def rope_2d(rng, case):
    case["positions"] = at = [[0, 0], [0, 3], [2, 1], [7, 11], [40, 5]]
    quarter = E // 4

    def angle(i, p):
        return p[0 if i < quarter else 1] * omega(i % quarter, E // 2)

    for name in ("q", "k"):
        case[f"{name}_turned"] = [
            [turned(row, [angle(i, p) for i in range(E // 2)], "half") for row, p in zip(head, at, strict=True)]
            for head in case[name]
        ]


def mrope(rng, case):
    case["positions"] = at = [[0, 0, 0], [1, 1, 1], [2, 2, 3], [2, 3, 9], [500, 500, 500]]
    case["given"] = {"time_share": 0.5}  # one pair for time, one for rows
    for name in ("q", "k"):
        case[f"{name}_turned"] = [
            [turned(row, [p[i] * omega(i, E) for i in range(E // 2)], "half") for row, p in zip(head, at, strict=True)]
            for head in case[name]
        ]


def alibi(rng, case):
    case["bias"] = bias(lambda h, i, j, m, n: -(mpf(2) ** (-mpf(8 * (h + 1)) / H)) * abs(m - n), case["positions"])


def t5(rng, case):
    case["given"] = {"num_buckets": 8, "max_distance": 20}
    case["weights"] = {"weight": draw(rng, 8, H)}
    case["positions"] = [0, 1, 7, 8, 100]

    def bucket(distance):
        far = abs(distance)
        if far >= 2:  # two exact buckets of four a side, two on the logarithm from 2 to 20
            far = min(3, 2 + int(floor(log(mpf(far) / 2) / log(mpf(20) / 2) * 2)))
        return far + (4 if distance > 0 else 0)

    case["bias"] = bias(lambda h, i, j, m, n: case["weights"]["weight"][bucket(n - m)][h], case["positions"])


def shaw(rng, case):
    case["given"] = {"max_relative": 3}
    case["weights"] = {"weight": draw(rng, 7, E)}
    rows, q = case["weights"]["weight"], case["q"]
    case["bias"] = bias(
        lambda h, i, j, m, n: dot(q[h][i], rows[max(-3, min(3, n - m)) + 3]) / sqrt(mpf(E)), case["positions"]
    )


def project(vector, w, h):
    """(vector @ w) of head h, (E,)"""
    return [sum((mpf(vector[r]) * mpf(w[r][h * E + c]) for r in range(D)), mpf(0)) for c in range(E)]


def _relative(rng, case, wave):
    case["weights"] = weights = {"w_r": draw(rng, D, D), "u": draw(rng, H, E), "v": draw(rng, H, E)}
    q, k = case["q"], case["k"]

    def cell(h, i, j, m, n):
        r = project([wave(m - n, c) for c in range(D)], weights["w_r"], h)
        with_v = [mpf(a) + mpf(b) for a, b in zip(q[h][i], weights["v"][h], strict=True)]
        return (dot(weights["u"][h], k[h][j]) + dot(with_v, r)) / sqrt(mpf(E))

    case["bias"] = bias(cell, case["positions"])


def transformer_xl(rng, case):
    _relative(rng, case, lambda x, c: (sin if c < D // 2 else cos)(x * omega(c % (D // 2))))


def conformer(rng, case):
    _relative(rng, case, lambda x, c: (cos if c % 2 else sin)(x * omega(c // 2)))


def deberta(rng, case):
    reach = 3
    case["given"] = {"max_relative": reach, "index": "paper"}
    case["weights"] = weights = {"table": draw(rng, 2 * reach, D), "w_k": draw(rng, D, D), "w_q": draw(rng, D, D)}

    def row(distance):
        return max(0, min(2 * reach - 1, distance + reach))

    def cell(h, i, j, m, n):
        key = project(weights["table"][row(m - n)], weights["w_k"], h)
        query = project(weights["table"][row(n - m)], weights["w_q"], h)
        return (dot(case["q"][h][i], key) + dot(case["k"][h][j], query)) / sqrt(mpf(3 * E))

    case["bias"] = bias(cell, case["positions"])


def kerple(rng, case):
    case["given"] = {"kernel": "power"}
    case["weights"] = {"r1": draw(rng, H, low=0.1), "r2": draw(rng, H, low=0.1)}
    r1, r2 = case["weights"]["r1"], case["weights"]["r2"]
    case["bias"] = bias(lambda h, i, j, m, n: -mpf(r1[h]) * mpf(abs(m - n)) ** mpf(r2[h]), case["positions"])


def fire(rng, case):
    width, threshold = 4, 64
    case["given"] = {"threshold": threshold, "width": width}
    case["weights"] = w = {
        "w1": draw(rng, width),
        "w2": draw(rng, H, width),
        "b1": draw(rng, width),
        "b2": draw(rng, H),
        "c": draw(rng, low=0.1),
        "multiplier": 1.25,
    }

    def cell(h, i, j, m, n):
        below = log(mpf(w["c"]) * max(threshold * mpf(w["multiplier"]), m, n) + 1) + mpf(1e-6)
        share = log(mpf(w["c"]) * abs(m - n) + 1) / below
        hidden = [max(mpf(0), share * mpf(a) + mpf(b)) for a, b in zip(w["w1"], w["b1"], strict=True)]
        return dot(w["w2"][h], hidden) + mpf(w["b2"][h])

    case["bias"] = bias(cell, case["positions"])


def sandwich(rng, case):
    width = 6
    case["given"] = {"width": width}
    case["bias"] = bias(
        lambda h, i, j, m, n: (
            sum(cos((m - n) * omega(t, width)) for t in range(1, width // 2 + 1)) / (mpf(8 * (h + 1)) / H)
        ),
        case["positions"],
    )


def cope(rng, case):
    rows = 3
    case["given"] = {"positions": rows}
    case["weights"] = {"table": draw(rng, rows, E)}
    q, k, vectors = case["q"], case["k"], case["weights"]["table"]

    def cell(h, i, j, m, n):
        low, high = sorted((i, j))
        p = min(sum(sigmoid(dot(q[h][i], k[h][t])) for t in range(low, high + 1)), mpf(rows - 1))
        r = min(int(floor(p)), rows - 2)
        return (dot(q[h][i], vectors[r]) * (1 - (p - r)) + dot(q[h][i], vectors[r + 1]) * (p - r)) / sqrt(mpf(E))

    case["bias"] = bias(cell, case["positions"])


def time2vec(rng, case):
    case["weights"] = {"frequencies": draw(rng, D), "phases": draw(rng, D)}
    w, f = case["weights"]["frequencies"], case["weights"]["phases"]
    case["embed"] = table(
        lambda p, c: sin(p * mpf(w[c]) + mpf(f[c])) if c else p * mpf(w[c]) + mpf(f[c]), case["positions"]
    )


def conv(rng, case):
    kernel, groups = 4, 2
    part = D // groups
    case["given"] = {"kernel": kernel, "groups": groups}
    case["weights"] = {"weight": draw(rng, D, part, kernel), "offset": draw(rng, D)}
    case["x"] = draw(rng, 5, D)
    case["positions"] = list(range(5))

    def cell(p, c):
        first = c // part * part
        total = mpf(case["weights"]["offset"][c])
        for a, t in product(range(part), range(kernel)):
            source = p + t - kernel // 2
            if 0 <= source < 5:
                total += mpf(case["weights"]["weight"][c][a][t]) * mpf(case["x"][source][first + a])
        return total * (1 + erf(total / sqrt(mpf(2)))) / 2

    case["embed"] = table(cell, case["positions"])


def sincos_2d(rng, case):
    case["given"] = {"form": "detr", "grid_height": 5, "grid_width": 7}
    case["positions"] = [[0, 0], [0, 6], [4, 0], [2, 3], [4, 6]]
    half = D // 2

    def cell(p, c):
        axis = 0 if c < half else 1
        at = (p[axis] + 1) / (mpf((5, 7)[axis]) + mpf(1e-6)) * 2 * pi
        i = c % half
        return (cos if i % 2 else sin)(at * omega(i // 2, half))

    case["embed"] = table(cell, case["positions"])


CASES = [
    none, sinusoidal, sinusoidal_fairseq, learned, rope, alibi, t5, shaw, transformer_xl, deberta, xpos, kerple,
    fire, sandwich, cope, time2vec, conv, conformer, sincos_2d, rope_2d, mrope,
]  # fmt: skip


def plain(value):
    """mpmath numbers as the nearest doubles."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return float(value) if isinstance(value, mpf) else value


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for make in CASES:
        name = make.__name__
        rng = random.Random(name)
        key = name.removesuffix("_fairseq")
        case = {
            "source": "worked out with 50 digits by make_encodings.py, from the paper's formula",
            "encoding": key,
            "d_model": D,
            "n_heads": H,
            "max_len": MAX_LEN,
            "given": {},
            "positions": FAR,
            "q": draw(rng, H, len(FAR), E),
            "k": draw(rng, H, len(FAR), E),
        }
        make(rng, case)
        text = (
            json.dumps(plain(case), indent=None, ensure_ascii=False).replace('], "', '],\n "').replace(', "', ',\n "')
        )
        (HERE / f"{name}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
