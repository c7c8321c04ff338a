"""A group's kernel in a configuration: its size, and the error lines for mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Channel, Scaling, Schema, UsageError
from submerge.features import (
    CountSketch,
    Gaussian,
    Landmarks,
    Laplace,
    Matern,
    OpenLandmarks,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.tomlfile import decoded
from submerge_client.trial import Listened, trial_lines

CHANNELS = [f"c{i}" for i in range(9)]


def schema(channels=CHANNELS, **features) -> SchemaConfig:
    return decoded({"channels": list(channels), "features": features}, SchemaConfig)


def client(*, summary=None, features=None, **top) -> ClientConfig:
    table = {
        "node": "c",
        "group": "g",
        "parent": "root",
        "state": "c.state",
        "uplink": {"url": "grpc://x", "insecure": True},
        "sensor": {"kind": "ndjson"},
        "schema": {"channels": CHANNELS, "features": features or {}},
    }
    return decoded(table | ({"summary": summary} if summary else {}) | top, ClientConfig)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({}, RandomFourier(Gaussian(), 512, "orthogonal", 0)),
        ({"gamma": "auto", "seed": 7}, RandomFourier(Gaussian(), 512, "orthogonal", 7)),
        ({"gamma": 1}, RandomFourier(Gaussian(1.0), 512, "orthogonal", 0)),
        (
            {"kernel": "laplace", "gamma": 0.5, "features": 64, "map": "fourier-pair"},
            RandomFourier(Laplace(0.5), 64, "fourier-pair", 0),
        ),
        ({"kernel": "matern", "nu": 2.5}, RandomFourier(Matern(nu=2.5), 512, "orthogonal", 0)),
        ({"kernel": "polynomial"}, TensorSketch(Polynomial(2), 512, 0)),
        (
            {"kernel": "polynomial", "degree": 3, "coef0": 1.0, "gamma": 0.1},
            TensorSketch(Polynomial(3, 0.1, 1.0), 512, 0),
        ),
        ({"map": "countsketch", "buckets": 64}, CountSketch(Gaussian(), 512, 64, 0)),
    ],
    ids=lambda value: (
        " ".join(map(str, value.values())) or "nothing" if type(value) is dict else ""
    ),
)
def test_a_section_becomes_a_map(features, expected) -> None:
    """What is left out is as KERNELS has it: orthogonal, 512, gamma the fleet's."""
    assert expected == schema(**features).built.features


def test_without_the_section_a_group_is_linear() -> None:
    """Nothing changes for those who do not ask for a kernel: not even the fingerprint."""
    plain = decoded({"channels": CHANNELS}, SchemaConfig).built

    assert Schema(plain.channels, center="own").fingerprint == plain.fingerprint


def landmarks(path, text: str | np.ndarray, *, channels=("flow", "temp"), lags=1, features=3):
    """The map of a table: CSV if it is text."""
    if isinstance(text, str):
        path = path / "landmarks.csv"
        path.write_text(text)
    else:
        path = path / "landmarks.npy"
        np.save(path, text)
        text = ""
    table = {"map": "nystrom", "landmarks": str(path), "features": features, "gamma": 0.1}
    table = {"channels": list(channels), "lags": lags, "features": table}
    return decoded(table, SchemaConfig).built.features


def test_landmarks_are_read_from_their_table(tmp_path) -> None:
    """They become part of the schema; without names they are in its order."""
    points = np.arange(18.0).reshape(2, 9) / 8

    assert Landmarks(Gaussian(0.1), points) == landmarks(
        tmp_path, points, channels=CHANNELS, features=2
    )
    rows = "\n".join(",".join(map(str, row)) for row in points)
    assert Landmarks(Gaussian(0.1), points) == landmarks(
        tmp_path, rows, channels=CHANNELS, features=2
    )


