"""The Gateway's decisions, by hand-worked cases."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.arkret.gateway.decide import (
    DEFAULT_GRID,
    Acknowledge,
    Rejection,
    acknowledged,
    all_rejected,
    answer,
    apply_handoff,
    departs_at,
    grid_fault,
    judge_device,
    outcome_of,
    wakeup_of,
    without_fanout,
)
from heliograph.arkret.gateway.model import (
    Conflict,
    HandoffDecision,
    Install,
    Installation,
    InstallationState,
    Replayed,
    RouteEnd,
    Standing,
    Tombstone,
)
from heliograph.arkret.schema import GatewayStatus, HandoffBody, NotifyBody, RejectReason, conserved
from heliograph.delivery.model import Counts, Wakeup, WakeupKind
from tests.arkret import make

DIGEST = "sha256:" + "a" * 64
STORED = "sha256:" + "0" * 64
NOW = 1_790_000_000_000


def conflicts(decision: HandoffDecision) -> bool:
    return isinstance(decision, Conflict)


class TestHandoff:
    def test_a_first_active_is_installed(self) -> None:
        """Nothing stands at the id or the address."""
        assert apply_handoff(make.active(), DIGEST, None, None, []) == Install(predecessor_id=None)

    @pytest.mark.clause("R123")
    def test_the_same_body_again_gets_the_stored_receipt(self) -> None:
        """A replay is recognised by its digest and answered with the first bytes."""
        current = make.installation(request_digest=DIGEST, receipt=b"first bytes")

        assert apply_handoff(make.active(), DIGEST, current, None, [make.REGISTRATION]) == Replayed(
            b"first bytes"
        )

    @pytest.mark.clause("R121", "R124")
    def test_another_body_under_the_same_id_conflicts(self) -> None:
        """The id stands for the first body for ever."""
        assert conflicts(apply_handoff(make.active(), DIGEST, make.installation(), None, [make.REGISTRATION]))

    @pytest.mark.clause("R125", "R127")
    def test_a_late_active_cannot_revive_a_revoked_registration(self) -> None:
        """Revoked is terminal whatever arrives afterwards."""
        tombstone = make.installation(state=InstallationState.REVOKED)

        assert conflicts(apply_handoff(make.active(), DIGEST, tombstone, None, []))

    @pytest.mark.clause("R127", "R128")
    def test_the_body_that_installed_a_superseded_registration_is_late_not_a_replay(self) -> None:
        """Its digest is still the stored one, but its receipt must not pass for current."""
        superseded = make.installation(
            state=InstallationState.REVOKED, request_digest=DIGEST, successor_id=make.SUCCESSOR
        )

        assert conflicts(apply_handoff(make.active(), DIGEST, superseded, None, [make.SUCCESSOR]))

    def test_a_second_installation_at_an_address_must_name_the_first(self) -> None:
        """Without naming it there would be two current routes for one device."""
        assert conflicts(apply_handoff(make.active(), DIGEST, None, None, [make.SUCCESSOR]))

    @pytest.mark.clause("R128")
    def test_a_successor_replaces_exactly_its_predecessor(self) -> None:
        """The predecessor is current, of the same device and target, and alone at the address."""
        request = make.active(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)

        decision = apply_handoff(request, DIGEST, None, make.installation(), [make.REGISTRATION])

        assert decision == Install(predecessor_id=make.REGISTRATION)

    @pytest.mark.clause("R129")
    @pytest.mark.parametrize(
        "predecessor",
        [
            pytest.param(None, id="missing, or of another tenant"),
            pytest.param(make.installation(state=InstallationState.REVOKED), id="revoked"),
            pytest.param(
                make.installation(state=InstallationState.REVOKED, successor_id="x" * 22), id="superseded"
            ),
            pytest.param(make.installation(device_id=make.OTHER_DEVICE), id="of another device"),
            pytest.param(make.installation(push_target_id=make.OTHER_TARGET), id="of another target"),
        ],
    )
    def test_a_predecessor_that_is_not_the_current_one_conflicts(
        self, predecessor: Installation | None
    ) -> None:
        """Each deviation alone refuses the whole."""
        request = make.active(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)
        at_address = [make.REGISTRATION] if predecessor else []

        assert conflicts(apply_handoff(request, DIGEST, None, predecessor, at_address))

    @pytest.mark.clause("R129")
    def test_an_address_with_two_current_installations_is_not_superseded_by_half(self) -> None:
        """If that ever happened, replacing one of them would leave the other."""
        request = make.active(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)

        decision = apply_handoff(request, DIGEST, None, make.installation(), [make.REGISTRATION, "y" * 22])

        assert conflicts(decision)

    def test_a_revoke_ends_a_current_installation(self) -> None:
        """The usual way to end."""
        decision = apply_handoff(make.revoked(), DIGEST, make.installation(), None, [make.REGISTRATION])

        assert decision == Tombstone(known=True)

    @pytest.mark.clause("R127")
    def test_a_revoke_of_an_unknown_id_is_remembered(self) -> None:
        """So that the active it overtook cannot install."""
        assert apply_handoff(make.revoked(), DIGEST, None, None, []) == Tombstone(known=False)

    @pytest.mark.parametrize(
        "changes", [{"device_id": make.OTHER_DEVICE}, {"push_target_id": make.OTHER_TARGET}]
    )
    def test_a_revoke_must_name_the_exact_device_and_target(self, changes: dict[str, str]) -> None:
        """A revoke for somebody else's address changes nothing."""
        decision = apply_handoff(make.revoked(**changes), DIGEST, make.installation(), None, [])

        assert conflicts(decision)

    def test_a_revoke_of_a_superseded_registration_is_a_terminal_answer(self) -> None:
        """A Station that lost track of its chain must be able to come to rest."""
        superseded = make.installation(state=InstallationState.REVOKED, successor_id=make.SUCCESSOR)

        decision = apply_handoff(make.revoked(), DIGEST, superseded, None, [make.SUCCESSOR])

        assert decision == Tombstone(known=True)

    def test_a_route_killed_by_its_provider_can_still_be_superseded_and_revoked(self) -> None:
        """It stays the current installation for the handoff."""
        killed = make.installation(route_end=RouteEnd.PROVIDER, app=None)
        successor = make.active(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)

        decisions = [
            apply_handoff(successor, DIGEST, None, killed, [make.REGISTRATION]),
            apply_handoff(make.revoked(), DIGEST, killed, None, [make.REGISTRATION]),
        ]

        assert decisions == [Install(predecessor_id=make.REGISTRATION), Tombstone(known=True)]


