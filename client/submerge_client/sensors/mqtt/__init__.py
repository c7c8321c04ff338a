"""Messages of an MQTT broker as rows: what a message means, and the connection to the broker.

`topics` (which device a topic is of), `decoder` (the numbers in a payload, and devices that are
away), `sparkplug` (the same in protobuf) and `messages` (all of that together) do no I/O.
`readings` connects: it alone loads paho-mqtt.
"""
