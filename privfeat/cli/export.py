"""``privfeat export``: write a saved model for other programs, or put it on the hub.

Write ONNX, which predicts without privfeat: it scales, centres, scores and chooses, and
takes the columns of a table by their names. Or write safetensors, the arrays alone. Or
put the model and its card into a repository of the Hugging Face hub. The privacy
statement goes with each. For example

    privfeat export results/model --onnx model.onnx
    privfeat export results/model --hub me/flowers --card card.md --dry-run
"""

from argparse import Namespace
from typing import Any

from privfeat.cli.shared import options
from privfeat.cli.shared.saved import with_columns
from privfeat.cli.shared.terminal import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run)
    add = parser.add_argument
    model = "a folder that `fit`, `train` or `privfeat.save` wrote"
    add("model", metavar="DIR", help=model)
    add("--onnx", metavar="FILE.onnx", help="replaced if it exists")
    width = (
        "of --onnx: take rows of float32, and compute in float64 all the same; of a "
        "network of images, take floats in place of bytes"
    )
    add("--float32", action="store_true", help=width)
    arrays = "models and networks; replaced if it exists"
    add("--safetensors", metavar="FILE.safetensors", help=arrays)
    add = parser.add_argument_group("hub").add_argument
    add("--hub", metavar="OWNER/NAME", help="a repository, made if it is not there")
    card = "with --hub: the model card, which `privfeat report --card` writes"
    add("--card", metavar="FILE.md", help=card)
    seen = "with --hub: everyone may see it (default: its owners alone)"
    add("--hub-public", action="store_true", help=seen)
    dry = "with --hub: print what would leave, and connect to nothing"
    add("--dry-run", action="store_true", help=dry)


def run(args: Namespace) -> None:
    """Write what is asked for."""
    if (args.onnx, args.safetensors, args.hub) == (None, None, None):
        raise CommandError("export needs --onnx, --safetensors or --hub, got none.")
    if (args.hub is None) != (args.card is None):
        raise CommandError("--hub and --card must be given together, got one.")
    if args.hub is None and (args.dry_run or args.hub_public):
        raise CommandError("--dry-run and --hub-public are for --hub: pass it too.")
    if args.float32 and args.onnx is None:
        raise CommandError("--float32 is for --onnx: pass it too.")
    from privfeat import export, persistence

    names = persistence.load_class_names(args.model)
    if args.onnx is not None:
        dtype: Any = "float32" if args.float32 else None
        model = with_columns(args.model)
        export.export_onnx(model, args.onnx, class_names=names, dtype=dtype)
        print(f"{args.onnx} written")
    if args.safetensors is not None:
        model = persistence.load(args.model)
        export.export_safetensors(model, args.safetensors, class_names=names)
        print(f"{args.safetensors} written")
    if args.hub is not None:
        leaving = export.push_to_hub(
            args.model,
            args.hub,
            card=args.card,
            private=not args.hub_public,
            dry_run=args.dry_run,
        )
        print(leaving)
        print("Nothing has left." if args.dry_run else "It has left.")