class TestWakeup:
    @pytest.mark.clause("R278", "R279")
    def test_a_wakeup_holds_the_allowed_members_and_no_other(self) -> None:
        """Everything else of a full body has no field to go to."""
        body = make.notify(
            push_hint="l10n_key",
            push_hint_l10n_key="push.new_message",
            counts={"badge": "2-5", "unread_increment": 3, "missed_call": False},
            evaluation_locus_unresolved=True,
            route_tokens={"realm_route_token": "r" * 22},
            top={"event_kind": "ak.message.create"},
        )

        wakeup, dropped = wakeup_of(body)

        assert dropped.members == ()
        assert wakeup == Wakeup(
            push_target_id=make.TARGET,
            kind=WakeupKind.MESSAGE,
            push_hint="l10n_key",
            push_hint_l10n_key="push.new_message",
            counts=Counts(badge="2-5", unread_increment=3, missed_call=False),
        )

    def test_a_wakeup_without_counts_has_none(self) -> None:
        """Nothing is made up for what was not said."""
        wakeup, dropped = wakeup_of(make.notify())

        assert (wakeup.counts, dropped.members) == (None, ())

    @pytest.mark.clause("R237")
    @pytest.mark.parametrize("bucket", ["3-4", "0", "5-2", "7", "20+", "2-6"])
    def test_a_bucket_off_the_grid_is_dropped_and_the_wakeup_goes_on(self, bucket: str) -> None:
        """The member is not compliant; the person is woken all the same."""
        wakeup, dropped = wakeup_of(make.notify(counts={"badge": bucket, "missed_call": True}))

        assert dropped.members == ("badge",)
        assert wakeup.counts == Counts(missed_call=True)

    @pytest.mark.clause("R237")
    def test_counts_of_which_nothing_is_left_are_left_out(self) -> None:
        """An empty object would tell that something had been there."""
        wakeup, dropped = wakeup_of(make.notify(counts={"badge": "9-9"}))

        assert (wakeup.counts, dropped.members) == (None, ("badge",))

    @pytest.mark.clause("R234")
    @pytest.mark.parametrize("bucket", ["1", "2-5", "6-20", "21+"])
    def test_the_default_grid_has_four_buckets(self, bucket: str) -> None:
        """The closed grid where no policy declares another."""
        wakeup, _ = wakeup_of(make.notify(counts={"badge": bucket}))

        assert wakeup.counts == Counts(badge=bucket)

    @pytest.mark.clause("R236")
    @pytest.mark.parametrize(
        ("grid", "legal"),
        [
            (DEFAULT_GRID, True),
            (("1", "2", "3", "4+"), True),
            (("1-10", "11-100", "101+"), True),
            (("1+",), True),
            (("1", "2-5"), False),
            (("1", "3-5", "6+"), False),
            (("1", "2-5", "5-9", "10+"), False),
            (("1+", "2+"), False),
            (("1", "5-2", "6+"), False),
            (("0", "1+"), False),
            (("many",), False),
            ((), False),
        ],
    )
    def test_a_declared_grid_is_closed_without_gap_or_overlap(
        self, grid: tuple[str, ...], legal: bool
    ) -> None:
        """An open or ragged grid gives hysteresis nothing to stand on."""
        assert (grid_fault(grid) is None) == legal


