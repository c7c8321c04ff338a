"""Messages as bytes: what arrives is what was said, or as much of it as the peer believes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError, Schema
from submerge.protocol.messages import (
    Census,
    Counts,
    Incarnation,
    Join,
    Reason,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.report_bytes import digest
from submerge.protocol.summaries import KernelSummary, Subspaces
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import QuantileSketch, varint
from submerge.stats.score_limits import Limits
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, forms, parts
from support.nodes import GROUP, Table, new_incarnation
from support.wire import (
    HELLO,
    HONEST,
    JOIN,
    JOINED,
    a_model,
    a_report,
    a_twofold,
    arrived,
    form_of,
    messages,
    reported,
    reports,
    subspace_of,
    travelled,
)

SUMMARIES = Subspaces(3)


# -- what is said, arrives ----------------------------------------------------------


@given(messages)
def test_what_arrives_is_what_was_said(message):
    """Every kind, every field, to the last bit; bounds included."""
    assert reported(arrived(message)) == reported(travelled(message))


@given(messages)
def test_the_same_message_is_the_same_bytes(message):
    """Nothing depends on when, or by which process, it was written."""
    data = codec.encode(message)

    assert data == codec.encode(message)
    # Once it has travelled it keeps its form: a row can be packed from what was unpacked.
    assert codec.encode(arrived(message)) == codec.encode(travelled(message))


@given(reports())
def test_a_report_has_one_digest_at_both_ends(report):
    """A parent tells two reports with one seq apart by what they say, and by nothing else."""
    assert digest(report, SUMMARIES) == digest(travelled(report), SUMMARIES)


def test_energies_of_channels_are_in_no_digest():
    """The parent's row may be of before its update, when it did not see them: the same report."""
    plain = a_report(summary=subspace_of(6, [5.0, 4.0, 3.0], weight=100.0))
    with_them = a_report(summary=subspace_of(6, [5.0, 4.0, 3.0], weight=100.0, energies=True))

    assert digest(plain, SUMMARIES) == digest(travelled(with_them), SUMMARIES)


@given(reports().filter(lambda report: report.summary is not None))
def test_coarse_columns_change_nothing_but_the_summary(report):
    """The rest of a report is as it was; and what is coarse is told as it was rounded."""
    seen = travelled(report, coarse=True)
    after, before = (
        reported(replace(seen, summary=None)),
        reported(replace(arrived(report), summary=None)),
    )

    assert before == after
    assert seen.summary is not None
    assert reported(seen) == reported(travelled(seen))


@pytest.mark.parametrize("name", HONEST)
def test_each_kind_goes_its_own_way(name):
    """By its method or topic one knows what bytes should be; as another kind they are refused."""
    message = HONEST[name]
    kind, data = codec.kind_of(message), codec.encode(message)

    for other in codec.KINDS:
        if other == kind:
            assert type(message) is type(codec.decode(other, data))
        elif not {kind, other} <= {
            "joined",
            "answer",
            "drilled",
            "replied",
        }:  # told apart by their way
            with pytest.raises(PeerError):
                codec.decode(other, data)


# -- sums are cut to what is believed ---------------------------------------------------


def test_a_summary_that_has_faded_to_nothing_is_left_out():
    """A client that was idle for a thousand half-lives has counts to report, and no summary."""
    faded = subspace_of(6, [5.0, 4.0, 3.0], weight=100.0).faded(2.0**-700)

    assert None is travelled(a_report(summary=faded)).summary
    assert None is travelled(a_model(summary=faded)).summary
    assert Counts(100, 2, 1) == travelled(a_report(summary=faded)).counts


def test_of_two_that_have_faded_to_nothing_neither_is_said():
    """One without the other would be refused."""
    features, linear = (part for part in (a_twofold().features, a_twofold().linear))
    edge = 2.0**-600 / 100
    both = KernelSummary(features.faded(edge), linear.faded(edge * (1 - 1e-9)))

    assert None is travelled(a_report(summary=both)).summary
    assert None is travelled(a_report(summary=SUMMARIES.faded(a_twofold(), 2.0**-700))).summary


