/* SPDX-License-Identifier: Apache-2.0 */
/* text.cc - convert a text to UTF-8 by the Specific Character Set of its data set. */
#include "dicom/core/dataset.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <dcmtk/dcmdata/dcspchrs.h>

#include "dicom/core/internal.hh"

using namespace tomonode;

constexpr size_t text_max = 4096; /* bytes of a text that is converted; PN has at most 5 x 64 characters in each group */

/* Is the text the same in every character set? Escape sequences, and the 7-bit set of Japan, are not. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7d || *text == '\\')
			return false;
	return true;
}

static int convert_text(const char *text, const char *charset, uint32_t tag, std::string *ret_text, struct err *err)
{
	DcmSpecificCharacterSet converter;
	OFCondition cond;
	OFString out;

	cond = converter.selectCharacterSet(charset);
	if (cond.good())
		cond = converter.convertString(text, out, dictionary_vr(tag) == EVR_PN ? "^=" : "\\");
	if (cond.bad())
		return err_set(err, EBADMSG, "%s: it cannot be converted from the Specific Character Set \"%.64s\": %s",
			       tag_name(tag).c_str(), charset, cond.text());
	ret_text->assign(out.data(), out.size());
	return 1;
}

static int get_utf8(const struct dicom_item *root, uint32_t tag, char *ret_text, size_t size, struct err *err)
{
	char text[text_max], charset[text_max];
	std::string converted;
	int found = dicom_get_text(root, tag, text, sizeof(text), err);

	if (found <= 0)
		return found;
	found = dicom_get_text(root, DICOM_TAG(0x0008, 0x0005), charset, sizeof(charset), err);
	if (found < 0)
		return found;
	converted = text;
	if (!is_plain(text))
		found = convert_text(text, charset, tag, &converted, err);
	if (found < 0)
		return found;
	if (converted.size() >= size)
		return err_set(err, EMSGSIZE, "%s: %zu bytes, more than %zu", tag_name(tag).c_str(), converted.size(),
			       size ? size - 1 : 0);
	memcpy(ret_text, converted.c_str(), converted.size() + 1);
	return 1;
}

int dicom_get_utf8(const struct dicom_item *root, uint32_t tag, char *ret_text, size_t size, struct err *err)
{
	if (size > 0)
		ret_text[0] = '\0';
	return guarded(err, "dicom_get_utf8", [&] { return get_utf8(root, tag, ret_text, size, err); });
}
