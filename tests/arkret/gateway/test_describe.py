"""What the Gateway says of itself before anybody authenticates."""

import pytest

from heliograph.storage.database import Database
from tests.arkret.gateway.house import GATEWAY_ID, house

pytestmark = pytest.mark.anyio


@pytest.mark.clause("R007", "R089", "R090", "R142")
async def test_the_document_describes_one_role_with_the_blind_baseline(database: Database) -> None:
    """The push gateway profile is never claimed without the blind one; bundles are sorted and complete."""
    async with house(database) as there:
        answer = await there.ask("GET", "/_arkret/describe?service_kind=push_gateway", [])

        document = answer.json
        assert answer.status == 200
        assert document["service_id"] == GATEWAY_ID
        assert document["service_kind"] == "push_gateway"
        assert document["supported_profiles"] == [
            "ak.profile.push_gateway.blind_wakeup.v1",
            "ak.profile.push_gateway.v1",
        ]
        assert document["supported_operation_bundles"] == [
            "ak.operation_bundle.push_gateway.describe.v1",
            "ak.operation_bundle.push_gateway.http_notify.v1",
            "ak.operation_bundle.push_gateway.registration_handoff.v1",
        ]
        assert document["transport_bindings"] == [
            {"base_url": "https://push.example.com", "extension_profile_required": None, "kind": "http_json"}
        ]


@pytest.mark.clause("R009", "R285", "R294", "R295")
async def test_neither_the_visible_nor_the_matrix_profile_is_claimed(database: Database) -> None:
    """So no baseline registration can ever be served by either."""
    async with house(database) as there:
        answer = await there.ask("GET", "/_arkret/describe", [])

        assert not any(
            word in answer.body
            for word in (b"visible_notification", b"matrix_passthrough", b"claimed_profiles")
        )


async def test_required_members_are_all_there(database: Database) -> None:
    """As the published schema lists them."""
    async with house(database) as there:
        document = (await there.ask("GET", "/_arkret/describe", [])).json

        required = {
            "service_id",
            "service_resolution",
            "trust_domain",
            "service_kind",
            "protocol_version",
            "supported_profiles",
            "supported_features",
            "auth_metadata",
            "limits",
            "plaintext_visibility",
            "verified_profiles",
            "interop_surfaces",
            "development_mode",
            "supported_operation_bundles",
            "transport_bindings",
            "rate_limit_policy_id",
        }
        assert required == set(document)
        assert document["protocol_version"] == "1.0"
        assert set(document["service_resolution"]) == {"did", "method_history_head", "version_id"}


@pytest.mark.clause("R086", "R091", "R114")
@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("/_arkret/describe?service_kind=station", 400, "param_invalid"),
        ("/_arkret/edge/push/describe", 404, "unrecognized_endpoint"),
        ("/_arkret/edge/push/register-device", 404, "unrecognized_endpoint"),
        ("/_arkret/edge/push/unregister-device", 404, "unrecognized_endpoint"),
    ],
)
async def test_a_gateway_has_no_account_surface(
    database: Database, target: str, status: int, code: str
) -> None:
    """Registering devices is the Station's; there is nothing here that would take a user's session."""
    async with house(database) as there:
        answer = await there.ask("GET", target, [])

        assert (answer.status, answer.code) == (status, code)


async def test_the_wrong_method_is_told_the_right_ones(database: Database) -> None:
    """With ``Allow``, as the protocol asks."""
    async with house(database) as there:
        answer = await there.ask("GET", "/_arkret/edge/push/notify", [])

        assert (answer.status, answer.code, "POST" in answer.headers["allow"]) == (
            405,
            "method_not_allowed",
            True,
        )
