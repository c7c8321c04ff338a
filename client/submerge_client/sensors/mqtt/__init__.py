"""Messages of an MQTT broker as rows; `readings` connects, and alone loads paho-mqtt."""
