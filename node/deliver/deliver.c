/* SPDX-License-Identifier: Apache-2.0 */
#include "node/deliver/deliver.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

struct meaning {
	uint16_t value, mask;
	enum deliver_outcome outcome;
	const char *text;
};

/* The first row that matches is used. */
static const struct meaning meanings[] = {
	{0x0000, 0xffff, DELIVER_STORED, "stored"},
	{0x0111, 0xffff, DELIVER_STORED, "the peer has this instance already"},
	{0x0107, 0xffff, DELIVER_STORED, "stored, with a list of attributes that it reports as wrong"},
	{0x0116, 0xffff, DELIVER_STORED, "stored, with an attribute value out of range"},
	{0xb000, 0xffff, DELIVER_STORED, "stored, with elements coerced"},
	{0xb006, 0xffff, DELIVER_STORED, "stored, with elements discarded"},
	{0xb007, 0xffff, DELIVER_STORED, "stored, although the data set does not match its class"},
	{0xb000, 0xf000, DELIVER_STORED, "stored, with a warning"},
	{0xa700, 0xff00, DELIVER_TRANSIENT, "the peer is out of resources"},
	{0xa900, 0xff00, DELIVER_PERMANENT, "the data set does not match its class"},
	{0xc000, 0xf000, DELIVER_PERMANENT, "the peer cannot understand the object"},
	{0x0122, 0xffff, DELIVER_PERMANENT, "the peer does not support this class"},
	{0x0124, 0xffff, DELIVER_PERMANENT, "not authorised"},
	{0x0117, 0xffff, DELIVER_PERMANENT, "the peer reports an invalid instance UID"},
	{0x0106, 0xffff, DELIVER_PERMANENT, "the peer reports an invalid attribute value"},
	{0x0120, 0xffff, DELIVER_PERMANENT, "the peer reports a missing attribute"},
	{0x0121, 0xffff, DELIVER_PERMANENT, "the peer reports a missing attribute value"},
	{0x0118, 0xffff, DELIVER_PERMANENT, "the peer does not know this class"},
	{0x0211, 0xffff, DELIVER_PERMANENT, "the peer does not know C-STORE"},
	{0x0110, 0xffff, DELIVER_TRANSIENT, "the peer failed in processing"},
	{0xfe00, 0xffff, DELIVER_TRANSIENT, "the peer cancelled"},
};

enum deliver_outcome deliver_classify(uint16_t status, const char **ret_meaning)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if ((status & meanings[i].mask) == meanings[i].value) {
			*ret_meaning = meanings[i].text;
			return meanings[i].outcome;
		}
	*ret_meaning = "a status that the standard does not name for C-STORE";
	return DELIVER_TRANSIENT;
}

void deliver_reason(const char *meaning, const char *comment, char *ret, size_t size)
{
	snprintf(ret, size, comment[0] ? "%s; its comment: \"%s\"" : "%s", meaning, comment);
}

enum deliver_outcome deliver_classify_error(int code)
{
	return code == ENOTSUP ? DELIVER_PERMANENT : DELIVER_TRANSIENT;
}

bool deliver_needs_operator(int code)
{
	return code == EACCES || code == EKEYREJECTED || code == ENOKEY || code == EPROTONOSUPPORT;
}
