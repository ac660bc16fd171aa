"""Make course.json: the course's numbers, worked out with 50 digits and without posviz.

    python tests/golden/make_course.py

Nothing here comes from numpy or torch: frequencies, angles, sines and cosines are mpmath's, and
the seeded input is Python's ``random.Random(0)``, whose uniform numbers no version changes.
"""

import json
import random
import re
from pathlib import Path

from mpmath import cos, mp, mpf, pi, sin, sqrt

D_MODEL, BASE, ROWS, MAX_LEN, STD = 64, 10_000, 16, 512, "0.02"
DISTANCES = (1, 2, 5, 10, 20)
HERE = Path(__file__).parent


def seeded_input() -> list[list[float]]:
    """ROWS x D_MODEL numbers, uniform in [-1, 1)."""
    rng = random.Random(0)
    return [[2 * rng.random() - 1 for _ in range(D_MODEL)] for _ in range(ROWS)]


def omega(pair: int):
    return mpf(BASE) ** (-mpf(2 * pair) / D_MODEL)


def table_cell(position: int, column: int):
    angle = position * omega(column // 2)
    return cos(angle) if column % 2 else sin(angle)


def turned(row: list[float], position: int, pairing: str) -> list:
    """The row with each of its pairs turned by position * omega (one head of width D_MODEL)."""
    half = D_MODEL // 2
    result = [mpf(x) for x in row]
    for i in range(half):
        first, second = (i, i + half) if pairing == "half" else (2 * i, 2 * i + 1)
        a, b, angle = mpf(row[first]), mpf(row[second]), position * omega(i)
        result[first] = a * cos(angle) - b * sin(angle)
        result[second] = a * sin(angle) + b * cos(angle)
    return result


def mean_of(values) -> float:
    values = list(values)
    return float(sum(values) / len(values))


def product_with_first(distance: int, dims: int) -> float:
    """PE(0) . PE(distance) over the first ``dims`` dimensions."""
    return float(sum(table_cell(0, c) * table_cell(distance, c) for c in range(dims)))


def course() -> dict:
    mp.dps = 50
    x = seeded_input()
    cells = [(p, c) for p in range(ROWS) for c in range(D_MODEL)]
    return {
        "source": "make_course.py: mpmath with 50 digits, rounded to float64 at the end",
        "d_model": D_MODEL,
        "base": BASE,
        "rows": ROWS,
        "input": "rng = random.Random(0); x[p][c] = 2 * rng.random() - 1, row by row",
        "first_input_row": x[0][:4],
        "mean_change": {
            "sinusoidal": mean_of(abs(table_cell(p, c)) for p, c in cells),
            "rope": {
                pairing: mean_of(
                    abs(after - before)
                    for p in range(ROWS)
                    for before, after in zip(x[p], turned(x[p], p, pairing), strict=True)
                )
                for pairing in ("half", "interleaved")
            },
            # E|e| = std sqrt(2/pi) for e ~ N(0, std^2); standard error of the mean of so many.
            "learned_expected": float(mpf(STD) * sqrt(2 / pi)),
            "learned_standard_error": float(mpf(STD) * sqrt((1 - 2 / pi) / len(cells))),
        },
        "max_len": MAX_LEN,
        "trainable_parameters": {"sinusoidal": 0, "learned": MAX_LEN * D_MODEL, "rope": 0},
        "table_5x8": [[float(table_cell(p, c)) for c in range(8)] for p in range(5)],
        "distances": list(DISTANCES),
        "pos0_dot_posk_first_8_dims": [product_with_first(k, 8) for k in DISTANCES],
        "pos0_dot_posk_all_64_dims": [product_with_first(k, D_MODEL) for k in DISTANCES],
    }


if __name__ == "__main__":
    text = json.dumps(course(), indent=1)
    # Lists of numbers on one line each.
    text = re.sub(r"\[[^\[\]{}\"]*\]", lambda m: " ".join(m[0].split()), text)
    text = text.replace("[ ", "[").replace(" ]", "]")
    (HERE / "course.json").write_text(text + "\n", encoding="utf-8")
