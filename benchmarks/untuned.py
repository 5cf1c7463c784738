"""Are networks without tuning as accurate as opacus with it, at equal compute?

    python benchmarks/untuned.py cifar10-images.tar.xz --size 8 --out untuned.json

Images are ``train/<class>/*.jpg``, and ``test/`` likewise, in a folder or an archive,
of which the first of each class are taken. `DPSGDClassifier` has its defaults. opacus
trains the same network, with torch's own first weights, for as many epochs of Poisson
batches, with the noise of its PRV accountant. It is tuned for each epsilon by itself:
SGD with momentum 0.9 and Adam, each with all rates and clip norms; then the three best
with another seed; then the best with other batches. That is done on a fifth of the
training images, by fits on the others with batches as much smaller. No test image
chooses anything. Tuning costs opacus no budget, as it would in practice.
Rates of SGD are those of clip norm 1 and 500 images a batch: they are in proportion to
the batch, and inversely to the clip norm; those of Adam to the root of the batch.
opacus and torch are needed here alone: ``pip install -e . opacus``. What the file of
``--out`` holds already is not run again.
"""

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, require, settings_of
from dpsgd_accuracy import Data, percent, read_images

from privfeat import DPSGDClassifier
from privfeat.networks.models.small import parse_simple_vgg
from privfeat.networks.training.optimizers import default_rate

CHOICES = ("epsilons", "seeds", "sgd_rates", "adam_rates", "clip_norms", "batches")
_BATCH = 500
_TUNING = 100  # the first seed of fits that settings are chosen by
_NUMBERS = ("batch", "clip_norm", "epochs", "rate")
_CONFIRMED = 3  # settings that are tried with another seed


def main() -> None:
    """Print the tables."""
    args = parse()
    require("opacus", "to compare with")
    warnings.simplefilter("ignore")
    cells = Cells(args.out, settings_of(args, *CHOICES))
    data = read_images(args.images, args.size, args.records)
    header = ["epsilon", "", "epochs", "batch", "clip norm", "rate", "noise", "%"]
    rows: list[list[str]] = []
    for epsilon in args.epsilons:
        rows += compared(cells, data, args, epsilon)
        # after each epsilon: a run may be stopped
        print(markdown_table([*header, "s a fit"], rows, "accuracy"), flush=True)
        cells.save()
    keep_tables(args.out)


def compared(
    cells: Cells, data: Data, args: argparse.Namespace, epsilon: float
) -> Iterator[list[str]]:
    """Yield the row of defaults, and of opacus as it was tuned."""
    found = []
    for seed in range(args.seeds):
        name = f"epsilon={epsilon:g} defaults seed={seed}"
        found.append(cells.get(name, partial(untuned, data, args, epsilon, seed)))
    yield row(epsilon, "privfeat, defaults", found[0], found)
    parts = held_out(data)

    def chance(setting: dict[str, Any], n_seeds: int) -> float:
        fit = partial(opacus, cells, parts, args, epsilon, setting)
        seeds = range(_TUNING, _TUNING + n_seeds)
        return float(np.mean([fit(seed, "tuning ")["score"] for seed in seeds]))

    tried = sorted(grid(args, found[0]["epochs"]), key=lambda one: -chance(one, 1))
    print_grid(tried, [chance(one, 1) for one in tried], epsilon)
    best = max(tried[:_CONFIRMED], key=lambda one: chance(one, 2))
    others = [with_batch(best, batch) for batch in args.batches]
    best = max([best, *others], key=lambda one: chance(one, 2))
    fits = [opacus(cells, data, args, epsilon, best, s) for s in range(args.seeds)]
    who = f"opacus, tuned ({best['optimizer']})"
    yield row(epsilon, who, best | {"noise": fits[0]["noise"]}, fits)


