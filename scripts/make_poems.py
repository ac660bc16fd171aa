"""Makes posviz/models/twins/poems.txt.gz, what the twins are trained and tested on.

    npm pack chinese-poetry@2.0.1 && tar xzf chinese-poetry-2.0.1.tgz
    pip install OpenCC==1.4.2
    python scripts/make_poems.py package

The collection chinese-poetry is under the MIT licence, its texts are in the public domain. Its poems are
in traditional script; OpenCC's t2s table makes them simplified. A line of the result is
``split<TAB>form<TAB>text``; the first lines, which begin with #, say where it is from and count it.
"""

import argparse
import collections
import glob
import gzip
import json
import random
import re
from pathlib import Path

OUT = Path(__file__).parents[1] / "posviz/models/twins/poems.txt.gz"
SEED = 0
LINE = 32  # characters and marks of a training row, without its start and end
HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
SPOKEN = re.compile(r"[我你他们的了这那么个爱喜]")  # everyday words, which quatrains seldom have
CLAUSE = re.compile(r"([^，。？！；、]+)([，。？！；、])")

# split, form -> poems. quatrain: four lines of 5 or 7; verse: the beginning of a longer poem of equal lines;
# song: clauses of ci and qu, joined up to LINE characters.
WANTED = {
    ("train", "quatrain"): 40_000,
    ("train", "verse"): 12_000,
    ("train", "song"): 36_000,
    ("held_out", "quatrain"): 1_000,
    ("held_out", "verse2"): 600,  # eight lines: twice the trained length
    ("held_out", "verse4"): 400,  # sixteen lines: four times
}


def clauses(paragraphs: list[str]) -> list[tuple[str, str]]:
    """(words, mark) of a whole text, or [] where anything else stands in it (notes, holes, stage directions)."""
    text = "".join(paragraphs).replace("!", "！").replace("?", "？").replace(",", "，")
    found = CLAUSE.findall(text)
    whole = "".join(words + mark for words, mark in found) == text
    return found if whole and all(HAN.fullmatch(words) for words, _ in found) else []


def joined(found: list[tuple[str, str]]) -> str:
    return "".join(words + mark for words, mark in found)


def shi(folder: Path, convert) -> dict[str, list[str]]:
    """Poems of equal lines, by number of lines: 4 (5 or 7 characters), 8, 16, more."""
    found = collections.defaultdict(list)
    for dynasty in ("tang", "song"):
        for file in sorted(glob.glob(str(folder / f"quantangshi/poet.{dynasty}.*.json"))):
            for poem in json.loads(Path(file).read_text("utf-8")):
                lines = clauses(poem["paragraphs"])
                width = {len(words) for words, _ in lines}
                if width in ({5}, {7}) and len(lines) in (4, 8, 16):
                    found[dynasty, len(lines)].append(convert(joined(lines)))
    return found


def songs(folder: Path, convert) -> list[str]:
    """Clauses of qu and ci, joined into rows of at most LINE characters that end with a sentence."""
    rows = []
    files = [str(folder / "yuanqu/yuanqu.json"), *sorted(glob.glob(str(folder / "songci/ci.song.*.json")))]
    for file in files:
        for song in json.loads(Path(file).read_text("utf-8")):
            text = "".join(song["paragraphs"]).replace("!", "！").replace("?", "？")
            row = ""
            for sentence in re.findall(r"[^。？！]+[。？！]", text):
                # A sentence with anything but words in it (a stage direction, a hole) ends the row.
                fits = len(sentence) <= LINE and bool(clauses([sentence]))
                if not fits or len(row) + len(sentence) > LINE:
                    rows += [row] if row else []
                    row = ""
                row += sentence if fits else ""
            rows += [row] if row else []
    return [convert(row) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="the unpacked chinese-poetry package")
    folder = parser.parse_args().package / "dist"
    import opencc

    convert = opencc.OpenCC("t2s").convert
    pick = random.Random(SEED)
    seen: set[str] = set()

    def unique(poems: list[str]) -> list[str]:
        """Poems whose first six characters, so the same poem in another edition too, occur once."""
        kept = []
        for poem in poems:
            if poem[:6] not in seen:
                seen.add(poem[:6])
                kept.append(poem)
        pick.shuffle(kept)
        return kept

    poems = shi(folder, convert)
    quatrains = unique(poems["tang", 4]) + unique(poems["song", 4])  # Tang first, then as much Song as wanted
    longest = unique(poems["tang", 16] + poems["song", 16])
    verses = unique(poems["tang", 8] + poems["song", 8])
    rows = unique(songs(folder, convert))
    taken: dict[tuple[str, str], list[str]] = {}
    held = pick.sample(range(30_000), WANTED["held_out", "quatrain"])
    taken["held_out", "quatrain"] = [quatrains[i] for i in held]
    left = [poem for i, poem in enumerate(quatrains) if i not in set(held)]
    taken["train", "quatrain"] = left[: WANTED["train", "quatrain"]]
    for name, pool in (("verse2", verses), ("verse4", longest)):
        # as many of 5 as of 7 characters
        half = WANTED["held_out", name] // 2
        by_width = {w: [p for p in pool if p[w] in "，。？！；"] for w in (5, 7)}
        taken["held_out", name] = by_width[5][:half] + by_width[7][:half]
        rest = by_width[5][half:] + by_width[7][half:]
        pick.shuffle(rest)
        taken.setdefault(("train", "verse"), []).extend(p[: LINE + 1] for p in rest)
    taken["train", "verse"] = pick.sample(taken["train", "verse"], WANTED["train", "verse"])
    spoken = [row for row in rows if SPOKEN.search(row)]
    taken["train", "song"] = (spoken + [row for row in rows if not SPOKEN.search(row)])[: WANTED["train", "song"]]

    lines = []
    for (split, form), want in WANTED.items():
        got = sorted(taken[split, form])
        if len(got) != want:
            raise SystemExit(f"{split} {form}: {len(got)} texts, {want} wanted")
        lines += [f"{split}\t{form}\t{text}" for text in got]
    counts = ", ".join(f"{split} {form} {n}" for (split, form), n in WANTED.items())
    head = [
        "# from the npm package chinese-poetry 2.0.1 (MIT; the texts are in the public domain)",
        "# made by scripts/make_poems.py; simplified with OpenCC 1.4.2 (t2s)",
        f"# {counts}",
    ]
    OUT.write_bytes(gzip.compress(("\n".join([*head, *lines]) + "\n").encode("utf-8"), 9, mtime=0))
    print(f"{OUT}: {OUT.stat().st_size:,} bytes, {sum(map(len, lines)):,} characters; {counts}")


if __name__ == "__main__":
    main()
