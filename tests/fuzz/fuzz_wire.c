/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the messages between node and pilot: arbitrary bytes give a message or an error with a reason. A message that is accepted
 * is encoded and decoded to the same bytes; an order in it likewise. The first two bytes are the kind.
 * Run: fuzz_wire -max_len=8192 WORK_FOLDER tests/fuzz/corpus/wire */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/cluster/pilot_case.h"
#include "node/cluster/wire.h"
#include "tests/fuzz/fuzz.h"

static void check_case(const struct wire_message *m)
{
	struct pilot_case c, again;
	struct err err = {0};
	json_t *body;

	if (pilot_case_decode(m->body, m->job, m->attempt, &c, &err) < 0) {
		must(err.code == EBADMSG, "an order is refused without a reason");
		return;
	}
	body = pilot_case_encode(&c);
	must(body && pilot_case_decode(body, m->job, m->attempt, &again, NULL) == 0, "an order is not read again");
	must(pilot_case_files(&c) == pilot_case_files(&again), "other files");
	for (size_t i = 0; i < pilot_case_files(&c); i++) {
		uint64_t bytes;

		must(!strstr(pilot_case_file(&c, i, &bytes), "/.") && pilot_case_file(&c, i, &bytes)[0] != '/',
		     "a name outside the folder");
	}
	json_decref(body);
	pilot_case_clear(&c);
	pilot_case_clear(&again);
}

static void check_outcome(const struct wire_message *m)
{
	uint64_t sum, seen = 0;
	int64_t n = pilot_case_objects(m->body, m->job, &sum, NULL), bytes;
	const char *digest, *name;

	for (int64_t i = 0; i < n; i++) {
		name = pilot_case_object(m->body, (size_t)i, &bytes, &digest);
		must(!strchr(name, '/') && bytes >= 0 && digest, "an object outside the folder");
		must(strlen(name) < 5 || strcmp(name + strlen(name) - 5, ".part") != 0, "the name of a file that is received");
		seen += (uint64_t)bytes;
	}
	must(n <= 0 || seen == sum, "another sum of sizes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_message m = {0}, again = {0};
	struct err err = {0};
	char *text, *twice;
	size_t n, n_twice;

	if (size < 2)
		return 0;
	if (wire_decode((enum wire_kind)(data[0] << 8 | data[1]), (const char *)data + 2, size - 2, &m, &err) < 0) {
		must(err.code == EBADMSG && err.msg[0] && !m.body && !m.offsets, "refused without a reason");
		return 0;
	}
	if (m.kind == WIRE_CASE)
		check_case(&m);
	if (m.kind == WIRE_OUTCOME)
		check_outcome(&m);
	if (m.kind != WIRE_HELLO || m.wire == WIRE_VERSION) {
		must(wire_encode(&m, &text, &n, &err) == 0 || err.code == EMSGSIZE, "not encoded");
		if (err.code == 0) {
			must(wire_decode(m.kind, text, n, &again, NULL) == 0, "not read again");
			must(wire_encode(&again, &twice, &n_twice, NULL) == 0 && n == n_twice && !memcmp(text, twice, n),
			     "other bytes");
			free(text);
			free(twice);
			wire_clear(&again);
		}
	}
	wire_clear(&m);
	return 0;
}
