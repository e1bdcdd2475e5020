"""The schema of the routes held against what they do, by examples that schemathesis draws."""

import warnings
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.status_code_conformance,
]


@pytest.mark.filterwarnings("ignore")
def test_no_example_breaks_the_server_or_its_schema(site: Any) -> None:
    token = site.token()
    schema = schemathesis.openapi.from_asgi("/openapi.json", site.client.app, headers={"host": "localhost"})
    seen: dict[str, set[int]] = {}
    for result in schema.get_all_operations():
        operation = result.ok()

        @hypothesis.settings(
            max_examples=20, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.seed(0)
        @hypothesis.given(operation.as_strategy(), strategies.booleans())
        def holds(case: Any, known: bool) -> None:
            if known and "token" in (case.path_parameters or {}):
                case.path_parameters["token"] = token
            # So many wrong tokens would be slowed down, which is another test's subject.
            site.clock[0] += 10
            case.headers = {**(case.headers or {}), "host": "localhost"}
            if known and case.operation.path.startswith("/api/research"):
                case.headers["authorization"] = f"Bearer {site.campaign.secrets['token']}"
            reply = case.call()
            seen.setdefault(case.operation.label, set()).add(reply.status_code)
            case.validate_response(reply, checks=CHECKS)

        holds()
    assert len(seen) == 10
    assert {200, 401} <= seen["GET /api/research/overview"]
    assert {401, 422} <= seen["POST /api/research/reviews"]
    assert {200, 404} <= seen["GET /api/work/{token}"]
    assert {404, 422} <= seen["POST /api/work/{token}/answers"]
