/* What the sources of dicom/ share behind the C headers. */
#ifndef TOMONODE_DICOM_INTERNAL_HH
#define TOMONODE_DICOM_INTERNAL_HH

#include <exception>
#include <memory>
#include <new>
#include <string>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>

#include "dicom/core/dataset.h"
#include "dicom/core/layout.hh"
#include "dicom/core/pixel_info.h"

/* A data set. Opened: `source` and `layout` are set, and an empty (7FE0,0010)
 * stands in for the pixel data that DCMTK never sees. */
struct dicom_file {
	DcmDataset dataset;
	std::string transfer_syntax;
	std::shared_ptr<const tomonode::Source> source; /* NULL: made here, not read */
	tomonode::Layout layout;
	struct dicom_pixel_info pixels = {}; /* frames 0: not asked for yet */
};

namespace tomonode
{

inline DcmItem *dcm(struct dicom_item *item)
{
	return reinterpret_cast<DcmItem *>(item);
}
/* DCMTK's look-ups load values and are therefore not const; what they show does not change. */
inline DcmItem *dcm(const struct dicom_item *item)
{
	return reinterpret_cast<DcmItem *>(const_cast<struct dicom_item *>(item));
}
inline struct dicom_item *item_of(DcmItem *item)
{
	return reinterpret_cast<struct dicom_item *>(item);
}

inline DcmTagKey key_of(uint32_t tag)
{
	return DcmTagKey((Uint16)(tag >> 16), (Uint16)tag);
}

/* The element itself, not one inside a sequence; NULL: not there. */
DcmElement *find(const struct dicom_item *item, uint32_t tag);

/* The tag's VR in the dictionary; EVR_UNKNOWN: not in it. */
DcmEVR dictionary_vr(uint32_t tag);

bool uid_valid(const char *uid);

/* No exception crosses the C interface: run `body`, which returns what the C function returns. */
template <typename Body> int guarded(struct err *err, const char *what, Body body)
{
	try {
		return body();
	} catch (const std::bad_alloc &) {
		return err_set(err, ENOMEM, "%s: out of memory", what);
	} catch (const std::exception &e) {
		return err_set(err, EIO, "%s: %s", what, e.what());
	} catch (...) {
		return err_set(err, EIO, "%s: an exception without a name", what);
	}
}

} // namespace tomonode
#endif
