"""The rank of a model travels with it; a root of an earlier version says none."""

from __future__ import annotations

import pytest

from submerge import PeerError
from submerge_proto.wire import codec
from submerge_proto.wire.columns import MOST_RANK
from support.wire import form_of


@pytest.mark.parametrize("rank", [0, 1, MOST_RANK])
def test_a_rank_arrives_as_it_was_sent(rank):
    """0 stands for none, as from an earlier version."""
    form, model = form_of("model")
    model.rank = rank
    assert rank == codec.decode("watch", form.SerializeToString()).rank


def test_a_rank_that_no_summary_has_is_refused():
    """A summary has at most 1024 directions."""
    form, model = form_of("model")
    model.rank = MOST_RANK + 1
    with pytest.raises(PeerError, match="rank"):
        codec.decode("watch", form.SerializeToString())
