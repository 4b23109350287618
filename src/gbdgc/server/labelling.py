"""Labelling: the pictures of one folder, heads that the model proposes, and the labels as they are clicked."""

import asyncio
import json
import shlex
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO

from fastapi import FastAPI, Request, Response
from PIL import Image
from pydantic import BaseModel, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from gbdgc import __version__
from gbdgc.counting import Counter, Failure, Result, count_sources
from gbdgc.data import Points, Sample
from gbdgc.data.images import image_orientation, read_image
from gbdgc.data.label_file import LabelFile, LabelsChanged, tag_of
from gbdgc.data.sample import decimals
from gbdgc.errors import InputError
from gbdgc.evaluation import label_score
from gbdgc.server.app import furnish, locked_by
from gbdgc.server.connections import client_key
from gbdgc.server.files import page_files
from gbdgc.server.limits import Limits, Refusal, sendable
from gbdgc.server.metrics import Metrics
from gbdgc.server.upload import receiving
from gbdgc.server.work import Check, WorkQueue

LABELLING = Limits(upload_bytes=4_000_000, seconds=120.0, client_share=1.0)
"""One person works here: all of the queue is theirs, and a large picture may take its time."""

_KEPT_RESULTS = 4
_SHOWN_AS_THEY_ARE = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}


class PictureState(BaseModel):
    """One picture of the folder."""

    name: str
    width: int
    height: int
    heads: int | None = Field(description="how many are labelled; null where nobody has labelled it")


class Folder(BaseModel):
    """The folder to be labelled."""

    folder: str
    file: str = Field(description="where the labels are")
    model: str
    next_step: str = Field(description="the command to run when enough is labelled")
    pictures: list[PictureState]


class Heads(BaseModel):
    """The labels of one picture."""

    points: list[tuple[float, float]] | None
    tag: str = Field(description="to be sent as If-Match with the next change")


class Seen(BaseModel):
    """The model's count and heads of a picture."""

    count: float
    points: list[tuple[float, float]]
    score: float | None = Field(description="how well the labels fit, where there are heads: below 0 is suspicious")


def create_label_app(
    labels: LabelFile, counter: Counter, *, token: str | None = None, hosts: list[str] | None = None
) -> FastAPI:
    """Return the service behind the labelling page; the counter proposes heads, and requests must bear the token.

    ``hosts`` are the names by which the service may be asked: a page elsewhere cannot pass as this one by a name of its
    own that leads to this machine.
    """
    queue = WorkQueue(LABELLING)
    model = sendable(counter.info.get("name", "unnamed"))
    locked = locked_by(token)
    results: OrderedDict[str, Result] = OrderedDict()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        queue.close()

    app = FastAPI(title="gbdgc label", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    if hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)

    def picture(name: str) -> Sample:
        if name not in labels.pictures:
            raise Refusal(404, "no_such_picture", f"{name[:200]}: not in this folder", "start `gbdgc label` again")
        return labels.pictures[name]

    async def heads_of(name: str) -> Points | None:
        picture(name)
        with _refusing():
            return (await asyncio.to_thread(labels.heads))[name]

    @app.get("/v1/folder", dependencies=locked)
    async def folder() -> Folder:
        """List the pictures, and how far each is labelled."""
        with _refusing():
            heads = await asyncio.to_thread(labels.heads)
        counts = {name: None if points is None else len(points) for name, points in heads.items()}
        return Folder(
            folder=sendable(labels.folder),
            file=sendable(labels.path),
            model=model,
            next_step=sendable(f"gbdgc tune {shlex.quote(str(labels.folder))}"),
            pictures=[
                PictureState(name=name, width=sample.width, height=sample.height, heads=counts[name])
                for name, sample in labels.pictures.items()
            ],
        )

    @app.get("/v1/image/{name:path}", dependencies=locked)
    async def image(name: str) -> Response:
        """Return a picture, upright."""
        with _refusing():
            return await asyncio.to_thread(_image, picture(name))

    @app.get("/v1/heads/{name:path}", dependencies=locked)
    async def heads(name: str) -> Heads:
        """Return the labels of a picture."""
        return _heads(await heads_of(name))

    @app.put("/v1/heads/{name:path}", dependencies=locked)
    async def save(name: str, request: Request) -> Heads:
        """Replace the labels of a picture; If-Match names those that the change was made to."""
        picture(name)
        client = client_key(request.client.host if request.client else None)
        with queue.upload(client) as hold:
            async with receiving(request, LABELLING, hold) as body:
                text = b"".join([chunk async for chunk in body])
        try:
            points = json.loads(text)["points"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Refusal(400, "bad_body", 'the body: not {"points": [[x, y], ...]}', "see the page's own") from error
        with _refusing():
            saved = await asyncio.to_thread(labels.save, name, points, request.headers.get("if-match", ""))
        return _heads(saved)

    @app.get("/v1/seen/{name:path}", dependencies=locked)
    async def seen(name: str, request: Request) -> Seen:
        """Return what the model sees in a picture, and how well its labels fit that."""
        labelled = await heads_of(name)
        client = client_key(request.client.host if request.client else None)
        with queue.slot(client):
            return await queue.run(partial(_seen, counter, picture(name), labelled, results))

    return furnish(app, page_files("label.html"), Metrics(queue, model))


@contextmanager
def _refusing() -> Iterator[None]:
    """Answer what is wrong with the folder, a picture or labels."""
    try:
        yield
    except InputError as error:
        status, code = (409, "changed") if isinstance(error, LabelsChanged) else (400, "bad_input")
        message = f"{error.thing}: {error.reason}"
        raise Refusal(status, code, message, error.next_step or "fix it, and try again") from error


def _heads(points: Points | None) -> Heads:
    rows = decimals(points)
    return Heads(points=None if rows is None else [(x, y) for x, y in rows], tag=tag_of(points))


def _image(sample: Sample) -> Response:
    """Return the file itself where every browser shows it upright, and otherwise a copy that it does."""
    kind = _SHOWN_AS_THEY_ARE.get(sample.image.suffix.lower())
    if kind is not None and (kind == "image/jpeg" or image_orientation(sample.image) == 1):
        return Response(sample.image.read_bytes(), media_type=kind)
    file = BytesIO()
    Image.fromarray(read_image(sample.image)).save(file, "PNG", compress_level=1)
    return Response(file.getvalue(), media_type="image/png")


def _seen(
    counter: Counter, sample: Sample, heads: Points | None, results: OrderedDict[str, Result], check: Check
) -> Seen:
    """Count a picture, unless it is among the last; runs in the one counting thread."""
    if sample.id not in results:
        (outcome,) = count_sources(counter, [sample.image], check=check)
        if isinstance(outcome, Failure):
            raise Refusal(400, "bad_picture", f"{sample.id}: {outcome.error.reason}", outcome.error.next_step)
        assert isinstance(outcome, Result)
        results[sample.id] = replace(outcome, image=None)
        if len(results) > _KEPT_RESULTS:
            results.popitem(last=False)
    results.move_to_end(sample.id)
    result = results[sample.id]
    return Seen(
        count=result.count,
        points=[(x, y) for x, y, _ in result.rounded_points()],
        score=label_score(result, heads) if heads is not None and len(heads) else None,
    )
