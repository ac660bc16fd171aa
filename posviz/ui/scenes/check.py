"""Check my code: vectors before and after somebody's own rotation, and the convention that explains them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import streamlit as st

from posviz import rope_check, vectors
from posviz.encodings.model_rope import ModelRope
from posviz.rope_check import Convention, Verdict
from posviz.types import Refusal, Text
from posviz.ui import blocks, controls, models, save, state
from posviz.ui.canvas import plots
from posviz.ui.canvas.plots import Mark, Plot, Series
from posviz.ui.lang import _, labels

KEY = "check_canvas"
LONGEST_LINK = 4000  # characters of a vector that travel in a link
EXAMPLE = (0.5, -1.25, 2.0, 0.75, -0.5, 1.5, 1.0, -2.0)  # turned as GPT-J does, one position too far


@dataclass(frozen=True, eq=False)
class Scene:
    """The vectors (..., d), where the first one stands, the base that was meant, and what was found."""

    before: np.ndarray
    after: np.ndarray
    start: int
    base: float
    model: ModelRope | None
    verdict: Verdict
    example: bool

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return rope_check.rows(self.before, self.after, self.start)


def _given(name: str) -> np.ndarray | None:
    """The vectors of one side: uploaded or long ones from the session, short ones from the link."""
    refusal = st.session_state.get(f"_{name}_refused")
    if refusal is not None:
        raise refusal
    kept = st.session_state.get(f"_{name}_array")
    if kept is not None:
        return kept
    raw = state.get(name)
    return vectors.parse(raw) if raw.strip() else None


def build() -> Scene:
    state.check()
    before, after = _given("cq"), _given("ca")
    start, base = state.get("cp"), state.get("base")
    raw = state.get("cm")
    model = None
    if raw not in ("", "none"):
        model = next(iter(models.model(raw).ropes.values()))
    example = before is None and after is None
    if example:
        before, after = _example(start, base)
    if before is None or after is None:
        raise Refusal(
            Text(
                "vectors are missing: paste those from before and from after the rotation",
                "缺少向量：旋转前和旋转后的都要粘贴",
            ),
            field="vectors",
        )
    verdict = _verdict(_Frozen(before), _Frozen(after), start, base, model)
    return Scene(before, after, start, base, model, verdict, example)


class _Frozen:
    """An array as a key: its shape and bytes, all of them."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.key = (array.shape, array.tobytes())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.key == other.key


@lru_cache(maxsize=16)
def _verdict(before: _Frozen, after: _Frozen, start: int, base: float, model: ModelRope | None) -> Verdict:
    return rope_check.check(before.array, after.array, start, base, model)


