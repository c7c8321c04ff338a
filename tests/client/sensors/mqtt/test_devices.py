"""Messages of well-known devices and gateways, as their documents show them, become channels.

Each sample names its document. Numbers of samples that a document only describes are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from submerge_client.sensors.mqtt.messages import KINDS, MessageDecoder
from submerge_client.sensors.tally import ProblemTally, no_log


class Sample(NamedTuple):
    """Messages of a kind of device, and the channels that they become."""

    topics: tuple[str, ...]
    messages: dict[str, str]
    expected: dict[str, float]
    states: dict[str, float] = {}  # noqa: RUF012 - read only
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


SAMPLES = {
    # Zigbee2MQTT's guide, page "MQTT Topics and Messages", section "zigbee2mqtt/FRIENDLY_NAME":
    # the sensor WSDCGQ01LM, the lamp LED1545G12 and the motion sensor RTCGQ01LM; availability is of
    # its section "zigbee2mqtt/FRIENDLY_NAME/availability".
    "Zigbee2MQTT": Sample(
        ("zigbee2mqtt/+",),
        {
            "zigbee2mqtt/bath": '{"temperature": 27.34, "humidity": 44.72}',
            "zigbee2mqtt/lamp": '{"state": "ON", "brightness": 215, "color_temp": 325}',
            "zigbee2mqtt/hall": '{"occupancy": true}',
            "zigbee2mqtt/lamp/availability": '{"state": "online"}',
        },
        {
            "bath/temperature": 27.34,
            "bath/humidity": 44.72,
            "lamp/state": 1,
            "lamp/brightness": 215,
            "lamp/color_temp": 325,
            "hall/occupancy": 1,
        },
        states={"ON": 1, "OFF": 0, "true": 1, "false": 0},
    ),
    # The same guide: friendly names may have slashes.
    "Zigbee2MQTT with rooms": Sample(
        ("zigbee2mqtt/#",),
        {
            "zigbee2mqtt/kitchen/floor_light": '{"state": "ON", "brightness": 215}',
            "zigbee2mqtt/bridge/state": '{"state": "online", "load": 1}',
        },
        {"kitchen/floor_light.brightness": 215},
        exclude=("bridge/*",),
    ),
    # Tasmota's documentation, page "MQTT", its last example of a telemetry message.
    "Tasmota": Sample(
        ("tele/{device}/SENSOR",),
        {
            "tele/tasmota/SENSOR": '{"Time":"2017-02-16T10:13:52", "DS18B20":{"Temperature":20.6}}',
            "tele/tasmota/LWT": "Online",
        },
        {"tasmota/DS18B20.Temperature": 20.6},
    ),
    # LocalBytes' knowledge base, "Accessing power usage from Tasmota smart plugs", section MQTT.
    "Tasmota plug": Sample(
        ("tele/{device}/SENSOR",),
        {
            "tele/livingroom-lamp/SENSOR": '{"Time": "2022-01-11T21:57:38", "ENERGY": {'
            '"TotalStartTime": "2020-10-21T22:15:00", "Total": 3.705, "Yesterday": 0.028,'
            ' "Today": 0.026, "Period": 1, "Power": 5, "ApparentPower": 5, "ReactivePower": 0,'
            ' "Factor": 1.00, "Voltage": 233, "Current": 0.021}}',
        },
        {
            "livingroom-lamp/ENERGY.Power": 5,
            "livingroom-lamp/ENERGY.Voltage": 233,
            "livingroom-lamp/ENERGY.Current": 0.021,
        },
        include=("*.Power", "*.Voltage", "*.Current"),
    ),
    # Shelly's API reference of the first generation, sections "MQTT" of Shelly H&T (the three
    # topics of its sensor) and of Shelly1 (relay/0, and online).
    "Shelly Gen1": Sample(
        ("shellies/{device}/#",),
        {
            "shellies/shellyht-CC5E82/sensor/temperature": "22.38",
            "shellies/shellyht-CC5E82/sensor/humidity": "47.5",
            "shellies/shellyht-CC5E82/sensor/battery": "91",
            "shellies/shelly1-CC5E82/relay/0": "on",
            "shellies/shelly1-CC5E82/online": "true",
            "shellies/announce": '{"id": "shelly1-CC5E82", "new_fw": false}',
        },
        {
            "shellyht-CC5E82/sensor.temperature": 22.38,
            "shellyht-CC5E82/sensor.humidity": 47.5,
            "shellyht-CC5E82/sensor.battery": 91,
            "shelly1-CC5E82/relay.0": 1,
        },
        states={"on": 1, "off": 0},
    ),
    # Shelly's API reference of the second generation, page "Notifications" (NotifyStatus on
    # events/rpc: ts, and components by type and number), with fields of its page "Switch".
    "Shelly Gen2": Sample(
        ("{device}/events/rpc",),
        {
            "shellyplus1pm-441793/events/rpc": '{"src": "shellyplus1pm-441793", "dst":'
            ' "shellyplus1pm-441793/events", "method": "NotifyStatus", "params": {"ts":'
            ' 1708179956.30, "switch:0": {"id": 0, "apower": 8.9, "temperature": {"tC": 37.67,'
            ' "tF": 99.81}}}}',
            "shellyplus1pm-441793/online": "true",
        },
        {
            "shellyplus1pm-441793/params.switch:0.apower": 8.9,
            "shellyplus1pm-441793/params.switch:0.temperature.tC": 37.67,
        },
        exclude=("*.ts", "*.id", "*.tF"),
    ),
    # ESPHome's source, mqtt_component.cpp: get_default_topic_for_ makes a state's topic of prefix,
    # type, name and "state"; a sensor publishes its number alone.
    "ESPHome": Sample(
        ("{device}/sensor/{field}/state",),
        {
            "livingroom/sensor/bme280_temperature/state": "21.5",
            "livingroom/sensor/bme280_pressure/state": "1013.2",
            "livingroom/status": "online",
        },
        {"livingroom/bme280_temperature": 21.5, "livingroom/bme280_pressure": 1013.2},
    ),
    # The Homie Convention, sections "Properties" and "Device Statistics".
    "Homie": Sample(
        ("homie/{device}/#",),
        {
            "homie/super-car/engine/temperature": "21.5",
            "homie/super-car/$stats/cputemp": "48",
            "homie/super-car/$name": "Super car",
            "homie/super-car/$state": "ready",
        },
        {"super-car/engine.temperature": 21.5, "super-car/$stats.cputemp": 48},
    ),
    # The Things Stack's documentation, page "Data Formats", section "Uplink Messages"; the topic is
    # of its page "MQTT Server".
    "The Things Stack": Sample(
        ("v3/app1@ttn/devices/{device}/up",),
        {
            "v3/app1@ttn/devices/dev1/up": '{"end_device_ids": {"device_id": "dev1",'
            ' "application_ids": {"application_id": "app1"}, "dev_eui": "0004A30B001C0530"},'
            ' "received_at": "2020-02-12T15:15:45.787Z", "uplink_message": {"f_port": 1, "f_cnt":'
            ' 4, "frm_payload": "gkHe", "decoded_payload": {"temperature": 1.0, "luminosity":'
            ' 0.64}, "rx_metadata": [{"gateway_ids": {"gateway_id": "gtw1"}, "rssi": -35, "snr":'
            ' 5.2}], "settings": {"data_rate": {"lora": {"bandwidth": 125000}}}}}',
        },
        {
            "dev1/uplink_message.decoded_payload.temperature": 1.0,
            "dev1/uplink_message.decoded_payload.luminosity": 0.64,
            "dev1/uplink_message.rx_metadata.0.rssi": -35,
        },
        include=("*.decoded_payload.*", "*.rssi"),
    ),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_messages_of_devices_become_channels(kind) -> None:
    """All of the numbers that pass the patterns, under the names that their topics make."""
    sample = SAMPLES[kind]
    names = tuple(sample.expected)
    tally = ProblemTally(no_log, *KINDS)
    decoder = MessageDecoder(
        names,
        topics=sample.topics,
        tally=tally,
        states=sample.states,
        include=sample.include,
        exclude=sample.exclude,
    )
    found = {
        names[reading.channel]: reading.value
        for topic, payload in sample.messages.items()
        for reading in decoder.readings(topic, payload.encode(), retained=False)
    }

    assert sample.expected == found
    assert list(names) == list(decoder.heard.fields)
    assert (0, 0) == (tally.counts["unknown"], tally.counts["malformed"])
