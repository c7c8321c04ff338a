"""Processor time of a broker for each message that it passes on, acknowledged on both sides.

Mosquitto, without a disk, passes messages of a report's size from one connection to another
(QoS 1). Its processor time is read from /proc. `python benchmarks/broker_cost.py` prints the line
of plan.md.
"""

import sys
import threading
import time

import paho.mqtt.client as mqtt

import processes

BYTES, MESSAGES, AHEAD = 4_800, 20_000, 256


def connected(port: int) -> mqtt.Client:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(AHEAD)
    client.connect(processes.HOST, port)
    client.loop_start()
    return client


def measured(messages: int) -> tuple[float, int]:
    """Return the broker's processor seconds, and the messages that arrived."""
    with processes.site() as site:
        port = site.broker()
        broker = site._started[-1]
        listener, speaker = connected(port), connected(port)
        room, arrived, all_there = threading.Semaphore(AHEAD), 0, threading.Event()

        def on_message(*_: object) -> None:
            nonlocal arrived
            arrived += 1
            room.release()
            if arrived == messages:
                all_there.set()

        ready = threading.Event()
        listener.on_message = on_message
        listener.on_subscribe = lambda *_: ready.set()
        listener.subscribe("up/#", qos=1)
        ready.wait(10)
        before = broker.cpu_s
        for i in range(messages):
            room.acquire(timeout=10)
            speaker.publish(f"up/{i % 1000}", bytes(BYTES), qos=1)
        all_there.wait(60)
        time.sleep(0.2)  # the last acknowledgements
        spent = broker.cpu_s - before
        for client in (speaker, listener):
            client.loop_stop()
        return spent, arrived


def main() -> None:
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    spent, arrived = measured(messages)
    print(
        f"{arrived:,} messages of {BYTES:,} bytes: {1e6 * spent / arrived:.0f} µs of the broker's"
        f" core each (load {processes.load()})"
    )


if __name__ == "__main__":
    main()
