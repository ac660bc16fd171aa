"""What is inconsistent or worth a second look in a model's RoPE settings, in plain sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from posviz.encodings import model_config
from posviz.encodings.model_rope import ModelRope
from posviz.rope_scaling import DynamicNtk, Linear, Llama3, LongRope, NtkAware, Scaling, Yarn, mscale
from posviz.types import Text, shown

# The parameters that each scaling reads, beside those that all have.
READ = {
    "default": (),
    "linear": ("factor",),
    "ntk": ("factor",),
    "dynamic": ("factor",),
    "yarn": (
        "factor",
        "original_max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "truncate",
        "mscale",
        "mscale_all_dim",
        "attention_factor",
    ),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "longrope": ("short_factor", "long_factor", "factor", "original_max_position_embeddings", "attention_factor"),
    "proportional": ("factor",),
}
ALWAYS = ("rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved")


class Finding(NamedTuple):
    """One sentence about a file; suspicious: somebody should check it, else it is only good to know."""

    text: Text
    suspicious: bool


def diagnose(config: Mapping[str, Any]) -> list[Finding]:
    """Every finding about a config.json that can be read; one that cannot raises :class:`posviz.Refusal`."""
    model = model_config.text_config(config)
    parts = model_config.layer_parameters(model)
    found = list(_about_file(model))
    for layer, rope in model_config.ropes_of(config).items():
        for finding in (
            *_about_keys(model, parts[layer]),
            *_about_lengths(model, parts[layer], rope),
            *_about_rope(rope),
        ):
            if layer:
                both = Text(f"{layer}: {finding.text.en}", f"{layer}：{finding.text.zh}")
                finding = Finding(both, finding.suspicious)
            if finding not in found:
                found.append(finding)
    return sorted(found, key=lambda finding: not finding.suspicious)


def _odd(en: str, zh: str, **values: Any) -> Finding:
    return Finding(Text(en, zh).filled(**values), True)


def _note(en: str, zh: str, **values: Any) -> Finding:
    return Finding(Text(en, zh).filled(**values), False)


def _about_file(model: Mapping[str, Any]) -> Iterator[Finding]:
    if model.get("rope_parameters") is not None and model.get("rope_scaling") is not None:
        yield _odd(
            "The file has both rope_parameters and rope_scaling; only rope_parameters is read here.",
            "文件里既有 rope_parameters 又有 rope_scaling；这里只读 rope_parameters。",
        )
    given = model_config.layer_parameters(model).get("", {})
    if given.get("rope_theta") is not None and model.get("rope_theta") not in (None, given["rope_theta"]):
        yield _odd(
            "rope_theta is given twice: {inner} with the scaling, which counts, and {outer} beside it.",
            "rope_theta 给了两次：缩放参数里是 {inner}（以它为准），外面是 {outer}。",
            inner=shown(given["rope_theta"]),
            outer=shown(model["rope_theta"]),
        )
    bases = ("rope_theta", "rotary_emb_base", "global_rope_theta")
    inner = any(part.get("rope_theta") is not None for part in model_config.layer_parameters(model).values())
    if not inner and all(model.get(name) is None for name in bases):
        yield _note(
            "The file does not say the base (rope_theta); the model's default, {base:g}, is used.",
            "文件没有写 base（rope_theta）；用的是模型的默认值 {base:g}。",
            base=model_config.base_of(model, {}),
        )
    if model_config.promised_length(model) is None:
        yield _odd(
            "max_position_embeddings is missing: the file does not say how long a text may be.",
            "缺少 max_position_embeddings：文件没有说文本可以有多长。",
        )
    yield from _about_width(model)


def _about_width(model: Mapping[str, Any]) -> Iterator[Finding]:
    d_head, hidden, heads = (model.get(name) for name in ("head_dim", "hidden_size", "num_attention_heads"))
    if not all(isinstance(value, int) and value > 0 for value in (d_head, hidden, heads)):
        return
    if d_head * heads != hidden:
        whole = hidden // heads  # of no use beside head_dim, so it may be larger than any float
        yield _note(
            "head_dim is {d}, not hidden_size / num_attention_heads = {quotient}: code that divides gets another RoPE.",
            "head_dim 是 {d}，而不是 hidden_size / num_attention_heads = {quotient}：用除法的代码会得到另一个 RoPE。",
            d=d_head,
            quotient=shown(whole) if whole.bit_length() > 1000 else f"{hidden / heads:g}",
        )


def _about_keys(model: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Finding]:
    """The names in the scaling's parameters."""
    kind = model_config.kind_of(model, given)
    new, old = given.get("rope_type"), given.get("type")
    if new is not None and old is not None and new != old:
        yield _odd(
            "rope_type is {new} but type is {old}; rope_type counts.",
            "rope_type 是 {new}，type 却是 {old}；以 rope_type 为准。",
            new=shown(new),
            old=shown(old),
        )
    said = new if new is not None else old
    if said is not None and said != kind:
        yield _note("{said} is read as {kind}.", "{said} 按 {kind} 来读。", said=shown(said), kind=kind)
    unread = sorted(str(key) for key in given if key not in READ[kind] + ALWAYS and given[key] is not None)
    if unread:
        yield _odd(
            "{kind} does not read {names}: without effect, unless the model's own code uses it.",
            "{kind} 不读 {names}：不起作用，除非模型自己的代码用到它。",
            kind=kind,
            names=shown(", ".join(unread), 120),
        )


