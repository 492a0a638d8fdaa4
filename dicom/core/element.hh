/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of elements (PS3.5 chapter 7) as bytes: tag, value representation, length; and the numbers in them. Without DCMTK. */
#ifndef TOMONODE_DICOM_ELEMENT_HH
#define TOMONODE_DICOM_ELEMENT_HH

#include <cstddef>
#include <cstdint>
#include <string>

namespace tomonode
{

constexpr uint32_t undefined_length = 0xffffffff;
constexpr uint32_t tag_item = 0xfffee000, tag_item_end = 0xfffee00d, tag_sequence_end = 0xfffee0dd;
constexpr uint32_t tag_pixel_data = 0x7fe00010;

inline unsigned be16(const unsigned char *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

inline uint32_t be32(const unsigned char *p)
{
	return (uint32_t)be16(p) << 16 | be16(p + 2);
}

inline unsigned le16(const unsigned char *p)
{
	return (unsigned)p[1] << 8 | p[0];
}

inline uint32_t le32(const unsigned char *p)
{
	return (uint32_t)le16(p + 2) << 16 | le16(p);
}

/* Append a number, little endian. */
void put16(std::string *out, unsigned value);
void put32(std::string *out, uint32_t value);
/* Append the header of an element, little endian; vr "": in implicit VR, or of an item. */
void put_element(std::string *out, uint32_t tag, const char *vr, uint32_t length);

struct ElementHeader {
	uint32_t tag = 0, length = 0;
	char vr[3] = "";      /* "" with implicit VR and for item tags */
	bool vr_known = true; /* false: not in PS3.5 6.2; its length is then read as one of 16 bits */
	unsigned size = 8;    /* bytes of the header: 8 or 12 */
};

/* Read a header from at most n bytes. false: they end within it; all but the length is known if there are 8. */
bool element_header(const unsigned char *p, size_t n, bool explicit_vr, bool big_endian, ElementHeader *ret);

} // namespace tomonode
#endif
