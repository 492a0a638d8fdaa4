/* SPDX-License-Identifier: Apache-2.0 */
/* Convert C++ exceptions into errors of the C interface. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_GUARDED_HH
#define TOMONODE_DICOM_GUARDED_HH

#include <cerrno>
#include <exception>
#include <new>

#include "kernels/err.h"

namespace tomonode
{

/* Run `body`, which returns the result of the C function `what`, and convert every exception into an error: -ENOMEM for
 * std::bad_alloc, -EIO for any other. */
template <typename Body> int guarded(struct err *err, const char *what, Body body)
{
	try {
		return body();
	} catch (const std::bad_alloc &) {
		return err_set(err, ENOMEM, "%s: out of memory", what);
	} catch (const std::exception &e) {
		return err_set(err, EIO, "%s: %s", what, e.what());
	} catch (...) {
		return err_set(err, EIO, "%s: unknown exception", what);
	}
}

} // namespace tomonode
#endif
