"""The colours of every figure: the same hues as in the app, for both themes."""

from dataclasses import dataclass
from typing import Any

Rgb = tuple[int, int, int]
INK, PAPER = (4, 5, 8), (255, 255, 255)  # numbers on light and on dark cells


def mix(a: Rgb, b: Rgb, t: float) -> Rgb:
    """The colour between ``a`` (t = 0) and ``b`` (t = 1)."""
    red, green, blue = (round(x + (y - x) * t) for x, y in zip(a, b, strict=True))
    return red, green, blue


def css(colour: Rgb, alpha: float = 1) -> str:
    return f"rgb{colour}" if alpha == 1 else f"rgba{(*colour, alpha)}"


def luminance(colour: Rgb) -> float:
    """Relative luminance as WCAG defines it, 0 to 1."""
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a: Rgb, b: Rgb) -> float:
    """Contrast ratio of WCAG, 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@dataclass(frozen=True)
class Scale:
    """Colours from ``low`` to ``high``, equally far apart; what lies beyond is drawn as the end."""

    low: float
    high: float
    stops: tuple[Rgb, ...]

    def options(self) -> dict[str, Any]:
        """What a Plotly heatmap calls it."""
        last = len(self.stops) - 1
        return {
            "zmin": self.low,
            "zmax": self.high,
            "colorscale": [[i / last, css(stop)] for i, stop in enumerate(self.stops)],
        }

    def at(self, value: float) -> Rgb:
        """The colour a value is drawn in."""
        last = len(self.stops) - 1
        t = min(1.0, max(0.0, (value - self.low) / (self.high - self.low))) * last
        i = min(int(t), last - 1)
        return mix(self.stops[i], self.stops[i + 1], t - i)

    def ink(self, value: float) -> Rgb:
        """The colour of text on it: near-black or white, whichever is easier to read."""
        return max((INK, PAPER), key=lambda ink: contrast(ink, self.at(value)))


@dataclass(frozen=True)
class Palette:
    """The colours of one theme; the hues mean the same in both, and the same as in the app."""

    background: Rgb
    text: Rgb
    a: Rgb
    b: Rgb
    position: Rgb
    content: Rgb
    negative: Rgb
    positive: Rgb
    slow: Rgb
    curves: tuple[Rgb, ...]

    @property
    def quiet(self) -> Rgb:
        """Text of axes and units; 4.5 : 1 on the background."""
        return mix(self.text, self.background, 0.32)

    @property
    def line(self) -> Rgb:
        return mix(self.text, self.background, 0.82)

    @property
    def masked(self) -> Rgb:
        return mix(self.text, self.background, 0.92)

    def signed(self, end: float) -> "Scale":
        """Purple, zero, green."""
        return Scale(-end, end, (self.negative, self.background, self.positive))

    def difference(self, end: float) -> "Scale":
        """Orange where B is larger, zero, blue where A is."""
        return Scale(-end, end, (self.b, self.background, self.a))

    def sequential(self, end: float, ink: Rgb) -> "Scale":
        """From nothing at zero to ``ink``."""
        return Scale(0.0, end, (self.background, ink))

    def pair(self, i: int, n: int) -> Rgb:
        """RoPE pair i of n, from fast (warm) to slow (cool)."""
        fast, middle = (201, 74, 38), (196, 170, 60)
        t = i / (n - 1) if n > 1 else 0.0
        return mix(fast, middle, 2 * t) if t < 0.5 else mix(middle, self.slow, 2 * t - 1)


LIGHT = Palette(
    background=(255, 255, 255),
    text=(28, 35, 48),
    a=(31, 79, 191),
    b=(180, 86, 10),
    position=(15, 157, 138),
    content=(138, 143, 152),
    negative=(118, 42, 131),
    positive=(27, 120, 55),
    slow=(32, 84, 140),
    # neither A's blue nor B's orange, the position teal or the content grey
    curves=(
        (74, 43, 110),
        (194, 24, 91),
        (20, 121, 168),
        (125, 107, 0),
        (20, 83, 45),
        (160, 65, 196),
        (107, 52, 16),
    ),
)
DARK = Palette(
    background=(18, 21, 27),
    text=(230, 233, 239),
    a=(122, 162, 255),
    b=(255, 170, 92),
    position=(45, 196, 174),
    content=(150, 156, 168),
    negative=(196, 132, 214),
    positive=(108, 201, 130),
    slow=(104, 160, 222),
    curves=(
        (196, 180, 255),
        (255, 111, 156),
        (92, 200, 242),
        (224, 203, 74),
        (120, 190, 100),
        (224, 130, 245),
        (214, 150, 110),
    ),
)


def palette(dark: bool) -> Palette:
    return DARK if dark else LIGHT
