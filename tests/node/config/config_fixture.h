/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that load a configuration and check that it is accepted, or refused with the expected problems. */
#ifndef TOMONODE_TESTS_NODE_CONFIG_FIXTURE_H
#define TOMONODE_TESTS_NODE_CONFIG_FIXTURE_H

#include "node/config/config.h"
#include "tests/test.h"

struct problems {
	size_t n;
	char text[64][1024];
};

static inline void keep(void *ctx, const char *problem)
{
	struct problems *p = ctx;

	if (p->n < 64)
		snprintf(p->text[p->n], sizeof(p->text[0]), "%s", problem);
	p->n++;
}

/* Where no file names a spool. */
static inline int set_spool(void **state)
{
	return setenv("TOMONODE_SPOOL", "/spool", 1);
}

TEST_GIVES_BACK(config_free);

/* It is freed when the test ends. */
static inline struct config *good(const char *text)
{
	struct problems p = {0};
	struct config *c = NULL;
	struct err err = {0};

	if (config_parse(text, "t.conf", keep, &p, &c, &err) != 0)
		fail_msg("refused: %s", err.msg);
	assert_int_equal(p.n, 0);
	assert_non_null(c);
	test_later(give_back_config_free, c);
	return c;
}

#endif
