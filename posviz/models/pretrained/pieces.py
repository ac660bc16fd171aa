"""A model's own pieces as a person can read them: fragments joined into the visible character, bytes kept."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from posviz.text import check_characters
from posviz.types import PieceInfo, Refusal, Text, Tokens

_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUB = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SPACE = "▁"  # SentencePiece's mark of a space


@cache
def byte_of() -> dict[str, int]:
    """GPT-2's alphabet for bytes: printable Latin-1 stands for itself, the others follow from U+0100 on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in own]
    return {chr(b): b for b in own} | {chr(256 + i): b for i, b in enumerate(others)}


def is_byte_level(backend: Any) -> bool:
    """Whether a ``tokenizers.Tokenizer`` writes its pieces in GPT-2's alphabet for bytes."""
    return '"ByteLevel"' in json.dumps(json.loads(backend.to_str()).get("decoder"))


def tokenize(backend: Any, text: str, *, byte_level: bool, special: frozenset[int], unknown: int | None) -> Tokens:
    """The sentence in the model's pieces, special tokens included.

    A piece shows its text; a fragment of a character shows that character and which part of how many it is
    (``我¹⁄₃``); an unknown one stands in ⟨brackets⟩.
    """
    check_characters(text)
    if not text.strip():
        raise Refusal(
            Text("the sentence is empty; type at least one word", "句子是空的；请至少输入一个词"), field="text"
        )
    found = backend.encode(text)
    infos, pieces = [], []
    for written, number, (start, end) in zip(found.tokens, found.ids, found.offsets, strict=True):
        span = (start, end) if end > start else None
        if number == unknown and span:
            infos.append(PieceInfo(written, text[start:end].encode(), False, span))
        elif number in special:
            infos.append(PieceInfo(written, b"", True, None))
        else:
            infos.append(PieceInfo(written, _bytes(written, byte_level), False, span))
    for piece, info, number in zip(joined([i.raw for i in infos]), infos, found.ids, strict=True):
        if info.special:
            pieces.append(info.written)
        elif number == unknown:
            pieces.append(f"⟨{info.raw.decode()}⟩")
        else:
            pieces.append(f"##{piece}" if info.written.startswith("##") and not byte_level else piece)
    return Tokens(text, tuple(pieces), tuple(found.ids), "piece", tuple(infos))


def _bytes(written: str, byte_level: bool) -> bytes:
    if byte_level:
        known = byte_of()
        if all(c in known for c in written):
            return bytes(known[c] for c in written)
        return written.encode()  # an added token is written plainly
    if len(written) == 6 and written.startswith("<0x") and written.endswith(">"):
        return bytes([int(written[3:5], 16)])  # SentencePiece's fallback
    return written.removeprefix("##").replace(SPACE, " ").encode()


def joined(raw: Sequence[bytes]) -> list[str]:
    """What each piece shows, from the bytes of all: whole characters, and ``我¹⁄₂`` for the first of two fragments."""
    stream = b"".join(raw)
    owner = [i for i, part in enumerate(raw) for _ in part]
    shown: list[str] = [""] * len(raw)
    at = 0
    while at < len(stream):
        length = _length(stream, at)
        owners = list(dict.fromkeys(owner[at : at + length]))
        try:
            character = stream[at : at + length].decode()
        except UnicodeDecodeError:
            character, owners = f"⟨{stream[at]:02X}⟩", owners[:1]
            length = 1
        for k, i in enumerate(owners, 1):
            part = f"{str(k).translate(_SUPER)}⁄{str(len(owners)).translate(_SUB)}" if len(owners) > 1 else ""
            shown[i] += character + part
        at += length
    return shown


def _length(stream: bytes, at: int) -> int:
    """Bytes of the UTF-8 character that begins here; 1 where none does."""
    lead = stream[at]
    length = 1 if lead < 0xC2 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF5 else 1
    return min(length, len(stream) - at)
