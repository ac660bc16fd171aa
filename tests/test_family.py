"""The whole family: golden values for every registry entry, other people's code, and what each paper promises."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posviz import attention, encodings, similarity, text, views
from posviz.encodings import ENCODINGS, mrope
from posviz.peak import Peak
from posviz.types import Dims, Refusal

FOLDER = Path(__file__).parent / "golden" / "encodings"
FILES = sorted(FOLDER.glob("*.json"))
DIMS = Dims(d_model=32, n_heads=4)
CONTENT = ("transformer_xl", "conformer", "deberta", "shaw", "cope")


def refused(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---- golden values: 50 digits, by a script that does not know posviz


def test_every_encoding_has_a_golden_file():
    assert {json.loads(path.read_text("utf-8"))["encoding"] for path in FILES} == set(ENCODINGS)
    assert set(ENCODINGS) <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_float64_is_what_50_digits_say(path):
    case = json.loads(path.read_text("utf-8"))
    assert case["source"]
    spec = encodings.make(case["encoding"], **case["given"])
    module = spec.build(Dims(d_model=case["d_model"], n_heads=case["n_heads"]), case["max_len"]).double()
    weights = {name: torch.tensor(value, dtype=torch.float64) for name, value in case.get("weights", {}).items()}
    assert set(weights) == set(module.state_dict()), "every parameter takes part"
    module.load_state_dict(weights)
    at = torch.tensor(case["positions"])
    q, k = (torch.tensor(case[name], dtype=torch.float64) for name in ("q", "k"))
    checked = 0
    with torch.no_grad():
        if "embed" in case:
            x = torch.tensor(case.get("x", np.zeros((len(at), case["d_model"])).tolist()), dtype=torch.float64)
            close(module.embed(x, at) - x, case["embed"])
            checked += 1
        if "bias" in case:
            close(module.bias(q, k, at, at).expand(case["n_heads"], len(at), len(at)), case["bias"])
            checked += 1
        if "q_turned" in case:
            for got, name in zip(module.rotate(q, k, at, at), ("q_turned", "k_turned"), strict=True):
                close(got, case[name])
            checked += 1
    assert checked == 1


def close(got: torch.Tensor, expected) -> None:
    expected = np.array(expected)
    # an angle of 1000 radians is rounded by 1000 * 2^-53 before its sine is taken
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=4e-13 * max(1, np.abs(expected).max()))


# ---- learned and sinusoidal, as other models count


def test_roberta_counts_from_two():
    from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

    ids = torch.tensor([[5, 6, 7, 8]])  # no padding, whose id is 1
    theirs = RobertaEmbeddings.create_position_ids_from_input_ids(ids, padding_idx=1)[0]
    spec = encodings.make("learned", counting="roberta")
    module = spec.build(DIMS, 4).double()
    assert module.weight.shape == (6, 32)
    with torch.no_grad():
        assert torch.equal(module.embed(torch.zeros(4, 32, dtype=torch.float64)), module.weight[theirs])
    assert str(refused(module.embed, torch.zeros(1, 32), [4])) == (
        "position 4 lies beyond a learned table of 4 rows; allowed are 0 to 3"
    )


def test_opt_counts_from_two_as_well():
    from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding

    assert OPTLearnedPositionalEmbedding(4, 8).offset == encodings.make("learned", counting="roberta").offset == 2


def test_fairseq_rows_are_m2m_100s():
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    theirs = M2M100SinusoidalPositionalEmbedding.get_embedding(60, 32, padding_idx=1)
    plain = encodings.make("sinusoidal", layout="tensor2tensor").table(range(60), 32)
    np.testing.assert_allclose(plain[2:], theirs[2:], rtol=0, atol=4e-6)  # their angles are float32
    fairseq = encodings.make("sinusoidal", layout="fairseq").table(range(58), 32)
    assert torch.equal(fairseq, plain[2:])


@given(st.integers(2, 32).map(lambda n: 2 * n), st.floats(1.5, 1e9))
def test_tensor2tensors_last_wavelength_is_exactly_two_pi_base(d_model, base):
    frequencies, _ = encodings.make("sinusoidal", layout="tensor2tensor", base=base).columns(d_model)
    assert 2 * math.pi / float(frequencies[-1]) == pytest.approx(2 * math.pi * base, rel=1e-13)
    assert float(frequencies[0]) == 1.0


# ---- relative attention against transformers


def test_transformer_xl_is_xlnets_shifted_score():
    from transformers.models.xlnet.modeling_xlnet import XLNetConfig, XLNetRelativeAttention

    spec = encodings.make("transformer_xl")
    module = spec.build(DIMS, 16).double()
    q, k, v = (random(4, 9, 8, seed=s) for s in range(3))
    theirs = XLNetRelativeAttention(XLNetConfig(d_model=32, n_head=4, d_head=8, dropout=0.0)).double().eval()
    with torch.no_grad():
        theirs.r_w_bias.copy_(module.u)
        theirs.r_r_bias.copy_(module.v)
        distances = torch.arange(9, -9, -1)  # 2L rows, from L down to 1 - L: what rel_shift expects
        r = (spec.waves(distances, 32) @ module.w_r).unflatten(-1, (4, 8))[:, None]  # (2L, batch, H, e)
        heads = [x.permute(1, 0, 2)[:, None] for x in (q, k, v)]  # (L, batch, H, e)
        _, weights = theirs.rel_attn_core(*heads, r, output_attentions=True)  # (i, j, b, n)
        scores = q @ k.mT * spec.scale(8) + module.bias(q, k, range(9), range(9))
    np.testing.assert_allclose(scores.softmax(-1), weights[:, :, 0].permute(2, 0, 1), rtol=0, atol=1e-12)


def test_conformer_is_wav2vec2_conformers():
    from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import (
        Wav2Vec2ConformerConfig,
        Wav2Vec2ConformerRelPositionalEmbedding,
        Wav2Vec2ConformerSelfAttention,
    )

    config = Wav2Vec2ConformerConfig(
        hidden_size=32, num_attention_heads=4, position_embeddings_type="relative", attention_dropout=0.0
    )
    spec = encodings.make("conformer")
    module = spec.build(DIMS, 16).double()
    theirs = Wav2Vec2ConformerSelfAttention(config).double().eval()
    x = random(1, 9, 32)
    table = Wav2Vec2ConformerRelPositionalEmbedding(config)(x)
    np.testing.assert_allclose(spec.waves(torch.arange(8, -9, -1), 32), table[0], rtol=0, atol=2e-6)
    with torch.no_grad():
        theirs.linear_pos.weight.copy_(module.w_r.T)
        theirs.pos_bias_u.copy_(module.u)
        theirs.pos_bias_v.copy_(module.v)
        exact = spec.waves(torch.arange(8, -9, -1), 32)[None]
        _, weights = theirs(x, relative_position_embeddings=exact, output_attentions=True)[:2]
        q, k = (layer(x)[0].unflatten(-1, (4, 8)).transpose(0, 1) for layer in (theirs.linear_q, theirs.linear_k))
        scores = q @ k.mT * spec.scale(8) + module.bias(q, k, range(9), range(9))
    np.testing.assert_allclose(scores.softmax(-1), weights[0], rtol=0, atol=1e-12)


def test_deberta_code_is_transformers_deberta():
    from transformers.models.deberta.modeling_deberta import (
        DebertaConfig,
        DisentangledSelfAttention,
        build_relative_position,
    )

    reach = 5
    config = DebertaConfig(
        hidden_size=32, num_attention_heads=4, relative_attention=True, pos_att_type=["c2p", "p2c"],
        max_relative_positions=reach, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    theirs = DisentangledSelfAttention(config).double().eval()
    spec = encodings.make("deberta", max_relative=reach)
    module = spec.build(DIMS, 16).double()
    q, k = random(1, 4, 9, 8), random(1, 4, 9, 8, seed=1)
    with torch.no_grad():
        theirs.pos_proj.weight.copy_(module.w_k.T)
        theirs.pos_q_proj.weight.copy_(module.w_q.T)
        theirs.pos_q_proj.bias.zero_()
        scaled = q * spec.scale(8)
        relative = build_relative_position(q, k)
        reference = theirs.disentangled_att_bias(scaled, k, relative, module.table, 3)
        ours = module.bias(q, k, range(9), range(9))
    np.testing.assert_allclose(ours, reference, rtol=0, atol=1e-7)  # their root of 3 d is float32


def test_debertas_paper_and_code_differ_in_one_index():
    q, k = random(4, 6, 8), random(4, 6, 8, seed=1)
    with torch.no_grad():
        code, paper = (
            encodings.make("deberta", index=index).build(DIMS, 8).double().bias(q, k, range(6), range(6))
            for index in ("code", "paper")
        )
    assert not torch.allclose(code, paper)
    diagonal = torch.eye(6, dtype=torch.bool)
    torch.testing.assert_close(code[:, diagonal], paper[:, diagonal])  # at distance 0 they agree


@pytest.mark.parametrize("name", ["transformer_xl", "conformer", "deberta"])
def test_a_relative_bias_is_what_an_explicit_loop_gathers(name):
    """One query and one key at a time, at their own positions: no shift and no gather."""
    module = encodings.make(name).build(DIMS, 16).double()
    q, k = random(4, 5, 8), random(4, 5, 8, seed=1)
    at = [3, 0, 11, 4, 9]
    with torch.no_grad():
        whole = module.bias(q, k, at, at)
        for i in range(5):
            for j in range(5):
                cell = module.bias(q[:, i : i + 1], k[:, j : j + 1], [at[i]], [at[j]])
                torch.testing.assert_close(whole[:, i, j], cell[:, 0, 0])


# ---- kernels


@given(st.integers(1, 16), st.integers(0, 3000))
def test_a_power_kernel_with_exponent_one_is_alibi(n_heads, distance):
    dims = Dims(d_model=n_heads, n_heads=n_heads)
    module = encodings.make("kerple", kernel="power").build(dims, 8).double()
    alibi = encodings.make("alibi")
    with torch.no_grad():
        module.r1.copy_(alibi.slopes(n_heads))
        module.r2.fill_(1.0)
        if float(alibi.slopes(n_heads).min()) < 0.01:
            return  # below the smallest r1 that the authors allow
        q = torch.zeros(n_heads, 1, 1, dtype=torch.float64)
        ours, theirs = (m.bias(q, q, [distance], [0]) for m in (module, alibi.build(dims, 8)))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_kerple_never_rises_and_every_gradient_is_finite(kernel):
    module = encodings.make("kerple", kernel=kernel).build(DIMS, 8).double()
    q = torch.zeros(4, 1, 8, dtype=torch.float64)
    curve = module.bias(q, q.expand(-1, 300, -1), [0], range(300))[:, 0]
    assert not curve[:, 0].any()
    assert bool((curve.diff(dim=1) < 0).all())
    curve.sum().backward()
    for parameter in module.parameters():
        assert torch.isfinite(parameter.grad).all() and parameter.grad.all()


def nemo_sandwich(length: int, heads: int, width: int) -> torch.Tensor:
    """NVIDIA NeMo's numbers: the kernel less width/2, over 8h/H, in our own words."""
    i = torch.arange(1, width // 2 + 1, dtype=torch.float64)
    n = torch.arange(length, dtype=torch.float64)
    waves = ((n[None, :] - n[:, None])[..., None] / 10_000 ** (2 * i / width)).cos().sum(-1)
    return torch.stack([(waves - width / 2) / (8 * (h + 1) / heads) for h in range(heads)])


def test_sandwich_is_nemos_up_to_a_constant_of_each_head():
    q = torch.zeros(4, 20, 8, dtype=torch.float64)
    ours = encodings.make("sandwich", width=32).build(DIMS, 8).bias(q, q, range(20), range(20))
    theirs = nemo_sandwich(20, 4, 32)
    np.testing.assert_allclose(ours.softmax(-1), theirs.softmax(-1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.ptp((ours - theirs).numpy(), axis=(1, 2)), 0, atol=1e-12)


def test_an_odd_width_of_sandwich_is_refused():
    error = refused(encodings.make, "sandwich", width=3)
    assert str(error) == "`width` of Sandwich must be even, since sinusoids come in pairs, got 3"
    assert error.text("zh") == "Sandwich 的 `width` 必须是偶数，因为正弦成对出现，现在是 3"


@given(st.lists(st.integers(0, 8000), min_size=1, max_size=6), st.integers(64, 4096))
def test_fires_share_stays_from_0_to_1(positions, threshold):
    module = encodings.make("fire", threshold=threshold).build(DIMS, 8)
    share = module.share(positions, positions).detach()
    assert float(share.min()) >= 0 and float(share.max()) <= 1


def test_fire_is_toeplitz_up_to_its_threshold_and_not_beyond():
    spec = encodings.make("fire", threshold=64)
    squares = views.bias_squares(spec.build(DIMS, 8), 130)
    inner = squares[:, :65, :65]
    for k in range(-64, 65):
        assert np.ptp(np.diagonal(inner, k, axis1=1, axis2=2), axis=-1).max() < 1e-12
    assert np.ptp(np.diagonal(squares, 1, axis1=1, axis2=2), axis=-1).max() > 1e-6
    assert spec.mirror_blind(65) and not spec.mirror_blind(66)


# ---- content


def test_cope_counts_gates():
    spec = encodings.make("cope")
    q, k = random(2, 6, 8), random(2, 6, 8, seed=1)
    counted = spec.count(q, k, range(6), range(6))
    gates = (q @ k.mT).sigmoid()
    for m in range(6):
        for n in range(6):
            low, high = sorted((m, n))
            torch.testing.assert_close(counted[:, m, n], gates[:, m, low : high + 1].sum(-1))
    # the paper's way for keys up to the query: a sum from the right
    masked = gates * torch.ones(6, 6).tril()
    backwards = masked.flip(-1).cumsum(-1).flip(-1)
    lower = torch.ones(6, 6, dtype=torch.bool).tril()
    torch.testing.assert_close(counted[:, lower], backwards[:, lower])


def test_cope_does_not_mind_the_order_in_which_keys_are_given():
    module = encodings.make("cope").build(DIMS, 8).double()
    q, k = random(4, 5, 8), random(4, 5, 8, seed=1)
    order = [3, 0, 4, 1, 2]
    with torch.no_grad():
        whole = module.bias(q, k, range(5), range(5))
        shuffled = module.bias(q, k[:, order], range(5), order)
    torch.testing.assert_close(shuffled, whole[..., order])


def test_conv_is_wav2vec2s():
    from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2Config, Wav2Vec2PositionalConvEmbedding

    for kernel in (128, 7):
        config = Wav2Vec2Config(hidden_size=32, num_conv_pos_embeddings=kernel, num_conv_pos_embedding_groups=16)
        theirs = Wav2Vec2PositionalConvEmbedding(config).double()
        module = encodings.make("conv", kernel=kernel).build(DIMS, 8).double()
        x = random(2, 20, 32)
        with torch.no_grad():
            torch.nn.utils.parametrize.remove_parametrizations(theirs.conv, "weight")
            theirs.conv.weight.copy_(module.weight)
            theirs.conv.bias.copy_(module.offset)
            np.testing.assert_allclose(module.embed(x) - x, theirs(x), rtol=0, atol=1e-12)


def test_a_convolution_looks_ahead_whatever_the_mask():
    """Which is why no causal model uses it; every other encoding respects the mask."""
    assert [name for name, cls in ENCODINGS.items() if cls.looks_ahead] == ["conv"]
    spec = encodings.make("conv")
    long, short = (attention.attend(text.tokenize(s), spec, DIMS, mask="causal") for s in ("abcdef", "abc"))
    assert np.abs(long.output[:3] - short.output).max() > 1e-3


# ---- images


def test_rows_first_is_transformers_vit_mae_and_mae_has_its_halves_exchanged():
    """MAE's own code hands numpy's meshgrid the columns first; transformers' port has the rows first."""
    from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

    reference = build_2d_sinusoidal_position_embedding(height=3, width=5, embed_dim=32, dtype=torch.float64)
    rows_first, mae = (
        encodings.make("sincos_2d", form=form, grid_height=3, grid_width=5).table(range(15), 32)
        for form in ("rows_first", "mae")
    )
    np.testing.assert_allclose(rows_first, reference, rtol=0, atol=1e-13)
    np.testing.assert_allclose(mae, torch.cat([reference[:, 16:], reference[:, :16]], dim=1), rtol=0, atol=1e-13)


def test_detr_is_transformers_detr():
    from transformers.models.detr.modeling_detr import DetrSinePositionEmbedding

    build = DetrSinePositionEmbedding.build_sine_position_embedding
    reference = build(
        shape=torch.Size((1, 1, 3, 5)), device="cpu", dtype=torch.float64, num_position_features=16, normalize=True,
        scale=2 * math.pi,
    )  # fmt: skip
    ours = encodings.make("sincos_2d", form="detr", grid_height=3, grid_width=5).table(range(15), 32)
    np.testing.assert_allclose(ours, reference[0].permute(1, 2, 0).reshape(15, 32), rtol=0, atol=1e-12)


@given(st.integers(2, 9), st.integers(2, 9), st.sampled_from(["mae", "rows_first"]))
def test_dot_products_of_patches_are_the_sum_of_the_axes(height, width, form):
    spec = encodings.make("sincos_2d", form=form, grid_height=height, grid_width=width)
    rows = spec.table(range(height * width), 16)
    axis = encodings.make("sinusoidal").table(range(max(height, width)), 8)
    r, c = torch.arange(height * width) // width, torch.arange(height * width) % width
    product = (axis @ axis.T)[r][:, r] + (axis @ axis.T)[c][:, c]
    torch.testing.assert_close(rows @ rows.T, product)


def test_rope_2d_is_qwen2_vls_vision_tower():
    from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig

    config = Qwen2VLVisionConfig(embed_dim=64, num_heads=4)
    tower = qwen.Qwen2VLVisionRotaryEmbedding(config)
    at = torch.tensor([[0, 0], [0, 4], [3, 1], [7, 7]])
    q, k = random(4, 4, 16), random(4, 4, 16, seed=1)  # (patches, heads, e)
    cos, sin = tower(q, at)
    theirs = qwen.apply_rotary_pos_emb_vision(q, k, cos, sin)
    spec = encodings.make("rope_2d")
    for x, reference in zip((q, k), theirs, strict=True):
        ours = spec.rotate(x.transpose(0, 1), at).transpose(0, 1)
        np.testing.assert_allclose(ours, reference, rtol=0, atol=2e-6)


@given(st.tuples(st.integers(0, 500), st.integers(0, 500)))
def test_rope_2d_keeps_only_the_differences(shift):
    spec = encodings.make("rope_2d")
    q, k = random(6, 8), random(6, 8, seed=1)
    at = torch.tensor([[r, c] for r in range(2) for c in range(3)])
    here = spec.rotate(q, at) @ spec.rotate(k, at).T
    there = spec.rotate(q, at + torch.tensor(shift)) @ spec.rotate(k, at + torch.tensor(shift)).T
    torch.testing.assert_close(here, there, rtol=0, atol=1e-10)


def test_one_number_a_token_folds_into_rows():
    for name in ("rope_2d", "sincos_2d"):
        spec = encodings.make(name, grid_width=5)
        flat, pairs = torch.arange(13), torch.tensor([[p // 5, p % 5] for p in range(13)])
        if name == "rope_2d":
            assert torch.equal(spec.angles(flat, 8), spec.angles(pairs, 8))
        else:
            assert torch.equal(spec.table(flat, 8), spec.table(pairs, 8))
    error = refused(encodings.make("rope_2d").angles, torch.zeros(2, 3, dtype=torch.int64), 8)
    assert str(error) == "positions must have the shape (len, 2), got (2, 3)"
    assert error.text("zh") == "位置的形状必须是 (len, 2)，现在是 (2, 3)"


@pytest.mark.parametrize("name", ["sincos_2d", "rope_2d", "mrope"])
def test_the_grid_picture_is_the_similarity_of_one_patch_with_all(name):
    spec = encodings.make(name, grid_height=4, grid_width=7)
    for patch in ((0, 0), (3, 6), (2, 3)):
        picture = views.picture(spec, DIMS, 28, view="grid", patch=patch)
        values = picture.values()
        assert values.shape == (4, 7) and picture.patch == patch
        assert values[patch] == pytest.approx(1, abs=1e-12) == values.max()
    error = refused(views.picture, spec, DIMS, 28, view="grid", patch=(4, 0))
    assert str(error) == "`row` must be a whole number from 0 to 3, got 4"


def test_mrope_bands_are_qwen2_vls():
    spec = encodings.make("mrope")
    assert spec.sections(128) == (16, 24, 24)  # Qwen2-VL's mrope_section
    for d_head in range(2, 130, 2):
        assert sum(spec.sections(d_head)) == d_head // 2


def test_mrope_is_qwen2_vls_and_ids_are_its_rope_index():
    from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLTextConfig

    at = mrope.ids([("text", 3), ("image", (1, 2, 3)), ("text", 2), ("video", (2, 2, 2)), ("text", 1)])
    assert at[:3].tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert at[3:9].tolist() == [[3, 3 + r, 3 + c] for r in range(2) for c in range(3)]
    assert at[9].tolist() == [6, 6, 6], "behind the largest number used"
    for block, start, size in ((slice(3, 9), 3, (1, 2, 3)), (slice(11, 19), 8, (2, 2, 2))):
        theirs = qwen.Qwen2VLModel.get_vision_position_ids(None, start, torch.tensor(size))
        assert torch.equal(at[block], theirs.T)
    assert at[19].tolist() == [10, 10, 10]

    config = Qwen2VLTextConfig(
        hidden_size=512, num_attention_heads=4, num_key_value_heads=4,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [16, 24, 24]},
    )  # fmt: skip
    x = random(1, 4, len(at), 128)
    cos, sin = qwen.Qwen2VLRotaryEmbedding(config)(x, at.T[:, None])
    reference = x * cos[:, None] + qwen.rotate_half(x) * sin[:, None]
    np.testing.assert_allclose(encodings.make("mrope").rotate(x, at), reference, rtol=0, atol=1e-5)


def test_mrope_of_text_is_rope():
    x = random(3, 20, 16)
    plain = encodings.make("rope").rotate(x, range(20))
    torch.testing.assert_close(encodings.make("mrope").rotate(x, range(20)), plain, rtol=0, atol=1e-14)


def test_ids_refuse_what_they_cannot_place():
    error = refused(mrope.ids, [("sound", 3)])
    assert str(error) == "a piece must be text, image or video, got sound"
    assert error.text("zh") == "片段只能是 text、image 或 video，现在是 sound"
    assert str(refused(mrope.ids, [("image", (0, 2, 2))])) == "`grid` must be a whole number from 1 to 4096, got 0"
    for size in (3, (1, 2), "123", None):
        error = refused(mrope.ids, [("image", size)])
        assert str(error) == f"the size of a picture must be (time, rows, columns), got {size}"
        assert error.text("zh") == f"图像的大小必须是（时间、行、列），现在是 {size}"


# ---- xPos


@given(st.integers(0, 3000), st.integers(0, 60))
def test_xpos_depends_on_the_distance(start, distance):
    module = encodings.make("xpos").build(DIMS, 8)
    q, k = random(1, 8), random(1, 8, seed=1)

    def score(m, n):
        turned = module.rotate(q, k, [m], [n])
        return float(turned[0] @ turned[1].T)

    assert score(start + distance, start) == pytest.approx(score(distance, 0), rel=1e-9, abs=1e-9)


def test_xpos_is_rope_times_a_decay_of_each_pair():
    """torchscale's: the same rotation, both members of a pair share their factor."""
    spec = encodings.make("xpos")
    x, at = random(4, 8), [0, 3, 100, 700]
    plain = encodings.make("rope", pairing="interleaved").rotate(x, at)
    i = np.arange(4)
    factor = ((2 * i / 8 + 0.4) / 1.4)[None, :] ** (np.array(at)[:, None] / 512)
    np.testing.assert_allclose(spec.turn(x, at, 1), plain.numpy() * factor.repeat(2, axis=1), rtol=1e-13)
    np.testing.assert_allclose(spec.turn(x, at, -1), plain.numpy() / factor.repeat(2, axis=1), rtol=1e-13)


def test_xpos_refuses_what_its_dtype_cannot_hold():
    spec = encodings.make("xpos")
    ones = torch.ones(1, 8)
    assert torch.isfinite(spec.turn(ones, [36_100], -1)).all()
    error = refused(spec.turn, ones, [36_300], -1)
    assert str(error) == (
        "xPos multiplies by powers of the position that float32 cannot hold at position 36300; "
        "take float64, or a larger `scale_base` than 512"
    )
    assert error.text("zh") == (
        "xPos 要乘以位置的幂，位置 36300 处超出了 float32 的范围；请用 float64，或把 `scale_base` 调到大于 512"
    )


@pytest.mark.parametrize("name", list(ENCODINGS))
def test_turns_says_whether_a_pair_turns_by_position_times_frequency_and_no_more(name):
    """As complex numbers: pair i of position p is multiplied by exp(i p w_i)."""
    spec = encodings.make(name)
    module, x, at = spec.build(DIMS, 64), random(4, 8), [0, 3, 11, 40]
    turned = module.rotate(x, x, at, at)
    if spec.turns(8) is None:
        assert name in ("xpos", "rope_2d") or all(torch.equal(t, x) for t in turned)
        return
    frequencies, pairing = spec.turns(8)
    first, second = (x[:, :4], x[:, 4:]) if pairing == "half" else (x[:, 0::2], x[:, 1::2])
    pairs = torch.complex(first, second) * torch.exp(1j * torch.tensor(at)[:, None] * frequencies)
    got = turned[0]
    got = torch.complex(got[:, :4], got[:, 4:]) if pairing == "half" else torch.complex(got[:, 0::2], got[:, 1::2])
    torch.testing.assert_close(got, pairs)


# ---- refusals of the new ones, whole


@pytest.mark.parametrize(
    ("name", "given", "dims", "english", "chinese"),
    [
        ("transformer_xl", {}, (5, 1), "`d_model` must be even for Transformer-XL, got 5; try 6", "Transformer-XL 要求 `d_model` 为偶数，现在是 5；可以试试 6"),
        ("conformer", {}, (9, 3), "`d_model` must be even for Conformer relative, got 9; try 12", "Conformer 相对位置要求 `d_model` 为偶数，现在是 9；可以试试 12"),
        ("conv", {}, (24, 3), "`d_model` must be a multiple of 16 for convolution, got 24; try 48", "卷积要求 `d_model` 为 16 的倍数，现在是 24；可以试试 48"),
        ("sincos_2d", {}, (18, 3), "`d_model` must be a multiple of 4 for 2-D sin-cos, got 18; try 24", "二维正弦要求 `d_model` 为 4 的倍数，现在是 18；可以试试 24"),
        ("rope_2d", {}, (12, 2), "`d_head` must be a multiple of 4 for 2-D RoPE, got 6 (d_model 12 / n_heads 2); try d_model 16", "二维 RoPE 要求 `d_head` 为 4 的倍数，现在是 6（d_model 12 / 2 个头）；可以试试 d_model 16"),
        ("mrope", {}, (6, 2), "`d_head` must be even for M-RoPE, got 3 (d_model 6 / n_heads 2); try d_model 8", "M-RoPE 要求 `d_head` 为偶数，现在是 3（d_model 6 / 2 个头）；可以试试 d_model 8"),
        ("xpos", {}, (6, 2), "`d_head` must be even for xPos, got 3 (d_model 6 / n_heads 2); try d_model 8", "xPos 要求 `d_head` 为偶数，现在是 3（d_model 6 / 2 个头）；可以试试 d_model 8"),
        ("sinusoidal", {"layout": "fairseq"}, (2, 1), "`d_model` must be at least 4 for the layout fairseq (it divides by d/2 − 1), got 2; try 4", "fairseq 排列要求 `d_model` 不小于 4（要除以 d/2 − 1），现在是 2；可以试试 4"),
    ],
)  # fmt: skip
def test_sizes_an_encoding_cannot_have(name, given, dims, english, chinese):
    error = refused(encodings.make(name, **given).build, Dims(d_model=dims[0], n_heads=dims[1]))
    assert str(error) == english
    assert error.text("zh") == chinese


def test_a_bias_square_too_large_is_refused():
    error = refused(views.picture, encodings.make("fire"), Dims(d_model=64, n_heads=4), 2048)
    assert str(error) == (
        "FIRE is not a matter of distance alone: 16,777,216 cells are too many to draw, up to 4,194,304; "
        "take a smaller `max_len` than 2048 or fewer heads"
    )
    assert error.text("zh").startswith("FIRE 不只取决于距离：16,777,216 个格子太多")


# ---- the ends


@pytest.mark.parametrize("name", list(ENCODINGS))
def test_at_the_first_the_last_and_the_first_position_beyond(name):
    """0, 1, max_len - 1 and max_len: finite numbers of the given shape, or one sentence beyond the end."""
    spec, length = encodings.make(name), 16
    module = spec.build(DIMS, length).double()
    with torch.no_grad():
        for position in (0, 1, length - 1, length):
            x, q = random(1, 32), random(4, 1, 8, seed=1)
            if position == length and not spec.capabilities.unbounded:
                assert str(refused(module.embed, x, [position])) == (
                    f"position {position} lies beyond a learned table of {length} rows; allowed are 0 to {length - 1}"
                )
                continue
            got = module.embed(x, [position]), *module.rotate(q, q, [position], [position])
            bias = module.bias(q, q, [position], [position])
            assert [t.shape for t in got] == [x.shape, q.shape, q.shape] and bias.expand(4, 1, 1).shape == (4, 1, 1)
            assert all(bool(torch.isfinite(t).all()) for t in (*got, bias))


# ---- order


@pytest.mark.parametrize("name", list(ENCODINGS))
def test_permuting_words_with_their_positions_permutes_the_scores(name):
    """Equivariance: an encoding sees positions, not the order in which they are handed over."""
    if ENCODINGS[name].looks_ahead:
        return  # a convolution sees the rows as they come: that is its order
    module = encodings.make(name).build(DIMS, 16).double()
    x, q, k = random(6, 32), random(4, 6, 8, seed=1), random(4, 6, 8, seed=2)
    order = torch.tensor([4, 1, 5, 0, 2, 3])
    at = torch.arange(6)
    with torch.no_grad():
        torch.testing.assert_close(module.embed(x[order], at[order]), module.embed(x, at)[order])
        turned, mixed = module.rotate(q, k, at, at), module.rotate(q[:, order], k[:, order], at[order], at[order])
        for one, other in zip(turned, mixed, strict=True):
            torch.testing.assert_close(other, one[:, order])
        bias = module.bias(*turned, at, at).expand(4, 6, 6)
        shuffled = module.bias(*mixed, at[order], at[order]).expand(4, 6, 6)
    torch.testing.assert_close(shuffled, bias[:, order][:, :, order])


@pytest.mark.parametrize("name", CONTENT)
def test_content_encodings_take_a_batch(name):
    module = encodings.make(name).build(DIMS, 16).double()
    q, k = random(3, 4, 5, 8), random(3, 4, 5, 8, seed=1)
    with torch.no_grad():
        whole = module.bias(q, k, range(5), range(5))
        one = module.bias(q[1], k[1], range(5), range(5))
    torch.testing.assert_close(whole[1], one)


def test_between_is_matrix_for_the_same_rows():
    rows = random(5, 8)
    for kind in similarity.KINDS:
        np.testing.assert_allclose(similarity.between(rows, rows, kind), similarity.matrix(rows, kind), atol=1e-14)


def test_one_head_of_a_bias_does_not_keep_all_heads_alive() -> None:
    module = encodings.make("fire").build(Dims(d_model=64, n_heads=16), 64)
    with Peak() as all_heads:
        whole = views.bias_squares(module, 64)
    with Peak() as one_head:
        part = views.bias_squares(module, 64, head=3)
    assert np.array_equal(part[0], whole[3], equal_nan=True)
    assert one_head.most < all_heads.most / 4
