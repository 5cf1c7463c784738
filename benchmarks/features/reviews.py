"""Two tables of real texts, which need no download of data: opinions, and their kinds.

The source of the package vaderSentiment (MIT) brings the sentences of Hutto and
Gilbert, VADER, 2014, with the mean of twenty people's ratings: of films (the sentences
of Pang and Lee, 2004), of products, of editorials, and of Twitter.

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python benchmarks/features/reviews.py vaderSentiment-3.3.2.tar.gz texts/

``films/`` has 10,603 sentences on films, ``positive`` where the mean rating is above
zero and else ``negative``. ``kinds/`` has 2,000 sentences of each kind, in four
classes. One text in five, by its hash, is a test record.
"""

import argparse
import csv
import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
KINDS = {
    "film": "movieReviewSnippets",
    "product": "amazonReviewSnippets",
    "editorial": "nytEditorialSnippets",
    "tweet": "tweets",
}
OF_A_KIND = 2000
TEST_PART = 5


def main() -> None:
    """Write ``films`` and ``kinds``, each of ``train.csv`` and ``test.csv``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="of the package, as it is downloaded")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    rated = {kind: list(sentences(args.source, kind)) for kind in KINDS}
    signs = [(t, "positive" if r > 0 else "negative") for t, r in rated["film"]]
    write(args.out / "films", "opinion", signs)
    kinds = [
        (text, kind)
        for kind, texts in rated.items()
        for text in sorted({t for t, _ in texts}, key=digest)[:OF_A_KIND]
    ]
    write(args.out / "kinds", "kind", kinds)


def sentences(source: Path, kind: str) -> Iterator[tuple[str, float]]:
    """Yield the sentences of one kind, each with its mean rating in [-4, 4]."""
    with tarfile.open(source) as outer:
        content = outer.extractfile(INNER)
        assert content is not None
        inner = content.read()
    with tarfile.open(fileobj=io.BytesIO(inner)) as tables:
        table = tables.extractfile(f"hutto_ICWSM_2014/{KINDS[kind]}_GroundTruth.txt")
        assert table is not None
        lines = table.read().decode("utf-8", "replace").splitlines()
    for line in lines:
        _, rating, text = line.split("\t", 2)
        yield text.strip(), float(rating)


def write(folder: Path, target: str, rows: list[tuple[str, str]]) -> None:
    """Write the tables of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = sorted(set(rows), key=lambda row: digest(row[0]))
    for split, is_test in (("train", False), ("test", True)):
        some = [r for r in rows if (digest(r[0]) % TEST_PART == 0) == is_test]
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", target), *some])
        print(f"{folder / split}.csv: {len(some)} rows")


def digest(text: str) -> int:
    """Return a number that depends on ``text`` alone, the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


if __name__ == "__main__":
    main()
