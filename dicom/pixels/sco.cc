/* SPDX-License-Identifier: Apache-2.0 */
/* sco.cc - find the bytes of the container in the file, and decode one frame at a time. Only the head, the table and the bytes of
 * one frame are read into memory. */
#include "dicom/pixels/sco.h"

#include <cerrno>
#include <cstring>

#include "dicom/core/internal.hh"
#include "dicom/core/number.hh"
#include "dicom/pixels/decode.hh"
#include "dicom/pixels/sco_container.h"

using namespace tomonode;

constexpr Uint16 group = 0x7e01;
constexpr uint32_t element_type = 0x01, element_content = 0x02, element_data = 0x12;

struct sco {
	SpanList bytes;
	struct sco_container container;
};

/* Return the private block of the creator; 0: none. */
static uint32_t block_of(const struct dicom_item *item)
{
	char text[65];

	for (uint32_t block = 0x10; block <= 0xff; block++)
		if (dicom_get_text(item, DICOM_TAG(group, block), text, sizeof(text), nullptr) == 1 &&
		    strcmp(text, "HOLOGIC, Inc.") == 0)
			return block;
	return 0;
}

/* Get a short text of the block. Its VR may be UN: then it is read as bytes. */
static std::string text_of(const struct dicom_item *root, uint32_t element)
{
	DcmElement *found = find(root, DICOM_TAG(group, block_of(root) << 8 | element));
	Uint8 *bytes = nullptr;
	char text[65] = "";

	if (!found || found->getLength() > 64)
		return "";
	if (found->getVR() != EVR_UN && found->getVR() != EVR_OB)
		return dicom_get_text(root, DICOM_TAG(group, block_of(root) << 8 | element), text, sizeof(text), nullptr) == 1
			       ? text
			       : "";
	if (found->getUint8Array(bytes).bad() || !bytes)
		return "";
	return std::string(trim(std::string_view(reinterpret_cast<char *>(bytes), found->getLength()), true));
}

enum sco_content sco_content_of(const struct dicom_item *root)
{
	enum sco_content content = SCO_NONE;

	guarded(nullptr, "sco_content_of", [&] {
		std::string text = text_of(root, element_type) == "GITTv1.0" ? text_of(root, element_content) : "";

		content = text == "HLXS" ? SCO_SLICES : text == "HLXR" ? SCO_PROJECTIONS : SCO_NONE;
		return 0;
	});
	return content;
}

bool sco_has(const struct dicom_item *root, enum sco_resolution resolution)
{
	uint32_t block = block_of(root);

	return block != 0 && dicom_has(root, DICOM_TAG(group, block << 8 | (uint32_t)resolution));
}

/* List the bytes of the container: the value (7E01,xx12) of each item. */
static int find_bytes(const struct dicom_file *file, uint32_t sequence, SpanList *ret_bytes, struct err *err)
{
	std::vector<ItemValue> values;
	size_t n_items = 0, n = 0;
	int r = layout_item_values(*file->source, file->layout, sequence, &values, &n_items, err);

	if (r < 0)
		return r;
	ret_bytes->source = file->source;
	for (size_t item = 0; item < n_items; item++) {
		size_t before = ret_bytes->spans.size();

		for (; n < values.size() && values[n].item == item; n++)
			if (values[n].tag >> 16 == group && (values[n].tag & 0xff) == element_data)
				ret_bytes->spans.push_back(values[n].span);
		if (ret_bytes->spans.size() != before + 1)
			return err_set(err, EBADMSG, "%s, item %zu: %zu values (7E01,xx12) instead of one",
				       tag_name(sequence).c_str(), item + 1, ret_bytes->spans.size() - before);
	}
	return 0;
}

static int read_bytes(const SpanList &bytes, uint64_t at, void *ret, size_t n, struct err *err)
{
	struct err why = {};

	if (bytes.read(at, ret, n, &why) != n)
		return err_set(err, why.code ? why.code : EIO, "the SCO container cannot be read at byte %llu%s%s",
			       (unsigned long long)at, why.code ? ": " : "", why.msg);
	return 0;
}

static int open_container(const struct dicom_file *file, uint32_t sequence, struct sco *sco, struct err *err)
{
	uint8_t head[SCO_HEAD_SIZE], table[SCO_TABLE_SIZE];
	int r = find_bytes(file, sequence, &sco->bytes, err);
	uint64_t size;

	if (r < 0)
		return r;
	size = sco->bytes.size();
	if (size < SCO_HEAD_SIZE + SCO_TABLE_SIZE)
		return err_set(err, EBADMSG, "%s: an SCO container of %llu bytes; allowed: at least %d",
			       tag_name(sequence).c_str(), (unsigned long long)size, SCO_HEAD_SIZE + SCO_TABLE_SIZE);
	r = read_bytes(sco->bytes, 0, head, sizeof(head), err);
	if (r == 0)
		r = read_bytes(sco->bytes, size - SCO_TABLE_SIZE, table, sizeof(table), err);
	if (r == 0)
		r = sco_container_read(head, table, size, &sco->container, err);
	return r;
}

int sco_open(const struct dicom_file *file, enum sco_resolution resolution, struct sco **ret_sco, struct err *err)
{
	return guarded(err, "sco_open", [&] {
		const struct dicom_item *root = dicom_root(const_cast<struct dicom_file *>(file));
		auto sco = std::make_unique<struct sco>();
		uint32_t tag = DICOM_TAG(group, block_of(root) << 8 | (uint32_t)resolution);
		int r = sco_has(root, resolution) ? open_container(file, tag, sco.get(), err)
						  : err_set(err, EBADMSG, "no images in %s resolution in (7E01,xx%02X)",
							    resolution == SCO_FULL ? "full" : "lower", (unsigned)resolution);

		if (r == 0)
			*ret_sco = sco.release();
		return r;
	});
}

struct sco *sco_close(struct sco *sco)
{
	guarded(nullptr, "sco_close", [&] {
		delete sco;
		return 0;
	});
	return nullptr;
}

const struct dicom_pixel_info *sco_info(const struct sco *sco)
{
	return &sco->container.info;
}

int sco_read_frame(const struct sco *sco, long frame, uint16_t *ret_values, struct err *err)
{
	return guarded(err, "sco_read_frame", [&] {
		const struct sco_container &c = sco->container;
		uint8_t before[SCO_BEFORE_SIZE], after[SCO_AFTER_SIZE];
		int r;

		if (frame < 0 || frame >= c.info.frames)
			return err_set(err, EINVAL, "frame %ld of %ld", frame + 1, c.info.frames);
		sco_container_markers(&c, before, after);
		size_t n = c.offset[frame + 1] - c.offset[frame];
		std::vector<unsigned char> code(sizeof(before) + n + sizeof(after));

		memcpy(code.data(), before, sizeof(before));
		r = read_bytes(sco->bytes, c.offset[frame], code.data() + sizeof(before), n, err);
		memcpy(code.data() + sizeof(before) + n, after, sizeof(after));
		if (r == 0)
			r = decode_jpegls(code, &c.info, ret_values, err);
		if (r < 0)
			err_prefix(err, "frame %ld", frame + 1);
		return r;
	});
}
