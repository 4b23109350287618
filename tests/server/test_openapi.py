"""The OpenAPI description keeps what it promises, whatever schemathesis makes of it."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

PROMISES = [
    checks.not_a_server_error,
    *(
        check
        for check in checks.CHECKS.get_all()
        if check.__name__
        in {"status_code_conformance", "content_type_conformance", "response_schema_conformance", "unsupported_method"}
    ),
]
ROUTES = [("POST", "/v1/count"), ("GET", "/v1/health"), ("GET", "/v1/model"), ("GET", "/metrics")]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_answers_are_as_described(service: Any, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operation = schema[path][method]
    bounded = settings(
        max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
    )

    @bounded
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(checks=PROMISES, timeout=30)

    ask()


def test_all_routes_are_tried(service: Any) -> None:
    paths = httpx.get(f"{service.url}/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == set(ROUTES)