def test_counts_are_told_as_far_as_floats_count():
    """A sum of many children's largest is no reason to be refused above."""
    much = Counts(2**60, 2**60, 2**60)
    report = a_report(
        fence=b"f" * 16,
        counts=much,
        lifetime=much.generated * 4,
        census=Census(2**44, (2**50,)),
        moments=Moments(2**60, np.ones(6), np.ones(6)),
    )
    seen = travelled(report)

    assert Counts(2**53, 2**53, 2**53) == seen.counts
    assert (2**62, Census(2**40, (2**40,)), 2**53) == (
        seen.lifetime,
        seen.census,
        seen.moments.count,
    )


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=80), st.integers(2**52, 2**64))
def test_too_many_scores_are_thinned_and_stay_a_sketch(values, many):
    """Limits stay where they were, to a bucket; and the parent's parent takes them."""
    sketch = QuantileSketch.of(values)
    crowd = QuantileSketch(
        sketch.level, tuple((index, count * many) for index, count in sketch.bins)
    )
    seen = travelled(a_report(scores=ScoreSketches(crowd, sketch))).scores

    assert [index for index, _ in sketch.bins] == [index for index, _ in seen.spe.bins]
    assert seen.spe.n <= 2**53
    assert sketch == seen.t2


def test_limits_of_more_scores_than_can_be_told():
    """A root that has merged the sketches of liars still has a model."""
    limits = Limits((0.9,), (1.0,), (1.0,), 3 * 2**63)
    assert 2**62 == travelled(a_model(limits=limits)).limits.n


def test_a_long_list_of_differences_is_cut():
    """Ten thousand lines would not fit into a message; the first say what is wrong."""
    seen = travelled(JOINED._replace(lines=tuple(f"missing channel: x{i}" for i in range(10_000))))

    assert ("missing channel: x0", "and 9936 more") == (seen.lines[0], seen.lines[-1])
    assert 65 == len(seen.lines)
    assert len(codec.encode(seen)) < 4096


def test_text_for_people_moves_no_cursor():
    """Neither a line nor a name of a program reaches a terminal with more than letters."""
    anomaly_score = "red \x1b[31m, next\nline, lone \ud800, " + "long " * 200
    seen = travelled(JOINED._replace(lines=(anomaly_score,)))
    report = forms.report(a_report())
    report.header.software = "x\x1b[2J" + "y" * 99

    assert seen.lines[0].startswith("red ?[31m, next?line, lone ?, long")
    assert 400 == len(seen.lines[0])
    assert ("x?[2J" + "y" * 59) == codec.decode("report", report.SerializeToString()).software


def test_an_answer_to_any_schema_can_be_written():
    """What is wrong with a text may repeat it; half a character is none to protobuf."""
    table = Table()
    table.root("r")
    text = b'{"form":1,"\\ud800":' + Schema.anonymous(1).canonical[1:]
    (refusal,) = table.tell("r", Join(Stamp("c", GROUP, new_incarnation(1), 0), b"", (), text))

    assert Reason.SCHEMA == refusal.reason
    assert travelled(refusal).lines


# -- versions -----------------------------------------------------------------------


def later(name: str) -> bytes:
    """Return a message whose header says that it is of version 2."""
    form, message = form_of(name)
    message.header.version = 2
    message.header.versions[:] = [1, 2]
    return bytes(form.SerializeToString())


def gibberish(stamp: Stamp) -> bytes:
    """A version 2 header, and fields that version 1 knows as something else, or cannot parse."""
    header = parts.header(stamp)
    header.version = 2
    head = pb.WatchRequest(header=header).SerializeToString()
    fields = b"\x32\x03\xff\xff\xff" + b"\x3a\x02\x08\x80" + b"\x10\x07" + b"\xa2\x06\x01!"
    return head + fields


@pytest.mark.parametrize("name", HONEST)
def test_another_version_is_refused_by_name(name):
    """Whoever sent it can be told which side to update; the rest of it may be anything."""
    kind = codec.kind_of(HONEST[name])
    if kind == "watch":
        with pytest.raises(PeerError, match="version 2"):
            codec.decode(kind, later(name))
        return
    stamp = HONEST[name].stamp
    for data in (later(name), gibberish(stamp)):
        with pytest.raises(codec.MessageRefused, match="this node speaks version 1") as caught:
            codec.decode(kind, data)
        assert (stamp, Reason.VERSION) == (caught.value.stamp, caught.value.reason)


