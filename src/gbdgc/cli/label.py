"""`gbdgc label`."""

from pathlib import Path

from gbdgc.cli.options import Engine, Host, Port, Threads, Token
from gbdgc.files import claim
from gbdgc.progress import stderr


def label(
    folder: Path,
    /,
    *,
    weights: Path | None = None,
    engine: Engine = None,
    host: Host = "127.0.0.1",
    port: Port = 8001,
    token: Token = None,
    threads: Threads = None,
) -> None:
    """Label the heads in your own pictures, on a local page.

    The model proposes heads; a click adds or removes one. Every change is written at once to a CSV of points in the
    folder, labels.csv unless it has one already, which all other commands read. Stop with Ctrl-C and continue any time.

    Parameters
    ----------
    folder
        The pictures, at any depth.
    weights
        What proposes heads: a run's folder, a model file or an exported one; by default the bundled model.
    """
    from gbdgc.cli.serve import bind, check_token, is_local, require_server, run

    require_server()

    from gbdgc.counting import Counter
    from gbdgc.data.label_file import LabelFile
    from gbdgc.server.labelling import LABELLING, create_label_app

    token = check_token(token)
    labels = LabelFile(folder)
    for problem in labels.problems:
        stderr.print(f"left out: {problem}", markup=False, soft_wrap=True)
    with claim(folder):
        listener = bind(host, port)
        counter = Counter.load(weights, engine=engine, threads=threads)
        hosts = ["127.0.0.1", "localhost", host] if is_local(host) and ":" not in host else None
        stderr.print(f"labels are saved to {labels.path}; stop with Ctrl-C", markup=False, soft_wrap=True)
        # A line for each request would push the address and what was left out off the screen.
        app = create_label_app(labels, counter, token=token, hosts=hosts)
        run(app, LABELLING, listener, token, log_requests=False)
