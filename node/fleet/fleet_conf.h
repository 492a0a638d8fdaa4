/* SPDX-License-Identifier: Apache-2.0 */
/* What pilots of Slurm need to know, from the configuration. */
#ifndef TOMONODE_NODE_FLEET_CONF_H
#define TOMONODE_NODE_FLEET_CONF_H

#include "node/config/config.h"
#include "node/fleet/slurm.h"

struct slurm_options fleet_conf_options(const struct slurm_conf *slurm);
/* HOST:PORT under which pilots reach the node. */
int fleet_conf_address(const struct config *config, char *ret_text, size_t size, struct err *err);
/* Return the folder of the spool if the pilots share it; "": they do not. */
const char *fleet_conf_shared_spool(const struct config *config);
/* Make a new id of a pilot, with random digits. */
int fleet_conf_new_id(char ret_id[FLEET_ID_SIZE], struct err *err);
bool fleet_conf_is_id(const char *text); /* true: an id that fleet_conf_new_id() could have made */
/* Have Slurm check whether it would run a pilot; for `tomonode check`. Returns FLEET_UP, or the reason with a sentence. */
enum fleet_controller fleet_conf_check(const struct config *config, char ret_text[FLEET_TEXT_SIZE]);

#endif