@pytest.mark.parametrize(("gamma", "known"), [("auto", None), (0.25, 0.25)])
def test_landmarks_can_be_left_to_the_fleet(gamma, known) -> None:
    """No file is read; the text that travels has room for as many as there will be."""
    table = {"map": "nystrom", "landmarks": "fleet", "features": 300, "gamma": gamma}
    config = decoded({"channels": CHANNELS, "features": table}, SchemaConfig)

    assert OpenLandmarks(Gaussian(known), 300) == config.built.features
    points = np.random.default_rng(0).standard_normal((300, 9))
    chosen = replace(config.built, features=Landmarks(Gaussian(0.25), points))
    assert len(chosen.canonical) <= config.text_bytes


@pytest.mark.parametrize(
    ("table", "lags", "expected"),
    [
        ("flow,temp\n1,20\n2,21\n3,22\n", 1, [[1, 20], [2, 21], [3, 22]]),
        ("temp,flow\n20,1\n21,2\n22,3\n", 1, [[1, 20], [2, 21], [3, 22]]),
        ("at,temp,flow\nnoon,20,1\n,21,2\n,22,3\n", 1, [[1, 20], [2, 21], [3, 22]]),
        (
            "flow,flow-1,temp,temp-1\n1,2,20,19\n2,3,21,20\n3,4,22,21\n",
            2,
            [[1, 20, 2, 19], [2, 21, 3, 20], [3, 22, 4, 21]],
        ),
    ],
    ids=["in order", "in another", "with others", "with lags"],
)
def test_landmarks_are_found_by_the_names_of_their_columns(tmp_path, table, lags, expected) -> None:
    """Those of the channels, and their lags; like a replay's, other columns are not looked at."""
    assert Landmarks(Gaussian(0.1), np.array(expected)) == landmarks(tmp_path, table, lags=lags)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (
            "flaw,temp\n1,20\n",
            (
                'features.landmarks: expected a column "flow" in {path}, for the channel of that'
                ' name, got no such column; did you mean "flaw"?'
            ),
        ),
        (
            "1,20,3\n2,21,4\n3,22,5\n",
            (
                "features.landmarks: expected 2 columns in {path}, channels x lags, got 3; or give"
                " it a header with their names"
            ),
        ),
        (
            "temp,flow\n20,1\n,2\n22,3\n",
            (
                "features.landmarks: expected a number for each channel in all rows of {path}, got"
                " a gap in row 2, temp; complete the row, or leave it out"
            ),
        ),
        (
            "flow,temp\n1,20\n2,21\n1e200,22\n",
            "features.landmarks: {path}: landmarks must be finite",
        ),
        (
            "flow,temp\n1,20\n",
            "features.features: expected 1, as many as there are landmarks in {path}, got 3",
        ),
        ("flow,temp\n", "{path}: expected rows of numbers below line 1"),
        ("", "{path}: expected rows of numbers, got an empty file"),
    ],
    ids=["a name", "a width", "a gap", "too large", "a number of them", "no rows", "nothing"],
)
def test_a_table_that_is_none_of_landmarks_is_refused_in_one_line(tmp_path, table, line) -> None:
    """With the setting, the file, and the place."""
    with pytest.raises(UsageError) as error:
        landmarks(tmp_path, table)

    message = str(error.value)
    assert message.startswith(line.format(path=tmp_path / "landmarks.csv"))
    assert "\n" not in message


def test_a_table_that_is_not_there_may_be_the_fleet_misspelt() -> None:
    """The line names the word."""
    table = {"map": "nystrom", "landmarks": "fleat", "features": 3}
    with pytest.raises(
        UsageError, match=r'landmarks: expected "fleet" or a table, got no file fle'
    ):
        _ = decoded({"channels": ["flow", "temp"], "features": table}, SchemaConfig).built


def test_a_client_says_where_its_landmarks_are_named(tmp_path) -> None:
    """The whole way to the setting, though the file is read late."""
    path = tmp_path / "landmarks.npy"
    np.save(path, np.eye(8))
    made = client(features={"map": "nystrom", "landmarks": str(path), "features": 8})

    with pytest.raises(UsageError, match=r"^schema\.features\.landmarks: expected 9 columns"):
        _ = made.built_schema


