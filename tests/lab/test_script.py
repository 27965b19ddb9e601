"""A script answers whom it names, when it says, as often as it says; and nobody else."""

from pathlib import Path

import pytest

from heliograph.lab import stub, webpush
from heliograph.lab.receiver import Misbehaviour, Reply, Spoiled
from heliograph.lab.script import OCTETS_MAX, RULES_MAX, Script, read_script, rules_of, shortened
from heliograph.wire.malformed import Malformed


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


def scripted(*answers: dict[str, object], time: Time | None = None) -> Script:
    script = Script({"webpush": webpush.ANSWERS, "stub": stub.ANSWERS}, time or Time())
    script.replace(rules_of({"answers": list(answers)}))
    return script


def test_the_first_rule_that_fits_gives_the_answer() -> None:
    """By server and by the beginning of a token; where none fits the server judges for itself."""
    script = scripted(
        {"provider": "webpush", "token": "ab", "answer": "gone"},
        {"provider": "webpush", "status": 429, "retry_after_s": 7, "body": "{}"},
        {"token": "zz", "fault": "hang"},
    )

    assert script.reaction("webpush", "abc") == Reply(410)
    assert script.reaction("webpush", "bc") == Reply(429, {"retry-after": "7"}, b"{}")
    assert script.reaction("stub", "zzz") == Spoiled(Misbehaviour.HANG)
    assert script.reaction("stub", "") is None


def test_an_answer_by_name_is_given_only_where_there_is_one_of_that_name() -> None:
    """A rule for every server leaves alone those that do not know the word."""
    script = scripted({"answer": "suspect"})

    assert script.reaction("stub", "") == Reply(404)
    assert script.reaction("webpush", "a") is None


def test_a_rule_holds_so_many_times_and_so_many_seconds() -> None:
    """Counted from when the script was put in force."""
    time = Time()
    script = scripted({"status": 503, "times": 2}, {"status": 500, "after_s": 10, "until_s": 20}, time=time)
    begun = [script.reaction("stub", "") for _ in range(3)]
    time.now += 10_000
    within = script.reaction("stub", "")
    time.now += 10_000
    after = script.reaction("stub", "")
    script.replace(script.rules)

    assert begun == [Reply(503), Reply(503), None]
    assert within == Reply(500)
    assert after is None
    assert script.reaction("stub", "") == Reply(503)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({}, r"^answers\[0\]: must have exactly one of answer, status and fault"),
        ({"status": 500, "fault": "cut"}, "must have exactly one"),
        ({"fault": "cut", "retry_after_s": 1}, "without a status"),
        ({"provider": "webpsh", "status": 500}, r"answers\[0\].provider: must be one of stub, webpush"),
        ({"provider": "stub", "answer": "vapid_mismatch"}, r"answers\[0\].answer: must be one of accepted,"),
        ({"answer": "nonsense"}, "must be one of"),
        ({"status": 99}, r"answers\[0\].status"),
        ({"times": 0, "status": 500}, r"answers\[0\].times"),
        ({"surprise": 1, "status": 500}, "unknown field `surprise`"),
        ({"fault": "sleep"}, r"answers\[0\].fault"),
    ],
)
def test_a_rule_that_means_nothing_is_refused_and_changes_nothing(
    rule: dict[str, object], problem: str
) -> None:
    """With its place, and the words that there are."""
    script = scripted({"status": 503})

    with pytest.raises(Malformed, match=problem):
        script.replace(rules_of({"answers": [rule]}))
    assert script.reaction("stub", "") == Reply(503)


def test_a_script_has_a_measure(tmp_path: Path) -> None:
    """In rules and in octets."""
    file = tmp_path / "s.toml"
    file.write_text("#" * (OCTETS_MAX + 1))

    with pytest.raises(Malformed, match="is larger than"):
        read_script(file)
    with pytest.raises(Malformed, match="at most"):
        scripted(*(dict[str, object](status=500) for _ in range(RULES_MAX + 1)))


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    """And what is no TOML is named."""
    file = tmp_path / "s.toml"
    file.write_text("[[answers]]\nstatus = 500\n")
    read = read_script(file)
    file.write_text("[[answers\n")

    assert [rule.status for rule in read] == [500]
    with pytest.raises(Malformed, match="is not TOML"):
        read_script(file)


def test_a_token_is_never_shown_in_full() -> None:
    """Six characters tell devices apart."""
    assert shortened("0123456789") == "012345…"
    assert shortened("") == ""