def _example(start: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and what GPT-J's pairing makes of them when every position is one too high."""
    x = np.array([EXAMPLE])
    convention = Convention(pairing="interleaved", table="interleaved", offset=1, base=base, width=x.shape[1])
    return x, rope_check.turn(x, rope_check.angles(convention, np.array([start]), x.shape[1], None), convention)


# ---- controls


def inputs() -> None:
    names = {"cq": _("before the rotation"), "ca": _("after it")}
    left, right, rest = st.columns([5, 5, 3])
    for column, name in ((left, "cq"), (right, "ca")):
        with column:
            _input(name, names[name])
    with rest:
        controls.number("cp", _("position of the first vector"), step=1)
        _model()


def _input(name: str, label: str) -> None:
    key, file_key = f"w_{name}", f"w_{name}_file"
    if key not in st.session_state:
        st.session_state[key] = state.raw(name)
    st.text_area(
        label,
        key=key,
        height=110,
        max_chars=vectors.MAX_BYTES,
        placeholder="[[0.5, -1.25, 2.0, 0.75], …]",
        on_change=_take,
        args=(name, lambda: st.session_state[key], vectors.parse),
    )
    with st.popover(_("upload a file")):
        st.file_uploader(
            label,
            type=["npy", "safetensors"],
            key=file_key,
            max_upload_size=4,
            on_change=_take,
            args=(
                name,
                lambda: st.session_state[file_key].getvalue() if st.session_state[file_key] else b"",
                vectors.load,
            ),
        )


def _take(name: str, given: Callable[[], str | bytes], read: Callable) -> None:
    """Numbers that were pasted or uploaded: short text goes into the link, the rest stays in this session."""
    for kept in ("array", "refused"):
        st.session_state.pop(f"_{name}_{kept}", None)
    data = given()
    short = isinstance(data, str) and len(data) <= LONGEST_LINK
    state.put(name, data if short else "")
    if not data:
        return
    try:
        array = read(data)
    except Refusal as refusal:
        st.session_state[f"_{name}_refused"] = refusal.kept()
        return
    if not short:
        st.session_state[f"_{name}_array"] = array


def _model() -> None:
    raw = state.raw("cm") or "none"
    names = {"none": _("no scaling")} | {key: model.title for key, model in models.known_models().items()}
    names = names if raw in names else {raw: _("pasted settings")} | names
    st.session_state["w_cm"] = raw
    st.selectbox(
        _("scaling of a model"),
        list(names),
        format_func=lambda value: names.get(value, str(value)),
        key="w_cm",
        help=_("Its scaled frequencies are tried as well; the head must be as wide as the vectors."),
        on_change=lambda: state.put("cm", st.session_state["w_cm"]),
    )


# ---- what was found


def described(scene: Scene, convention: Convention, length: float) -> list[str]:
    """A convention in words: the pairing, then everything that is not as it was meant."""
    width, given = scene.before.shape[-1], scene.base
    half = convention.pairing == "half"
    said = [
        _("pairs dimensions i and i + {half} (Llama)").format(half=convention.width // 2)
        if half
        else _("pairs dimensions 2i and 2i + 1 (GPT-J)")
    ]
    odd = {
        _("but cos and sin are laid out for the other pairing: two conventions are mixed"): convention.table
        != convention.pairing,
        _("turns backwards: the sine has the other sign"): convention.sign < 0,
        _("cos and sin are exchanged"): convention.swapped,
        _("every position is one too high"): convention.offset > 0,
        _("every position is one too low"): convention.offset < 0,
        _("base {got:g} instead of {given:g}").format(got=convention.base, given=given): convention.base != given,
        _("positions are divided by {n:g} (linear scaling)").format(n=convention.divisor): convention.divisor != 1,
        _("only the first {n} of {d} dimensions turn").format(n=convention.width, d=width): convention.width != width,
        _("exponents −i/width: the factor 2 is missing"): convention.exponent == "i/width",
        _("exponents −2i/d over the whole head instead of the part that turns"): convention.exponent == "2i/d_head",
        _("frequencies rounded to bfloat16"): convention.precision == "bfloat16 frequencies",
        _("angles rounded to bfloat16"): convention.precision == "bfloat16 angles",
        _("angles rounded to float16"): convention.precision == "float16 angles",
        _("with the model's scaled frequencies"): convention.scaled,
        _("cos and sin multiplied by {n:.4f} (attention factor)").format(n=length): length != 1,
    }
    return said + [sentence for sentence, holds in odd.items() if holds]


def answer(scene: Scene) -> None:
    """The verdict in one line, the conventions that fit, or where the nearest one first differs."""
    found = scene.verdict
    if scene.example:
        blocks.note(_("An example is shown until vectors are pasted."))
    if found.still:
        blocks.findings([("", _("Nothing was turned: before and after are equal."), True)])
    elif found.matches:
        words = [described(scene, match.convention, match.length) for match in found.matches[:4]]
        blocks.findings([("", _("; ").join(sentences), len(sentences) > 1) for sentences in words])
        if len(found.matches) > 1:
            blocks.note(
                _("{n} conventions give these numbers; a larger position, or more vectors, tells them apart.").format(
                    n=len(found.matches)
                )
            )
    else:
        first = found.first
        blocks.findings([("", _differs(scene, first), True)])


def _differs(scene: Scene, first: rope_check.Difference) -> str:
    near = _("; ").join(described(scene, scene.verdict.nearest.convention, scene.verdict.nearest.length))
    return _(
        "No usual convention gives these numbers. The nearest one ({near}) first differs in vector {row}, dimension {d}: {expected:.6g} expected, {got:.6g} found."
    ).format(near=near, row=first.row, d=first.dimension, expected=first.expected, got=first.got)


def _turned(scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, d) after as given, as the nearest convention gives it, and (n,) positions."""
    x, y, positions = scene.rows
    near = scene.verdict.nearest
    expected = rope_check.turn(
        x, rope_check.angles(near.convention, positions, x.shape[1], scene.model), near.convention
    )
    expected[:, : near.convention.width] *= near.length
    return y, expected, positions


def bundle(scene: Scene) -> bytes:
    y, expected, positions = _turned(scene)
    first = scene.verdict.first
    row = first.row if first else int(np.abs(y - expected).max(axis=1).argmax())
    at = np.arange(y.shape[1], dtype=np.float64)
    both = np.concatenate([y[row], expected[row]])
    room = (both.max() - both.min() or 1.0) * 0.1
    plot = Plot(
        _("the vector at position {p}, dimension by dimension").format(p=int(positions[row])),
        x_label=_("dimension"),
        x_name=_("dimension {x}"),
        series=[
            Series(_("what the convention gives"), at, expected[row], "quiet", "rings"),
            Series(_("yours"), at, y[row], "a", "dots"),
        ],
        marks=[Mark(first.dimension, _("first difference"), "b")] if first else [],
        x_range=(-0.5, len(at) - 0.5),
        y_range=(float(both.min() - room), float(both.max() + room)),
    )
    return plots.bundle(
        [plot], name="check", labels=labels(plots.LABELS), height=330, alt=plot.title, file="posviz-check"
    )


def show(scene: Scene) -> None:
    plots.show(bundle(scene), key=KEY)


def proof(scene: Scene) -> list[blocks.Number]:
    found = scene.verdict
    tried = 16 * sum(1 for _one in rope_check.conventions(scene.before.shape[-1], scene.base, scene.model))
    return [
        blocks.Number(
            blocks.compact(found.nearest.error),
            _("largest difference, as part of the largest number"),
            _("at most {n}").format(n=f"{rope_check.TOLERANCE:g}"),
            bool(found.matches),
        ),
        blocks.Number(f"{len(found.matches)} / {tried:,}", _("conventions that reproduce the vectors, of all tried")),
        blocks.Number(blocks.compact(found.norms), _("largest relative change of a vector's length")),
    ]


def formula(scene: Scene) -> None:
    convention = scene.verdict.nearest.convention
    sign = "-" if convention.sign < 0 else ""
    cos, sin = (r"\sin", r"\cos") if convention.swapped else (r"\cos", r"\sin")
    offset = f"{convention.offset:+d}" if convention.offset else ""
    divisor = rf"/{convention.divisor:g}" if convention.divisor != 1 else ""
    st.latex(
        rf"\begin{{pmatrix}} x_a' \\ x_b' \end{{pmatrix}} = \begin{{pmatrix}} {cos}\theta & {'-' if not sign else ''}{sin}\theta \\ {sign}{sin}\theta & {cos}\theta \end{{pmatrix}}"
        rf"\begin{{pmatrix}} x_a \\ x_b \end{{pmatrix}},\qquad \theta_i = (p{offset}){divisor}\;{convention.base:g}^{{-2i/{convention.width}}}"
    )


def code(scene: Scene) -> str:
    return f"""import numpy as np
from posviz import rope_check

before = np.array({scene.before.tolist()!r})
after = np.array({scene.after.tolist()!r})
found = rope_check.check(before, after, {scene.start}, {scene.base!r})
values = [(match.convention, match.error) for match in found.matches]
print(*values, found.first, sep="\\n")
"""


def downloads(scene: Scene) -> None:
    y, expected, positions = _turned(scene)

    def arrays() -> dict[str, np.ndarray]:
        return {"before": scene.rows[0], "after": y, "expected": expected, "positions": positions}

    def table() -> list[list[object]]:
        lines: list[list[object]] = [["position", "dimension", "before", "after", "expected"]]
        for row, position in enumerate(positions.tolist()):
            columns = zip(scene.rows[0][row].tolist(), y[row].tolist(), expected[row].tolist(), strict=True)
            lines += [[position, d, *numbers] for d, numbers in enumerate(columns)]
        return lines

    save.row(
        "check",
        component="plots",
        data=bundle(scene),
        title=_("Does my code turn the way I think it does?"),
        caption=_("; ").join(described(scene, scene.verdict.nearest.convention, scene.verdict.nearest.length)),
        arrays=arrays,
        table=table,
        count=5 * y.size,
    )
