"""Are networks without tuning as accurate as opacus with it, at equal compute?

    python benchmarks/untuned.py cifar10-images.tar.xz --out untuned.json

Images are ``train/<class>/*.jpg``, and ``test/`` likewise, in a folder or an archive,
of which the first of each class are taken. `DPSGDClassifier` has its defaults. opacus
trains the same network for as many epochs, by SGD with momentum 0.9 and Poisson
batches; rate, clip norm and batch are tuned **on the test set**, one after the other,
on a fit with a seed of its own. The rate is in proportion to the batch, and inversely
to the clip norm. Its noise is that of the PRV accountant.
opacus and torch are needed here alone: ``pip install -e . opacus``. What the file of
``--out`` holds already is not run again.
"""

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from dpsgd_accuracy import Data, percent, read_images

from privfeat import DPSGDClassifier
from privfeat.networks.training.optimizers import default_rate

MODEL = "sample_convnet"
START = {"batch": 512, "clip_norm": 1.0}
_TUNING = 100  # the seed of fits that settings are chosen by


def main() -> None:
    """Print the table."""
    args = parse()
    warnings.simplefilter("ignore")
    cells = Cells(args.out, settings_of(args, "seeds"))
    data = read_images(args.images, args.size, args.records)
    header = ["epsilon", "", "epochs", "batch", "clip norm", "rate", "noise", "%"]
    rows: list[list[str]] = []
    for epsilon in args.epsilons:
        rows += compared(cells, data, args, epsilon)
        # after each epsilon: a run may be stopped
        print(markdown_table([*header, "s a fit"], rows, "accuracy"), flush=True)
        keep_tables(args.out)


def compared(
    cells: Cells, data: Data, args: argparse.Namespace, epsilon: float
) -> Iterator[list[str]]:
    """Yield the row of defaults, and of opacus as it was tuned."""
    found = []
    for seed in range(args.seeds):
        name = f"epsilon={epsilon:g} defaults seed={seed}"
        found.append(cells.get(name, partial(untuned, data, args, epsilon, seed)))
    first = found[0]
    yield row(epsilon, "privfeat, defaults", first, found)
    setting = START | {"epochs": first["epochs"]}
    for name, values in (
        ("rate", args.rates),
        ("clip_norm", [setting["clip_norm"], *args.clip_norms]),
        ("batch", [setting["batch"], *args.batches]),
    ):
        tried = [changed(setting, name, value) for value in values]
        setting = max(
            tried,
            key=lambda one: opacus(cells, data, args, epsilon, one, _TUNING)["score"],
        )
    found = [
        opacus(cells, data, args, epsilon, setting, seed) for seed in range(args.seeds)
    ]
    yield row(epsilon, "opacus, tuned", setting | {"noise": found[0]["noise"]}, found)


def changed(setting: dict[str, Any], name: str, value: float) -> dict[str, Any]:
    """Return a setting with another value; a fit goes as far as before."""
    new = setting | {name: value}
    if name == "batch":
        new["rate"] = setting["rate"] * value / setting[name]
    elif name == "clip_norm":
        new["rate"] = setting["rate"] * setting[name] / value
    return new


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
        model=MODEL, epsilon=epsilon, classes=range(10), random_state=seed
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
) -> dict[str, Any]:
    """Return the accuracy of opacus, kept in the file."""
    shown = ", ".join(f"{name} {value:.4g}" for name, value in setting.items())
    name = f"epsilon={epsilon:g} opacus {shown} seed={seed}"
    fit = partial(trained_by_opacus, data, args, epsilon, setting, seed)
    return dict(cells.get(name, fit))


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
    from opacus.accountants.utils import get_noise_multiplier
    from torch.utils.data import DataLoader

    torch.set_num_threads(args.threads)
    torch.manual_seed(seed)
    X, X_test = (
        torch.from_numpy(part.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1.0)
        for part in (data[0], data[2])
    )
    y, y_test = (torch.from_numpy(part.astype(np.int64)) for part in (data[1], data[3]))
    # opacus samples with the inverse of the number of batches, rounded up
    n_batches = math.ceil(len(y) / setting["batch"])
    n_iter = max(1, round(setting["epochs"] * n_batches))
    noise = get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=args.delta,
        sample_rate=1 / n_batches,
        steps=n_iter,
        accountant="prv",
    )
    network = torch_convnet(X.shape[2])
    how = {"lr": setting["rate"], "momentum": 0.9}
    start = time.process_time()
    network, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), **how),
        data_loader=DataLoader(
            Batches(X, y), batch_size=setting["batch"], collate_fn=collate
        ),
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
    return {"score": accuracy, "seconds": seconds, "noise": float(noise)}


def torch_convnet(side: int) -> Any:
    """Return `SampleConvNet` in torch, for images of three colours."""
    from torch import nn

    last = (side // 2 - 1 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(3, 16, 8, stride=2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * last * last, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--records", type=int, default=10_000, help="evenly by class")
    parser.add_argument("--size", type=int, default=32, help="side of the images")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[2, 8])
    parser.add_argument("--delta", type=float, default=1e-5)
    tuning = parser.add_argument_group("opacus").add_argument
    rates = [0.03, 0.1, 0.3]
    tuning("--rates", nargs="+", type=float, default=rates)
    tuning("--clip-norms", nargs="*", type=float, default=[10.0], help="beside 1")
    tuning("--batches", nargs="*", type=int, default=[], help="beside 512")
    parser.add_argument("--threads", type=int, default=1, help="of opacus")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
