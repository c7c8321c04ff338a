"""Messages of an MQTT broker as rows: what a message means, and the connection to the broker.

`topics` (which device a topic is of), `fields` (the numbers in a payload), `sparkplug` (the same in
protobuf) and `messages` (all of that together) do no I/O, and need no broker; neither does
`published`, one topic with one number. `away` finds devices that are away, `heard` remembers what
was heard, and `comings` says which devices are new, renamed or silent. `readings` connects: it
alone loads paho-mqtt.
"""
