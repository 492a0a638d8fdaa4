/* SPDX-License-Identifier: Apache-2.0 */
/* content.cc - attributes are compared as they are in Implicit VR Little Endian, whose bytes do not depend on the transfer syntax
 * of the file, by their digest; pixels frame by frame. Group lengths are left out. */
#include "dicom/pixels/content.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

#include "dicom/core/bulk.h"
#include "dicom/core/consumer.hh"
#include "dicom/core/internal.hh"
#include "dicom/pixels/pixels.h"

#include <dcmtk/dcmdata/dcwcache.h>

using namespace tomonode;

constexpr uint32_t TAG_OF_PIXELS = 0x7FE00010;

namespace
{

class DigestConsumer : public Consumer
{
      public:
	offile_off_t write(const void *buf, offile_off_t n) override
	{
		dicom_digest_add(digest_.get(), buf, (size_t)n);
		return n;
	}
	void hex(char ret_hex[65])
	{
		dicom_digest_hex(digest_.get(), ret_hex);
	}
	bool works() const
	{
		return digest_ != nullptr;
	}

      private:
	std::unique_ptr<struct dicom_digest, decltype(&dicom_digest_free)> digest_{dicom_digest_new(), dicom_digest_free};
};

class DigestStream : public DcmOutputStream
{
      public:
	explicit DigestStream(DigestConsumer *consumer) : DcmOutputStream(consumer)
	{
	}
};

using File = std::unique_ptr<struct dicom_file, decltype(&dicom_close)>;

} // namespace

static int open_file(const char *path, File *ret_file, struct err *err)
{
	struct dicom_file *file = nullptr;
	int r = dicom_open(path, &file, err);

	ret_file->reset(file);
	return r;
}

/* Digest each attribute but pixel data. */
static int digest_attributes(struct dicom_file *file, std::map<uint32_t, std::string> *ret_digests, struct err *err)
{
	DcmWriteCache cache;
	char hex[65];

	for (unsigned long i = 0; i < file->dataset.card(); i++) {
		DcmElement *e = file->dataset.getElement(i);
		DigestConsumer consumer;
		DigestStream stream(&consumer);

		if (!consumer.works())
			return err_set(err, ENOMEM, "no memory for a digest");
		if (e->getTag() == DCM_PixelData || e->getETag() == 0)
			continue;
		e->transferInit();
		OFCondition cond = e->write(stream, EXS_LittleEndianImplicit, EET_ExplicitLength, &cache);
		e->transferEnd();
		if (cond.bad())
			return err_set(err, EBADMSG, "the data set cannot be encoded: %s", cond.text());
		consumer.hex(hex);
		(*ret_digests)[(uint32_t)e->getGTag() << 16 | e->getETag()] = hex;
	}
	return 0;
}

/* Write the names of the attributes that one has and the other has not, or with another value. Returns their number. */
static size_t name_differences(std::map<uint32_t, std::string> a, const std::map<uint32_t, std::string> &b, char *ret,
			       size_t size)
{
	size_t n = 0, i = 0;

	for (auto &[tag, digest] : b) {
		auto same = a.find(tag);

		if (same != a.end() && same->second == digest)
			a.erase(same);
		else
			a[tag] = digest;
	}
	for (auto at = a.begin(); at != a.end() && i < DICOM_CONTENT_NAMES && n < size; at++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i++ ? ", " : "", tag_name(at->first).c_str());
	if (a.size() > DICOM_CONTENT_NAMES && n < size)
		snprintf(ret + n, size - n, " and %zu more", a.size() - DICOM_CONTENT_NAMES);
	return a.size();
}

static bool same_info(const struct dicom_pixel_info &a, const struct dicom_pixel_info &b)
{
	return a.rows == b.rows && a.columns == b.columns && a.frames == b.frames && a.bits_stored == b.bits_stored &&
	       a.is_signed == b.is_signed;
}

namespace
{

/* The pixels of both files, read side by side. */
class Pixels
{
      public:
	Pixels(struct dicom_file *older, struct dicom_file *newer, double seconds)
	    : older_(older), newer_(newer), until_(clock() + (clock_t)(seconds * CLOCKS_PER_SEC))
	{
	}
	/* Both have pixels of one format; else *ret_content is the verdict. */
	bool begin(enum dicom_content *ret_content)
	{
		bool broken = dicom_pixels_info(older_, &info_, nullptr) < 0;

		if (dicom_pixels_info(newer_, &other_, nullptr) < 0)
			*ret_content = DICOM_CONTENT_DIFFERS;
		else if (broken)
			*ret_content = DICOM_CONTENT_REPAIRS;
		else if (!same_info(info_, other_))
			*ret_content = DICOM_CONTENT_DIFFERS;
		else
			return true;
		return false;
	}
	/* equal: all attributes are equal, so that equal pixels are the same content. */
	enum dicom_content compare(bool equal, bool *ret_pixels_differ)
	{
		size_t n = (size_t)info_.rows * (size_t)info_.columns;
		std::vector<uint16_t> a(n), b(n);

		for (long k = 0; k < info_.frames; k++) {
			if (clock() > until_ || dicom_read_frame(newer_, k, b.data(), nullptr) < 0)
				return DICOM_CONTENT_DIFFERS;
			if (dicom_read_frame(older_, k, a.data(), nullptr) < 0)
				return newer_is_whole(k + 1, &b) ? DICOM_CONTENT_REPAIRS : DICOM_CONTENT_DIFFERS;
			*ret_pixels_differ = *ret_pixels_differ || a != b;
		}
		return equal && !*ret_pixels_differ ? DICOM_CONTENT_SAME : DICOM_CONTENT_DIFFERS;
	}

      private:
	bool newer_is_whole(long first, std::vector<uint16_t> *values)
	{
		for (long k = first; k < info_.frames; k++)
			if (clock() > until_ || dicom_read_frame(newer_, k, values->data(), nullptr) < 0)
				return false;
		return true;
	}
	struct dicom_file *older_, *newer_;
	struct dicom_pixel_info info_ = {}, other_ = {};
	clock_t until_;
};

} // namespace

int dicom_compare_content(const char *older, const char *newer, double seconds, enum dicom_content *ret_content, char *ret_where,
			  size_t size, struct err *err)
{
	return guarded(err, "dicom_compare_content", [&] {
		File a(nullptr, dicom_close), b(nullptr, dicom_close);
		std::map<uint32_t, std::string> first, second;
		int r = open_file(older, &a, err);

		r = r < 0 ? r : open_file(newer, &b, err);
		r = r < 0 ? r : digest_attributes(a.get(), &first, err);
		r = r < 0 ? r : digest_attributes(b.get(), &second, err);
		if (r < 0)
			return r;
		char names[300] = "";
		bool equal = name_differences(first, second, names, sizeof(names)) == 0, differ = false;
		snprintf(ret_where, size, "%s", names);
		if (!a->layout.has_pixels && !b->layout.has_pixels) {
			*ret_content = equal ? DICOM_CONTENT_SAME : DICOM_CONTENT_DIFFERS;
			return 0;
		}
		Pixels pixels(a.get(), b.get(), seconds);
		if (pixels.begin(ret_content))
			*ret_content = pixels.compare(equal, &differ);
		if (differ || (equal && *ret_content != DICOM_CONTENT_SAME))
			snprintf(ret_where, size, "%s%s%s", tag_name(TAG_OF_PIXELS).c_str(), equal ? "" : ", ", names);
		return 0;
	});
}
