"""SAMPLE: an aggregator's configuration with every setting in it, and what each is for.

It loads as it stands, as the root that the client's own sample reports to. A line that begins
with `#` and no blank is a setting; those of one paragraph can be taken in together. Tests hold it
against the settings that there are.
"""

SAMPLE = """\
# An aggregator of submerge: it merges what its children report, and reports upward in the same
# way. Without a parent it is the root: its merge is the model that everybody scores with.
#
# `submerge aggregator init` prints this file; `submerge aggregator --config FILE` starts from it.
# Every setting can also come from the environment: SUBMERGE__LISTEN__GRPC__ADDRESS.
# A line that begins with "#" and no blank is a setting: what holds if it is left out, or
# another way, a paragraph of them together. Paths start where the program is started.

# Its name: the same for ever, no other node's, and the one in its certificate.
node = "root"
# The database of what it has acknowledged: keep it on a disk that lasts.
store = "root.db"
# What makes it known, as `submerge pki issue --host` writes it: key, certificate and authority in
# one file, for every link with TLS that names no files of its own. Children then need kits of
# the same authority. `node` may be left out.
#kit = "root.kit"
# The least that is worth a line: "debug", "info", "warning" or "error".
#log = "info"


# How children reach it: over gRPC, through a broker, or both.
[listen]
# Messages a second that each child may send for long; of one that has no certificate and no
# topic, those of a connection. Each 8 KiB of a long one count as one more. What is more is
# refused. Raising it lets one that has gone wild cost more.
#most_per_s = 20.0

[listen.grpc]
# 0.0.0.0 is every network that this machine has.
address = "127.0.0.1:8470"
# Serve without TLS. Anybody on the network can then read and forge what is sent.
insecure = true
# Bytes that a message may have. Raising it lets each child take more memory at a time.
#max_message_bytes = 4194304

# With TLS. With a kit (above), address and no `insecure` are all; else the server's certificate
# and its key. With a ca, children need certificates of it, each under its own name.
#address = "0.0.0.0:8470"
#insecure = false
#cert = "root.pem"
#key = "root.key"
#ca = "ca.pem"

#[listen.mqtt]
# The broker: mqtt://host:port, or mqtts:// with TLS.
#url = "mqtt://127.0.0.1:1883"
# Needed for a url without TLS.
#insecure = true
# As the children's: topics begin with submerge/v1/{fleet}/.
#fleet = "default"
# Bytes that a message may have. Raise it only as far as the broker does, and the children: what
# they refuse never arrives.
#max_message_bytes = 122880

# A broker with TLS and a password. ca: whom to trust; left out, the system's authorities. cert
# and key: this node's own, for a broker that asks for them. The file holds the password, and
# nothing else.
#[listen.mqtt]
#url = "mqtts://broker.example:8883"
#ca = "ca.pem"
#cert = "root.pem"
#key = "root.key"
#username = "root"
#password_file = "root.password"


# The aggregator above; a root has none. With another name the store is begun anew.
#[parent]
#name = "headquarters"
# As in a client's [uplink]: grpc://, mqtt://, or with TLS grpcs://, mqtts://.
#url = "grpcs://headquarters.example:8470"
#insecure = false
#ca = "ca.pem"
#cert = "root.pem"
#key = "root.key"
# Bytes that a message may have; left out, 122880 on MQTT and 4194304 on gRPC. Raise it only
# as far as the broker and the parent do: what they refuse never arrives.
#max_message_bytes = 4194304
# "i8" sends the weaker directions in a quarter of the bytes, and coarser.
#columns = "f32"

# A parent behind a broker.
#[parent]
#name = "headquarters"
#url = "mqtts://broker.example:8883"
#fleet = "default"
#username = "root"
#password_file = "root.password"


# A group of nodes that share a schema and a model: a section of each kind for every group.
[groups.pumps]
# Where clients report here: leave out those that are far from the others, for as long as they
# are, and count nobody for more than three times the usual. Of a fleet of two kinds it leaves
# out the fewer: make that two groups.
#robust = false

# Ranks as at the clients: directions of normal variation, and spare ones. Raising the rank
# explains more of what is normal, and in the end faults as well; raising oversample makes
# merges more exact. Each costs 4 bytes x channels x lags in every report.
[groups.pumps.summary]
#rank = 8
#oversample = 5

# What a vector means, as at the clients. A root has to say it; below the root it comes down.
[groups.pumps.schema]
# "name", "name [unit]" or { name = "flow", unit = "l/min" }, in the order of the readings.
channels = ["flow [l/min]", "pressure [bar]", "current [A]", "temperature [°C]"]
# Rows in a vector, the newest first. Raising it shows what follows what, for channels x lags
# dimensions in memory and in each report.
lags = 4
# How channels of different units are brought to one size: "none" leaves readings as they are;
# "fleet" works it out from all nodes, after 1,000 readings; "fixed" takes
# (reading - offset) / scale. Raising a scale gives its channel less weight.
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
#[groups.pumps.schema.features]
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
#[groups.pumps.schema.features]
#kernel = "matern"
#nu = 1.5

# Products of so many readings: (gamma <x, y> + coef0) to the power of degree.
#[groups.pumps.schema.features]
#kernel = "polynomial"
#degree = 2
#coef0 = 1.0
#map = "tensorsketch"

# Very many dimensions, nearly all of them 0.
#[groups.pumps.schema.features]
#map = "countsketch"

# Features from so many typical vectors, scaled, in a table that everybody in the group has: a
# column for each channel, and with lags for each of these, as "flow" and "flow-1".
#[groups.pumps.schema.features]
#map = "nystrom"
#landmarks = "landmarks.csv"
#features = 128


# Health and metrics, over HTTP; address = "" for none. Nothing protects it.
[status]
#address = "127.0.0.1:8471"


# Who is told of the alarms of all nodes below, so that these need not: each start once, and each
# end once. One aggregator is enough, as a rule the root.
[alarms]
# A line of JSON for each of them: in a file, which may be rotated, or "-" for standard output.
#ndjson = "alarms.ndjson"

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

# Services that Apprise knows, such as e-mail, Slack, Teams or Telegram: pip install
# 'submerge[notify]'. The file has one Apprise URL per line and mode 0600; it is read at the start.
#[alarms.apprise]
#urls_file = "apprise.urls"


# When it speaks. These hold if they are left out.
[timing]
# Seconds between reports to the parent, give or take 20 %. Raising it costs the model its
# freshness, lowering it costs bytes.
#report_every_s = 300.0
# Seconds between models, at a root, at least. Raising it costs less work, and fewer bytes down.
#model_every_s = 60.0
"""