def grid(args: argparse.Namespace, epochs: float) -> list[dict[str, Any]]:
    """Return the settings that are tried."""
    usual = {"epochs": epochs, "batch": _BATCH}
    found = []
    for clip_norm in args.clip_norms:
        own = usual | {"clip_norm": clip_norm}
        found += [
            own | {"optimizer": "sgd", "rate": r / clip_norm} for r in args.sgd_rates
        ]
        found += [own | {"optimizer": "adam", "rate": r} for r in args.adam_rates]
    return found


def with_batch(setting: dict[str, Any], batch: int) -> dict[str, Any]:
    """Return a setting with another batch; a fit goes as far as before."""
    times = batch / setting["batch"]
    times = times if setting["optimizer"] == "sgd" else math.sqrt(times)
    return setting | {"batch": batch, "rate": setting["rate"] * times}


def held_out(data: Data) -> Data:
    """Return the training images in two parts, the second a fifth of them."""
    X, y = data[:2]
    order = np.random.default_rng(0).permutation(len(X))
    first, second = np.split(order, [round(0.8 * len(X))])
    return X[first], y[first], X[second], y[second]


def print_grid(
    tried: list[dict[str, Any]], scores: list[float], epsilon: float
) -> None:
    """Keep a table of what was tried, from the best on."""
    rows = []
    for one, score in zip(tried, scores, strict=True):
        shown = [f"{one['clip_norm']:g}", f"{one['rate']:.3g}", f"{100 * score:.1f}"]
        rows.append([one["optimizer"], *shown])
    header = ["optimizer", "clip norm", "rate", "held out, %"]
    print(markdown_table(header, rows, f"tuning at {epsilon:g}"), flush=True)


def row(
    epsilon: float, who: str, setting: dict[str, Any], found: list[dict[str, Any]]
) -> list[str]:
    """Return a line of the table."""
    shown = [f"{setting[name]:.4g}" for name in ("epochs", "batch", "clip_norm")]
    shown += [f"{setting['rate']:.3g}", f"{setting['noise']:.3g}"]
    seconds = np.median([one["seconds"] for one in found])
    scores = [one["score"] for one in found]
    return [f"{epsilon:g}", who, *shown, percent(scores), f"{seconds:.0f}"]


def untuned(
    data: Data, args: argparse.Namespace, epsilon: float, seed: int
) -> dict[str, Any]:
    """Return the accuracy of defaults, and what they were."""
    X, y, X_test, y_test = data
    clf = DPSGDClassifier(
        model=args.model, epsilon=epsilon, classes=range(10), random_state=seed
    )
    start = time.process_time()
    clf.fit(X, y)
    seconds = time.process_time() - start
    query = clf.privacy_.releases[0]
    share = float(query.sampling_prob)
    shapes = [leaf.shape for leaf in clf.parameters_.values()]
    return {
        "score": float(clf.score(X_test, y_test)),
        "seconds": seconds,
        "epochs": clf.n_iter_ * share,
        "batch": share * len(X),
        "clip_norm": float(clf.clip_norm),
        "rate": default_rate("adam", shapes, clf.n_iter_),
        "noise": float(query.noise_stddev / query.l2_sensitivity),
    }


def opacus(
    cells: Cells,
    data: Data,
    args: argparse.Namespace,
    epsilon: float,
    setting: dict[str, Any],
    seed: int,
    name: str = "",
) -> dict[str, Any]:
    """Return the accuracy of opacus, kept in the file."""
    shown = [f"{key} {value:.4g}" for key, value in setting.items() if key in _NUMBERS]
    name += f"epsilon={epsilon:g} opacus {setting['optimizer']} {', '.join(shown)}"
    fit = partial(trained_by_opacus, data, args, epsilon, setting, seed)
    return dict(cells.get(f"{name} seed={seed}", fit))


@cache
def opacus_noise(epsilon: float, delta: float, n_batches: int, n_iter: int) -> float:
    """Return the noise multiplier of opacus."""
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=1 / n_batches,
            steps=n_iter,
            accountant="prv",
            epsilon_tolerance=0.005 * epsilon,
        )
    )