class TestAcknowledgement:
    @pytest.mark.clause("R260", "R261", "R307")
    @pytest.mark.parametrize(
        "kind",
        [
            "ak.self.agent.pause",
            "ak.self.agent.resume",
            "ak.self.agent.deactivate",
            "ak.agent.draft.propose",
            "ak.agent.action_request",
            "ak.agent.action_approve",
            "ak.agent.action_reject",
        ],
    )
    def test_a_registered_private_kind_is_acknowledged_only(self, kind: str) -> None:
        """Also when it is seen for the first time."""
        assert without_fanout(make.notify(top={"event_kind": kind})) == Acknowledge(audit=False)

    @pytest.mark.clause("R262")
    def test_a_historical_replay_is_acknowledged_only(self) -> None:
        """It is a diagnosis, not an event."""
        assert without_fanout(make.notify(top={"reason_code": "historical_only"})) == Acknowledge(audit=False)

    @pytest.mark.clause("R266")
    def test_an_audit_envelope_skips_the_push_pipeline(self) -> None:
        """It goes before the other branches: the audit row must be written."""
        body = make.notify(top={"audit_envelope": {"access_kind": "other"}, "reason_code": "historical_only"})

        assert without_fanout(body) == Acknowledge(audit=True)

    def test_an_ordinary_event_is_pushed(self) -> None:
        """Most event kinds are."""
        assert without_fanout(make.notify(top={"event_kind": "ak.message.create"})) is None

    @pytest.mark.clause("R263", "R264")
    def test_an_acknowledgement_names_every_device_once_as_duplicate(self) -> None:
        """An empty list of outcomes would break conservation."""
        body = make.notify(make.DEVICE, make.OTHER_DEVICE)

        outcome = acknowledged(body)

        assert [(o.device_id, o.gateway_status) for o in outcome.outcomes] == [
            (make.DEVICE, GatewayStatus.DUPLICATE),
            (make.OTHER_DEVICE, GatewayStatus.DUPLICATE),
        ]


def judged(standing: Standing | None, body: NotifyBody, *, visible_allowed: bool = False) -> str:
    """Return the reason, or ``taken``."""
    rejection = judge_device(
        standing,
        body,
        NOW,
        app_exists=lambda app: app == "com.example.app",
        visible_allowed=visible_allowed,
        app_retry_after_ms=300_000,
    )
    return "taken" if rejection is None else rejection.reason.value


class TestDevice:
    @pytest.mark.clause("R092")
    def test_a_live_installation_is_taken_over(self) -> None:
        """State, route, expiry and application all hold."""
        assert judged(make.standing(expires_at=NOW + 1), make.notify()) == "taken"

    @pytest.mark.clause("R093", "R097")
    @pytest.mark.parametrize(
        ("standing", "reason"),
        [
            (None, "push_token_unknown"),
            (make.standing(route_end=RouteEnd.EXPIRED), "push_token_unknown"),
            (make.standing(expires_at=NOW), "push_token_unknown"),
            (make.standing(route_end=RouteEnd.PROVIDER), "push_token_invalid"),
        ],
    )
    def test_a_device_without_a_live_route_is_rejected_for_its_reason(
        self, standing: Standing | None, reason: str
    ) -> None:
        """Routes that are not there, expired and killed are told apart as the table says."""
        assert judged(standing, make.notify()) == reason

    def test_a_missing_application_is_our_fault_and_retryable(self) -> None:
        """The token is healthy; the operator removed the application."""
        rejection = judge_device(
            make.standing(app="com.example.gone"),
            make.notify(),
            NOW,
            app_exists=lambda app: False,
            visible_allowed=False,
            app_retry_after_ms=300_000,
        )

        assert rejection == Rejection(RejectReason.PUSH_GATEWAY_UNREACHABLE, 300_000)

    @pytest.mark.clause("R009", "R285", "R287", "R360")
    @pytest.mark.parametrize(
        ("opted_in", "allowed", "verdict"),
        [
            (False, False, "unsupported_profile"),
            (True, False, "unsupported_profile"),
            (False, True, "unsupported_profile"),
            (True, True, "taken"),
        ],
    )
    def test_a_visible_form_needs_the_profile_and_the_devices_consent(
        self, opted_in: bool, allowed: bool, verdict: str
    ) -> None:
        """Either alone is not enough; the caller falls back to the blind form."""
        standing = make.standing(visible_opt_in=opted_in)

        assert judged(standing, make.visible(), visible_allowed=allowed) == verdict


