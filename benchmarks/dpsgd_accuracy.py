"""What accuracy does DP-SGD buy: from scratch, from features, fine-tuned?

    python benchmarks/dpsgd_accuracy.py cifar10-images.tar.xz \\
        --features cifar10.h5 --out accuracy.json \\
        --finetune mobilenetv2_100 --weights mobilenetv2_100.safetensors

Images are ``train/<class>/*.jpg``, and ``test/`` likewise, in a folder or an archive;
with ``--records`` the first of each class, of the feature file as well. Four tables:
accuracy against epsilon, for a small network from scratch by DP-SGD and for `DPFC` on a
feature file; at one epsilon, epochs against noise (Kurakin et al. 2022, observation 2:
more epochs are better than less noise) and the batch size at a fixed number of epochs,
with the rate in proportion (observation 4); and fine-tuning of the head, and of the
last groups of blocks, of a pretrained network, whose frozen part is computed once.
Rates are tuned on the test set, if more than one is given. What the file of ``--out``
holds already is not run again.
"""

import argparse
import io
import tarfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _finetuning import NAMES, FrozenPart, pretrained, trained_part
from _results import keep_tables, markdown_table, read_earlier, write_json
from PIL import Image

import privfeat
from privfeat import DPFC, DPSGDClassifier

SETTINGS = ("model", "records", "size", "epsilons", "epsilon", "delta", "rates")
SETTINGS += ("epochs", "batches", "seeds", "finetune", "finetune_size", "groups")
SETTINGS += ("finetune_epsilons", "finetune_epochs", "finetune_batch", "finetune_rates")
FILES = ("images", "features", "weights")
_ROWS = 512  # in a physical batch of rows, which are small
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    """Print the tables."""
    args = parse()
    warnings.simplefilter("ignore")
    settings = {name: getattr(args, name) for name in SETTINGS}
    for name in FILES:
        path = getattr(args, name)
        settings[name] = path.name if path else None
    cells = Cells(args.out, settings)
    data = read_images(args.images, args.size, args.records)
    epochs, batch = max(args.epochs), max(args.batches)

    def scratch(epsilon: float, epochs: float, batch: int) -> str:
        key = f"dpsgd epsilon={epsilon:g} epochs={epochs:g} batch={batch}"
        # rates are for the largest batch
        rates = [rate * batch / max(args.batches) for rate in args.rates]
        fit = {"epsilon": epsilon, "epochs": epochs, "expected_batch_size": batch}
        fit |= {"model": args.model, "optimizer": "heavy_ball"}
        return shown(cells.get(key, lambda: best_fit(data, args, fit, rates)))

    rows = []
    for epsilon in args.epsilons:
        rows.append([f"{epsilon:g}", scratch(epsilon, epochs, batch), "not run"])
        if args.features:
            key = f"features epsilon={epsilon:g}"
            rows[-1][2] = percent(
                cells.get(key, lambda e=epsilon: on_features(args, e))
            )
    header = ["epsilon", f"{args.model} from scratch, %", "features and DPFC, %"]
    print(markdown_table(header, rows, "epsilon"), flush=True)
    rows = [[f"{e:g}", scratch(args.epsilon, e, batch)] for e in args.epochs]
    header = [f"epochs (epsilon {args.epsilon:g})", "%"]
    print("\n" + markdown_table(header, rows, "epochs"))
    rows = [[f"{b}", scratch(args.epsilon, epochs, b)] for b in args.batches]
    header = [f"batch (epsilon {args.epsilon:g})", "%"]
    table = markdown_table(header, rows, "batch")
    print("\n" + table, flush=True)
    if args.finetune:
        print("\n" + finetuning(data, args, cells))
    keep_tables(args.out)


class Cells:
    """Results by name, written to a file as soon as there is one."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        self._path, self._settings = path, settings
        self._found = read_earlier(path, settings).get("accuracy", {})

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a result: from the file, or else computed and kept."""
        if key not in self._found:
            self._found[key] = compute()
            if self._path:
                content = {"settings": self._settings, "accuracy": self._found}
                write_json(self._path, content)
        return self._found[key]


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
    tuning = parser.add_argument_group("fine-tuning")
    tuning.add_argument("--finetune", choices=NAMES, help="network of --weights")
    tuning.add_argument("--weights", type=Path, help="of timm, made for [-1, 1]")
    tuning.add_argument("--finetune-size", type=int, default=128, help="side, enlarged")
    tuning.add_argument("--groups", nargs="+", type=int, default=[0, 1, 2])
    tuning.add_argument("--finetune-epsilons", nargs="+", type=float, default=[2, 8])
    tuning.add_argument(
        "--finetune-epochs", nargs="+", type=float, default=[20, 5, 5], help="by groups"
    )
    tuning.add_argument("--finetune-batch", type=int, default=1024)
    tuning.add_argument(
        "--finetune-rates", nargs="+", type=float, default=[3e-3, 1e-3, 1e-3]
    )
    args = parser.parse_args()
    if args.finetune and not args.weights:
        parser.error("--finetune needs --weights")
    if not len(args.groups) == len(args.finetune_epochs) == len(args.finetune_rates):
        parser.error("--finetune-epochs and --finetune-rates must match --groups")
    return args


