"""A model's own pieces: fragments joined into the visible character, special and unknown tokens, spans."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some

from posviz.models import pretrained
from posviz.models.pretrained import pieces
from posviz.types import Refusal


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ([b"dog", b" bites"], ["dog", " bites"]),
        (["我".encode()[:2], "我".encode()[2:]], ["我¹⁄₂", "我²⁄₂"]),
        ([b"\xe6", b"\x88", b"\x91"], ["我¹⁄₃", "我²⁄₃", "我³⁄₃"]),
        # the second piece ends one character and begins the next
        (["我爱".encode()[:2], "我爱".encode()[2:4], "我爱".encode()[4:]], ["我¹⁄₂", "我²⁄₂爱¹⁄₂", "爱²⁄₂"]),
        ([b"\xff", b"a"], ["⟨FF⟩", "a"]),
        ([b"\xe6", b"a"], ["⟨E6⟩", "a"]),
        ([b"", b"a"], ["", "a"]),
        ([], []),
    ],
)
def test_fragments_show_the_character_they_are_part_of(raw, shown) -> None:
    assert pieces.joined(raw) == shown


@given(some.text(max_size=20), some.lists(some.integers(0, 60), max_size=20))
def test_any_cut_of_any_text_keeps_every_character(text, cuts) -> None:
    stream = text.encode("utf-8", "ignore")
    text = stream.decode()
    at = sorted({0, len(stream), *(c for c in cuts if c < len(stream))})
    raw = [stream[i:j] for i, j in itertools.pairwise(at)]
    shown = pieces.joined(raw)
    assert len(shown) == len(raw)
    assert all(shown)
    if all(b.decode("utf-8", "ignore").encode() == b for b in raw):  # cut between characters: nothing is marked
        assert "".join(shown) == text


def test_the_alphabet_of_bytes_is_gpt2s() -> None:
    from tokenizers import pre_tokenizers

    known = pieces.byte_of()
    assert sorted(known.values()) == list(range(256))
    assert set(known) == set(pre_tokenizers.ByteLevel.alphabet())
    assert known["Ġ"] == 0x20 and known["A"] == 0x41 and known["Ċ"] == 0x0A


def test_byte_level_pieces_keep_their_bytes(made) -> None:
    model = pretrained.load(made("llama"))
    tokens = model.tokenize("the 龘 dog")
    assert tokens.unit == "piece"
    assert b"".join(info.raw for info in tokens.infos).decode() == "the 龘 dog"
    fragments = [(piece, info) for piece, info in zip(tokens.pieces, tokens.infos, strict=True) if "龘" in piece]
    assert [piece.strip() for piece, _ in fragments] == ["龘¹⁄₃", "龘²⁄₃", "龘³⁄₃"]
    assert {info.span for _, info in fragments} >= {(4, 5)}
    assert not any(tokens.special)


def test_special_tokens_are_marked_and_have_no_place_in_the_sentence(made) -> None:
    tokens = pretrained.load(made("bert")).tokenize("the dog")
    assert tokens.pieces[0] == "[CLS]" and tokens.pieces[-1] == "[SEP]"
    assert tokens.special == (True, *(False,) * (len(tokens) - 2), True)
    assert tokens.infos[0].span is None and tokens.infos[0].raw == b""
    roberta = pretrained.load(made("roberta")).tokenize("the dog")
    assert (roberta.pieces[0], roberta.pieces[-1]) == ("<s>", "</s>")


def test_wordpieces_keep_their_mark_and_unknown_ones_their_character(made) -> None:
    tokens = pretrained.load(made("bert")).tokenize("mousedog 龘")
    assert any(piece.startswith("##") for piece in tokens.pieces)
    assert tokens.pieces[-2] == "⟨龘⟩"
    assert not tokens.special[-2] and tokens.infos[-2].span == (9, 10)


def test_sentencepiece_shows_a_space_as_a_space(made) -> None:
    tokens = pretrained.load(made("t5")).tokenize("the dog")
    assert tokens.pieces[0].startswith(" ") and tokens.infos[0].written.startswith("▁")
    assert "".join(tokens.pieces[:-1]) == " the dog"
    assert tokens.pieces[-1] == "</s>" and tokens.special[-1]


def test_the_same_piece_has_the_same_id_in_both_sentences(made) -> None:
    model = pretrained.load(made("gpt2"))
    a, b = model.tokenize("the dog bites"), model.tokenize("bites the dog")
    assert set(a.ids) & set(b.ids)
    for piece, number in zip(a.pieces, a.ids, strict=True):
        assert all(other == piece for other, n in zip(b.pieces, b.ids, strict=True) if n == number)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the sentence is empty; type at least one word"),
        (" \n", "the sentence is empty; type at least one word"),
        ("a\ud800", "the sentence has half a surrogate pair, U+D800, at place 1; remove it"),
        ("a" * 20_001, "the sentence has 20,001 characters; up to 20,000 are shown"),
        ("a b " * 30, "the sentence has {n} tokens in this model, special ones included; up to 40 have a position"),
    ],
)
def test_sentences_that_cannot_be_taken(made, text, sentence) -> None:
    model = pretrained.load(made("bert"))
    with pytest.raises(Refusal) as refusal:
        model.tokenize(text)
    got = refusal.value.values.get("got", "")
    assert str(refusal.value) == sentence.replace("{n}", str(got))
    assert refusal.value.text("zh") != str(refusal.value)


@pytest.mark.parametrize(
    "text", ["<s>", "[CLS] [MASK]", "\x00", "\u202e", "e\u0301" * 5, "👩‍👩‍👧", "a\u0000b", "$x$ *b* :red[c]"]
)
@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "roberta"])
def test_odd_sentences_give_a_trace_or_one_sentence(made, name, text) -> None:
    model = pretrained.load(made(name))
    try:
        tokens = model.tokenize(text)
    except Refusal as refusal:
        assert "\n" not in str(refusal)
        return
    assert len(tokens.pieces) == len(tokens.infos) == len(tokens.ids)
    assert len(model.trace(tokens).layers) == 2