def trained_by_opacus(
    data: Data,
    args: argparse.Namespace,
    epsilon: float,
    setting: dict[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Return the accuracy of one fit by opacus."""
    import torch
    from dpsgd import Batches, collate
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader

    torch.set_num_threads(args.threads)
    torch.manual_seed(seed)
    # contiguous: of images whose channels are last in memory, opacus 1.6 finds other
    # gradients of convolutions than those of the records
    X, X_test = (
        torch.from_numpy(
            np.ascontiguousarray(part.transpose(0, 3, 1, 2), np.float32) / 127.5 - 1.0
        )
        for part in (data[0], data[2])
    )
    y, y_test = (torch.from_numpy(part.astype(np.int64)) for part in (data[1], data[3]))
    # opacus samples with the inverse of the number of batches, rounded up
    batch = round(setting["batch"] * len(y) / args.records)
    n_batches = math.ceil(len(y) / batch)
    n_iter = max(1, round(setting["epochs"] * n_batches))
    noise = opacus_noise(epsilon, args.delta, n_batches, n_iter)
    network, rate = torch_network(args.model, X.shape[2]), setting["rate"]
    made: Any = partial(torch.optim.SGD, momentum=0.9)
    made = torch.optim.Adam if setting["optimizer"] == "adam" else made
    start = time.process_time()
    network, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
        module=network,
        optimizer=made(network.parameters(), lr=rate),
        data_loader=DataLoader(Batches(X, y), batch_size=batch, collate_fn=collate),
        noise_multiplier=noise,
        max_grad_norm=setting["clip_norm"],
        poisson_sampling=True,
    )
    loss, step = torch.nn.CrossEntropyLoss(), 0
    while step < n_iter:
        for images, labels in loader:
            if step == n_iter:
                break
            optimizer.zero_grad()
            loss(network(images), labels).backward()
            optimizer.step()
            step += 1
    seconds = time.process_time() - start
    with torch.no_grad():
        scores = torch.cat([network(part) for part in X_test.split(500)])
    accuracy = float((scores.argmax(dim=1) == y_test).double().mean())
    return {"score": accuracy, "seconds": seconds, "noise": noise}


def torch_network(name: str, side: int) -> Any:
    """Return a network of `convnets` in torch, for images of three colours."""
    from torch import nn

    if name == "sample_convnet":
        last = (side // 2 - 1 - 4) // 2
        return nn.Sequential(
            nn.Conv2d(3, 16, 8, stride=2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Flatten(), nn.Linear(32 * last**2, 32), nn.ReLU(), nn.Linear(32, 10),
        )  # fmt: skip
    sizes, channels = parse_simple_vgg(name), 3
    layers: list[Any] = []
    for width, depth in sizes["blocks"]:
        for _ in range(depth):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.Tanh()]
            channels = width
        layers.append(nn.MaxPool2d(2))
        side //= 2
    hidden = sizes["n_hidden"]
    layers += [nn.Flatten(), nn.Linear(side**2 * channels, hidden), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(hidden, 10))


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--records", type=int, default=10_000, help="evenly by class")
    parser.add_argument("--model", default="simpleVGG-16(1)-32")
    parser.add_argument("--size", type=int, default=32, help="side of the images")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[2, 8])
    parser.add_argument("--delta", type=float, default=1e-5)
    tuning = parser.add_argument_group("opacus").add_argument
    tuning("--sgd-rates", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0])
    tuning("--adam-rates", nargs="+", type=float, default=[1e-3, 3e-3, 1e-2, 3e-2])
    tuning("--clip-norms", nargs="+", type=float, default=[0.1, 1.0])
    tuning("--batches", nargs="*", type=int, default=[250, 1000], help="beside 500")
    parser.add_argument("--threads", type=int, default=1, help="of opacus")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
