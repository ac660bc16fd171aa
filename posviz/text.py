"""Sentences cut into tokens: grapheme clusters, words, or UTF-8 bytes."""

import hashlib
from functools import cache

import regex

from posviz.types import MAX_CHARACTERS, MAX_TOKENS, Refusal, Text, Tokens, shown

UNITS = ("character", "word", "byte")

_RUNS = regex.compile(r"\p{Han}+|\P{Han}+")
_BOUNDARY = regex.compile(r"\b", flags=regex.WORD | regex.VERSION1)  # Unicode default word boundaries
_NEVER_DRAWN = regex.compile(r"[\p{Cc}\p{Bidi_Control}]")
_UNSEEN = regex.compile(r"[\p{Cc}\p{Cf}\p{White_Space}\p{Default_Ignorable_Code_Point}]+")
_CLUSTER = regex.compile(r"\X")  # extended grapheme clusters (UAX 29)


def tokenize(text: str, unit: str = "character") -> Tokens:
    """Cut ``text`` into tokens.

    unit: "character" (grapheme clusters: an emoji with joiners or a letter with accents is one, a
    space is one), "word" (jieba for Chinese, Unicode word boundaries elsewhere; spaces separate and
    are dropped, punctuation stays) or "byte" (UTF-8; printable ASCII as itself, others as two hex digits).

    An empty text gives no tokens. Raises :class:`Refusal` for more than 512 tokens or 20,000
    characters, a lone surrogate, or an unknown unit.
    """
    if unit not in UNITS:
        raise Refusal(
            Text("`unit` must be one of {allowed}, got {got}", "`unit` 只能是 {allowed} 之一，现在是 {got}"),
            field="unit",
            allowed=", ".join(UNITS),
            got=shown(unit),
        )
    check_characters(text)
    pieces = {"character": _characters, "word": _words, "byte": _bytes}[unit](text)
    if len(pieces) > MAX_TOKENS:
        raise _too_long(Text("tokens", "个词元"), len(pieces), MAX_TOKENS)
    return Tokens(text, tuple(pieces), tuple(map(_identity, pieces)), unit)


def check_characters(text: str) -> None:
    """Refuse what no tokenizer can take: more than 20,000 characters, or half a surrogate pair."""
    if len(text) > MAX_CHARACTERS:
        raise _too_long(Text("characters", "个字符"), len(text), MAX_CHARACTERS)
    for i, c in enumerate(text):
        if "\ud800" <= c <= "\udfff":
            raise Refusal(
                Text(
                    "the sentence has half a surrogate pair, U+{code}, at place {i}; remove it",
                    "句子第 {i} 处有半个代理对 U+{code}，请删去",
                ),
                field="text",
                code=f"{ord(c):04X}",
                i=i,
            )


def visible(piece: str) -> str:
    """The piece as it is drawn: spaces and control characters become their Unicode pictures.

    What turns the reading direction, and a piece of nothing visible, is drawn as its code: ⟨202E⟩.
    """
    coded = _UNSEEN if _UNSEEN.fullmatch(piece) else _NEVER_DRAWN
    return "".join(_picture(c, bool(coded.match(c))) for c in piece)


def _picture(c: str, coded: bool) -> str:
    if c == " ":
        return "␣"
    if c < " ":
        return chr(0x2400 + ord(c))  # ␀, ␉, ␊ ...
    if c == "\x7f":
        return "␡"
    return f"⟨{ord(c):04X}⟩" if coded else c


def _too_long(what: Text, got: int, limit: int) -> Refusal:
    return Refusal(
        Text(
            "the sentence has {got:,} {what}; up to {limit:,} are shown", "句子有 {got:,} {what}；最多显示 {limit:,} 个"
        ),
        field="text",
        got=got,
        what=what,
        limit=limit,
    )


def _characters(text: str) -> list[str]:
    return _CLUSTER.findall(text)


def _words(text: str) -> list[str]:
    pieces: list[str] = []
    for run in _RUNS.findall(text):
        if regex.match(r"\p{Han}", run):
            pieces += _jieba().lcut(run)
        else:
            pieces += [part for part in _BOUNDARY.split(run) if part and not part.isspace()]
    return pieces


def _bytes(text: str) -> list[str]:
    return [chr(b) if 0x21 <= b <= 0x7E else f"{b:02X}" for b in text.encode("utf-8")]


def _identity(piece: str) -> int:
    """The same piece has the same number in every sentence and every process (63 bits of BLAKE2b)."""
    return int.from_bytes(hashlib.blake2b(piece.encode("utf-8"), digest_size=8).digest(), "big") >> 1


@cache
def _jieba():
    """jieba's tokenizer, its dictionary read from the package.

    jieba would cache the dictionary as a marshal file in the shared temporary folder and trust
    whatever lies there; filling the table ourselves needs neither.
    """
    import warnings

    with warnings.catch_warnings():  # jieba 0.42.1 has invalid escapes and asks for pkg_resources
        warnings.simplefilter("ignore")
        import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    tokenizer.del_word("我爱你")  # in the dictionary as a title; as a sentence it is three words
    return tokenizer
