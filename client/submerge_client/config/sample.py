"""SAMPLE: a client's configuration with every setting, and the effect of each.

It loads as it is, and reports to the root of the aggregator's own sample. A line that begins with
`#` without a space is a setting; those of one paragraph can be used together. Tests compare it
with the settings that exist.
"""

SAMPLE = """\
# A client of submerge. It learns what is normal for this device's sensors, reports a summary
# (never a reading), and scores readings with the model of the whole fleet.
#
# `submerge client init` prints this file; `submerge client --config FILE` starts from it.
# Each setting can also come from the environment: SUBMERGE__UPLINK__URL, SUBMERGE__NODE.
# A line that begins with "#" without a space is a setting: its default, or an alternative. The
# settings of one paragraph belong together; an alternative replaces the section or setting above
# it. Paths are relative to the working directory.

# This device's name. It never changes, is unique, and is the name in its certificate.
node = "pump-1"
# Nodes that share a schema and a model: all pumps, all presses.
group = "pumps"
# The node name of the aggregator that it reports to.
parent = "root"
# A file for restarts: the newest model and unreported readings. A few kilobytes.
state = "pump-1.state"
# Key, certificate and authority in one file, as `submerge pki issue` writes it, for every link
# with TLS that names no files of its own. `node` may then be left out.
#kit = "pump-1.kit"
# A row with a gap: "fill" learns it with the most likely value, if at least half of its channels
# are there; "withhold" does not learn it.
#gaps = "fill"
# Whether operators at an aggregator above may look at the newest readings. They leave the device
# only while a person looks, and no aggregator stores them.
#share_values = false
# Most rows that are held in memory for jobs, which are computed over a whole fleet in rounds: 8
# bytes for each channel of each row. 0 takes no part in jobs.
#job_rows = 256
# Most of these rows that may leave the device as they are in 24 hours, as points of kernel PCA:
# all aggregators above, and all members of the group, can then read them.
#share_points = 0
# The least level of a log line: "debug", "info", "warning" or "error".
#log = "info"


# The connection to the parent.
[uplink]
# grpc://host:port or mqtt://host:port (a broker that the parent listens on); with TLS
# grpcs:// or mqtts://. Default ports: 8470, 1883, with TLS 8470, 8883.
url = "grpc://127.0.0.1:8470"
# Required for a url without TLS. Others on the network can then read and forge messages.
insecure = true

# With TLS: a kit (above) is enough. Otherwise ca: the trusted authorities; left out, the
# system's. cert and key: this node's own, if the parent asks for them.
#url = "grpcs://aggregator.example:8470"
#insecure = false
#ca = "ca.pem"
#cert = "pump-1.pem"
#key = "pump-1.key"

# With a broker that asks for a password. The file holds nothing else.
#url = "mqtts://broker.example:8883"
#insecure = false
#username = "pump-1"
#password_file = "pump-1.password"

# MQTT topics begin with submerge/v1/{fleet}/: fleets on one broker need different names.
#fleet = "default"
# Most bytes of a message; left out, 122880 on MQTT and 4194304 on gRPC. Raise it only as far as
# the broker and the parent do: a larger message never arrives.
#max_message_bytes = 122880
# "i8" sends the weaker directions in a quarter of the bytes, with less precision. It has no
# effect on a group of few channels, which sends its whole scatter.
#columns = "f32"


# The meaning of a vector: the same for all nodes of the group, and at the root.
[schema]
# "name", "name [unit]" or { name = "flow", unit = "l/min" }, in the order of the readings.
channels = ["flow [l/min]", "pressure [bar]", "current [A]", "temperature [°C]"]
# Readings in a row, the newest first. Raising it shows how channels follow each other, for
# channels x lags dimensions in memory and in each report. Alarms seldom gain by it.
#lags = 1
# How channels of different units get the same size: "none" leaves readings as they are; with
# "fleet" the root computes it from all nodes, and nothing is learnt before; "fixed" takes
# (reading - offset) / scale. Raising a scale gives its channel less weight.
scaling = "fleet"

#channels = [
#{ name = "flow", unit = "l/min", offset = 20.0, scale = 5.0 },
#{ name = "pressure", unit = "bar", offset = 3.0, scale = 0.5 },
#]
#scaling = "fixed"

# What is subtracted first: "own", each node's own mean, for devices with different levels that
# vary alike; "fleet", one mean of all nodes; "none".
#center = "own"
# Seconds after which a reading counts for half; left out, it counts for ever. Raising it makes
# the model steadier, and slower to follow.
#half_life_s = 2592000.0

# A kernel: what is normal may then be curved, a ring or a bent sheet; without one it is flat.
# Features of each vector are learnt beside the vector itself, for 4 bytes x features for each of
# their directions in every report.
#[schema.features]
#kernel = "gaussian"
# The kernel's width in scaled units, exp(-gamma distance^2). With "auto" the root computes it
# from all nodes, and nothing is learnt before. Raising it separates near vectors, and loses what
# distant ones have in common.
#gamma = "auto"
# Raising it comes closer to the kernel, for memory, time and bytes in proportion.
#features = 512
# How features are made: "orthogonal"; also "fourier-pair", "fourier-cos", "quasi" (at most 8
# dimensions).
#map = "orthogonal"

# Less smooth kernels: "laplace", and "matern" with nu 1.5 or 2.5.
#[schema.features]
#kernel = "matern"
#nu = 1.5

# Products of `degree` readings: (gamma <x, y> + coef0) to the power of degree.
#[schema.features]
#kernel = "polynomial"
#degree = 2
#coef0 = 1.0
#map = "tensorsketch"

# For very many dimensions, nearly all of them 0.
#[schema.features]
#map = "countsketch"

# Features from typical vectors, scaled, in a table that every node of the group has: a column
# for each channel, and with lags for each of these, as "flow" and "flow-1". With "fleet" in place
# of the table the fleet chooses them among its readings, of clients that say share_points.
#[schema.features]
#map = "nystrom"
#landmarks = "landmarks.csv"
#features = 128


# How much is remembered: the same for all nodes of the group, and at the aggregators.
[summary]
# Directions of normal variation that SPE and T2 are of, fewer than channels x lags. Raising it
# explains more of what is normal, and in the end faults as well. With "auto" the root chooses.
#rank = "auto"
# The highest rank that the root may choose. Raising it makes distances, of which alarms are raised,
# and merges more exact, for 4 bytes x channels x lags each in every report.
#rank_max = 16
# Spare directions, learnt and sent in addition. Raising it makes merges more exact, for as much.
#oversample = 5
# Most memory for learning exactly, in a kernel group of features and of readings each. 3MB reach
# to 200 dimensions (channels x lags), 1MB to 160. Above that, rank_max + oversample directions are
# learnt, in memory that grows with the dimensions. Raising it is exact further.
#memory = "3MB"


# Where readings come from: one kind.
[sensor]
# A line of JSON on standard input for each row: {"flow": 21.5, "pressure": null} or [21.5, ...].
kind = "ndjson"
# What a channel is that an object does not name: "gap", or "zero" for sparse rows.
#absent = "gap"

# Metrics of Telegraf in Influx line protocol, on standard input: lines of one timestamp are a row,
# which closes gather_s (below) after its first line.
#[sensor]
#kind = "influx"
# "processor", for processors.execd: all metrics go on to standard output, scores among them as
# metrics. "output", for outputs.execd: nothing is printed.
#mode = "processor"
# The name of a field's channel: {field}, {measurement}, the key of any tag in braces, and {device},
# the measurement and all tags, joined by dots: "modbus.pump/flow".
#name = "{device}/{field}"
# Tags that are no part of {device}.
#ignored_tags = ["host"]
# Numbers for words, and for booleans.
#states = { true = 1, false = 0 }
# The unit of timestamps: "ns", "us", "ms" or "s".
#precision = "ns"
# Standard output is for metrics: lines of JSON go elsewhere.
#[scores]
#to = "none"

# A program that prints lines of JSON. It is started without a shell, and again when it ends.
#[sensor]
#kind = "program"
#command = ["/usr/local/bin/read-meter", "--every", "10"]

# Files, read as if live: CSV or columns of numbers, .npy, Intel Lab logs; also gzip.
#[sensor]
#kind = "file"
#paths = ["history.csv"]
# Rows a second; 0 is as fast as possible.
#speed = 0.0
# Begin again at the end. The readings then count again, as new ones.
#loop = false
# Columns to leave out.
#skip = []
# Take 0 for a gap, as some loggers write it.
#zero_is_missing = false
# From an Intel Lab log: "temperature", "humidity", "light", "voltage" or "all".
#quantity = "temperature"

# Messages of devices, as Zigbee2MQTT, Tasmota, Shelly or Sparkplug B send them. A channel is called
# "device/field", as in "lamp/temperature" or "plug/ENERGY.Power".
#[sensor]
#kind = "mqtt"
#url = "mqtt://127.0.0.1:1883"
#insecure = true
# Where they publish; {device} and {field} take the place of names, + and # are as in MQTT.
#topics = ["zigbee2mqtt/+", "tele/{device}/SENSOR"]
# Channels to take, and those to leave out, with * and ?.
#include = ["*"]
#exclude = ["bridge/*", "*/linkquality"]
# Numbers for words.
#states = { ON = 1, OFF = 0, true = 1, false = 0 }
# Ask Sparkplug B's edge nodes for the names of their metrics; it publishes a message for that.
#rebirth = false

# One number in each message, a topic for each channel.
#[sensor]
#kind = "mqtt"
#url = "mqtt://127.0.0.1:1883"
#insecure = true
# {channel} is replaced by each channel's name.
#topic = "plant/{channel}/value"
# The path of the number in a message's JSON: "value", "reading.celsius"; "" for a bare number.
#value = "value"
# The path of its time; "" takes the time of arrival.
#time = ""
# Seconds between rows. Raising it gives fewer rows.
#period_s = 10.0
# Seconds that a row waits for late values. Raising it catches more of them, and scores later.
#lateness_s = 2.0
# Seconds for which a value is used. Raising it bridges longer silence, with staler values. With
# topics it follows from how often each channel speaks, if it is left out.
#max_age_s = 30.0
# A channel's value in a row: "hold", the newest; "mean", of all since the row before, or else
# the newest; "drop", the newest, but rows with a gap are left out.
#missing = "hold"

# The same with TLS and a password; ca, cert and key as in [uplink].
#[sensor]
#kind = "mqtt"
#topic = "plant/{channel}/value"
#url = "mqtts://broker.example:8883"
#ca = "ca.pem"
#cert = "pump-1.pem"
#key = "pump-1.key"
#username = "pump-1"
#password_file = "pump-1.password"

# This machine's own figures: load, memory, disk, network, temperature.
#[sensor]
#kind = "host"
# Seconds between rows. Raising it costs less, and sees less.
#period_s = 10.0


# How often it reports.
[timing]
# Seconds between reports, give or take 20 %. Raising it makes the model staler, lowering it costs
# bytes.
#report_every_s = 300.0
# Seconds between writes to `state`. Raising it loses more readings in a crash, lowering it wears
# the card.
#checkpoint_every_s = 240.0
# Rows before the first report. Raising it reveals less of single rows. The first model of the
# group waits until all nodes together have ten rows for each direction.
#min_rows = 1
# How long rows that come faster than that wait to be handled together. Raising it costs less
# processor time, and scores later; 0 handles each row as it comes. Metrics of Telegraf: how long a
# row waits for its lines.
#gather_s = 1.0


# Which rows are learnt and scored.
[learn]
# An operating state; rows in any other state are ignored. It is a channel, one of
# < <= > >= == !=, and a number; join several by `and`; put a name with blanks in double quotes.
# A row with a gap in such a channel is ignored. Left out, every row counts.
#when = "flow > 2 and current > 0.5"
# How long rows of an open alarm are not learnt, unless a person decides. Raising it keeps a
# lasting fault out of the model for longer, and a new normal as well.
#max_withheld = "24h"


# When a score is an alarm. Limits come from what the whole group has measured.
[alarms]
# Most false alarms of this node: "NUMBER false per hour", day, week, month, year, "8h" or
# "10000 rows"; "off" raises no alarms. A higher rate finds faults sooner, and for smaller
# deviations.
#at_most = "1 false per week"
# Time from the group's first scores until limits keep at_most; until then they are provisional.
# Raising it arms nodes later, with limits that hold better.
#settle = "3d"
# Alarms by provisional limits are listed, and sent nowhere; true sends them as well.
#provisional = false
# Seconds between rows, for files that are read faster or slower than they were measured; left
# out, the sensor's period, or the clock where it has none.
#period_s = 10.0

# Where alarms go: each start once, and each end once. Here as lines of JSON, in a file, which
# may be rotated, or "-" for standard output.
#ndjson = "alarms.ndjson"

# true: the broker of [uplink] keeps a message with this node's alarm state, under the topic
# submerge/v1/{fleet}/alarm/{node}.
#mqtt = false
# The topic prefix of Home Assistant's discovery; "" publishes no discovery.
#discovery = "homeassistant"

# Another broker instead; all as in [uplink].
#[alarms.broker]
#url = "mqtts://home.example:8883"
#fleet = "default"
#insecure = false
#ca = "ca.pem"
#cert = "pump-1.pem"
#key = "pump-1.key"
#username = "pump-1"
#password_file = "pump-1.password"

# Servers that take a POST, any number of them: Alertmanager ("alertmanager"), a topic of ntfy
# ("ntfy"), or any other ("json").
#[[alarms.webhook]]
#url = "https://alertmanager.example:9093"
#shape = "alertmanager"
# A file that holds a token and nothing else; it is sent as "Authorization: Bearer".
#token_file = "alertmanager.token"
# The trusted authorities; left out, the system's.
#ca = "ca.pem"
# A page about the node; {node}, {group} and {id} are replaced.
#link = "https://dashboards.example/{node}"

# Required for http:// to another machine. Others on the network can then read and forge messages.
#[[alarms.webhook]]
#url = "http://192.168.1.20:8080/alarms"
#insecure = true


# The scores of each row, as a line of JSON.
[scores]
# "none"; "stdout"; or "mqtt", under the topic submerge/v1/{fleet}/score/{node}.
to = "stdout"
# Channels that are named with each score, those with the largest shares. Raising it costs bytes.
#contributions = 3

# To the broker of [uplink], or to another one; all as in [uplink].
#[scores]
#to = "mqtt"
#[scores.broker]
#url = "mqtts://dashboards.example:8883"
#fleet = "default"
#insecure = false
#ca = "ca.pem"
#cert = "pump-1.pem"
#key = "pump-1.key"
#username = "pump-1"
#password_file = "pump-1.password"


# How systemd (client/submerge-client.service) or a container's health check sees that it works.
[watch]
# Seconds without a row after which the program counts as stuck, and systemd restarts it; left
# out, 600 (7200 with topics), or ten of the sensor's periods if that is more. Raising it allows a
# slower sensor, and finds a dead one later.
#silence_s = 600.0

# A file that is touched every 15 s as long as the program is not stuck.
#[watch]
#alive = "/run/submerge/alive"
"""
