"""The service's metrics for Prometheus. They say nothing about what was in a picture."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from gbdgc import __version__
from gbdgc.server.work import WorkQueue

_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_MEGAPIXELS = (0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """The figures of one service."""

    def __init__(self, queue: WorkQueue, model: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("gbdgc_requests", "Answers given.", ["route", "status"], registry=self.registry)
        self.refusals = Counter("gbdgc_refusals", "Requests refused, by reason.", ["code"], registry=self.registry)
        self.seconds = Histogram(
            "gbdgc_count_seconds",
            "From the upload's last byte to the answer, waiting included.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.megapixels = Histogram(
            "gbdgc_picture_megapixels", "Size of the pictures counted.", buckets=_MEGAPIXELS, registry=self.registry
        )
        self.unfamiliar = Counter(
            "gbdgc_unfamiliar_pictures", "Pictures far from all that the model was trained on.", registry=self.registry
        )
        Gauge("gbdgc_queued", "Requests in the queue now.", registry=self.registry).set_function(lambda: queue.taken)
        Gauge("gbdgc_queue_slots", "Requests that the queue holds.", registry=self.registry).set(queue.slots)
        Gauge("gbdgc_model", "1 for the model in use.", ["model", "version"], registry=self.registry).labels(
            model, __version__
        ).set(1)

    def text(self) -> bytes:
        """Return all figures in Prometheus's text format."""
        return generate_latest(self.registry)