def _about_lengths(model: Mapping[str, Any], given: Mapping[str, Any], rope: ModelRope) -> Iterator[Finding]:
    """factor, original and promised length against each other."""
    scaling, promised = rope.scaling, rope.max_position_embeddings
    original = rope.original_max_position_embeddings
    if isinstance(scaling, Linear | NtkAware):
        yield _note(
            "{kind} does not say which length the model was trained on before; "
            "max_position_embeddings may be that length or the extended one.",
            "{kind} 没有说模型原来按多长训练；max_position_embeddings 可能是原来的，也可能是加长后的。",
            kind=scaling.kind,
        )
    if original is None:
        return
    if all(place.get("original_max_position_embeddings") is None for place in (model, given)):
        yield _odd(
            "original_max_position_embeddings is missing; max_position_embeddings, {n}, is taken for it, "
            "so the text counts as not yet extended.",
            "缺少 original_max_position_embeddings；用 max_position_embeddings（{n}）代替，等于认为文本还没有加长。",
            n=original,
        )
    if promised is None:
        return
    reach = scaling.reach()
    if original > promised:
        yield _odd(
            "original_max_position_embeddings, {original}, is longer than max_position_embeddings, {promised}.",
            "original_max_position_embeddings（{original}）比 max_position_embeddings（{promised}）还长。",
            original=original,
            promised=promised,
        )
    elif isinstance(scaling, Llama3):
        if abs(reach - promised) > 0.5:
            yield _note(
                "factor {factor:g} divides the slow pairs; the lengths say {promised} / {original} = {ratio:g}.",
                "factor {factor:g} 只用来除慢的那些对；按长度算是 {promised} / {original} = {ratio:g}。",
                factor=scaling.factor,
                promised=promised,
                original=original,
                ratio=promised / original,
            )
    elif reach is not None and abs(reach - promised) > 0.5:
        yield _odd(
            "factor {factor:g} × original length {original} = {reach:g}, but max_position_embeddings says {promised}.",
            "factor {factor:g} × 原来的长度 {original} = {reach:g}，而 max_position_embeddings 写的是 {promised}。",
            factor=scaling.factor,
            original=original,
            reach=reach,
            promised=promised,
        )


def _about_rope(rope: ModelRope) -> Iterator[Finding]:
    scaling = rope.scaling
    if getattr(scaling, "factor", None) == 1 and isinstance(scaling, Linear | DynamicNtk | Yarn):
        yield _odd("factor is 1: nothing is scaled.", "factor 是 1：什么也没有缩放。")
    if isinstance(scaling, DynamicNtk):
        yield _note(
            "Beyond {n} positions every further token changes all frequencies; keys that were cached turned by "
            "the old ones no longer fit.",
            "超过 {n} 个位置之后，每多一个词元所有频率都会变；缓存里按旧频率转过的键就对不上了。",
            n=scaling.max_position_embeddings,
        )
    if isinstance(scaling, LongRope):
        yield _note(
            "A text of {n} positions and one of one more use different lists: all keys turn differently, "
            "also those of its beginning.",
            "长度为 {n} 和再多一个位置的文本用的是不同的列表：所有的键转得都不一样，包括开头的。",
            n=scaling.original_max_position_embeddings,
        )
    yield from _about_attention_factor(scaling)


def _about_attention_factor(scaling: Scaling) -> Iterator[Finding]:
    given = getattr(scaling, "given_attention_factor", None)
    if given is not None:
        usual = type(scaling)(**{**vars(scaling), "given_attention_factor": None}).attention_factor()
        if abs(given - usual) > 1e-6 * usual:
            yield _odd(
                "attention_factor is set to {given:g}; from the factor it would be {usual:.6g}.",
                "attention_factor 设成了 {given:g}；按 factor 算应是 {usual:.6g}。",
                given=given,
                usual=usual,
            )
    if isinstance(scaling, Yarn) and scaling.mscale_all_dim and given is None:
        again = mscale(scaling.factor, scaling.mscale_all_dim) ** 2
        yield _note(
            "mscale_all_dim: DeepSeek's code multiplies the scores by {again:.4f} once more, "
            "beside the {ratio:.4f} of cos and sin.",
            "mscale_all_dim：DeepSeek 的代码除了给 cos 和 sin 乘 {ratio:.4f} 之外，还把分数再乘一次 {again:.4f}。",
            again=again,
            ratio=scaling.attention_factor(),
        )
    if isinstance(scaling, Yarn) and (scaling.mscale is None) != (scaling.mscale_all_dim is None):
        yield _odd(
            "Only one of mscale and mscale_all_dim is given; without the other it has no effect on cos and sin.",
            "mscale 和 mscale_all_dim 只给了一个；缺了另一个，它对 cos 和 sin 不起作用。",
        )
