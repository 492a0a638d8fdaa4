/* SPDX-License-Identifier: Apache-2.0 */
/* Another result of the same images, with these changes: part of a job, of its `opened` event, and of the order that a worker or a
 * pilot gets. */
#ifndef TOMONODE_NODE_OTHER_RESULT_H
#define TOMONODE_NODE_OTHER_RESULT_H

#include <jansson.h>

#include "node/config/config.h"

#define OTHER_SETTINGS_SIZE 900 /* bytes of all settings, as a JSON array */
#define OTHER_RESULT_TEXT (CONFIG_NAME_SIZE + OTHER_SETTINGS_SIZE)

struct other_result {
	int64_t of;	 /* id of the first job of these images; 0: this is the first, whose protocol its route gives */
	int number;	 /* among the results of these images: 1, 2, ... */
	int64_t redo_of; /* id of the job that a person had reconstructed again as this one; 0: none */
	char protocol[CONFIG_NAME_SIZE]; /* "": of the first job */
	char related[65];		 /* of a redo: Series Instance UID of the earlier result; "": none */
	char *settings;			 /* of a redo: JSON array of "KEY=VALUE" for the protocol; NULL: none */
};

/* Read the members of an `opened` event. EBADMSG: it is of another result, but has no protocol. ENOMEM. In both *ret stays. */
int other_result_read(const json_t *opening, struct other_result *ret);
/* Set or delete these members. */
void other_result_write(const struct other_result *r, json_t *opening);
void other_result_clear(struct other_result *r);
/* Write a protocol with settings (as above; NULL: none): "dbt-osem, voxel=2". Returns ret_text. */
const char *other_result_text(const char *protocol, const char *settings, char ret_text[OTHER_RESULT_TEXT]);
/* Apply settings (as above; NULL or "": none) to a protocol. EINVAL. */
int other_result_apply(struct protocol_conf *protocol, const char *settings, struct err *err);

#endif
