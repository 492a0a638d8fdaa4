/* SPDX-License-Identifier: Apache-2.0 */
/* part10.cc - encode a data set as the bytes of a file (PS3.10 7.1).
 *
 * The meta header is written here, because DCMTK would write its own implementation UID into it. DCMTK encodes the data set, with
 * explicit lengths of sequences and items. */
#include "dicom/core/part10.hh"

#include <cerrno>
#include <cstring>

#include "dicom/core/consumer.hh"
#include "dicom/core/element.hh"
#include "dicom/core/internal.hh"

#include <dcmtk/dcmdata/dcwcache.h>

namespace tomonode
{

namespace
{

/* Collects the bytes from the encoder. */
class StringConsumer : public Consumer
{
      public:
	explicit StringConsumer(std::string *bytes) : bytes_(bytes)
	{
	}
	offile_off_t write(const void *buf, offile_off_t n) override
	{
		bytes_->append(static_cast<const char *>(buf), (size_t)n);
		return n;
	}

      private:
	std::string *bytes_;
};

class StringStream : public DcmOutputStream
{
      public:
	explicit StringStream(std::string *bytes) : DcmOutputStream(&consumer_), consumer_(bytes)
	{
	}

      private:
	StringConsumer consumer_;
};

} // namespace

/* Append an element of the meta header; text is padded to an even length as its VR requires. */
static void put_meta(std::string *out, unsigned element, const char *vr, std::string value)
{
	if (value.size() & 1)
		value.push_back(strcmp(vr, "SH") == 0 ? ' ' : '\0');
	put_element(out, 0x00020000 | element, vr, (uint32_t)value.size());
	out->append(value);
}

int dataset_bytes(struct dicom_file *file, bool implicit, std::string *ret_bytes, struct err *err)
{
	StringStream stream(ret_bytes);
	DcmWriteCache cache;

	file->dataset.transferInit();
	OFCondition cond = file->dataset.write(stream, implicit ? EXS_LittleEndianImplicit : EXS_LittleEndianExplicit,
					       EET_ExplicitLength, &cache, EGL_withoutGL, EPD_withoutPadding);
	file->dataset.transferEnd();
	return cond.bad() ? err_set(err, EINVAL, "the data set cannot be encoded: %s", cond.text()) : 0;
}

int part10_bytes(struct dicom_file *file, const char *transfer_syntax, std::string *ret_bytes, struct err *err)
{
	char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE];
	std::string meta, out(128, '\0');
	int r;

	r = dicom_get_text(dicom_root(file), DICOM_TAG(0x0008, 0x0016), sop_class, sizeof(sop_class), err);
	if (r < 0)
		return r;
	if (r > 0)
		r = dicom_get_text(dicom_root(file), DICOM_TAG(0x0008, 0x0018), sop_instance, sizeof(sop_instance), err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, EINVAL,
			       "a data set without (0008,0016) SOPClassUID or (0008,0018) SOPInstanceUID cannot be a file");
	put_meta(&meta, 0x0001, "OB", std::string("\0\1", 2));
	put_meta(&meta, 0x0002, "UI", sop_class);
	put_meta(&meta, 0x0003, "UI", sop_instance);
	put_meta(&meta, 0x0010, "UI", transfer_syntax);
	put_meta(&meta, 0x0012, "UI", DICOM_IMPLEMENTATION_CLASS);
	put_meta(&meta, 0x0013, "SH", DICOM_IMPLEMENTATION_NAME);
	out += "DICM";
	std::string length;
	put32(&length, (uint32_t)meta.size());
	put_meta(&out, 0x0000, "UL", length);
	out += meta;

	r = dataset_bytes(file, false, &out, err);
	if (r < 0)
		return r;
	*ret_bytes = std::move(out);
	return 0;
}

} // namespace tomonode
