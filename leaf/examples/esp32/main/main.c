/* A leaf on an ESP32, by ESP-IDF 5 and its MQTT client (README.md). */
#include <string.h>
#include <time.h>

#include "esp_random.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "mqtt_client.h"
#include "nvs_flash.h"
#include "protocol_examples_common.h"
#include "submerge_leaf.h"

#include "schema.h" /* written by schema_header.py */

#define BASE "submerge/v1/plant/root/" /* of the fleet and the parent */
#define NODE "press-7"
#define GROUP "presses"

extern void read_sensors(double *row); /* yours: one reading of each channel, NAN for none */

static submerge_leaf leaf;
static submerge_leaf_scorer scorer;
static uint8_t out[SUBMERGE_LEAF_ROOM + sizeof schema_text];
static SemaphoreHandle_t turn; /* the client calls from a task of its own */
static volatile int connected; /* else the client would store each report, and send all of them */

static const char *const topics[] = {
    BASE "up/" NODE "/join/" GROUP, BASE "up/" NODE "/report/" GROUP, BASE "down/" NODE "/joined",
    BASE "down/" NODE "/answer",    BASE "hello",                     BASE "model/" GROUP};

static submerge_leaf_now now(void) {
    const double wall = (double)time(NULL);
    const int synced = wall > 1.7e9; /* SNTP has set the clock */
    return (submerge_leaf_now){(double)esp_timer_get_time() * 1e-6, synced ? wall : 0, synced};
}

static void on_event(void *args, esp_event_base_t base, int32_t id, void *data) {
    const esp_mqtt_event_t *event = data;
    submerge_leaf_now at = now();
    xSemaphoreTake(turn, portMAX_DELAY);
    if (id == MQTT_EVENT_CONNECTED) connected = 1, submerge_leaf_linked(&leaf);
    if (id == MQTT_EVENT_DISCONNECTED) connected = 0;
    for (int kind = SUBMERGE_LEAF_JOINED; kind <= SUBMERGE_LEAF_MODEL; kind++) {
        const size_t length = strlen(topics[kind]);
        if (id == MQTT_EVENT_CONNECTED) esp_mqtt_client_subscribe(event->client, topics[kind], 1);
        /* A message in parts is larger than the client's buffer: it is left out. */
        if (id == MQTT_EVENT_DATA && event->data_len == event->total_data_len &&
            (size_t)event->topic_len == length && memcmp(event->topic, topics[kind], length) == 0)
            submerge_leaf_receive(&leaf, kind, (void *)event->data, event->data_len, &at);
    }
    xSemaphoreGive(turn);
}

void app_main(void) {
    const submerge_leaf_config config = {
        .node = NODE, .group = GROUP, .parent = "root", .schema = &schema};
    const esp_mqtt_client_config_t broker = {
        .broker.address.uri = "mqtt://192.168.1.2", .buffer.size = 16384, .buffer.out_size = 8192};
    submerge_leaf_now at = now();
    submerge_leaf_kind kind;
    nvs_flash_init(), esp_netif_init(), esp_event_loop_create_default();
    example_connect(); /* random numbers are true ones once the radio is on */
    const uint64_t seed = (uint64_t)esp_random() << 32 | esp_random();
    turn = xSemaphoreCreateMutex();
    submerge_leaf_start(&leaf, &config, &scorer, seed, &at);
    const esp_mqtt_client_handle_t client = esp_mqtt_client_init(&broker);
    esp_mqtt_client_register_event(client, ESP_EVENT_ANY_ID, on_event, NULL);
    esp_mqtt_client_start(client);
    for (;; vTaskDelay(pdMS_TO_TICKS(1000))) {
        double row[SUBMERGE_LEAF_CHANNELS];
        read_sensors(row);
        xSemaphoreTake(turn, portMAX_DELAY);
        at = now();
        submerge_leaf_learn(&leaf, row, NULL, &at);
        size_t size = submerge_leaf_send(&leaf, out, sizeof out, &kind, &at);
        xSemaphoreGive(turn); /* before the client's lock: it may be waiting for ours */
        if (size && connected)
            esp_mqtt_client_publish(client, topics[kind], (char *)out, size, 1,
                                    kind == SUBMERGE_LEAF_REPORT);
    }
}
