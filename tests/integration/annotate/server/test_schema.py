"""The schema of the routes held against what they do, by examples that schemathesis draws."""

import hypothesis
import pytest
from hypothesis import strategies


@pytest.mark.filterwarnings("ignore")
def test_no_example_breaks_the_server_or_its_schema(site):
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    names = ("not_a_server_error", "response_schema_conformance", "content_type_conformance")
    checks = [getattr(schemathesis.checks, name) for name in (*names, "status_code_conformance")]
    token = site.token()
    schema = schemathesis.openapi.from_asgi("/openapi.json", site.client.app, headers={"host": "localhost"})
    seen = {}
    for result in schema.get_all_operations():
        operation = result.ok()

        @hypothesis.settings(
            max_examples=10, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.seed(0)
        @hypothesis.given(operation.as_strategy(), strategies.booleans())
        def holds(case, known):
            if known and "token" in (case.path_parameters or {}):
                case.path_parameters["token"] = token
            # So many wrong tokens would be slowed down, which is another test's subject.
            site.clock[0] += 10
            case.headers = {**(case.headers or {}), "host": "localhost"}
            if known and case.operation.path.startswith("/api/research"):
                case.headers |= site.bearer
            reply = case.call()
            seen.setdefault(case.operation.label, set()).add(reply.status_code)
            case.validate_response(reply, checks=checks)

        holds()
    assert len(seen) == 8
    assert {401, 422} <= seen["POST /api/research/reviews"]
    assert {200, 404} <= seen["GET /api/work/{token}"]
    assert {404, 422} <= seen["POST /api/work/{token}/answers"]
