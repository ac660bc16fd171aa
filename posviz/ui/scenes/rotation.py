"""Rotation: the clocks of RoPE, with the queries and keys of the typed sentences."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from posviz import precision
from posviz.encodings import Encoding
from posviz.rotation import pair_dims
from posviz.text import visible
from posviz.types import AttentionTrace
from posviz.ui import blocks, cached, controls, save, shell, state
from posviz.ui.canvas import clocks, matrix
from posviz.ui.lang import _, labels
from posviz.ui.scenes import digits

KEY = "rotation_canvas"
SHIFTS = (1, 10, 100, 1000, 10_000)
MOST = 2048  # positions of the error picture


@dataclass(frozen=True, eq=False)
class Scene:
    """Queries and keys of one head, before they are turned, and the chosen pair of tokens and positions."""

    spec: Encoding
    traces: tuple[AttentionTrace, AttentionTrace]
    head: int
    q: np.ndarray
    k: np.ndarray
    m: int
    n: int
    query: int
    key: int
    pair: int
    last: int

    @property
    def omega(self) -> np.ndarray:
        return self.spec.turns(self.q.shape[1])[0].numpy()

    @property
    def pairing(self) -> str:
        return self.spec.turns(self.q.shape[1])[1]

    def score(self, m: int, n: int) -> float:
        """R(m) q . R(n) k / sqrt(d_head), by turning both vectors."""
        q, k = (torch.from_numpy(x.copy())[None] for x in (self.q[self.query], self.k[self.key]))
        turned = self.spec.rotate(q, [m]) @ self.spec.rotate(k, [n]).T
        return float(turned) * self.spec.scale(self.q.shape[1])


def question() -> str:
    return _("How does RoPE keep only the distance?")


def claim() -> str:
    return _(
        "Query and key turn with their own positions; move both: all angles between them, and the score, stand still."
    )


def build(setting: state.Setting, longest: int = 0, rest: tuple[int, int] = (9, 5)) -> Scene:
    """longest: positions there are at least, whatever max_len says; rest: where query and key stand at first."""
    state.check()
    return scene_of(setting, setting.other("rope"), longest, rest)


def scene_of(setting: state.Setting, spec: Encoding, longest: int = 0, rest: tuple[int, int] = (9, 5)) -> Scene:
    """The chosen queries and keys under an encoding that turns by position times frequency."""
    dims = setting.dims
    layer = {"seed": setting.seed, "mask": "none", "max_len": setting.max_len, "precision": "float64"}
    traces = tuple(cached.trace(setting.tokens(side), spec, dims, **layer) for side in "ab")
    head = state.chosen("head", dims.n_heads, 0)
    q, k = (np.concatenate([getattr(t, name)[head] for t in traces]) for name in ("q", "k"))
    last = max(1, setting.max_len - 1, longest - 1)
    # 爱 asks, 我 answers; far enough apart that the wedges are seen.
    return Scene(
        spec,
        traces,
        head,
        q,
        k,
        state.chosen("m", last + 1, rest[0]),
        state.chosen("n", last + 1, rest[1]),
        state.chosen("qi", len(q), 1),
        state.chosen("ki", len(k), 0),
        state.chosen("pair", len(spec.turns(dims.d_head)[0]), 1),
        last,
    )


def head(setting: state.Setting) -> None:
    controls.pick(
        "head",
        _("head"),
        {h: _("head {head}").format(head=h) for h in range(setting.dims.n_heads)},
        style="select",
        shown=state.chosen("head", setting.dims.n_heads, 0),
        collapsed=True,
        width=110,
    )


def toolbar(setting: state.Setting) -> None:
    head(setting)
    controls.pick(
        "rope_pairing",
        _("pairing"),
        {"half": _("half (Llama)"), "interleaved": _("interleaved (GPT-J)")},
        at="_page",
        collapsed=True,
    )


def tokens_of(scene: Scene) -> list[dict]:
    """All tokens of A, then of B, as the pictures name them."""
    return [
        {"label": f"{visible(piece)}·{i}", "sentence": side, "position": i}
        for side, trace in zip("AB", scene.traces, strict=True)
        for i, piece in enumerate(trace.tokens.pieces)
    ]


def bundle(scene: Scene, height: int = 584) -> bytes:
    return clocks.bundle(
        omega=scene.omega,
        q=scene.q,
        k=scene.k,
        tokens=tokens_of(scene),
        pairing=scene.pairing,
        max_position=scene.last,
        m=scene.m,
        n=scene.n,
        i=scene.query,
        j=scene.key,
        pair=scene.pair,
        scale=scene.spec.scale(scene.q.shape[1]),
        labels=labels(clocks.LABELS),
        height=height,
        alt=_(
            "One clock for each of {n} pairs of dimensions, its hands turned by the positions of query and key"
        ).format(n=len(scene.omega)),
        file="posviz-rotation",
    )


def chosen(key: str, names: Mapping[str, str]) -> None:
    """What a picture reports goes into the parameters: parameter -> name in the report."""
    said = st.session_state[key].state
    for name, there in names.items():
        value = state.whole(said.get(there)) if isinstance(said, Mapping) else None
        if value is not None:
            state.put(name, value)


def show(scene: Scene) -> None:
    names = {"m": "m", "n": "n", "qi": "i", "ki": "j", "pair": "pair"}
    clocks.show(bundle(scene), key=KEY, on_change=lambda: chosen(KEY, names))


def remark(setting: state.Setting, scene: Scene) -> None:
    """Say it when the sidebar's encoding is another one."""
    if setting.spec.kind == "rotary" and setting.spec.name != "rope":
        blocks.note(
            _("This page shows RoPE; {name} turns its pairs in another way: see the heatmap.").format(
                name=setting.spec.title(setting.lang)
            )
        )
    elif setting.spec.kind != "rotary":
        blocks.note(
            _("This page always shows RoPE; the chosen encoding, {name}, turns nothing.").format(
                name=setting.spec.title(setting.lang)
            )
        )


