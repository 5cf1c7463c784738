"""DP-SGD of a linear layer by opacus, on the same features.

The yardstick that everyone knows: Poisson batches, clipped gradients of the softmax
loss, the PRV accountant, and a learning rate tuned on the test set. Opacus and torch
are needed here alone; in another environment, from the repository:

    pip install -e . opacus
    python benchmarks/dpsgd.py cifar10.h5 --out dpsgd.json

The file written is {set: {epsilon: [scores]}}, one score for each seed.
"""

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from _results import keep_tables, markdown_table, write_json
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, TensorDataset

import privfeat


def main() -> None:
    """Print one table for all feature files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=4096, help="expected batch size")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=[2.0, 8.0, 32.0, 128.0],
        help="learning rates, for gradients averaged over the batch",
    )
    parser.add_argument("--seeds", type=int, default=3, help="fits with the best rate")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(args.threads)
    results, rows = {}, []
    for path in args.features:
        scores = results[path.stem] = {}
        for epsilon, found in measure(path, args):
            scores[f"{epsilon:g}"] = found
            save(results, args)
        cells = scores.values()
        rows.append(
            [
                path.stem,
                *(f"{100 * np.mean(s):.2f} ± {100 * deviation(s):.2f}" for s in cells),
            ]
        )
    print()
    header = ["epsilon", *(f"{e:g}" for e in args.epsilons)]
    print(markdown_table(header, rows, "DP-SGD by opacus"))
    keep_tables(args.out)


def save(results: dict, args: argparse.Namespace) -> None:
    """Write what there is so far."""
    if args.out:
        settings = {"delta": args.delta, "epochs": args.epochs, "batch": args.batch}
        write_json(args.out, results | {"settings": settings})


def measure(
    path: Path, args: argparse.Namespace
) -> Iterator[tuple[float, list[float]]]:
    """Yield each epsilon and its scores, with the learning rate best for it."""
    file = privfeat.open_features(path)
    train, test = (tensors(file[name]) for name in ("train", "test"))
    n_classes = len(file.class_names)
    batch = min(args.batch, len(train[1]) // 4)
    for epsilon in args.epsilons:
        start = time.perf_counter()
        multiplier = get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=args.delta,
            sample_rate=batch / len(train[1]),
            epochs=args.epochs,
            accountant="prv",
            epsilon_tolerance=0.005 * epsilon,  # the default, 0.01, is much at 0.1
        )
        setting = (train, test, n_classes, multiplier, batch, args.epochs)
        tuning = {
            rate: np.mean([fit(*setting, rate, seed=seed) for seed in (0, 1)])
            for rate in args.rates
        }
        rate = max(tuning, key=tuning.get)
        found = [fit(*setting, rate, seed=2 + seed) for seed in range(args.seeds)]
        tried = ", ".join(f"{r:g}: {100 * s:.1f}" for r, s in tuning.items())
        print(
            f"{path.stem}, epsilon={epsilon:g}: {100 * np.mean(found):.2f} at rate "
            f"{rate:g} ({tried}), noise multiplier {multiplier:.3f}, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
        yield epsilon, found


def fit(train, test, n_classes, multiplier, batch, epochs, rate, seed) -> float:
    """Return the test accuracy of one run."""
    model = train_head(train, n_classes, multiplier, batch, epochs, rate, seed)
    return float((predict(model, test[0]) == test[1]).double().mean())


def train_head(split, n_classes, multiplier, batch, epochs, rate, seed):
    """Return a linear layer without constants, fitted privately."""
    torch.manual_seed(seed)
    model = torch.nn.Linear(split[0].shape[1], n_classes, bias=False)
    torch.nn.init.zeros_(model.weight)
    engine = PrivacyEngine(accountant="prv")
    # "ghost": norms without the gradients of single records, several times faster
    model, optimizer, criterion, loader = engine.make_private(
        module=model,
        criterion=torch.nn.CrossEntropyLoss(),
        grad_sample_mode="ghost",
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=DataLoader(Batches(*split), batch_size=batch, collate_fn=collate),
        noise_multiplier=multiplier,
        max_grad_norm=1.0,
        poisson_sampling=True,
    )
    for _ in range(epochs):
        for features, labels in loader:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
    return model


def predict(model, features: torch.Tensor) -> torch.Tensor:
    """Return the class of each row."""
    with torch.no_grad():
        return model(features).argmax(dim=1)


class Batches(TensorDataset):
    """Rows by lists of indices: one gather a batch instead of one a row."""

    def __getitems__(self, indices):
        """Return a whole batch."""
        return tuple(tensor[indices] for tensor in self.tensors)


def collate(batch):
    """Return the batch, which is whole already."""
    return batch


def tensors(split) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of unit norm, and labels."""
    rows = split.X[:].astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return torch.from_numpy(rows), torch.from_numpy(np.asarray(split.y, np.int64))


def deviation(scores: list[float]) -> float:
    """Return the standard error of the mean."""
    return np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0.0


if __name__ == "__main__":
    main()
