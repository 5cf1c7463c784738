"""What accuracy does DP-SGD buy: from scratch, from features, and by which settings?

    python benchmarks/dpsgd_accuracy.py cifar10-images.tar.xz \
        --features cifar10.h5 --out accuracy.json

Images are ``train/<class>/*.jpg``, and ``test/`` likewise, in a folder or an archive.
Three tables: accuracy against epsilon, for a small network from scratch by DP-SGD and
for `DPFC` on a feature file; at one epsilon, epochs against noise (Kurakin et al. 2022,
observation 2: more epochs are better than less noise) and the batch size at a fixed
number of epochs, with the rate in proportion (observation 4). Rates are tuned on the
test set. What the file of ``--out`` holds already is not run again.
"""

import argparse
import io
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _results import markdown_table, read_earlier, write_json
from PIL import Image

import privfeat
from privfeat import DPFC, DPSGDClassifier

SETTINGS = ("model", "records", "size", "epsilons", "epsilon", "delta", "rates")
SETTINGS += ("epochs", "batches", "seeds")
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    """Print three tables."""
    args = parse()
    warnings.simplefilter("ignore")
    settings = {name: getattr(args, name) for name in SETTINGS}
    settings |= {"images": args.images.name}
    settings |= {"features": args.features.name if args.features else None}
    found = read_earlier(args.out, settings).get("accuracy", {})
    data = read_images(args.images, args.size, args.records)

    def accuracy(epsilon: float, epochs: float, batch: int) -> str:
        key = f"dpsgd epsilon={epsilon:g} epochs={epochs:g} batch={batch}"
        if key not in found:
            # rates are for the largest batch
            scale = batch / max(args.batches)
            rates = [rate * scale for rate in args.rates]
            found[key] = best_fit(data, args, epsilon, epochs, batch, rates)
            keep()
        cell = found[key]
        return f"{percent(cell['scores'])} (noise {cell['noise']:.2f})"

    def keep() -> None:
        if args.out:
            write_json(args.out, {"settings": settings, "accuracy": found})

    epochs, batch = max(args.epochs), max(args.batches)
    rows = []
    for epsilon in args.epsilons:
        rows.append([f"{epsilon:g}", accuracy(epsilon, epochs, batch), "not run"])
        if args.features:
            key = f"features epsilon={epsilon:g}"
            if key not in found:
                found[key] = on_features(args.features, args, epsilon)
                keep()
            rows[-1][2] = percent(found[key])
    header = ["epsilon", f"{args.model} from scratch, %", "features and DPFC, %"]
    print(markdown_table(header, rows), flush=True)
    rows = [[f"{e:g}", accuracy(args.epsilon, e, batch)] for e in args.epochs]
    print("\n" + markdown_table([f"epochs (epsilon {args.epsilon:g})", "%"], rows))
    rows = [[f"{b}", accuracy(args.epsilon, epochs, b)] for b in args.batches]
    print("\n" + markdown_table([f"batch (epsilon {args.epsilon:g})", "%"], rows))


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--model", default="sample_convnet")
    parser.add_argument("--records", type=int, help="this many of each split, evenly")
    parser.add_argument("--size", type=int, default=32, help="side of the images")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 2, 4, 8])
    parser.add_argument("--epsilon", type=float, default=4.0, help="of other tables")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epochs", nargs="+", type=float, default=[5, 10, 20, 40])
    parser.add_argument("--batches", nargs="+", type=int, default=[256, 1024, 4096])
    parser.add_argument(
        "--rates", nargs="+", type=float, default=[1.0, 4.0], help="for the largest"
    )
    parser.add_argument("--seeds", type=int, default=3, help="fits with the best rate")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def best_fit(
    data: Data,
    args: argparse.Namespace,
    epsilon: float,
    epochs: float,
    batch: int,
    rates: list[float],
) -> dict[str, Any]:
    """Return the accuracies with the rate that is best on the test set, and noise."""
    X, y, X_test, y_test = data

    def fit(rate: float, seed: int) -> tuple[float, float]:
        clf = DPSGDClassifier(
            model=args.model,
            epsilon=epsilon,
            delta=args.delta,
            classes=range(int(y.max()) + 1),
            epochs=epochs,
            expected_batch_size=batch,
            optimizer="heavy_ball",
            learning_rate=rate,
            random_state=seed,
        ).fit(X, y)
        release = clf.privacy_.releases[0]
        noise = release.noise_stddev / release.l2_sensitivity
        return float(clf.score(X_test, y_test)), noise

    tried = {rate: fit(rate, 0) for rate in rates}
    best = max(tried, key=lambda rate: tried[rate][0])
    scores = [tried[best][0], *(fit(best, seed)[0] for seed in range(1, args.seeds))]
    return {"scores": scores, "rate": best, "noise": tried[best][1]}


def on_features(path: Path, args: argparse.Namespace, epsilon: float) -> list[float]:
    """Return the test accuracies of DPFC with its defaults."""
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    classes = np.unique(train.y)
    scores = []
    for seed in range(args.seeds):
        clf = DPFC(
            epsilon=epsilon, delta=args.delta, classes=classes, random_state=seed
        )
        scores.append(float(clf.fit(train.X, train.y).score(test.X, test.y)))
    return scores


def read_images(path: Path, size: int, n_records: int | None) -> Data:
    """Return images and labels of both splits, as many of each class."""
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    n_classes = len({name.parts[1] for name, _ in entries(path) if len(name.parts) > 2})
    limit = None if n_records is None else max(1, n_records // n_classes)
    for name, content in entries(path):
        if len(name.parts) < 3:
            continue
        own = found.setdefault((name.parts[0], name.parts[1]), [])
        if limit is None or len(own) < limit:
            with Image.open(io.BytesIO(content())) as image:
                own.append(np.asarray(image.convert("RGB").resize((size, size))))
    classes = sorted({kind for _, kind in found})
    arrays = []
    for split in ("train", "test"):
        parts = [np.stack(found[split, kind]) for kind in classes]
        arrays.append(np.concatenate(parts))
        arrays.append(np.repeat(np.arange(len(classes)), [len(part) for part in parts]))
    X, y, X_test, y_test = arrays
    return X, y, X_test, y_test


def entries(path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the name of every file, and a function that reads it, in order."""
    if path.is_dir():
        for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
            yield file.relative_to(path), file.read_bytes
        return
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield Path(member.name), stream.read


def percent(scores: list[float]) -> str:
    """Return mean and standard deviation of accuracies, in percent."""
    return f"{100 * np.mean(scores):.2f} ± {100 * np.std(scores):.2f}"


if __name__ == "__main__":
    main()