@pytest.mark.parametrize(
    ("features", "line"),
    [
        ({"features": 511}, "expected an even number, got 511"),
        ({"features": 0}, "a whole number of at least 1, got 0"),
        ({"features": 1 << 20}, "expected at most 65536, got 1048576"),
        ({"gamma": 0}, 'features.gamma: expected a number above 0, or "auto", got 0'),
        ({"gamma": -1.5}, 'features.gamma: expected a number above 0, or "auto", got -1.5'),
        ({"gamma": "soon"}, '"auto"'),
        ({"kernel": "polynomial", "degree": 0}, "a whole number of at least 1, got 0"),
        ({"degree": 2}, 'expected nothing, since it is for kernel = "polynomial", got 2'),
        ({"nu": 1.5}, 'expected nothing, since it is for kernel = "matern", got 1.5'),
        ({"kernel": "matern", "nu": 1.0}, "nu must be 1.5 or 2.5, got 1.0"),
        ({"map": "nystrom"}, 'expected "fleet" or a table, since map = "nystrom", got nothing'),
        ({"landmarks": "x"}, 'expected nothing, since it is for map = "nystrom"'),
        ({"map": "tensorsketch"}, "map: expected one for gaussian: orthogonal, fourier-pair"),
        (
            {"kernel": "polynomial", "map": "orthogonal"},
            'map: expected one for polynomial: tensorsketch, nystrom, got "orthogonal"',
        ),
        ({"map": "quasi"}, "at most 8 dimensions, got 9"),
        ({"kernel": "rbf"}, '"gaussian"'),
        ({"seed": -1}, "a whole number of at least 0, got -1"),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if type(value) is dict else "",
)
def test_a_mistake_is_one_line_under_its_setting(features, line) -> None:
    """Before anything is opened, with the section it stands in."""
    with pytest.raises(UsageError) as error:
        schema(**features)

    message = str(error.value)
    assert line in message
    assert message.startswith("features")
    assert "\n" not in message
    assert "None" not in message  # TOML has none


def test_few_channels_may_have_quasi_random_features() -> None:
    """Sobol points pay at up to eight dimensions, lags included."""
    assert "quasi" == schema(CHANNELS[:4], map="quasi").built.features.kind


def test_ranks_fit_features_and_readings() -> None:
    """`rank` is of features, which are many; `linear_rank` of the readings, which are few."""
    many = client(summary={"rank": 32, "linear_rank": 4})

    assert (32, 4) == (many.summary.rank, many.summary.linear_rank)
    for summary, line in (
        ({"rank": 600}, "summary.rank: expected fewer than the 512 features there are, got 600"),
        (
            {"linear_rank": 10},
            "summary.linear_rank: expected fewer than channels x lags = 9 x 1 = 9",
        ),
    ):
        with pytest.raises(UsageError) as error:
            client(summary=summary)
        assert line in str(error.value)


@pytest.mark.parametrize(("channels", "lags", "most"), [(9, 1, 8), (3, 2, 5), (2, 1, 1), (1, 1, 1)])
def test_readings_keep_a_direction_to_be_judged_by(channels, lags, most) -> None:
    """With as many as there are, what is left over is rounding; of one channel there is no less."""
    schema = {"channels": CHANNELS[:channels], "lags": lags, "features": {"features": 16}}

    assert most == client(schema=schema, summary={"linear_rank": most}).summary.linear_rank
    assert 1 <= client(schema=schema).summary.summaries.linear_kept(channels * lags)
    with pytest.raises(
        UsageError, match=r"^summary\.linear_rank: expected (fewer than|1, since) ch"
    ):
        client(schema=schema, summary={"linear_rank": most + 1})


def test_a_linear_group_has_one_rank() -> None:
    """A setting without a meaning is a mistake."""
    with pytest.raises(UsageError, match=r"summary.linear_rank: .* without \[schema.features\]"):
        client(summary={"linear_rank": 3}, schema={"channels": CHANNELS})


def test_a_report_of_features_over_the_limit_is_refused_with_the_numbers() -> None:
    """Features are many numbers: over a broker they soon are too many."""
    broker = {"url": "mqtt://x", "insecure": True}
    with pytest.raises(UsageError, match=r"a limit of 122880 bytes"):
        client(uplink=broker, summary={"rank": 64})

    assert client(uplink=broker, summary={"rank": 32}).largest_report < 122880


# -- the schema's text -------------------------------------------------------------


NUMBERS = st.floats(min_value=5e-324, allow_infinity=False)
MAPS = [{}, {"kernel": "laplace", "map": "countsketch"}, {"kernel": "polynomial", "degree": 64}]


@given(
    channels=st.lists(st.text('aé"\\ [x', min_size=1), min_size=1, max_size=4),
    lags=st.integers(1, 3),
    scaling=st.sampled_from(["none", "fleet"]),
    features=st.sampled_from([None, *MAPS]),
    gamma=NUMBERS,
    scale=NUMBERS,
)
def test_no_schema_has_a_longer_text_than_was_reckoned(
    channels, lags, scaling, features, gamma, scale
) -> None:
    """Whatever the fleet settles in it."""
    table = {"channels": [f"{i}{name}" for i, name in enumerate(channels)], "lags": lags}
    table |= {"scaling": scaling} | ({} if features is None else {"features": features})
    made = decoded(table, SchemaConfig)

    settled = made.built
    settled = replace(settled, features=settled.features.settled_at(gamma))
    if scaling == "fleet":
        numbers = Scaling((-scale,) * settled.width, (scale,) * settled.width)
        settled = replace(settled, scaling=numbers)
    assert len(settled.canonical) <= made.text_bytes
    if scaling == "none":
        assert made.text_bytes <= len(made.built.canonical) + 32


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_the_text_of_landmarks_is_reckoned_without_them(tmp_path, kernel) -> None:
    """Nobody has to have the file to know whether a message fits."""
    table = {"kernel": kernel, "map": "nystrom", "features": 300}
    made = schema(**table, landmarks=str(tmp_path / "none.npy"))

    points = np.random.default_rng(0).standard_normal((300, 9))
    map_ = Landmarks(
        Polynomial(64, 1e-300, 1e300) if kernel == "polynomial" else Gaussian(0.3), points
    )
    text = Schema(tuple(map(Channel, CHANNELS)), features=map_).canonical
    assert len(text) <= made.text_bytes <= len(text) + 512


def test_a_join_that_does_not_fit_is_refused_with_the_numbers() -> None:
    """It carries the schema's text, in which landmarks are many bytes, and no report has."""
    features = {"map": "nystrom", "landmarks": "none.npy", "features": 512}
    channels = [f"s{i}" for i in range(54)]
    table = {"channels": channels, "features": features}
    broker = {"url": "mqtt://x", "insecure": True}
    size = decoded(table, SchemaConfig).text_bytes

    assert client(schema=table).largest_report < 122880 < size  # gRPC takes it
    with pytest.raises(UsageError) as error:
        client(schema=table, uplink=broker)
    assert (
        f"uplink.max_message_bytes: expected room for {size + 512} bytes: to join, a schema of"
        f" {size}, and 512, got a limit of 122880 bytes; lower schema.features.features or"
        " schema.lags, or raise it as far as the other end does"
    ) == str(error.value)
    client(schema=table, uplink=broker | {"max_message_bytes": size + 512})


def test_a_trial_says_what_is_learnt_of_readings_and_of_features() -> None:
    """`client --test` speaks of both, and of the report that carries both."""
    config = client(summary={"rank": 6, "linear_rank": 2}, features={"features": 64})
    rows = np.random.default_rng(0).standard_normal((20, 9))
    lines = trial_lines(config, Listened(rows, {}, 1.0))

    assert (
        "learnt: 20 vectors of 9 dimensions (9 channels x 1 lags), 7 directions of them;"
        " 64 features of each, rank 6 + 5"
    ) in lines
    assert any(f"at most {config.largest_report} bytes" in line for line in lines)
