/* SPDX-License-Identifier: Apache-2.0 */
/* The head and the table of Hologic's SCO container: each value at its limits, and the markers of a JPEG-LS scan. */
#include "dicom/pixels/sco_container.h"
#include "tests/test.h"

static uint8_t head[SCO_HEAD_SIZE], table[SCO_TABLE_SIZE];

static void put(uint8_t *at, uint32_t value, int n)
{
	for (int i = 0; i < n; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* A container of 255 frames of 1000 bytes each, after 64 bytes. */
#define FRAMES 255
#define SIZE (64 + 1000 * FRAMES + SCO_TABLE_SIZE)

static void fill(void)
{
	memset(head, 0xaa, sizeof(head)); /* bytes of unknown meaning are ignored */
	put(head + 20, FRAMES, 2);
	put(head + 24, 1280, 2);
	put(head + 28, 2048, 2);
	head[32] = 14;
	head[36] = 0;
	for (uint32_t i = 0; i <= FRAMES; i++)
		put(table + 4 * i, 64 + 1000 * i, 4);
}

static int container_read(uint64_t size, struct sco_container *c, struct err *err)
{
	memset(err, 0, sizeof(*err));
	return sco_container_read(head, table, size, c, err);
}

TEST(test_read)
{
	struct sco_container c;
	struct err err;

	fill();
	assert_int_equal(container_read(SIZE, &c, &err), 0);
	assert_true(c.info.frames == FRAMES && c.info.columns == 1280 && c.info.rows == 2048);
	assert_true(c.info.bits_stored == 14 && c.info.high_bit == 13 && c.info.bits_allocated == 16 && !c.info.is_signed);
	assert_true(c.offset[0] == 64 && c.offset[FRAMES] == 64 + 1000 * FRAMES);
	put(table, SCO_HEAD_SIZE, 4); /* the smallest offset, the largest number of bits */
	head[32] = 16;
	assert_int_equal(container_read(SIZE, &c, &err), 0);
}

static void refuse(uint64_t size, int code, const char *part)
{
	struct sco_container c;
	struct err err;

	assert_int_equal(container_read(size, &c, &err), -code);
	if (!strstr(err.msg, part))
		fail_msg("'%s' does not hold '%s'", err.msg, part);
	fill();
}

TEST(test_refused)
{
	fill();
	put(head + 20, 0, 2);
	refuse(SIZE, EBADMSG, "0 frames");
	put(head + 20, 256, 2);
	refuse(SIZE, EBADMSG, "256 frames");
	put(head + 24, 0, 2);
	refuse(SIZE, EBADMSG, "0 columns");
	put(head + 28, 0, 2);
	refuse(SIZE, EBADMSG, "0 rows");
	put(head + 24, 65535, 2);
	put(head + 28, 4097, 2);
	refuse(SIZE, EFBIG, "65535 columns and 4097 rows");
	head[32] = 1;
	refuse(SIZE, EBADMSG, "1 bits");
	head[32] = 17;
	refuse(SIZE, EBADMSG, "17 bits");
	head[36] = 1;
	refuse(SIZE, ENOTSUP, "NEAR is 1");
	put(table, SCO_HEAD_SIZE - 1, 4);
	refuse(SIZE, EBADMSG, "offset 0 of 255 is 36; allowed: 37");
	put(table + 8, 64 + 1000, 4); /* equal to the one before */
	refuse(SIZE, EBADMSG, "offset 2 of 255 is 1064; allowed: 1065");
	put(table + 8, 0xffffffff, 4);
	refuse(SIZE, EBADMSG, "offset 2 of 255 is 4294967295");
	refuse(SIZE - 1, EBADMSG, "offset 255 of 255"); /* it would be in the table */
	refuse(SCO_TABLE_SIZE - 1, EBADMSG, "offset 0 of 255");
	put(head + 20, 1, 2);
	put(table + 4, 64 + SCO_FRAME_MAX + 1, 4);
	refuse((uint64_t)2 * SCO_FRAME_MAX, EFBIG, "frame 1 of the SCO container has 536870913 bytes");
}

TEST(test_markers)
{
	static const uint8_t expected[] = {0xff, 0xd8, 0xff, 0xf7, 0, 11, 14, 8, 0, 5, 0, 1, 1,
					   0x11, 0,    0xff, 0xda, 0, 8,  1,  1, 0, 0, 0, 0};
	uint8_t before[SCO_BEFORE_SIZE], after[SCO_AFTER_SIZE];
	struct sco_container c;
	struct err err;

	fill();
	assert_int_equal(container_read(SIZE, &c, &err), 0);
	sco_container_markers(&c, before, after);
	assert_int_equal(sizeof(expected), SCO_BEFORE_SIZE);
	assert_memory_equal(before, expected, sizeof(expected));
	assert_true(after[0] == 0xff && after[1] == 0xd9);
}
