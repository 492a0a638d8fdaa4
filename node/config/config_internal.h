/* SPDX-License-Identifier: Apache-2.0 */
/* Macros for rows of the configuration table. Private to node/config/config_table.c and kind_*.c. */
#ifndef TOMONODE_NODE_CONFIG_INTERNAL_H
#define TOMONODE_NODE_CONFIG_INTERNAL_H

#include "node/config/config.h"
#include "node/config/config_table.h"

/* Rows as in recon/core/keys.h, of the types that the node adds. */
#define REQUIRED NULL /* .fallback of a key without a default */
#define AS_NAME(s, f) .type = KEY_NAME, KEY_FIELD(s, f)
#define AS_NAMES(s, f, each, least, most)                                                                                        \
	.type = KEY_NAMES, KEY_FIELD_OF(s, f, struct config_names), .element = (each), .lo = (least), .hi = (most)
#define AS_AET(s, f) .type = KEY_AET, KEY_FIELD(s, f)
#define AS_HOST(s, f) .type = KEY_HOST, KEY_FIELD(s, f)
#define AS_NETWORK(s, f) .type = KEY_NETWORK, KEY_FIELD(s, f)
#define AS_ADDRESS(s, f) .type = KEY_ADDRESS, KEY_FIELD(s, f)
#define AS_TEXT(s, f, longest) .type = KEY_TEXT, KEY_FIELD(s, f), .hi = (longest)
#define AS_PATH(s, f) .type = KEY_PATH, KEY_FIELD(s, f)
#define AS_DEVICE(s, f) .type = KEY_DEVICE, KEY_FIELD(s, f)

/* Members of a section: KEYS, its keys; LIST, its array of entries in struct config; GROUP, its structure if it is a single
 * group. */
#define KEYS(list) .keys = (list), .n_keys = sizeof(list) / sizeof((list)[0])
#define LIST(s, f)                                                                                                               \
	.list = true, .entry_size = sizeof(struct s), .offset = offsetof(struct config, f),                                      \
	.count = offsetof(struct config, n_##f)
#define GROUP(s, f) .entry_size = sizeof(struct s), .offset = offsetof(struct config, f)

/* clang-format off */
/* The first and the last rows of the protocols of every kind. */
#define CONFIG_PROTOCOL_FIRST(kind_name) \
	{"name", AS_NAME(protocol_conf, name), .fallback = REQUIRED, .flags = KEY_UNDESCRIBED, \
	 .meaning = "name of the protocol in `routes` and `--protocol`"}, \
	{"kind", AS_CHOICE(protocol_conf, kind, config_kinds), .fallback = kind_name, .flags = KEY_UNDESCRIBED, \
	 .meaning = "kind of case that the protocol is for; it decides which keys are allowed"}
#define CONFIG_PROTOCOL_LAST \
	{"steps", AS_NAMES(protocol_conf, steps, KEY_NAME, 0, CONFIG_NAMES_MAX), .fallback = "", .flags = KEY_UNDESCRIBED, \
	 .meaning = "names of own programs that change the volume before it is written, in this order"}, \
	{"compression", AS_CHOICE(protocol_conf, compression, config_compressions), .fallback = "none", .flags = KEY_UNDESCRIBED, \
	 .meaning = "compression of the results' pixels; `jpeg-ls` is lossless"}, \
	{"description", AS_TEXT(protocol_conf, description, 64), .fallback = "", .flags = KEY_UNDESCRIBED, \
	 .meaning = "SeriesDescription of the result; empty: made from the protocol's name"}, \
	{"purpose", AS_TEXT(protocol_conf, purpose, 120), .fallback = "", .flags = KEY_UNDESCRIBED, \
	 .meaning = "a line for people: what the protocol is for; the status page shows it where one is chosen"}
/* The section of one kind's protocols. */
#define CONFIG_PROTOCOLS(rows, text) \
	{"protocols", "protocol", LIST(protocol_conf, protocols), .merged = true, KEYS(rows), .of_kinds = true, .meaning = text}
/* clang-format on */

#define CONFIG_STATUS_KEYS 15
extern const struct key config_status_keys[CONFIG_STATUS_KEYS]; /* config_status.c */
#define CONFIG_ALERTS_KEYS 10
extern const struct key config_alerts_keys[CONFIG_ALERTS_KEYS];
extern const struct key_choice config_kinds[];
extern const struct key_choice config_compressions[];
#define CONFIG_DESTINATION_KEYS 34
extern const struct key config_destination_keys[CONFIG_DESTINATION_KEYS]; /* destination_keys.c */

#endif
