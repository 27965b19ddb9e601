"""What a change would affect is told before it is made, from marks that hold no secret."""

from heliograph.app.in_force import (
    Affected,
    AppInForce,
    CredentialInForce,
    Depends,
    InForce,
    affected,
    changes,
    renewed,
)

BEFORE = InForce(
    {
        "ios": CredentialInForce("apns", "1"),
        "web": CredentialInForce("webpush", "1"),
        "old": CredentialInForce("stub", "1"),
    },
    {
        "com.example.ios": AppInForce("ios", ""),
        "com.example.*": AppInForce("web", ""),
        "com.old": AppInForce("old", ""),
        "com.same": AppInForce("web", ""),
    },
)
AFTER = InForce(
    {
        "ios": CredentialInForce("apns", "2"),
        "web": CredentialInForce("webpush", "1"),
        "new": CredentialInForce("webpush", "1"),
    },
    {
        "com.example.ios": AppInForce("ios", ""),
        "com.example.*": AppInForce("new", ""),
        "com.example.web": AppInForce("web", "x"),
        "com.same": AppInForce("web", ""),
        "com.lost": AppInForce("web", ""),
    },
)


def test_every_difference_is_one_line() -> None:
    """Credentials and applications, by name and by id or glob."""
    assert changes(BEFORE, AFTER) == [
        "application com.example.* moved from web to new",
        "application com.example.web added",
        "application com.lost added",
        "application com.old removed",
        "credential ios replaced",
        "credential new added",
        "credential old removed",
    ]
    assert changes(AFTER, AFTER) == []


def test_what_registered_ids_would_meet_is_told_with_their_numbers() -> None:
    """Also for ids that only a glob stood for, and for those that nobody serves now."""
    depends = [
        Depends("com.example.ios", 10, 1),
        Depends("com.example.mail", 20, 2),
        Depends("com.example.web", 30, 3),
        Depends("com.lost", 40, 4),
        Depends("com.old", 50, 5),
        Depends("com.same", 60, 6),
        Depends("com.nobody", 70, 7),
    ]

    assert affected(BEFORE, AFTER, depends) == [
        Affected("com.example.ios", 10, 1, "ios", "ios", "credential replaced"),
        Affected("com.example.mail", 20, 2, "web", "new", "another credential"),
        Affected("com.example.web", 30, 3, "web", "web", "own settings changed"),
        Affected("com.lost", 40, 4, None, "web", "no longer held"),
        Affected("com.old", 50, 5, "old", None, "held: no provider"),
    ]


def test_an_application_on_another_adapter_waits_for_its_devices_to_register_again() -> None:
    """No adapter knows what a device registered with another."""
    after = InForce(BEFORE.credentials, {"com.example.ios": AppInForce("web", "")})

    assert affected(BEFORE, after, [Depends("com.example.ios", 1, 0)]) == [
        Affected("com.example.ios", 1, 0, "ios", "web", "held: registered with apns, must register again")
    ]


def test_what_is_known_of_a_credential_ends_with_it() -> None:
    """Of one that was replaced or removed, and of one that an application has left; not of the others."""
    assert renewed(BEFORE, AFTER) == {"ios", "web", "old"}
    assert renewed(BEFORE, BEFORE) == set()