class TestAnswer:
    @pytest.mark.clause("R296", "R298", "R302")
    @given(st.sets(st.integers(0, 9), min_size=1).flatmap(lambda s: st.permutations(sorted(s))))
    def test_every_answer_conserves_its_devices(self, order: list[int]) -> None:
        """Whatever the devices and their order, the answer has each exactly once."""
        devices = [f"ak:device:0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e{i:02x}" for i in order]
        body = make.notify(*devices)
        outcomes = {device: outcome_of(device, None, joined=False) for device in sorted(devices)}

        told = answer(body, outcomes)

        assert conserved(body, told)
        assert [outcome.device_id for outcome in told.outcomes] == devices

    @pytest.mark.clause("R303", "R304")
    def test_a_target_failure_is_told_for_each_device_alike(self) -> None:
        """There is no second shape of answer."""
        body = make.notify(make.DEVICE, make.OTHER_DEVICE)

        told = all_rejected(body, Rejection(RejectReason.PUSH_TARGET_UNKNOWN))

        assert conserved(body, told)
        assert {outcome.reason_code for outcome in told.outcomes} == {RejectReason.PUSH_TARGET_UNKNOWN}

    @pytest.mark.clause("R299")
    def test_joining_a_waiting_wakeup_is_a_duplicate(self) -> None:
        """An earlier request already took the route over."""
        statuses = [outcome_of(make.DEVICE, None, joined=joined).gateway_status for joined in (False, True)]

        assert statuses == [GatewayStatus.ACCEPTED, GatewayStatus.DUPLICATE]


class TestTiming:
    @pytest.mark.clause("R358")
    @pytest.mark.parametrize(
        ("now", "leaves"), [(0, 0), (1, 300_000), (299_999, 300_000), (300_000, 300_000), (300_001, 600_000)]
    )
    def test_a_hardened_sources_wakeups_leave_at_five_minute_marks(self, now: int, leaves: int) -> None:
        """The next mark, the present one included."""
        assert departs_at(now, hardened=True) == leaves

    def test_other_wakeups_leave_at_once(self) -> None:
        """There is nothing to wait for."""
        assert departs_at(NOW + 7, hardened=False) == NOW + 7


def test_late_messages_in_any_order_leave_one_end_state() -> None:
    """Install, successor and revoke of both, delivered in every order: never two current routes."""
    first = make.active()
    second = make.active(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)
    bodies: list[HandoffBody] = [first, second, make.revoked(), make.revoked(registration_id=make.SUCCESSOR)]
    for order in permutations(range(4)):
        rows: dict[str, Installation] = {}
        for index in order:
            body = bodies[index]
            current = rows.get(body.registration_id)
            at_address = [r.registration_id for r in rows.values() if r.state is InstallationState.ACTIVE]
            decision = apply_handoff(body, str(index), current, rows.get(make.REGISTRATION), at_address)
            match decision:
                case Install(predecessor_id=predecessor):
                    if predecessor:
                        rows[predecessor] = make.installation(
                            state=InstallationState.REVOKED,
                            request_digest=rows[predecessor].request_digest,
                            successor_id=body.registration_id,
                        )
                    rows[body.registration_id] = make.installation(
                        registration_id=body.registration_id, request_digest=str(index)
                    )
                case Tombstone():
                    rows[body.registration_id] = make.installation(
                        registration_id=body.registration_id,
                        state=InstallationState.REVOKED,
                        request_digest=str(index),
                    )
                case _:
                    pass
        revoked = [row for row in rows.values() if row.state is InstallationState.REVOKED]

        assert len(revoked) == len(rows) == 2
