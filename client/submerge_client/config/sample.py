"""SAMPLE: a client's configuration with every setting in it, and what each is for.

It loads as it stands, and reports to the root of the aggregator's own sample. A line that begins
with `#` and no blank is a setting; those of one paragraph can be taken in together. Tests hold it
against the settings that there are.
"""

SAMPLE = """\
# A client of submerge: it learns what is normal for this device's sensors, reports a summary
# of it (never a reading), and scores readings with what the whole fleet considers normal.
#
# `submerge client init` prints this file; `submerge client --config FILE` starts from it.
# Every setting can also come from the environment: SUBMERGE__UPLINK__URL, SUBMERGE__NODE.
# A line that begins with "#" and no blank is a setting: what holds if it is left out, or
# another way, a paragraph of them together. Paths start where the program is started.

# This device's name: the same for ever, no other node's, and the one in its certificate.
node = "pump-1"
# Nodes that share a schema and a model: all pumps, all presses.
group = "pumps"
# The aggregator that it reports to, by its node name.
parent = "root"
# What a restart brings back: readings not yet reported, the newest model. A few kilobytes.
state = "pump-1.state"
# What makes it known, as `submerge pki issue` writes it: key, certificate and authority in one
# file, for every link with TLS that names no files of its own. `node` may then be left out.
#kit = "pump-1.kit"
# A row with a gap: "fill" learns it with what was most likely, if it shows half of its
# channels or more; "withhold" does not learn it.
#gaps = "fill"
# The least that is worth a line: "debug", "info", "warning" or "error".
#log = "info"


# The way to the parent.
[uplink]
# grpc://host:port or mqtt://host:port (a broker that the parent listens on); with TLS
# grpcs:// or mqtts://. Ports, if left out: 8470, 1883, with TLS 8470, 8883.
url = "grpc://127.0.0.1:8470"
# Needed for a url without TLS. Anybody on the network can then read and forge what is sent.
insecure = true

# With TLS: a kit (above) is all that it takes. Or else ca: whom to trust; left out, the system's
# authorities. cert and key: this node's own, for a parent that asks for them.
#url = "grpcs://aggregator.example:8470"
#insecure = false
#ca = "ca.pem"
#cert = "pump-1.pem"
#key = "pump-1.key"

# Through a broker that asks for a password; the file holds it, and nothing else.
#url = "mqtts://broker.example:8883"
#insecure = false
#username = "pump-1"
#password_file = "pump-1.password"

# MQTT topics begin with submerge/v1/{fleet}/: fleets on one broker need different ones.
#fleet = "default"
# Bytes that a message may have; left out, 122880 on MQTT and 4194304 on gRPC. Raise it only
# as far as the broker and the parent do: what they refuse never arrives.
#max_message_bytes = 122880
# "i8" sends the weaker directions in a quarter of the bytes, and coarser.
#columns = "f32"


# What a vector means: the same for all nodes of the group, and at the root.
[schema]
# "name", "name [unit]" or { name = "flow", unit = "l/min" }, in the order of the readings.
channels = ["flow [l/min]", "pressure [bar]", "current [A]", "temperature [°C]"]
# Rows in a vector, the newest first. Raising it shows what follows what, for channels x lags
# dimensions in memory and in each report.
lags = 4
# How channels of different units are brought to one size: "none" leaves readings as they are;
# "fleet" lets the root work it out from all nodes, so that nothing is learnt until it has;
# "fixed" takes (reading - offset) / scale. Raising a scale gives its channel less weight.
scaling = "fleet"

#channels = [
#{ name = "flow", unit = "l/min", offset = 20.0, scale = 5.0 },
#{ name = "pressure", unit = "bar", offset = 3.0, scale = 0.5 },
#]
#scaling = "fixed"

# What is subtracted before variation is measured: "own", each node's own mean, so that devices
# may differ in what is usual for them, and share how it varies; "fleet", one mean of all nodes;
# "none".
#center = "own"
# Seconds after which a reading counts for half; left out, it counts for ever. Raising it makes
# the model steadier, and slower to follow.
#half_life_s = 2592000.0

# A kernel: what is normal may then be curved, a ring or a bent sheet; without one it is flat.
# Features of each vector are learnt beside the vector itself, for 4 bytes x features each of
# their directions in every report: [summary] rank = 16 is then a good start.
#[schema.features]
#kernel = "gaussian"
# How near two vectors have to be to be alike, in scaled units: "auto" lets the root work it out
# from all nodes, so that nothing is learnt until it has; or a number, exp(-gamma distance^2).
# Raising it tells near ones apart, and forgets what far ones have in common.
#gamma = "auto"
# Raising it comes closer to the kernel, for memory, time and bytes in proportion.
#features = 512
# How they are made: "orthogonal"; also "fourier-pair", "fourier-cos", "quasi" (at most 8
# dimensions).
#map = "orthogonal"

# Rougher ones: "laplace", and "matern", smooth to 1.5 or 2.5.
#[schema.features]
#kernel = "matern"
#nu = 1.5

# Products of so many readings: (gamma <x, y> + coef0) to the power of degree.
#[schema.features]
#kernel = "polynomial"
#degree = 2
#coef0 = 1.0
#map = "tensorsketch"

# Very many dimensions, nearly all of them 0.
#[schema.features]
#map = "countsketch"

# Features from so many typical vectors, scaled, in a table that everybody in the group has: a
# column for each channel, and with lags for each of these, as "flow" and "flow-1".
#[schema.features]
#map = "nystrom"
#landmarks = "landmarks.csv"
#features = 128


# How much is remembered: the same for all nodes of the group, and at the aggregators.
[summary]
# Directions of normal variation, at most channels x lags. Raising it explains more of what is
# normal, and in the end faults as well.
#rank = 8
# Spare directions, learnt and sent beside them. Raising it makes merges more exact, for
# 4 bytes x channels x lags each in every report.
#oversample = 5


# Where readings come from: one kind.
[sensor]
# A line of JSON on standard input for each row: {"flow": 21.5, "pressure": null} or [21.5, ...].
kind = "ndjson"

# Files, as if they came in live: numbers in CSV or columns, .npy, Intel Lab logs; also gzip.
#[sensor]
#kind = "file"
#paths = ["history.csv"]
# Rows a second; 0 is as fast as possible.
#speed = 0.0
# Begin again at the end: the readings are counted again, as new ones.
#loop = false
# Columns to leave out.
#skip = []
# Take 0 for a gap, as some loggers write it.
#zero_is_missing = false
# From an Intel Lab log: "temperature", "humidity", "light", "voltage" or "all".
#quantity = "temperature"

# Messages of other devices, a topic for each channel.
#[sensor]
#kind = "mqtt"
#url = "mqtt://127.0.0.1:1883"
#insecure = true
# {channel} stands for each channel's name.
#topic = "plant/{channel}/value"
# Where the number is in a message's JSON: "value", "reading.celsius"; "" if it is all of it.
#value = "value"
# Where its time is; "" takes the time at which it arrives.
#time = ""
# Seconds from row to row. Raising it gives fewer rows.
#period_s = 10.0
# Seconds that a row waits for values still on their way. Raising it catches more of them, and
# scores later.
#lateness_s = 2.0
# Seconds for which a value stands for its channel. Raising it bridges longer silence, with
# staler values.
#max_age_s = 30.0
# A channel's value in a row: "hold", the newest; "mean", of all since the row before, or else
# the newest; "drop", the newest, but a row without one of each channel is left out.
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

# What this machine says of itself.
#[sensor]
#kind = "host"
# Seconds from row to row. Raising it costs less, and sees less.
#period_s = 10.0


# When it speaks. These hold if they are left out.
[timing]
# Seconds between reports, give or take 20 %. Raising it costs the model its freshness, lowering
# it costs bytes.
#report_every_s = 300.0
# Seconds between writes to `state`. Raising it loses more readings with a crash, lowering it
# wears the card.
#checkpoint_every_s = 240.0
# Rows before the first report; left out, ten times the rank: fewer say little but noise.
#min_rows = 80


# What is learnt and judged at all.
[learn]
# An operating state: rows that are not in it are neither learnt nor scored. A channel, one of
# < <= > >= == !=, a number; more of them after `and`; a name with blanks in it in double quotes.
# Left out, every row counts. A gap in a channel that it names is not in it.
#when = "flow > 2 and current > 0.5"
# Rows of an open alarm are not learnt, unless a person decides otherwise: for so long. Raising
# it keeps a lasting fault out of the model for longer, and a new normal as well.
#max_withheld = "24h"


# When a score is an alarm. Limits come from what the whole group has measured.
[alarms]
# False alarms of this node, at most: "NUMBER false per hour", day, week, month or year; "off"
# raises no alarms. Raising it raises them sooner, and for less.
#at_most = "1 false per week"
# How long the group has to have been watched before a limit is believed. Raising it arms nodes
# later, with limits that hold better.
#settle = "3d"
# Seconds that a row stands for, where rows come faster or slower than they were measured, as
# from a file; left out, the sensor's own period, or the clock where the sensor has none.
#period_s = 10.0

# Who hears of alarms: each start once, and each end once. A line of JSON for each of them: in
# a file, which may be rotated, or "-" for standard output.
#ndjson = "alarms.ndjson"

# true: the broker of [uplink] keeps a message that says how this node is, under the topic
# submerge/v1/{fleet}/alarm/{node}.
#mqtt = false
# The topic below which Home Assistant looks for what there is; "" tells it nothing.
#discovery = "homeassistant"

# Another broker in its place; all as in [uplink].
#[alarms.broker]
#url = "mqtts://home.example:8883"
#fleet = "default"
#insecure = false
#ca = "ca.pem"
#cert = "pump-1.pem"
#key = "pump-1.key"
#username = "pump-1"
#password_file = "pump-1.password"

# Servers that take a POST, as many as you like: Alertmanager ("alertmanager"), a topic of
# ntfy ("ntfy"), or whatever takes JSON ("json").
#[[alarms.webhook]]
#url = "https://alertmanager.example:9093"
#shape = "alertmanager"
# A file that holds a token, and nothing else; it is sent as "Authorization: Bearer".
#token_file = "alertmanager.token"
# Whom to trust; left out, the system's authorities.
#ca = "ca.pem"
# A page about the node, for whoever hears of it: {node}, {group} and {id} are put in.
#link = "https://dashboards.example/{node}"

# Needed for http:// to another machine. Anybody on the network can then read and forge it.
#[[alarms.webhook]]
#url = "http://192.168.1.20:8080/alarms"
#insecure = true


# How odd each row was, as a line of JSON.
[scores]
# "none"; "stdout"; or "mqtt", as submerge/v1/{fleet}/score/{node}.
to = "stdout"
# Channels that are named with each, the guiltiest first. Raising it costs bytes.
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


# Who looks after this program: systemd (client/submerge-client.service), or a container's
# health check. These hold if they are left out.
[watch]
# Seconds that the sensor may give no row before the program counts as stuck, and systemd
# starts it again; left out, 600, or ten of its periods if that is more. Raising it bears a
# slower sensor, and finds a dead one later.
#silence_s = 600.0

# A file that is touched every 15 s as long as it is not stuck.
#[watch]
#alive = "/run/submerge/alive"
"""
