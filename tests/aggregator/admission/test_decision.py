"""Who may do what: the decision against a slow, obvious one, over all combinations."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.protocol.messages import Join, Stamp
from submerge.protocol.permission import GROUP_URI, ROLE_URI, ROLES, Permission
from submerge_aggregator.admission.control import AdmissionRules, Sender, objection
from submerge_aggregator.admission.roster import RevokedList, RosterEntry
from submerge_aggregator.downlink import PeerIdentity, Proof
from support.nodes import GROUP, new_incarnation, report

NODE, SERIAL, FENCE = "site-1", 0x5A0F, b"f" * 16


class Case(NamedTuple):
    """One request: what it shows, and what is settled."""

    proof: str
    role: str | None
    groups: tuple[str, ...]
    request: str
    listed: Any
    standing: Any
    aggregators: tuple[str, ...] | None
    nodes: tuple[str, ...] | None
    legacy_kits: bool
    revoked: str


CHOICES = Case(
    proof=get_args(Proof),
    role=(None, *ROLES),
    groups=((), (GROUP, "attic"), ("attic",)),
    request=("join", "fenced join", "report", "fenced report", "watch"),
    listed=(
        None,
        RosterEntry(None),
        RosterEntry(None, ("attic",)),
        RosterEntry("client"),
        RosterEntry("aggregator", (GROUP,)),
        RosterEntry("aggregator", ("attic",)),
        RosterEntry("reader"),
    ),
    standing=(None, "client", "aggregator"),
    aggregators=(None, ("site-*",), ("north", "Site-*")),
    nodes=(None, ("pump-?", "site-[0-9]"), ("site", "pump-*")),
    legacy_kits=(True, False),
    revoked=("", "name", "serial"),
)  # type: ignore[arg-type]

cases = st.builds(Case, *map(st.sampled_from, CHOICES))


def refused(case: Case) -> str | None:
    """What the code decides."""
    certified = case.proof == "certificate"
    role = (f"{ROLE_URI}{case.role}", *(f"{GROUP_URI}{each}" for each in case.groups))
    identity = PeerIdentity(
        case.proof,  # type: ignore[arg-type]
        ("https://else.example", *(role if certified and case.role else ())),
        SERIAL if certified else None,
    )
    rules = AdmissionRules(
        case.aggregators,
        {} if case.nodes is None else {GROUP: case.nodes, "attic": ()},
        case.legacy_kits,
        {} if case.listed is None else {NODE: case.listed},
        RevokedList(
            frozenset({SERIAL} if case.revoked == "serial" else {1}),
            frozenset({NODE} if case.revoked == "name" else {"other"}),
        ),
    )
    return objection(rules, Sender(NODE, identity, case.standing), GROUP, _message(case.request))


def _message(request: str) -> Any:
    fence = FENCE if request.startswith("fenced") else b""
    if request.endswith("report"):
        return report(NODE, fence=fence)
    return (
        Join(Stamp(NODE, GROUP, new_incarnation(1), 0), fence, (), b"")
        if request.endswith("join")
        else None
    )


def may(case: Case) -> bool:
    """What is obvious: the first source that names a role decides, and each list restricts."""
    certified = case.proof == "certificate"
    fenced = case.request.startswith("fenced")
    role, groups = case.role if certified else None, case.groups
    if certified and role is None and not case.legacy_kits:
        return False
    if role is None:
        listed = case.listed or RosterEntry(None)
        role, groups = listed.role, listed.groups
    if role is None and case.proof != "none":
        role = case.standing
    if role is None:
        listed_here = case.aggregators == ("site-*",)
        role = "aggregator" if fenced and (case.proof == "none" or listed_here) else "client"
    sends = {"client": not fenced, "aggregator": fenced, "reader": False, "operator": False}
    return (
        case.revoked != "name"
        and not (case.revoked == "serial" and certified)
        and not (fenced and case.aggregators == ("north", "Site-*"))
        and case.nodes != ("site", "pump-*")
        and (not groups or GROUP in groups)
        and (case.request == "watch" or sends[role])
    )


@settings(max_examples=30)
@given(cases)
def test_a_decision_is_the_obvious_one(case):
    """Role or none, fence or none, group, roster, store and settings."""
    assert may(case) == (refused(case) is None)


@pytest.mark.slow
def test_every_decision_is_the_obvious_one():
    """All combinations."""
    every = map(Case._make, itertools.product(*CHOICES))

    assert [] == [case for case in every if may(case) != (refused(case) is None)]


PLAIN = Case("certificate", None, (), "report", None, None, None, None, True, "")


def test_a_clients_kit_gets_nothing_by_a_fence():
    """The first attack of issue 15: without a role, and with one; new, and known."""
    fenced = PLAIN._replace(request="fenced report")
    for case in (
        fenced,
        fenced._replace(role="client"),
        fenced._replace(standing="client"),
        fenced._replace(proof="broker"),
        fenced._replace(proof="broker", standing="client"),
        fenced._replace(proof="broker", listed=RosterEntry("client"), standing="aggregator"),
    ):
        assert refused(case) is not None


def test_a_new_aggregator_is_told_what_to_do():
    """Its line names all three remedies."""
    why = refused(PLAIN._replace(request="fenced join")) or ""

    assert "submerge pki issue NAME --role aggregator" in why
    assert "roster" in why
    assert "[listen] aggregators" in why


def test_who_is_revoked_reads_the_word():
    for revoked in ("name", "serial"):
        assert (refused(PLAIN._replace(revoked=revoked)) or "").startswith("revoked: ")


def test_a_certificate_whose_number_cannot_be_read_is_not_believed():
    """Where certificates are revoked: it might be one of these."""
    sender = Sender(NODE, PeerIdentity("certificate", Permission("client").uris, None))
    revoked = AdmissionRules(revoked=RevokedList(frozenset({1})))

    assert objection(revoked, sender, GROUP, report(NODE)) is not None
    assert objection(AdmissionRules(), sender, GROUP, report(NODE)) is None


@pytest.mark.parametrize(
    "uris",
    [
        ("submerge:role=root",),
        ("submerge:role=client", "submerge:role=aggregator"),
        ("submerge:group=room",),
        ("submerge:role=client", "submerge:group=no group"),
    ],
)
def test_a_certificate_that_says_what_cannot_be_is_refused(uris):
    """Whatever else would allow it: an unknown role is not a kit without one."""
    sender = Sender(NODE, PeerIdentity("certificate", uris, 1), "client")
    rules = AdmissionRules(roster={NODE: RosterEntry("client")})

    assert "its certificate cannot be used" in (objection(rules, sender, GROUP, None) or "")
