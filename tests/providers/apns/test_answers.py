"""Each answer of APNs means exactly one thing."""

import pytest
from tests import deliveries
from tests.deliveries import NOW, drive, moment
from tests.providers.apns.provider import host, provider, push_key, refused
from tests.providers.cases import answer_rows

from heliograph.delivery.exchange import Answer, Loss, Lost
from heliograph.delivery.model import Outcome, Verdict
from heliograph.providers.apns.answers import TABLE
from heliograph.providers.apns.settings import Environment

ROWS = answer_rows("apns")
PRODUCTION, SANDBOX = "api.push.apple.com", "api.sandbox.push.apple.com"
ACCEPTED = Answer(200, {}, b"")
BAD_TOKEN = refused(400, "BadDeviceToken")
MINUTE_MS = 60_000


@pytest.mark.parametrize(("heard", "verdict"), ROWS.values(), ids=ROWS)
def test_every_row_of_the_verdict_table(heard: list[Answer | Lost], verdict: Verdict) -> None:
    """In exactly so many asks, whatever the provider has been through before."""
    asks, reached = drive(
        provider().exchange(deliveries.delivery(push_key(), provider="apns"), moment()), heard
    )

    assert reached == verdict
    assert len(asks) == len(heard)


def test_every_word_of_the_table_is_driven() -> None:
    """A row that nobody sends is a row that nobody has read."""
    sent = {name.split()[1] for name in ROWS if name[:3].isdigit() and len(name.split()) > 1}

    assert {row.said for row in TABLE.rows if row.said} <= sent


def test_no_answer_but_two_ends_a_token() -> None:
    """Rule 1: never on a reason that may be ours."""
    ending = {row.said for row in TABLE.rows if row.outcome is Outcome.TOKEN_DEAD}

    assert ending == {"Unregistered", "ExpiredToken"}


def test_an_expired_provider_token_is_signed_anew_once_and_tried_at_once() -> None:
    """After a clock that was set: the token of before says a wrong time."""
    by, delivery = provider(), deliveries.delivery(push_key(), provider="apns")
    drive(by.exchange(delivery, moment()), [ACCEPTED])
    later = moment(now=NOW + 25 * MINUTE_MS)

    asks, verdict = drive(by.exchange(delivery, later), [refused(403, "ExpiredProviderToken"), ACCEPTED])

    assert verdict.outcome is Outcome.ACCEPTED
    assert asks[0].headers["authorization"] != asks[1].headers["authorization"]
    assert {**asks[0].headers, "authorization": ""} == {**asks[1].headers, "authorization": ""}
    assert asks[0].body == asks[1].body


def test_an_expired_provider_token_twice_is_our_clock() -> None:
    """Nothing is wrong with the device; the delivery is held."""
    by, delivery = provider(), deliveries.delivery(push_key(), provider="apns")
    drive(by.exchange(delivery, moment()), [ACCEPTED])

    _, verdict = drive(
        by.exchange(delivery, moment(now=NOW + 25 * MINUTE_MS)), [refused(403, "ExpiredProviderToken")] * 2
    )

    assert verdict == Verdict(Outcome.CONFIG_BAD, "apns_expired_provider_token")


def test_a_wrong_key_for_the_connection_opens_one_new_connection_and_then_holds() -> None:
    """A connection takes the first key that it saw and no other; a second new one would not help."""
    by, delivery = provider(), deliveries.delivery(push_key(), provider="apns")
    unrelated = refused(403, "UnrelatedKeyIdInToken")

    asks, _ = drive(by.exchange(delivery, moment()), [unrelated, unrelated])
    soon, held = drive(by.exchange(delivery, moment(now=NOW + MINUTE_MS)), [unrelated])
    late, _ = drive(by.exchange(delivery, moment(now=NOW + 21 * MINUTE_MS)), [unrelated, ACCEPTED])

    assert asks[0].connections != asks[1].connections
    assert asks[0].headers["authorization"] == asks[1].headers["authorization"]
    assert held.outcome is Outcome.CONFIG_BAD
    assert soon[0].connections == asks[1].connections == late[0].connections != late[1].connections


