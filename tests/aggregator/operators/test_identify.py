"""Who sends a request: by its token, by its certificate, or by neither."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_aggregator.admission.control import AdmissionControl, AdmissionRules
from submerge_aggregator.admission.roster import RevokedList
from submerge_aggregator.operators.identify import (
    DENIALS,
    Denial,
    NetworkIdentities,
    Operator,
    Peer,
    at_socket,
    place_of,
)
from submerge_aggregator.operators.tokens import Token, digest_of, new_secret

NOW = 1_800_000_000.0
SECRET, OVER = new_secret(), new_secret()
TOKENS = (
    Token("night", "judge", NOW, None, digest_of(SECRET)),
    Token("over", "operate", NOW - 9, NOW, digest_of(OVER)),
)
TIME = "%b %d %H:%M:%S %Y GMT"


def certificate(*uris: str, begins: float = NOW - 60, until: float = NOW + 60) -> dict:
    """As `ssl` returns one."""
    begin, end = (time.strftime(TIME, time.gmtime(each)) for each in (begins, until))
    return {
        "subject": ((("commonName", "anna"),),),
        "subjectAltName": tuple(("URI", uri) for uri in uris),
        "serialNumber": "0A0B",
        "notBefore": begin,
        "notAfter": end,
    }


def asked(
    peer: Peer, *headers: tuple[str, str], admission: AdmissionControl | None = None
) -> Operator | Denial:
    identify = NetworkIdentities(lambda: TOKENS, admission or AdmissionControl(), lambda: NOW)
    return identify(peer, [(name.encode(), value.encode("latin-1")) for name, value in headers])


def shows(*uris: str, **more: float) -> Operator | Denial:
    return asked(Peer(address="10.0.0.7", certificate=certificate(*uris, **more)))


FROM = Peer(address="10.0.0.7")
BEARER = ("authorization", f"Bearer {SECRET}")


def test_a_token_says_who_asks():
    assert Operator("token night", "10.0.0.7", "judge") == asked(FROM, BEARER)


def test_a_token_decides_where_there_is_a_certificate_as_well():
    """A wrong one is not made good by a certificate."""
    peer = FROM._replace(certificate=certificate("submerge:role=operator"))

    assert "token night" == asked(peer, BEARER).who
    assert "wrong_token" == asked(peer, ("authorization", "Bearer x")).reason


@pytest.mark.parametrize(
    "headers",
    [
        [("authorization", f"Bearer {new_secret()}")],
        [("authorization", f"Bearer {OVER}")],
        [("authorization", f"Basic {SECRET}")],
        [("authorization", SECRET)],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer \xff\xfe")],
        [("authorization", f"Bearer {SECRET} {SECRET}")],
        [BEARER, BEARER],
    ],
)
def test_what_is_no_token_is_refused_in_the_same_words(headers):
    """Wrong, over, in another form, or two: the answer is the same."""
    why = "the token is not accepted: it is wrong, revoked, or over"

    assert Denial(401, "wrong_token", why) == asked(FROM, *headers)


@given(st.text(st.characters(max_codepoint=255), max_size=80))
def test_no_other_text_is_a_token(text):
    """Whatever bytes a header has."""
    assert SECRET in text or isinstance(asked(FROM, ("authorization", text)), Denial)
    assert isinstance(asked(FROM, ("authorization", f"Bearer {text}")), Denial) or SECRET in text


def test_nothing_shown_is_refused():
    assert (401, "no_credential") == asked(FROM)[:2]


@pytest.mark.parametrize(
    ("role", "scope"), [("operator", "operate"), ("reader", "read")], ids=["operator", "reader"]
)
def test_the_role_of_a_certificate_is_a_scope(role, scope):
    found = shows(f"submerge:role={role}", "submerge:group=room")

    assert Operator(f"{role} anna", "10.0.0.7", scope, ("room",)) == found


@pytest.mark.parametrize(
    ("uris", "why"),
    [
        (["submerge:role=client"], "role client, which gives no orders"),
        (["submerge:role=aggregator"], "role aggregator, which gives no orders"),
        ([], "no role, which gives no orders"),
        (["submerge:role=god"], "it cannot be used"),
        (["submerge:role=operator", "submerge:role=reader"], "it cannot be used"),
        (["submerge:group=room"], "it cannot be used"),
    ],
)
def test_other_certificates_are_refused(uris, why):
    found = shows(*uris)

    assert (403, "certificate") == found[:2]
    assert why in found.why


@pytest.mark.parametrize("ahead", [{"until": NOW}, {"begins": NOW + 1}], ids=["over", "early"])
def test_a_connection_that_outlives_its_certificate_is_refused(ahead):
    assert "it is over, or not valid yet" in shows("submerge:role=operator", **ahead).why


def test_a_certificate_without_times_is_refused():
    bare = certificate("submerge:role=operator")
    del bare["notAfter"]

    assert "it is over" in asked(FROM._replace(certificate=bare)).why


@pytest.mark.parametrize(
    "revoked", [RevokedList(frozenset({0x0A0B})), RevokedList(nodes=frozenset({"anna"}))]
)
def test_what_is_revoked_gives_no_orders(revoked):
    admission = AdmissionControl(AdmissionRules(revoked=revoked))
    peer = FROM._replace(certificate=certificate("submerge:role=operator"))
    found = asked(peer, admission=admission)

    assert (403, "certificate") == found[:2]
    assert "revoked" in found.why


def test_who_is_banned_gives_no_orders():
    admission = AdmissionControl()
    admission.set_banned({"room": frozenset({"anna"})})
    peer = FROM._replace(certificate=certificate("submerge:role=operator"))

    assert "an operator has banned it" in asked(peer, admission=admission).why


def test_the_socket_is_its_owners_and_no_networks():
    assert Operator("uid 7", "socket", "operate") == at_socket(Peer(uid=7), ())
    assert Operator("unknown", "socket", "operate") == at_socket(Peer(), ())
    assert 401 == at_socket(FROM, ()).status


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::2", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("unknown", "unknown"),
    ],
)
def test_attempts_are_counted_by_machine(address, place):
    assert place == place_of(address)


def test_each_reason_is_explained():
    assert all(text and not text.endswith(".") for text in DENIALS.values())