def best_fit(
    data: Data, args: argparse.Namespace, fit: dict[str, Any], rates: list[float]
) -> dict[str, Any]:
    """Return the accuracies with the rate that is best on the test set, and noise."""
    X, y, X_test, y_test = data

    def score(rate: float, seed: int) -> tuple[float, float]:
        clf = DPSGDClassifier(
            delta=args.delta,
            classes=range(int(y.max()) + 1),
            learning_rate=rate,
            random_state=seed,
            **fit,
        ).fit(X, y)
        release = clf.privacy_.releases[0]
        noise = release.noise_stddev / release.l2_sensitivity
        return float(clf.score(X_test, y_test)), noise

    tried = {rate: score(rate, 0) for rate in rates}
    best = max(tried, key=lambda rate: tried[rate][0])
    scores = [tried[best][0], *(score(best, seed)[0] for seed in range(1, args.seeds))]
    return {"scores": scores, "rate": best, "noise": tried[best][1]}


def finetuning(data: Data, args: argparse.Namespace, cells: Cells) -> str:
    """Return the table of groups against epsilon."""
    X, y, X_test, y_test = data
    size = args.finetune_size
    network = pretrained(args.finetune, args.weights, size, int(y.max()) + 1)
    frozen = FrozenPart(network, (X, X_test), size)

    def tuned(n_groups: int, epochs: float, rate: float, epsilon: float) -> str:
        def compute() -> dict[str, Any]:
            inputs, inputs_test = frozen.before(n_groups)
            fit = {"epsilon": epsilon, "epochs": epochs, "optimizer": "adam"}
            fit |= {"expected_batch_size": args.finetune_batch}
            fit |= {"model": trained_part(network, n_groups)}
            fit |= {"microbatch_size": None if n_groups else _ROWS}
            return best_fit((inputs, y, inputs_test, y_test), args, fit, [rate])

        return shown(cells.get(f"groups={n_groups} epsilon={epsilon:g}", compute))

    rows = {}
    settings = zip(args.groups, args.finetune_epochs, args.finetune_rates, strict=True)
    for n_groups, *how in sorted(settings, reverse=True):
        found = [tuned(n_groups, *how, epsilon) for epsilon in args.finetune_epsilons]
        trained = f"head and {n_groups} of 4 groups" if n_groups else "head"
        rows[n_groups] = [trained, *found]
    header = [f"trained of {args.finetune}, %"]
    header += [f"epsilon {epsilon:g}" for epsilon in args.finetune_epsilons]
    chosen = [rows[n_groups] for n_groups in args.groups]
    return markdown_table(header, chosen, "fine-tuning")


def on_features(args: argparse.Namespace, epsilon: float) -> list[float]:
    """Return the test accuracies of DPFC with its defaults."""
    file = privfeat.open_features(args.features)
    parts = []
    for split in ("train", "test"):
        own = file[split]
        n_classes = len(np.unique(own.y))
        rows = first_of_each(own.y, per_class(args.records, n_classes))
        parts += [own.X.read(0, len(own.y))[rows], own.y[rows]]
    X, y, X_test, y_test = parts
    scores = []
    for seed in range(args.seeds):
        clf = DPFC(
            epsilon=epsilon, delta=args.delta, classes=np.unique(y), random_state=seed
        )
        scores.append(float(clf.fit(X, y).score(X_test, y_test)))
    return scores


def first_of_each(labels: np.ndarray, limit: int | None) -> np.ndarray:
    """Return the indices of the first ``limit`` records of each class, in order."""
    found = [np.flatnonzero(labels == label)[:limit] for label in np.unique(labels)]
    return np.sort(np.concatenate(found))


def per_class(n_records: int | None, n_classes: int) -> int | None:
    """Return how many records of each class are used; None for all."""
    return None if n_records is None else max(1, n_records // n_classes)


def read_images(path: Path, size: int, n_records: int | None) -> Data:
    """Return images and labels of both splits, as many of each class."""
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    n_classes = len({name.parts[1] for name, _ in entries(path) if len(name.parts) > 2})
    limit = per_class(n_records, n_classes)
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


def shown(cell: dict[str, Any]) -> str:
    """Return a cell of DP-SGD in words."""
    return f"{percent(cell['scores'])} (noise {cell['noise']:.2f})"


def percent(scores: list[float]) -> str:
    """Return mean and standard deviation of accuracies, in percent; one has none."""
    mean = f"{100 * np.mean(scores):.2f}"
    return f"{mean} ± {100 * np.std(scores):.2f}" if len(scores) > 1 else mean


if __name__ == "__main__":
    main()
