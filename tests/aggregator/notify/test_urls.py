"""A file of URLs: private, one a line; nothing of a URL but its scheme is ever shown."""

from __future__ import annotations

import dataclasses
import os
import pickle

import msgspec
import pytest

from submerge import UsageError
from submerge_aggregator.config import AppriseConfig
from submerge_aggregator.notify.urls import MOST_BYTES, SecretUrl, read_urls
from submerge_client.config.tomlfile import decoded

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/s3cret"


@pytest.fixture
def file(tmp_path):
    """Write a file of URLs; return its path."""

    def write(data: str | bytes, mode: int = 0o600):
        path = tmp_path / "apprise.urls"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        path.chmod(mode)
        return path

    return write


def refused(path, environ=None) -> str:
    """Return the one line that refuses a file."""
    with pytest.raises(UsageError) as error:
        read_urls(path, environ or {})
    assert error.value.__cause__ is None
    assert 1 == len(str(error.value).splitlines())
    assert "s3cret" not in str(error.value)
    return str(error.value)


def test_each_line_is_a_url(file):
    """Empty lines and comments are passed over, and a URL counts once."""
    path = file(f"# services\n\n  {SLACK}  \nmailtos://me:s3cret@mail.example\n{SLACK}\n")
    urls = read_urls(path, {})

    assert [("slack", 3), ("mailtos", 4)] == [(url.scheme, url.line) for url in urls]
    assert SLACK == urls[0].reveal()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o620, 0o610])
def test_a_file_that_others_may_read_is_refused(file, mode):
    """The line says what to do about it."""
    path = file(SLACK, mode)

    assert f"got mode {mode:04o}; chmod 600 {path}" in refused(path)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_its_owner_alone_is_read(file, mode):
    assert 1 == len(read_urls(file(SLACK, mode), {}))


def test_a_credential_of_systemd_may_show_the_mask_of_its_list(file, tmp_path):
    """Where the bits of the group are; others still may not read it, nor a file elsewhere."""
    path = file(SLACK, 0o440)

    assert 1 == len(read_urls(path, {"CREDENTIALS_DIRECTORY": str(tmp_path)}))
    assert "0440" in refused(path, {"CREDENTIALS_DIRECTORY": str(tmp_path / "other")})
    path.chmod(0o444)
    assert "0444" in refused(path, {"CREDENTIALS_DIRECTORY": str(tmp_path)})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "expected one URL per line, got none"),
        (b"# nothing\n", "expected one URL per line, got none"),
        (b"s3cret-token\n", "expected a URL, scheme://..., in line 1"),
        (b"json://a/\n : s3cret\n", "expected a URL, scheme://..., in line 2"),
        (b"\xff\xfe\n", "expected a few lines of text"),
        (b"json://a/\n" * MOST_BYTES, "expected a few lines of text"),
    ],
)
def test_what_is_no_list_of_urls_is_refused(file, data, said):
    """In one line, which shows none of it."""
    assert said in refused(file(data))


def test_what_is_no_file_is_refused(tmp_path):
    """A pipe without a writer blocks nothing."""
    os.mkfifo(tmp_path / "pipe", 0o600)

    assert "No such file" in refused(tmp_path / "none")
    assert "which is none" in refused(tmp_path / "pipe")
    assert "Is a directory" in refused(tmp_path)


def test_a_url_does_not_print():
    """Not by itself, not in a container, not field by field, not as JSON or a pickle."""
    url = SecretUrl(SLACK, 3)
    holder = dataclasses.make_dataclass("Holder", ["url"])(url)
    shown = [
        str(url),
        repr(url),
        f"{url}",
        f"{[url]}",
        f"{holder}",
        str(dataclasses.asdict(holder)),
    ]

    assert {True} == {"slack, line 3" in each for each in shown}
    assert "s3cret" not in str(shown)
    with pytest.raises(TypeError):
        msgspec.json.encode(url)
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(url)


def test_a_url_in_place_of_the_file_is_refused_unseen():
    """It is an easy mistake, and the configuration is no place for secrets."""
    with pytest.raises(UsageError) as error:
        decoded({"urls_file": SLACK}, AppriseConfig)

    assert "expected the path of a file, got a url" in str(error.value)
    assert "s3cret" not in str(error.value)
