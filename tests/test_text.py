"""Sentences into tokens: grapheme clusters, words, bytes; and everything somebody might type."""

import hashlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posviz import text
from posviz.types import MAX_CHARACTERS, MAX_TOKENS, Refusal

# Any Unicode text, lone surrogates included.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
VALID_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
# What people type: Chinese, Latin with accents, right-to-left, emoji with joiners, spaces, lines.
TYPED = st.lists(
    st.sampled_from("我爱你，。々 　\t\n\x00\u202e")
    | st.sampled_from(["自然语言", "don't", "résumé", "e\u0301", "3.14", "\r\n"])
    | st.sampled_from(["שלום", "مرحبا", "नमस्ते", "가", "\u1100\u1161", "カタカナ"])
    | st.sampled_from(["🇨🇳", "👍🏽", "👨\u200d👩\u200d👧\u200d👦"]),
    max_size=12,
).map("".join)


def refused(*args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        text.tokenize(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize(
    ("sentence", "pieces"),
    [
        ("", ()),
        ("我爱你", ("我", "爱", "你")),
        ("a b", ("a", " ", "b")),
        ("a\r\nb", ("a", "\r\n", "b")),
        ("e\u0301e", ("e\u0301", "e")),
        ("👨\u200d👩\u200d👧\u200d👦!", ("👨\u200d👩\u200d👧\u200d👦", "!")),
        ("👍🏽", ("👍🏽",)),
        ("🇨🇳🇫🇷", ("🇨🇳", "🇫🇷")),
        ("葛\U000e0100", ("葛\U000e0100",)),
        ("\u1112\u1161\u11ab글", ("\u1112\u1161\u11ab", "글")),
        ("नमस्ते", ("न", "म", "स्ते")),
        ("שָׁלוֹם", ("שָׁ", "ל", "וֹ", "ם")),
        ("\x00", ("\x00",)),
        ("<b>", ("<", "b", ">")),
    ],
)
def test_characters_are_grapheme_clusters(sentence, pieces):
    assert text.tokenize(sentence).pieces == pieces
    assert text.tokenize(sentence, "character").unit == "character"


@pytest.mark.parametrize(
    ("sentence", "pieces"),
    [
        ("", ()),
        (" \t\r\n　", ()),
        ("我爱你", ("我", "爱", "你")),  # jieba's dictionary has it as one word, a title
        ("你爱我", ("你", "爱", "我")),
        ("我爱自然语言处理", ("我", "爱", "自然语言", "处理")),
        ("The cat sat.", ("The", "cat", "sat", ".")),
        ("don't stop", ("don't", "stop")),
        ("a,b  c", ("a", ",", "b", "c")),
        ("我love你", ("我", "love", "你")),
        ("pi is 3.14!", ("pi", "is", "3.14", "!")),
        ("été e\u0301te\u0301", ("été", "e\u0301te\u0301")),
        ("שלום עולם", ("שלום", "עולם")),
        ("猫。狗", ("猫", "。", "狗")),
        ("x\r\ny", ("x", "y")),
    ],
)
def test_words(sentence, pieces):
    assert text.tokenize(sentence, "word").pieces == pieces


@pytest.mark.parametrize(
    ("sentence", "pieces"),
    [
        ("", ()),
        ("aZ~!", ("a", "Z", "~", "!")),
        (" \x7f\x00\n", ("20", "7F", "00", "0A")),
        ("我", ("E6", "88", "91")),
        ("é", ("C3", "A9")),
        ("👍", ("F0", "9F", "91", "8D")),
    ],
)
def test_bytes(sentence, pieces):
    assert text.tokenize(sentence, "byte").pieces == pieces


@given(ANY_TEXT | TYPED, st.sampled_from(text.UNITS))
def test_any_text_is_cut_or_refused_in_one_sentence(sentence, unit):
    try:
        tokens = text.tokenize(sentence, unit)
    except Refusal as error:
        assert any("\ud800" <= c <= "\udfff" for c in sentence)
        assert error.field == "text"
        assert str(error).startswith("the sentence has half a surrogate pair, U+D")
        assert str(error).isprintable()
    else:
        assert tokens.text == sentence
        assert tokens.unit == unit
        assert all(tokens.pieces), "no token is empty"
        assert len(tokens) == len(tokens.ids) == len(tokens.labels) <= MAX_TOKENS
        assert len(set(tokens.labels)) == len(tokens)
        assert len(set(tokens.pieces)) == len(set(tokens.ids)), "one number for each piece"


@given(VALID_TEXT | TYPED)
def test_characters_joined_give_the_text_back(sentence):
    assert "".join(text.tokenize(sentence).pieces) == sentence


@given(VALID_TEXT | TYPED)
def test_words_joined_give_the_text_back_but_for_spaces(sentence):
    def squeezed(s: str) -> str:
        return "".join(c for c in s if not c.isspace())

    pieces = text.tokenize(sentence, "word").pieces
    assert squeezed("".join(pieces)) == squeezed(sentence)
    assert not any(piece.isspace() for piece in pieces)


@given(VALID_TEXT | TYPED)
def test_bytes_decode_back(sentence):
    pieces = text.tokenize(sentence, "byte").pieces
    raw = bytes(ord(p) if len(p) == 1 else int(p, 16) for p in pieces)
    assert raw.decode("utf-8") == sentence


def test_the_same_piece_has_the_same_number_everywhere():
    a, b = text.tokenize("我爱你"), text.tokenize("你爱我")
    assert a.ids == b.ids[::-1]
    words = text.tokenize("我爱你", "word")
    assert words.ids == a.ids
    # and in every process: 63 bits of BLAKE2b, not Python's salted hash
    digest = hashlib.blake2b("我".encode(), digest_size=8).hexdigest()
    assert a.ids[0] == int(digest, 16) >> 1


@pytest.mark.parametrize("unit", ["character", "byte"])
def test_up_to_512_tokens_and_not_one_more(unit):
    assert len(text.tokenize("a" * 512, unit)) == 512
    error = refused("a" * 513, unit)
    assert str(error) == "the sentence has 513 tokens; up to 512 are shown"
    assert error.text("zh") == "句子有 513 个词元；最多显示 512 个"


def test_the_limit_counts_tokens_and_not_characters():
    assert len(text.tokenize("ab " * 512, "word")) == 512
    assert str(refused("ab " * 513, "word")) == "the sentence has 513 tokens; up to 512 are shown"
    assert len(text.tokenize("e\u0301" * 512)) == 512
    assert len(text.tokenize("e" + "\u0301" * (MAX_CHARACTERS - 1))) == 1
    assert str(refused("我" * 171, "byte")) == "the sentence has 513 tokens; up to 512 are shown"


@pytest.mark.parametrize("unit", text.UNITS)
def test_20001_characters_are_refused_before_they_are_cut(unit):
    error = refused("我" * 20_001, unit)
    assert str(error) == "the sentence has 20,001 characters; up to 20,000 are shown"
    assert error.text("zh") == "句子有 20,001 个字符；最多显示 20,000 个"
    assert str(refused("我" * 20_000, "character")) == ("the sentence has 20,000 tokens; up to 512 are shown")


@pytest.mark.parametrize("unit", text.UNITS)
@pytest.mark.parametrize(("half", "code"), [("\ud83d", "D83D"), ("\ude00", "DE00")])
def test_half_a_surrogate_pair_is_refused(unit, half, code):
    error = refused("ab" + half + "c", unit)
    assert str(error) == f"the sentence has half a surrogate pair, U+{code}, at place 2; remove it"
    assert error.text("zh") == f"句子第 2 处有半个代理对 U+{code}，请删去"


@pytest.mark.parametrize(("unit", "quoted"), [("token", "token"), (None, "None"), ([], "[]"), ("", "")])
def test_unknown_units_are_refused(unit, quoted):
    error = refused("a", unit)
    assert str(error) == f"`unit` must be one of character, word, byte, got {quoted}"
    assert error.text("zh") == f"`unit` 只能是 character, word, byte 之一，现在是 {quoted}"
    assert error.field == "unit"


@pytest.mark.parametrize(
    ("piece", "drawn"),
    [
        (" ", "␣"),
        ("\x00", "␀"),
        ("\t", "␉"),
        ("\r\n", "␍␊"),
        ("\x1b", "␛"),
        ("\x7f", "␡"),
        ("我", "我"),
        ("e\u0301", "e\u0301"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("\u3000", "⟨3000⟩"),
        ("\u202e", "⟨202E⟩"),
        ("\u200b", "⟨200B⟩"),
        ("\u0085", "⟨0085⟩"),
        ("\ufe0f", "⟨FE0F⟩"),
        ("ab\u202ecd", "ab⟨202E⟩cd"),  # would write the rest backwards
        ("葛\U000e0100", "葛\U000e0100"),
    ],
)
def test_what_has_no_picture_is_drawn_as_its_code(piece, drawn):
    assert text.visible(piece) == drawn


@given(VALID_TEXT | TYPED, st.sampled_from(text.UNITS))
def test_every_token_can_be_seen(sentence, unit):
    for piece in text.tokenize(sentence, unit).pieces:
        drawn = text.visible(piece)
        assert any(unicodedata.category(c) not in ("Cc", "Cf", "Zs", "Zl", "Zp") for c in drawn)
        assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "RLI") for c in drawn)