def test_exchanges_that_hear_of_one_wrong_key_together_open_one_new_connection() -> None:
    """The second one follows the first."""
    by, delivery = provider(), deliveries.delivery(push_key(), provider="apns")
    one, two = by.exchange(delivery, moment()), by.exchange(delivery, moment())
    next(one)
    next(two)

    again = [exchange.send(refused(403, "UnrelatedKeyIdInToken")) for exchange in (one, two)]

    assert again[0].connections == again[1].connections


def test_no_two_credentials_share_a_connection_and_applications_of_one_do() -> None:
    """One connection, one team and one key; a later life of a credential begins with a fresh one."""
    first, other = provider(), provider(key_id="KEY4567891")
    own = first.tailored(first._settings)
    delivery = deliveries.delivery(push_key(), provider="apns")

    names = [next(by.exchange(delivery, moment())).connections for by in (first, other, own)]
    reborn = next(provider().exchange(delivery, moment(now=NOW + 1))).connections

    assert names[0] == names[2]
    assert len({*names, reborn}) == 3


def both() -> Environment:
    return Environment.BOTH


def test_a_bad_device_token_asks_the_other_environment_and_remembers_where_it_holds() -> None:
    """A token of the sandbox is no dead token."""
    by, delivery = provider(environment=both()), deliveries.delivery(push_key(), provider="apns")

    asks, verdict = drive(by.exchange(delivery, moment()), [BAD_TOKEN, ACCEPTED])
    again, _ = drive(by.exchange(delivery, moment()), [ACCEPTED])

    assert verdict == Verdict(Outcome.ACCEPTED, "apns_accepted_in_sandbox")
    assert [host(ask) for ask in (*asks, *again)] == [PRODUCTION, SANDBOX, SANDBOX]
    assert asks[0].body == asks[1].body
    assert asks[0].headers == asks[1].headers


def test_a_token_that_neither_environment_knows_is_suspect_and_never_dead() -> None:
    """It may be the topic that is wrong."""
    by, delivery = provider(environment=both()), deliveries.delivery(push_key(), provider="apns")

    asks, verdict = drive(by.exchange(delivery, moment()), [BAD_TOKEN, BAD_TOKEN])

    assert verdict == Verdict(Outcome.TOKEN_SUSPECT, "apns_bad_device_token")
    assert len(asks) == 2


def test_an_environment_that_is_known_is_not_doubted_and_forgotten_when_it_fails() -> None:
    """One suspicion is enough for one send; the next one asks both again."""
    by, delivery = provider(environment=both()), deliveries.delivery(push_key(), provider="apns")
    drive(by.exchange(delivery, moment()), [ACCEPTED])

    _, verdict = drive(by.exchange(delivery, moment()), [BAD_TOKEN])
    asks, _ = drive(by.exchange(delivery, moment()), [BAD_TOKEN, ACCEPTED])

    assert verdict.outcome is Outcome.TOKEN_SUSPECT
    assert [host(ask) for ask in asks] == [PRODUCTION, SANDBOX]


@pytest.mark.parametrize(
    ("heard", "outcome"),
    [
        (refused(410, "Unregistered"), Outcome.TOKEN_DEAD),
        (refused(403, "BadEnvironmentKeyIdInToken"), Outcome.CONFIG_BAD),
        (refused(503, "Shutdown"), Outcome.TRANSIENT),
        (Lost(Loss.CUT), Outcome.TRANSIENT),
    ],
)
def test_what_the_other_environment_says_is_the_verdict(heard: Answer | Lost, outcome: Outcome) -> None:
    """Only the environment that a token is of can know it, be it as a dead one."""
    by, delivery = provider(environment=both()), deliveries.delivery(push_key(), provider="apns")

    _, verdict = drive(by.exchange(delivery, moment()), [BAD_TOKEN, heard])

    assert verdict.outcome is outcome


@pytest.mark.parametrize("environment", [Environment.PRODUCTION, Environment.SANDBOX])
def test_an_environment_that_the_operator_named_is_the_only_one_asked(environment: Environment) -> None:
    """It is a fact, not a guess."""
    by, delivery = provider(environment=environment), deliveries.delivery(push_key(), provider="apns")

    asks, verdict = drive(by.exchange(delivery, moment()), [BAD_TOKEN])

    assert [host(ask) for ask in asks] == [PRODUCTION if environment == "production" else SANDBOX]
    assert verdict.outcome is Outcome.TOKEN_SUSPECT
