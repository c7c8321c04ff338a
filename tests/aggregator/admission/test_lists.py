"""The roster and the list of what is revoked: what they say, and one line for what they cannot."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge.protocol.permission import ROLES
from submerge_aggregator.admission.roster import (
    RevokedList,
    RosterEntry,
    parse_revoked,
    parse_roster,
)

names = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=8)
entries = st.builds(
    RosterEntry, st.sampled_from((None, *ROLES)), st.lists(names, max_size=3).map(tuple)
)


@settings(max_examples=30)
@given(st.dictionaries(names, entries, max_size=5))
def test_a_roster_says_what_was_written(roster):
    """Whatever names there are."""
    lines = [f"{node},{each.role or ''},{' '.join(each.groups)}" for node, each in roster.items()]

    assert roster == parse_roster("\n".join(["node,role,groups", *lines, ""]))


def test_a_roster_from_a_spreadsheet_is_read():
    """With a mark of byte order, quotes, blanks, empty lines and other ends of lines."""
    text = '\ufeffnode,role,groups\r\n"north", aggregator ,\r\n,,\r\n\r\n'
    text += 'p-1,client,"pumps presses"\r\n'

    assert {
        "north": RosterEntry("aggregator"),
        "p-1": RosterEntry("client", ("pumps", "presses")),
    } == parse_roster(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: expected node,role,groups, got ''"),
        ("node,role\n", "line 1: expected node,role,groups, got 'node,role'"),
        (f'node,role,groups\na,client,"{"x" * 140_000}\n', "line 2: field larger than"),
        ("node,role,groups\na,boss,\n", "line 2: expected a role of client, aggregator"),
        ("node,role,groups\na b,client,\n", "line 2: a name is 1 to 64 of"),
        ("node,role,groups\na,client,g/h\n", "line 2: a name is 1 to 64 of"),
        ("node,role,groups\na,client\n", "line 2: expected 3 cells, got 2"),
        ("node,role,groups\na,client,\n\na,client,\n", "line 4: expected each node once, got a"),
    ],
)
def test_a_wrong_roster_is_one_line(text, why):
    """With the number of the line: nothing of the file is used."""
    with pytest.raises(UsageError) as error:
        parse_roster(text)
    assert why in str(error.value)


def test_a_list_of_what_is_revoked_is_read():
    """Numbers as OpenSSL writes them, with colons or without; comments and empty lines."""
    text = "# since May\n\nserial 5a:0F:12 # the van\n  node pump-7\nserial 0001\nnode serial#x\n"

    assert RevokedList(frozenset({0x5A0F12, 1}), frozenset({"pump-7", "serial"})) == parse_revoked(
        text
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pump-7\n", "line 1: expected serial HEX or node NAME, got 'pump-7'"),
        ("serial -5A0F\n", "line 1: expected a serial number, hexadecimal, got '-5A0F'"),
        ("serial 5A_0F\n", "line 1: expected a serial number, hexadecimal, got '5A_0F'"),
        ("\nserial xyz\n", "line 2: expected a serial number, hexadecimal, got 'xyz'"),
        ("serial\n", "line 1: expected serial HEX or node NAME, got 'serial'"),
        ("node a b\n", "line 1: expected serial HEX or node NAME, got 'node a b'"),
        ("node a/b\n", "line 1: a name is 1 to 64 of"),
    ],
)
def test_a_wrong_list_is_one_line(text, why):
    """What cannot be read may be the one that matters."""
    with pytest.raises(UsageError) as error:
        parse_revoked(text)
    assert why in str(error.value)
