/* SPDX-License-Identifier: Apache-2.0 */
/* An Interfile header of projections, line by line. */
#ifndef TOMONODE_TESTS_NODE_INTERFILE_FIXTURE_H
#define TOMONODE_TESTS_NODE_INTERFILE_FIXTURE_H

#include "node/config/config.h"
#include "node/format/interfile.h"
#include "tests/test.h"

/* 3 rings; segments of ring differences -1 .. 1 (5 planes) and 2 (1 plane), which the file counts from the other end */
#define GOOD                                                                                                                     \
	"!INTERFILE  :=\n"                                                                                                       \
	"name of data file := data.s\n"                                                                                          \
	"!type of data := PET\n"                                                                                                 \
	"imagedata byte order := LITTLEENDIAN\n"                                                                                 \
	"!PET data type := Emission\n"                                                                                           \
	"applied corrections := {arc correction}\n"                                                                              \
	"!number format := float\n"                                                                                              \
	"!number of bytes per pixel := 4\n"                                                                                      \
	"number of dimensions := 4\n"                                                                                            \
	"matrix axis label [4] := segment\n"                                                                                     \
	"!matrix size [4] := 2\n"                                                                                                \
	"matrix axis label [3] := view\n"                                                                                        \
	"!matrix size [3] := 4\n"                                                                                                \
	"matrix axis label [2] := axial coordinate\n"                                                                            \
	"!matrix size [2] := { 5,1}\n"                                                                                           \
	"matrix axis label [1] := tangential coordinate\n"                                                                       \
	"!matrix size [1] := 3\n"                                                                                                \
	"minimum ring difference per segment := { -1,-2}\n"                                                                      \
	"maximum ring difference per segment := { 1,-2}\n"                                                                       \
	"Scanner type := Bench\n"                                                                                                \
	"Number of rings := 3\n"                                                                                                 \
	"Number of detectors per ring := 16\n"                                                                                   \
	"Inner ring diameter (cm) := 20\n"                                                                                       \
	"Average depth of interaction (cm) := 0.7\n"                                                                             \
	"Distance between rings (cm) := 0.654\n"                                                                                 \
	"Default bin size (cm) := 0.4\n"                                                                                         \
	"View offset (degrees) := 2.5\n"                                                                                         \
	"end scanner parameters:=\n"                                                                                             \
	"effective central bin size (cm) := 0.3\n"                                                                               \
	"image scaling factor[1] := 1\n"                                                                                         \
	"data offset in bytes[1] := 0\n"                                                                                         \
	"number of time frames := 1\n"                                                                                           \
	"!END OF INTERFILE :=\n"

static inline int parse(const char *text, struct interfile *ret, struct err *err)
{
	memset(err, 0, sizeof(*err));
	memset(ret, 0, sizeof(*ret));
	return interfile_parse(text, strlen(text), ret, err);
}

TEST_GIVES_BACK(interfile_clear);

/* What it holds is freed when the test ends. */
static inline void must_parse(const char *text, struct interfile *ret)
{
	struct err err;

	if (parse(text, ret, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
	test_later(give_back_interfile_clear, take_copy(ret, sizeof(*ret)));
}

/* GOOD with each first text replaced by the second. */
#define SWAPS 4
static inline const char *with(const char *const swaps[SWAPS][2])
{
	static char text[8192], before[8192];

	snprintf(text, sizeof(text), "%s", GOOD);
	for (int i = 0; i < SWAPS && swaps[i][0]; i++) {
		const char *at;

		memcpy(before, text, sizeof(before));
		at = strstr(before, swaps[i][0]);
		if (!at)
			fail_msg("no \"%s\" in the header", swaps[i][0]);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - before), before, swaps[i][1], at + strlen(swaps[i][0]));
	}
	return text;
}
#define WITH(...) with((const char *const[SWAPS][2]){__VA_ARGS__})

#endif