def test_another_version_says_what_it_speaks():
    """So that a person sees which of the two is the older."""
    with pytest.raises(
        codec.MessageRefused, match="version 2 from one that speaks 1, 2; update the"
    ):
        codec.decode("join", later("join"))


def test_another_version_from_nobody_is_refused_all_the_same():
    """Its name may have letters that are none here: then nobody can be told."""
    header = parts.header(JOIN.stamp)
    header.version, header.node = 2, "a name to come"
    with pytest.raises(PeerError, match="got version 2") as caught:
        codec.decode("join", pb.JoinRequest(header=header).SerializeToString())
    assert not isinstance(caught.value, codec.MessageRefused)


def test_a_message_without_a_header_is_none():
    """Nor are no bytes at all."""
    for kind in codec.KINDS:
        with pytest.raises(PeerError):
            codec.decode(kind, b"")


@given(st.sampled_from(sorted(HONEST)), st.integers(100, 5000), st.binary(max_size=20))
def test_fields_to_come_are_passed_over(name, number, content):
    """Version 1 may grow fields that the nodes of today do not know."""
    message = HONEST[name]
    kind, data = codec.kind_of(message), codec.encode(message)
    tag = number << 3 | 2
    extra = varint(tag) + bytes([len(content), *content])

    assert reported(arrived(message)) == reported(codec.decode(kind, data + extra))


# -- kernel groups --------------------------------------------------------------------


def test_a_linear_groups_bytes_have_nothing_new():
    """Nodes from before there were kernel groups read them, and write the same."""
    new = {"linear", "priorities", "points"}
    for name in ("report", "model"):
        _, message = form_of(name)
        parts = [
            message,
            *(part for _, part in message.ListFields() if hasattr(part, "ListFields")),
        ]

        assert not new & {field.name for part in parts for field, _ in part.ListFields()}


def test_coarse_columns_go_for_both():
    """By one rule: what is at most 8 times the smallest, in each of the two for itself."""
    summary = a_twofold()
    form = forms.report(a_report(summary=summary), coarse=True)
    seen = codec.decode("report", form.SerializeToString()).summary

    assert (3 * 4, 3 * 4) == (len(form.subspace.scales), len(form.linear.scales))
    for before, after in ((summary.features, seen.features), (summary.linear, seen.linear)):
        assert before.spectral_bound < after.spectral_bound
        np.testing.assert_allclose(before.basis, after.basis, atol=0.01)


def test_a_linear_group_has_no_limits_of_two_residuals():
    """A child that sketches what nobody asked for does not have the model refused everywhere."""
    surveyed = Limits((0.9,), (1.0,), (2.0,), 5, (3.0,))

    assert () == travelled(a_model(limits=surveyed)).limits.linear
    assert (2.0,) == travelled(a_model(limits=surveyed)).limits.t2


def test_more_scores_of_the_readings_than_are_believed_are_thinned():
    """As those of features are."""
    sketch = QuantileSketch(0, ((1, 2**60), (2, 2**60)))
    seen = travelled(a_report(scores=ScoreSketches(sketch, sketch, sketch))).scores

    assert seen.spe == seen.linear
    assert 0 < seen.linear.n <= 2**53


# -- what it loads ------------------------------------------------------------------


def test_the_codec_loads_neither_grpc_nor_scipy():
    """A client over MQTT pays for protobuf alone."""
    code = "import submerge_proto.wire.codec, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}

    assert {"google", "numpy"} <= loaded
    assert not {"grpc", "scipy", "paho", "asyncio", "click", "rich", "msgspec"} & loaded


def test_every_reason_can_be_said():
    """The wire's list and ours are one; 0 is nobody's."""
    said = {name.removeprefix("REASON_") for name in pb.Reason.keys()}  # noqa: SIM118 - no dict

    assert {"UNSPECIFIED", *(reason.name for reason in Reason)} == said


def test_an_incarnation_is_any_64_bits():
    """The nonce has no sign, and no end that is kept free."""
    hello = HELLO._replace(incarnation=Incarnation(2**61, 2**64 - 1), boot=2**64 - 1)
    assert hello == travelled(hello)
