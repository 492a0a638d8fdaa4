/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/core/element.hh"

#include <algorithm>
#include <cstring>

namespace tomonode
{

/* Does the header of this VR have two reserved bytes and a 32-bit length (PS3.5 table 7.1-1)? Other VRs have 16 bits. */
static bool vr_is_long(const char *vr)
{
	static const char *const names[] = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"};

	return std::any_of(std::begin(names), std::end(names), [vr](const char *n) { return strcmp(n, vr) == 0; });
}

static bool vr_is_short(const char *vr)
{
	static const char *const names[] = {"AE", "AS", "AT", "CS", "DA", "DS", "DT", "FD", "FL", "IS", "LO",
					    "LT", "PN", "SH", "SL", "SS", "ST", "TM", "UI", "UL", "US"};

	return std::any_of(std::begin(names), std::end(names), [vr](const char *n) { return strcmp(n, vr) == 0; });
}

void put16(std::string *out, unsigned value)
{
	out->push_back((char)(value & 0xff));
	out->push_back((char)(value >> 8 & 0xff));
}

void put32(std::string *out, uint32_t value)
{
	put16(out, value & 0xffff);
	put16(out, value >> 16);
}

void put_element(std::string *out, uint32_t tag, const char *vr, uint32_t length)
{
	put16(out, tag >> 16);
	put16(out, tag & 0xffff);
	out->append(vr);
	if (vr_is_long(vr))
		put16(out, 0);
	if (vr[0] && !vr_is_long(vr))
		put16(out, length);
	else
		put32(out, length);
}

bool element_header(const unsigned char *p, size_t n, bool explicit_vr, bool big_endian, ElementHeader *ret)
{
	auto get16 = big_endian ? be16 : le16;
	auto get32 = big_endian ? be32 : le32;

	*ret = {};
	if (n < 8)
		return false;
	ret->tag = (uint32_t)get16(p) << 16 | get16(p + 2);
	if (!explicit_vr || ret->tag >> 16 == 0xfffe) {
		ret->length = get32(p + 4);
		return true;
	}
	ret->vr[0] = (char)p[4];
	ret->vr[1] = (char)p[5];
	if (!vr_is_long(ret->vr)) {
		ret->vr_known = vr_is_short(ret->vr);
		ret->length = get16(p + 6);
		return true;
	}
	ret->size = 12;
	ret->length = n < 12 ? 0 : get32(p + 8);
	return n >= 12;
}

} // namespace tomonode
