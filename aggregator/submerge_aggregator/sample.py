"""SAMPLE: an aggregator's configuration with every setting, and what each is for.

It loads as it is, as the root that the client's own sample reports to. A line that begins with
`#` and no blank is a setting; those of one paragraph can be enabled together. Tests compare it
with the settings that exist.
"""

SAMPLE = """\
# An aggregator of submerge: it merges what its children report, and reports upward in the same
# way. Without a parent it is the root: its merge is the model that every node scores with.
#
# `submerge aggregator init` prints this file; `submerge aggregator --config FILE` starts from it.
# Every setting can also come from the environment: SUBMERGE__LISTEN__GRPC__ADDRESS.
# A line that begins with "#" and no blank is a setting: its default, or another choice, a
# paragraph of them together. Relative paths start from the working directory.

# Its name: the same for ever, no other node's, and the one in its certificate.
node = "root"
# The database of all that it has acknowledged: keep it on a disk that lasts.
store = "root.db"
# Key, certificate and authority in one file, as `submerge pki issue --host` writes it, for every
# link with TLS that names no files of its own. Children then need kits of the same authority.
# `node` may be left out.
#kit = "root.kit"
# The lowest level that is logged: "debug", "info", "warning" or "error".
#log = "info"


# How children reach it: over gRPC, through a broker, or both.
[listen]
# Messages a second that each child may go on sending; more are refused. A long message counts
# once more for each 8 KiB. A child without a certificate or topic is counted by its connection.
#most_per_s = 20.0
# A CSV file with the columns node,role,groups, as `submerge pki acl --roster` writes it. It
# decides for nodes whose certificate names no role, and for all behind a broker. It is read again
# when it changes.
#roster = "roster.csv"
# Kits without a role, made before there were roles, are let in. false refuses them over gRPC.
#legacy_kits = true
# The names that may report as aggregators, whatever else allows it; * is any text. Left out: any.
#aggregators = ["north", "site-*"]
# Bytes of all messages that are being read or wait for their answers; of one child an eighth.
# Raising it lets a flood take more memory before other children have to wait.
#max_unanswered_bytes = 33554432

[listen.grpc]
# 0.0.0.0 is every network of this machine.
address = "127.0.0.1:8470"
# Serve without TLS. Everybody on the network can then read and forge messages.
insecure = true
# Connections, of which each child has one. Further ones are closed at once. Each takes up to
# 100 KiB.
#max_connections = 1200
# Most bytes of a message; left out, what reports of the groups below need, at most 4194304.
# Raising it lets each child take more memory at a time.
#max_message_bytes = 4194304

# With TLS. With a kit (above) give only `address`, and delete `insecure`. Otherwise: the server's
# certificate and its key. With a ca, children need certificates of it, each under its own name.
#address = "0.0.0.0:8470"
#insecure = false
#cert = "root.pem"
#key = "root.key"
#ca = "ca.pem"

#[listen.mqtt]
# The broker: mqtt://host:port, or mqtts:// with TLS.
#url = "mqtt://127.0.0.1:1883"
# Required for a url without TLS.
#insecure = true
# As at the children: topics begin with submerge/v1/{fleet}/.
#fleet = "default"
# Most bytes of a message; left out, 122880 down, and up what reports of the groups below need.
# Raise it only as far as the broker and the children do: what they refuse never arrives.
#max_message_bytes = 122880

# A broker with TLS and a password. ca: the authorities to trust; left out, the system's. cert and
# key: this node's own, for a broker that asks for them. The file holds the password, and
# nothing else.
#[listen.mqtt]
#url = "mqtts://broker.example:8883"
#ca = "ca.pem"
#cert = "root.pem"
#key = "root.key"
#username = "root"
#password_file = "root.password"


# The aggregator above; a root has none. With another parent's name here the store starts empty.
#[parent]
#name = "headquarters"
# As in a client's [uplink]: grpc://, mqtt://, or with TLS grpcs://, mqtts://.
#url = "grpcs://headquarters.example:8470"
#insecure = false
#ca = "ca.pem"
#cert = "root.pem"
#key = "root.key"
# Most bytes of a message; left out, 122880 on MQTT and 4194304 on gRPC. Raise it only as far as
# the broker and the parent do: what they refuse never arrives.
#max_message_bytes = 4194304
# "i8" sends the weaker directions in a quarter of the bytes, with less precision. It has no
# effect on a group of few channels, which sends its whole scatter.
#columns = "f32"

# A parent behind a broker.
#[parent]
#name = "headquarters"
#url = "mqtts://broker.example:8883"
#fleet = "default"
#username = "root"
#password_file = "root.password"


# A group of nodes that share a schema and a model: these sections for every group.
[groups.pumps]
# Leave out nodes that are far from the others while they are, and weigh none more than three times
# the typical node. If a group mixes two kinds of machine, the smaller half is left out: make two
# groups.
#robust = false
# No node moves the model further than an honest one could that was heard here for as long and has
# three times the usual energy. Its readings count, and weigh less in the model. "off": no bounds.
#bounds = "on"
# Nodes that count in full whatever they report, also in a robust group; * and ? are allowed.
#trusted = []
# The names that may join, report and watch here, aggregators too; * is any text. Left out: any.
#nodes = ["pump-*", "site-1"]

# Directions as at the clients. With "auto" the root chooses once, from rows of 4 children or more
# and of 20,000 readings, how many SPE and T2 are of; a number here overrules that. Raising rank_max
# or oversample makes distances and merges more exact, for 4 bytes x channels x lags each in every
# report.
[groups.pumps.summary]
#rank = "auto"
#rank_max = 16
#oversample = 5

# What a vector means, as at the clients. Required at a root; below it the schema comes down.
[groups.pumps.schema]
# "name", "name [unit]" or { name = "flow", unit = "l/min" }, in the order of the readings.
channels = ["flow [l/min]", "pressure [bar]", "current [A]", "temperature [°C]"]
# Readings in a row, the newest first. Raising it shows how channels follow each other, for
# channels x lags dimensions in memory and in each report.
#lags = 1
# How channels of different units get one size: "none" leaves readings as they are; "fleet"
# measures it on all nodes, over the first 1,000 readings; "fixed" takes
# (reading - offset) / scale. Raising a scale gives its channel less weight.
scaling = "fleet"

#channels = [
#{ name = "flow", unit = "l/min", offset = 20.0, scale = 5.0 },
#{ name = "pressure", unit = "bar", offset = 3.0, scale = 0.5 },
#]
#scaling = "fixed"

# What is subtracted before variation is measured: "own", each node's own mean, so that devices
# may differ in their typical values, and share how these vary; "fleet", one mean of all nodes;
# "none".
#center = "own"
# Seconds after which a reading counts for half; left out, it counts for ever. Raising it makes
# the model steadier, and slower to adapt.
#half_life_s = 2592000.0

# A kernel: what is normal may then be curved, a ring or a bent sheet; without one it is flat.
# Features of each vector are learnt beside the vector itself. Each direction of them costs
# 4 bytes x features in every report.
#[groups.pumps.schema.features]
#kernel = "gaussian"
# How close two vectors have to be to be alike, in scaled units: "auto" lets the root measure it
# on all nodes, and nothing is learnt until then; or a number, exp(-gamma distance^2). Raising it
# separates close ones, and forgets what distant ones have in common.
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

# Features from typical vectors, scaled, in a table that every node of the group has: a column
# for each channel, and with lags for each of these, as "flow" and "flow-1".
#[groups.pumps.schema.features]
#map = "nystrom"
#landmarks = "landmarks.csv"
#features = 128


# Health and metrics, over HTTP; address = "" for none. It is unprotected.
[status]
#address = "127.0.0.1:8471"


# Nodes and certificates that are shut out.
[security]
# A file with lines "serial HEX" and "node NAME", as `submerge pki revoke` writes it. It is read
# again when it changes.
#revoked = "revoked.txt"


# Orders over the network: `submerge nodes list --at https://root.example:8472 --token-file FILE`.
# Without this section operators use the socket beside the store, on this machine.
#[operators]
#address = "0.0.0.0:8472"
# The server's certificate and its key; left out, those of [listen.grpc] or of the kit.
#cert = "root.pem"
#key = "root.key"
# Certificates of these authorities with role operator or reader are accepted. With a kit those of
# its authority are.
#ca = "ca.pem"
# Hashes of tokens, as `submerge aggregator token new` writes them; left out, STORE.tokens beside
# the store. It is read again when it changes.
#tokens = "root.db.tokens"

# Without TLS, and on this machine only: for a proxy in front of it.
#[operators]
#address = "127.0.0.1:8472"
#insecure = true


# A page for people, in a browser: pip install 'submerge[page]'. On 127.0.0.1 all who use this
# machine can read it; orders need a token (`submerge aggregator token new`), as does reading on any
# other address. Left out, the address is 127.0.0.1 and the first of ten ports that is free, from
# 8473 on.
#[page]
#address = "127.0.0.1:8473"
# Further names that browsers know this machine by: those in its certificate, or of a proxy.
#names = ["fleet.example"]
# The server's certificate and its key; left out, those of [operators], of [listen.grpc] or of the
# kit. On 127.0.0.1 there is no TLS without them.
#cert = "page.pem"
#key = "page.key"


# Where the alarms of all nodes below are sent, so that the nodes need not send them: each start
# and each end once. One aggregator is enough, as a rule the root.
[alarms]
# A line of JSON for each: in a file, which may be rotated, or "-" for standard output.
#ndjson = "alarms.ndjson"
# Alarms by provisional limits, as new groups have them, are listed, and sent nowhere; true sends
# them as well.
#provisional = false

# Servers that take a POST, as many as you like: Alertmanager ("alertmanager"), a topic of
# ntfy ("ntfy"), or any that takes JSON ("json").
#[[alarms.webhook]]
#url = "https://alertmanager.example:9093"
#shape = "alertmanager"
# A file that holds a token, and nothing else; it is sent as "Authorization: Bearer".
#token_file = "alertmanager.token"
# The authorities to trust; left out, the system's.
#ca = "ca.pem"
# A page about the node, for the reader: {node}, {group} and {id} are filled in.
#link = "https://dashboards.example/{node}"

# Required for http:// to another machine. Others on the network can then read and forge messages.
#[[alarms.webhook]]
#url = "http://192.168.1.20:8080/alarms"
#insecure = true

# Services that Apprise knows, such as e-mail, Slack, Teams or Telegram: pip install
# 'submerge[notify]'. The file has one Apprise URL per line and mode 0600; it is read at the start.
#[alarms.apprise]
#urls_file = "apprise.urls"


# Who joined, who was refused, and what operators ordered: see `submerge aggregator audit`.
[audit]
# A file, which is rotated: at most 8 MiB. Left out, STORE.audit.jsonl beside the store; "" for
# none.
#path = "root.audit.jsonl"


# What people see of the past: scores minute by minute, past alarms, and versions of the model, in
# STORE.history beside the store. Nothing depends on it.
[history]
# Most bytes of that file, at least 1048576; the oldest goes first. 0: none is kept. Raising it
# keeps more days: a node takes some 170 bytes an hour.
#max_bytes = 16777216


# How often it reports, with the defaults.
[timing]
# Seconds between reports to the parent, give or take 20 %. Raising it makes the model older,
# lowering it costs bytes.
#report_every_s = 300.0
# Seconds between two models of a root, at least. Raising it costs less work, and fewer bytes
# down.
#model_every_s = 60.0
"""
