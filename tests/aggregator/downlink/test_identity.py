"""The serial number of a certificate, read by hand, is the one that a library reads."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.permission import Permission
from submerge_aggregator.downlink import PeerIdentity, identity_of, serial_of_pem

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(serial: int, names: int = 1) -> bytes:
    """Return a certificate with a serial number; more names make it longer."""
    name = x509.Name(x509.NameAttribute(NameOID.ORGANIZATION_NAME, "n" * 60) for _ in range(names))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(serial)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
    )
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("serial", [1, 0x7F, 0x80, 0xFF, 0x100, 2**158, 2**159 - 1])
@pytest.mark.parametrize("names", [1, 5])
def test_the_number_is_the_one_that_was_signed(serial, names):
    """Of one byte and of twenty, with a leading zero and without; in a long certificate too."""
    assert serial == serial_of_pem(certificate(serial, names))


def test_a_certificate_of_the_first_version_has_no_version():
    """Then the number comes first."""
    der = bytes.fromhex("3005 3003 0201 07")
    pem = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----" % base64.b64encode(der)

    assert 7 == serial_of_pem(pem)


@given(st.binary(max_size=40), st.booleans())
def test_other_bytes_have_a_number_or_none_and_raise_nothing(data, encoded):
    body = base64.b64encode(data) if encoded else data
    found = serial_of_pem(b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----" % body)

    assert found is None or isinstance(found, int)


class Context:
    """What gRPC hands over."""

    def __init__(self, **known: list[bytes]) -> None:
        self._known = known

    def auth_context(self) -> dict[str, list[bytes]]:
        return self._known


def test_what_grpc_knows_of_a_child():
    """Its URIs and the number; without a certificate nothing, whatever else is claimed."""
    uris = Permission("client", ("room",)).uris
    known = {"x509_pem_cert": [certificate(77)], "peer_uri": [uri.encode() for uri in uris]}

    assert PeerIdentity("certificate", uris, 77) == identity_of(Context(**known))
    assert PeerIdentity() == identity_of(Context(peer_uri=[b"submerge:role=aggregator"]))
