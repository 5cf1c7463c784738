"""How fast is extraction beside a bare forward loop of timm?

    python benchmarks/extraction.py --model mobilenetv2_100 --crop 128 --out speed.json

The bare loop has nothing to do but to call the network: its images are decoded, scaled
and on the device. The pipeline gets the same images as JPEG files, and does all that
``privfeat-extract`` does: decoding in workers, scaling, the network, and writing the
features to the disk. Both take turns in one process, so that what else runs on the
machine meets both, and both must give the same features.

Speed of the pipeline over that of the bare loop is printed for wall time, and on a CPU
also for the CPU time of the main process, which counts all the work beside decoding
but not the waiting for workers that lack a core of their own. Starting the workers
counts as well: with few images the ratio is lower than that of a long run. Weights are
random and images are cut from the two photographs of scikit-learn, so that nothing is
downloaded.
"""

import argparse
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import timm
import torch
from _results import keep_tables, markdown_table, write_json
from PIL import Image
from sklearn.datasets import load_sample_images

from privfeat.data import FeatureWriter, open_features
from privfeat_extract.arguments import Network, Options
from privfeat_extract.folder import open_folder
from privfeat_extract.loading import load_batches
from privfeat_extract.network import NetworkExtractor


def main() -> None:
    """Print one table and write its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--crop", type=int, default=96, help="side of the images")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1, help="of torch, on a CPU")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_images(folder / "images", args.images, args.crop)
        results = measure(folder, args)
    rows = []
    for clock, times in results.items():
        speeds = (args.images / statistics.median(times[name]) for name in LOOPS)
        rows.append([clock, *(f"{speed:.1f}" for speed in speeds)])
        rows[-1].append(f"{statistics.median(ratios(times)):.3f}")
    print(markdown_table(["images/s by", *LOOPS, "ratio"], rows, "images"))
    if args.out:
        settings = {k: v for k, v in vars(args).items() if k != "out"}
        libraries = {name: version(name) for name in ("torch", "timm", "pillow")}
        content = {"settings": settings, "libraries": libraries, "seconds": results}
        content["ratio"] = {
            clock: statistics.median(ratios(times)) for clock, times in results.items()
        }
        write_json(args.out, content)
    keep_tables(args.out)


LOOPS = ("bare loop", "pipeline")


def ratios(times):
    """Return the speed of the pipeline over that of the bare loop in each round."""
    return [b / p for b, p in zip(*(times[name] for name in LOOPS), strict=True)]


def save_images(folder, count, side):
    """Cut squares from two photographs, a quarter larger than the network takes."""
    rng = np.random.default_rng(0)
    side += side // 4
    for name, photo in zip(
        ("china", "flower"), load_sample_images().images, strict=True
    ):
        (folder / "train" / name).mkdir(parents=True)
        for i in range(count // 2):
            top, left = (rng.integers(length - side) for length in photo.shape[:2])
            square = photo[top : top + side, left : left + side]
            Image.fromarray(square).save(folder / "train" / name / f"{i:05d}.jpg")


def measure(folder, args):
    """Return the seconds of each loop in each round, by each clock."""
    options = Options(
        data=str(folder / "images"),
        out=folder / "out.h5",
        networks=(Network(args.model, pretrained=False),),
        resize=args.crop + args.crop // 4,
        crop=args.crop,
        batch_size=args.batch_size,
        workers=args.workers,
        device=args.device,
        precision=args.precision,
        compile=args.compile,
        dtype="float32",
    )
    images = open_folder(folder / "images", ["train"], options.out).splits["train"]
    extractor = NetworkExtractor(options)
    bare = bare_loop(images, extractor, options, args.model)

    def pipeline():
        return extract(images, extractor, options)

    loops = dict(zip(LOOPS, (bare, pipeline), strict=True))
    expected, found = (loop() for loop in loops.values())  # and a round to get warm
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.05 * expected.std())
    clocks = {"wall time": time.perf_counter, "CPU time": time.process_time}
    if extractor.device.type != "cpu":
        del clocks["CPU time"]
    results = {clock: {name: [] for name in LOOPS} for clock in clocks}
    for number in range(args.rounds):
        for name in LOOPS if number % 2 else reversed(LOOPS):
            before = {clock: read() for clock, read in clocks.items()}
            loops[name]()
            for clock, read in clocks.items():
                results[clock][name].append(read() - before[clock])
    return results


def bare_loop(images, extractor, options, name):
    """Return a loop that calls the network on what is decoded and scaled already."""
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=0).eval()
    model.to(extractor.device, memory_format=torch.channels_last)
    mean, std = (
        torch.tensor(extractor.metadata[key]).view(1, 3, 1, 1)
        for key in ("mean", "std")
    )
    loading = {"batch_size": options.batch_size, "workers": 0, "pin": False}
    ready = [
        ((batch.pixels[0].float() / 255 - mean) / std).to(
            extractor.device, memory_format=torch.channels_last
        )
        for batch in load_batches(
            images, extractor.transform, start=0, stop=len(images), **loading
        )
    ]
    low = extractor.precision != "float32"
    dtype = getattr(torch, extractor.precision) if low else None
    forward = torch.compile(model) if options.compile else model

    def loop():
        with (
            torch.inference_mode(),
            torch.autocast(extractor.device.type, dtype, enabled=low),
        ):
            return np.concatenate(
                [rows.float().cpu() for rows in [forward(x) for x in ready]]
            )

    return loop


def extract(images, extractor, options):
    """Run the whole pipeline; return the features that it wrote."""
    with FeatureWriter(
        options.out, n_features=extractor.n_features, dtype="float32", overwrite=True
    ) as writer:
        for batch in extractor.batches(images, start=0, stop=len(images)):
            writer.append("train", batch.features, batch.labels)
        writer.finish()
    return open_features(options.out)["train"].X[:]


if __name__ == "__main__":
    main()