def proof(scene: Scene) -> list[blocks.Number]:
    score = scene.score(scene.m, scene.n)
    moved = max(abs(scene.score(scene.m + s, scene.n + s) - score) for s in SHIFTS)
    q = torch.from_numpy(scene.q[[scene.query]])
    norm = abs(float(scene.spec.rotate(q, [scene.m]).norm() - q.norm()))
    return [
        blocks.Number(
            f"{score:.6f}".replace("-", "−"),
            _("score of the chosen query and key"),
            f"m = {scene.m}, n = {scene.n}",
        ),
        blocks.Number(
            blocks.compact(moved),
            _("largest change of the score when both move on by 1 … 10,000"),
            _("should be 0"),
            moved < 1e-6,
        ),
        blocks.Number(
            blocks.compact(norm), _("length of the query after turning, minus before"), _("should be 0"), norm < 1e-9
        ),
    ]


def more(scene: Scene) -> None:
    """The precision switch, and the error of the score for every pair of positions where it is not float64."""
    name = digits.switch()
    if name == "float64":
        return

    def errors() -> np.ndarray:
        width = scene.q.shape[1]
        return precision.rotation_error(
            scene.q[scene.query],
            scene.k[scene.key],
            scene.omega,
            scene.pairing,
            min(scene.last + 1, MOST),
            name,
            scene.spec.scale(width),
        )

    texts = labels(matrix.LABELS) | {
        "row": _("Query at {row}"),
        "at": _("key at {col}"),
        "column": _("Key at {col}"),
        "cell": _("query at {row}, key at {col}"),
    }
    digits.show(
        "rotation",
        name,
        errors,
        axes=(_("position of the query"), _("position of the key")),
        texts=texts,
        remark=_("Along a diagonal the distance is the same: in float64 the score would be too."),
    )


def badge(setting: state.Setting) -> str:
    return shell.untrained(setting)


def formula(scene: Scene) -> None:
    st.latex(scene.spec.formula)
    first, second = (int(x[scene.pair]) for x in pair_dims(2 * len(scene.omega), scene.pairing))
    theta = float(scene.omega[scene.pair])
    qa, qb = (float(scene.q[scene.query, d]) for d in (first, second))
    ka, kb = (float(scene.k[scene.key, d]) for d in (first, second))
    delta = (scene.n - scene.m) * theta
    part = (qa * ka + qb * kb) * np.cos(delta) + (qb * ka - qa * kb) * np.sin(delta)
    st.latex(
        rf"\theta_{{{scene.pair}}} = {scene.spec.base:g}^{{-{2 * scene.pair}/{2 * len(scene.omega)}}} = {theta:.6g},\qquad"
        rf" (n-m)\,\theta_{{{scene.pair}}} = ({scene.n} - {scene.m}) \cdot {theta:.6g} = {delta:.6f}"
    )
    st.latex(
        rf"\begin{{aligned}} &(q_{{{first}}}k_{{{first}}} + q_{{{second}}}k_{{{second}}})\cos((n-m)\theta) + (q_{{{second}}}k_{{{first}}} - q_{{{first}}}k_{{{second}}})\sin((n-m)\theta)\\"
        rf" &= {qa * ka + qb * kb:.5f}\cdot {np.cos(delta):.5f} + ({qb * ka - qa * kb:.5f})\cdot ({np.sin(delta):.5f}) = \mathbf{{{part:.6f}}} \end{{aligned}}"
    )


def code(setting: state.Setting, scene: Scene) -> str:
    count = len(scene.traces[0].tokens)
    q_side, k_side = ("a" if i < count else "b" for i in (scene.query, scene.key))
    q_at, k_at = (i if i < count else i - count for i in (scene.query, scene.key))
    return f"""import torch
from posviz import Dims, attention, encodings, text

spec = {scene.spec.call()}
dims = Dims(d_model={setting.dims.d_model}, n_heads={setting.dims.n_heads})
a, b = (
    attention.attend(text.tokenize(s, {state.get("unit")!r}), spec, dims, seed={setting.seed}, max_len={setting.max_len})
    for s in ({state.raw("a")!r}, {state.raw("b")!r})
)
q = torch.tensor({q_side}.q[{scene.head}, {q_at}])  # before turning, (d_head,)
k = torch.tensor({k_side}.k[{scene.head}, {k_at}])
values = [
    float(spec.rotate(q[None], [{scene.m} + s]) @ spec.rotate(k[None], [{scene.n} + s]).T) * spec.scale(dims.d_head)
    for s in (0, 1, 10, 100, 1000, 10_000)  # both moved on: the score stands still
]
print(values)
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    positions = np.arange(scene.last + 1)

    def arrays() -> dict[str, np.ndarray]:
        return {"omega": scene.omega, "q": scene.q, "k": scene.k, "angles": positions[:, None] * scene.omega}

    def table() -> list[list[object]]:
        lines: list[list[object]] = [["pair", "theta", "wavelength", "m*theta", "n*theta"]]
        lines += [[i, w, 2 * np.pi / w, scene.m * w, scene.n * w] for i, w in enumerate(scene.omega.tolist())]
        return lines

    save.row(
        "rotation",
        component="clocks",
        data=bundle(scene),
        title=question(),
        caption=f"{scene.spec.title(setting.lang)} · base {scene.spec.base:g} · d_head {setting.dims.d_head}",
        arrays=arrays,
        table=table,
    )
