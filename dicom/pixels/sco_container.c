/* SPDX-License-Identifier: Apache-2.0 */
/* sco_container.c - see sco_container.h. */
#include "dicom/pixels/sco_container.h"

#include <errno.h>
#include <string.h>

static uint32_t read_little(const uint8_t *p, size_t n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static int read_head(const uint8_t head[SCO_HEAD_SIZE], struct dicom_pixel_info *ret, struct err *err)
{
	struct dicom_pixel_info info = {
		.frames = (long)read_little(head + 20, 2),
		.columns = (long)read_little(head + 24, 2),
		.rows = (long)read_little(head + 28, 2),
		.bits_allocated = 16,
		.bits_stored = head[32],
		.high_bit = head[32] - 1,
	};

	if (info.frames < 1 || info.frames > SCO_FRAMES_MAX)
		return err_set(err, EBADMSG, "the SCO container has %ld frames; allowed: 1 to %d", info.frames, SCO_FRAMES_MAX);
	if (info.columns < 1 || info.rows < 1)
		return err_set(err, EBADMSG, "the SCO container has frames of %ld columns and %ld rows", info.columns, info.rows);
	if ((uint64_t)info.columns * (uint64_t)info.rows * 2 > SCO_FRAME_MAX)
		return err_set(err, EFBIG, "the SCO container has frames of %ld columns and %ld rows: more than %u bytes",
			       info.columns, info.rows, SCO_FRAME_MAX);
	if (info.bits_stored < 2 || info.bits_stored > 16)
		return err_set(err, EBADMSG, "the SCO container has values of %d bits; allowed: 2 to 16", info.bits_stored);
	if (head[36] > 0)
		return err_set(err, ENOTSUP,
			       "the SCO container is compressed with loss: NEAR is %d, so that its values are not those of the "
			       "detector",
			       head[36]);
	*ret = info;
	return 0;
}

int sco_container_read(const uint8_t head[SCO_HEAD_SIZE], const uint8_t table[SCO_TABLE_SIZE], uint64_t size,
		       struct sco_container *ret, struct err *err)
{
	struct sco_container c;
	uint64_t end = size < SCO_TABLE_SIZE ? 0 : size - SCO_TABLE_SIZE, last = SCO_HEAD_SIZE;
	int rc = read_head(head, &c.info, err);

	for (long i = 0; rc == 0 && i <= c.info.frames; i++) {
		c.offset[i] = read_little(table + 4 * i, 4);
		if (c.offset[i] < last || c.offset[i] > end)
			return err_set(err, EBADMSG,
				       "the SCO container has %llu bytes and offset %ld of %ld is %u; allowed: %llu to %llu",
				       (unsigned long long)size, i, c.info.frames, c.offset[i], (unsigned long long)last,
				       (unsigned long long)end);
		if (i > 0 && c.offset[i] - c.offset[i - 1] > SCO_FRAME_MAX)
			return err_set(err, EFBIG, "frame %ld of the SCO container has %u bytes; allowed: %u", i,
				       c.offset[i] - c.offset[i - 1], SCO_FRAME_MAX);
		last = (uint64_t)c.offset[i] + 1; /* a frame has at least a byte */
	}
	if (rc == 0)
		*ret = c;
	return rc;
}

void sco_container_markers(const struct sco_container *c, uint8_t ret_before[SCO_BEFORE_SIZE], uint8_t ret_after[SCO_AFTER_SIZE])
{
	const uint8_t before[SCO_BEFORE_SIZE] = {
		0xff,
		0xd8, /* start of image */
		0xff,
		0xf7,
		0,
		11,
		(uint8_t)c->info.bits_stored, /* start of frame: length, precision */
		(uint8_t)(c->info.rows >> 8),
		(uint8_t)c->info.rows, /* lines */
		(uint8_t)(c->info.columns >> 8),
		(uint8_t)c->info.columns, /* samples of a line */
		1,
		1,
		0x11,
		0, /* one component, number 1, not subsampled */
		0xff,
		0xda,
		0,
		8,
		1,
		1,
		0,
		0,
		0,
		0, /* start of scan: NEAR 0, not interleaved */
	};
	const uint8_t after[SCO_AFTER_SIZE] = {0xff, 0xd9}; /* end of image */

	memcpy(ret_before, before, sizeof(before));
	memcpy(ret_after, after, sizeof(after));
}
