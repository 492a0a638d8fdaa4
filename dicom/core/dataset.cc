/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.cc - life cycle of a data set: open, new, close.
 *
 * Opening first checks the structure of the file (layout.cc), then parses everything except pixel data with DCMTK. Values larger
 * than `eager_size` are read from the file only when they are requested. */
#include "dicom/core/dataset.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/core/internal.hh"

using namespace tomonode;

constexpr Uint32 eager_size = 4096; /* bytes; larger values are loaded on request */

static int open_regular(const char *path, std::shared_ptr<const Source> *ret_source, struct err *err)
{
	struct stat st;
	struct Descriptor { /* closes the file on every way out, also when memory is short */
		int fd;
		~Descriptor()
		{
			if (fd >= 0)
				close(fd);
		}
	};

	/* Check the kind of file before opening it, because opening a device or a FIFO can have effects. */
	if (stat(path, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EBADMSG, "a %s, not a regular file", S_ISDIR(st.st_mode) ? "folder" : "special file");
	Descriptor file{open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	if (file.fd < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (fstat(file.fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EBADMSG, "not a regular file");
	if (st.st_size == 0)
		return err_set(err, EBADMSG, "an empty file");
	*ret_source = std::make_shared<const Source>(file.fd, (uint64_t)st.st_size);
	file.fd = -1; /* the source has it */
	return 0;
}

static int parse_dataset(struct dicom_file *file, struct err *err)
{
	const Layout &layout = file->layout;
	auto list = std::make_shared<SpanList>();
	E_TransferSyntax xfer = layout.big_endian    ? EXS_BigEndianExplicit
				: layout.explicit_vr ? EXS_LittleEndianExplicit
						     : EXS_LittleEndianImplicit;

	/* A data set may contain an icon image of encapsulated pixel data: DCMTK parses it only with an encapsulated syntax. */
	if (layout.encapsulated) {
		xfer = DcmXfer(layout.transfer_syntax.c_str()).getXfer();
		if (xfer == EXS_Unknown)
			xfer = EXS_JPEG2000;
	}
	list->source = file->source;
	if (layout.has_pixels) {
		list->spans.push_back({layout.dataset, layout.pixel_element - layout.dataset});
		list->spans.push_back({layout.pixel_end, layout.end - layout.pixel_end});
	} else {
		list->spans.push_back({layout.dataset, layout.end - layout.dataset});
	}
	if (list->size() > 0) {
		SpanStream stream(list, 0);

		file->dataset.transferInit();
		OFCondition cond = file->dataset.read(stream, xfer, EGL_noChange, eager_size);
		file->dataset.transferEnd();
		if (stream.error().code != 0)
			return err_set(err, stream.error().code, "the data set cannot be read: %s", stream.error().msg);
		if (cond.bad() && cond != EC_EndOfStream)
			return err_set(err, EBADMSG, "the data set cannot be parsed: %s (at byte %llu of its header)",
				       cond.text(), (unsigned long long)stream.tell());
	}
	if (layout.has_pixels) {
		auto placeholder = std::make_unique<DcmPixelData>(DCM_PixelData);
		OFCondition cond = file->dataset.insert(placeholder.get());

		if (cond.bad())
			return err_set(err, EBADMSG, "(7FE0,0010) PixelData: %s", cond.text());
		placeholder.release();
	}
	return 0;
}

int dicom_open(const char *path, struct dicom_file **ret_file, struct err *err)
{
	return guarded(err, "dicom_open", [&] {
		auto file = std::make_unique<struct dicom_file>();
		int r;

		r = open_regular(path, &file->source, err);
		if (r < 0)
			return r;
		r = layout_read(&file->source, path, &file->layout, err);
		if (r < 0)
			return r;
		file->transfer_syntax = file->layout.transfer_syntax;
		r = parse_dataset(file.get(), err);
		if (r < 0)
			return r;
		*ret_file = file.release();
		return 0;
	});
}

int dicom_new(const char *sop_class, const char *sop_instance, struct dicom_file **ret_file, struct err *err)
{
	return guarded(err, "dicom_new", [&] {
		auto file = std::make_unique<struct dicom_file>();
		struct dicom_item *root = item_of(&file->dataset);
		int r;

		if (!uid_valid(sop_class) || !uid_valid(sop_instance))
			return err_set(err, EINVAL, "SOP class \"%.64s\" or instance \"%.64s\" is not a UID", sop_class,
				       sop_instance);
		file->transfer_syntax = UID_LittleEndianExplicitTransferSyntax;
		r = dicom_put_text(root, DICOM_TAG(0x0008, 0x0016), sop_class, err);
		if (r < 0)
			return r;
		r = dicom_put_text(root, DICOM_TAG(0x0008, 0x0018), sop_instance, err);
		if (r < 0)
			return r;
		*ret_file = file.release();
		return 0;
	});
}

struct dicom_file *dicom_close(struct dicom_file *file)
{
	guarded(nullptr, "dicom_close", [&] {
		delete file;
		return 0;
	});
	return nullptr;
}

struct dicom_item *dicom_root(struct dicom_file *file)
{
	return item_of(&file->dataset);
}

const char *dicom_transfer_syntax(const struct dicom_file *file)
{
	return file->transfer_syntax.c_str();
}

size_t dicom_element_count(const struct dicom_file *file)
{
	return file->layout.n_elements;
}
