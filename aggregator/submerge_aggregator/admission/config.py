"""Settings of admission: a part of [listen], and [security]."""

from __future__ import annotations

from pathlib import Path

from submerge_client.config.sections import Section, Text


class AdmissionConfig(Section, frozen=True, kw_only=True):
    """Who may be what; a part of [listen].

    roster : A CSV file with the columns node, role and groups. It decides for nodes whose
        certificate names no role, and for all that come through a broker. It is read again when it
        changes.
    legacy_kits : Certificates without a role, made before there were roles, are let in over gRPC.
        False refuses them.
    aggregators : Patterns of the names that may report as aggregators, whatever else allows it.
        Left out: any name.
    """

    roster: Path | None = None
    legacy_kits: bool = True
    aggregators: tuple[Text, ...] | None = None


class SecurityConfig(Section, frozen=True, kw_only=True):
    """Nodes and certificates that are shut out.

    revoked : A file with lines `serial HEX` and `node NAME`, as `submerge pki revoke` writes it. It
        is read again when it changes.
    """

    revoked: Path | None = None
