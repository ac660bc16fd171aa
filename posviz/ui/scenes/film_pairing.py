"""The two pairings: one permutation of the dimensions turns one into the other, and mixing them up breaks the score."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch

from posviz.rotation import angles, pair_dims, permutation, rotate
from posviz.ui import blocks, save, shell, state
from posviz.ui.canvas import pairing
from posviz.ui.lang import _, labels
from posviz.ui.scenes import rotation

KEY = "film_pairing"


@dataclass(frozen=True, eq=False)
class Scene:
    """Query and key of one rotation; the permutation of the dimensions that turn, the others in their place."""

    one: rotation.Scene
    order: np.ndarray

    @property
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.one.q[self.one.query], self.one.k[self.one.key]

    def turned(self, x: np.ndarray, position: int, name: str) -> np.ndarray:
        theta = angles(torch.tensor([position]), torch.tensor(self.one.omega))
        return rotate(torch.tensor(x)[None], theta, name)[0].numpy()

    def score(self, query: str, key: str, permuted: bool = False) -> float:
        """q at m times k at n, each turned in its own pairing; permuted: both vectors are put into half's order first."""
        q, k = (x[self.order] if permuted else x for x in self.vectors)
        product = self.turned(q, self.one.m, query) @ self.turned(k, self.one.n, key)
        return float(product) * self.one.spec.scale(len(q))


def question() -> str:
    return _("Which two dimensions make a pair?")


def claim() -> str:
    return _("Neighbours, or one from each half: one permutation makes them the same. Mixing them up breaks the score.")


def toolbar(setting: state.Setting) -> None:
    rotation.head(setting)


def build(setting: state.Setting) -> Scene:
    one = rotation.build(setting)
    order = np.arange(one.q.shape[1])
    order[: 2 * len(one.omega)] = permutation(2 * len(one.omega)).numpy()
    return Scene(one, order)


def _order(scene: Scene, name: str) -> pairing.Order:
    """The query in this pairing's memory order, before and after it is turned to m."""
    first, second = pair_dims(2 * len(scene.one.omega), name)
    x = scene.vectors[0]
    x = x[scene.order] if name == "half" else x
    return pairing.Order(torch.stack([first, second], dim=1).numpy(), x, scene.turned(x, scene.one.m, name))


def bundle(scene: Scene) -> bytes:
    return pairing.bundle(
        _order(scene, "interleaved"),
        _order(scene, "half"),
        permutation=scene.order[: 2 * len(scene.one.omega)],
        pair=scene.one.pair,
        labels=labels(pairing.LABELS),
        alt=_("Where each of {n} dimensions goes from one pairing's order to the other's").format(n=len(scene.order)),
        file="posviz-pairing",
    )


def show(scene: Scene) -> None:
    pairing.show(bundle(scene), key=KEY, on_change=lambda: rotation.chosen(KEY, {"pair": "pair"}))


def remark(setting: state.Setting, scene: Scene) -> None:
    blocks.note(_("x' = x cos mθ + rot(x) sin mθ. The minus marks what rot negates; the vector is the chosen query."))


def proof(scene: Scene) -> list[blocks.Number]:
    own = scene.score("interleaved", "interleaved")
    same = abs(scene.score("half", "half", permuted=True) - own)
    wrong = scene.score("half", "half") - own
    mixed = scene.score("half", "interleaved") - own
    at = f"m = {scene.one.m}, n = {scene.one.n}"
    return [
        blocks.Number(
            blocks.compact(same),
            _("score after the permutation with the other pairing: change"),
            _("should be 0"),
            same < 1e-12,
        ),
        blocks.Number(blocks.compact(wrong), _("change of the score without the permutation"), at),
        blocks.Number(blocks.compact(mixed), _("change where query and key are paired differently"), at),
    ]


def more(scene: Scene) -> None:
    pass


def badge(setting: state.Setting) -> str:
    return shell.untrained(setting)


def formula(scene: Scene) -> None:
    width = 2 * len(scene.one.omega)
    i = scene.one.pair
    st.latex(
        r"\mathrm{rot}_{\mathrm{interleaved}}(x)_{2i} = -x_{2i+1},\ \mathrm{rot}(x)_{2i+1} = x_{2i};\qquad"
        r"\mathrm{rot}_{\mathrm{half}}(x)_{i} = -x_{i+d/2},\ \mathrm{rot}(x)_{i+d/2} = x_{i}"
    )
    st.latex(
        rf"\text{{interleaved}}: ({2 * i},\, {2 * i + 1}) \;\longrightarrow\; \text{{half}}: ({i},\, {i + width // 2}),\qquad"
        rf" P = [{', '.join(map(str, scene.order[: min(width, 16)].tolist()))}{', …' if width > 16 else ''}]"
    )


def code(setting: state.Setting, scene: Scene) -> str:
    q, k = scene.vectors
    return f"""import torch
from posviz.rotation import angles, inv_freq, permutation, rotate

q, k = torch.tensor({q.tolist()!r}), torch.tensor({k.tolist()!r})
omega = inv_freq({2 * len(scene.one.omega)}, {scene.one.spec.base!r})
order = torch.arange(len(q))
order[: 2 * len(omega)] = permutation(2 * len(omega))

def score(q, k, pairing):
    turned = [rotate(x[None].double(), angles(torch.tensor([p]), omega), pairing)[0] for x, p in ((q, {scene.one.m}), (k, {scene.one.n}))]
    return float(turned[0] @ turned[1]) * {scene.one.spec.scale(len(q))!r}

values = [score(q, k, "interleaved"), score(q[order], k[order], "half"), score(q, k, "half")]
print(values)
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    inter, half = _order(scene, "interleaved"), _order(scene, "half")

    def table() -> list[list[object]]:
        columns = (scene.order.tolist(), half.x.tolist(), half.y.tolist(), inter.x.tolist(), inter.y.tolist())
        lines = [[i, *line] for i, line in enumerate(zip(*columns, strict=True))]
        return [
            ["dimension", "from interleaved", "half x", "half turned", "interleaved x", "interleaved turned"],
            *lines,
        ]

    save.row(
        "pairing",
        component="pairing",
        data=bundle(scene),
        title=question(),
        caption=f"d_head {len(scene.order)} · m = {scene.one.m}",
        arrays=lambda: {"permutation": scene.order, "x": inter.x, "y_interleaved": inter.y, "y_half": half.y},
        table=table,
    )
