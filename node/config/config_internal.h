/* How rows of the configuration's table are written, and the tables of PET and parallel beams (node/config/config_table_*.c).
 * Private to node/config/config_table*.c. */
#ifndef TOMONODE_NODE_CONFIG_INTERNAL_H
#define TOMONODE_NODE_CONFIG_INTERNAL_H

#include "node/config/config.h"
#include "node/config/config_table.h"

#define AT(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define KEYS(keys) keys, sizeof(keys) / sizeof(keys[0])
#define LIST(type, field) sizeof(struct type), offsetof(struct config, field), offsetof(struct config, n_##field)

extern const struct key_choice config_kinds[];
extern const struct key_choice config_compressions[];

#define CONFIG_SCANNER_KEYS 17
extern const struct config_key config_scanner_keys[CONFIG_SCANNER_KEYS];
#define CONFIG_STATUS_KEYS 7
extern const struct config_key config_status_keys[CONFIG_STATUS_KEYS];

#endif
