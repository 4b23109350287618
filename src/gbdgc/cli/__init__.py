"""The `gbdgc` command. Each command lives in its own module and is imported only when it is called."""

import os
import sys
from io import TextIOWrapper
from typing import NoReturn

from cyclopts import App

from gbdgc import __version__
from gbdgc.errors import InputError, UsageError, missing_extra

app = App(
    name="gbdgc",
    version=__version__,
    help="Count people in pictures, with a counter that generalises to cameras it has never seen.",
)
app.command("gbdgc.cli.count:count", help="Count people in pictures, folders, videos, cameras and streams.")
app.command("gbdgc.cli.train:train", help="Train a counter on one source.")
app.command("gbdgc.cli.tune:tune", help="Adapt a model to your own camera with a few labelled pictures.")
app.command("gbdgc.cli.evaluate:evaluate", name="eval", help="Count labelled data sets and measure the errors.")
app.command("gbdgc.cli.report:report", help="Write one HTML page about a run.")
app.command(
    "gbdgc.cli.benchmark:benchmark", help="Reproduce the tables of the paper, with its own numbers beside ours."
)
app.command("gbdgc.cli.figure:figure", help="Draw pictures beside their ground truth and the densities of models.")
app.command("gbdgc.cli.export:export", help="Write a model for onnxruntime or OpenVINO, and check its counts.")
app.command("gbdgc.cli.serve:serve", help="Count over HTTP, with a page to drop pictures on.")
app.command("gbdgc.cli.label:label", help="Label the heads in your own pictures, on a local page.")
app.command("gbdgc.cli.domains:domains", help="Find the latent domains in pictures or in a table of features.")
app.command("gbdgc.cli.data:app", name="data", help="Convert, check and look at labelled crowds, or draw some.")
app.command("gbdgc.cli.weights:app", name="weights", help="List, fetch and verify the ImageNet weights.")
app.command("gbdgc.cli.models:models", help="List the models that come with the package.")
app.command("gbdgc.cli.doctor:doctor", help="Check what works on this machine, and how to fix what does not.")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, or these arguments: 0 done, 1 an input failed, 2 wrong usage."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files need not be text
    try:
        app(arguments)
    except (InputError, FloatingPointError) as error:  # the second: a training that has diverged
        _exit_with(error)
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        _exit_with(missing)
    except BrokenPipeError:
        # The reader of our stdout went away (`| head`): not an error, and nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _exit_with(error: Exception) -> NoReturn:
    from rich.markup import escape

    from gbdgc.progress import stderr

    # A file name may hold brackets, which are markup to rich.
    stderr.print("[bold red]error:[/]", escape(str(error)), soft_wrap=True)
    sys.exit(2 if isinstance(error, UsageError) else 1)
