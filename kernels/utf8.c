/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/utf8.h"

size_t utf8_decode(const char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 0;
	uint32_t code = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) /* the terminator fails this test */
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (n == 0 || code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return n;
}
