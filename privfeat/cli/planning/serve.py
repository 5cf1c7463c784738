"""``privfeat budget serve``: a page about a ledger, in the browser of this machine."""

from argparse import Namespace
from typing import Any

from privfeat.cli.shared import files
from privfeat.cli.shared.terminal import CommandError, Terminated

DESCRIPTION = """\
Show budgets, spending over time and charges of all data sets of a ledger. The page is
read-only and for this machine alone: it is on 127.0.0.1, under a random name that only
the printed URL has, until Ctrl-C. With --out it is written to a file instead, once.
Keep page and URL to yourself: hours and names are no part of any statement. For example

    privfeat budget serve private.ledger --out page.html
"""


def add_options(parser: Any) -> None:
    """Add the options of this action."""
    add = parser.add_argument
    add("--port", type=int, default=0, help="default: any that is free")
    add("--out", metavar="FILE.html", help="write the page and end; replaced if there")


def run_serve(args: Namespace) -> None:
    """Write the page once, or serve it until Ctrl-C."""
    from privfeat.core.ledger.opening import open_store, read_accounts
    from privfeat.report.html import check_packages
    from privfeat.report.serving import PageServer
    from privfeat.report.spending import render_spending

    check_packages()
    if not 0 <= args.port < 2**16:
        raise CommandError(f"--port must be in [0, 65535], got {args.port}.")

    def render() -> str:
        place = str(open_store(args.ledger, read_only=True))  # without a password
        return render_spending(read_accounts(args.ledger), place=place)

    page = render()  # what cannot be shown is told before a browser asks
    if args.out is not None:
        files.write_file(args.out, page.encode())
        return
    with PageServer(render, port=args.port) as server:
        print(f"{server.url}  (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt as error:
            print()
            if isinstance(error, Terminated):
                raise
