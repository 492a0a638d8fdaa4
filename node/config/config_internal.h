/* Macros for rows of the configuration table. Private to node/config/config_table*.c and kind_*.c. */
#ifndef TOMONODE_NODE_CONFIG_INTERNAL_H
#define TOMONODE_NODE_CONFIG_INTERNAL_H

#include "node/config/config.h"
#include "node/config/config_table.h"

#define AT(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define KEYS(keys) keys, sizeof(keys) / sizeof(keys[0])
#define LIST(type, field) sizeof(struct type), offsetof(struct config, field), offsetof(struct config, n_##field)

/* clang-format off */
/* The first and the last rows of the protocols of every kind. */
#define CONFIG_PROTOCOL_FIRST(kind_name) \
	{"name", KEY_NAME, AT(protocol_conf, name), "", 0, 0, NULL, NULL, NULL, KEY_UNDESCRIBED, \
	 "name of the protocol in `routes` and `--protocol`"}, \
	{"kind", KEY_CHOICE, AT(protocol_conf, kind), "", 0, 0, NULL, config_kinds, kind_name, KEY_UNDESCRIBED, \
	 "kind of case that the protocol is for; it decides which keys are allowed"}
#define CONFIG_PROTOCOL_LAST \
	{"compression", KEY_CHOICE, AT(protocol_conf, compression), "", 0, 0, NULL, config_compressions, "none", KEY_UNDESCRIBED, \
	 "compression of the results' pixels; `jpeg-ls` is lossless"}, \
	{"description", KEY_TEXT, AT(protocol_conf, description), "", 0, 64, NULL, NULL, "", KEY_UNDESCRIBED, \
	 "SeriesDescription of the result; empty: made from the protocol's name"}
/* The section of one kind's protocols. */
#define CONFIG_PROTOCOLS(keys, meaning) \
	{"protocols", "protocol", true, true, LIST(protocol_conf, protocols), KEYS(keys), meaning, true}
/* clang-format on */

extern const struct key_choice config_kinds[];
extern const struct key_choice config_compressions[];

#define CONFIG_SCANNER_KEYS 17
extern const struct config_key config_scanner_keys[CONFIG_SCANNER_KEYS];
#define CONFIG_STATUS_KEYS 7
extern const struct config_key config_status_keys[CONFIG_STATUS_KEYS];

#endif
