/* SPDX-License-Identifier: Apache-2.0 */
/* Convert numbers to and from DICOM decimal strings, independent of the locale. */
#ifndef TOMONODE_DICOM_NUMBER_HH
#define TOMONODE_DICOM_NUMBER_HH

#include <string>
#include <string_view>

namespace tomonode
{

/* Return the DS text of a finite value with the smallest error possible in 16 characters, and the shortest such text; "" for NaN
 * and infinity. */
std::string ds_format(double value);

/* Parse the whole text (with blanks around it) as a finite number. False: it is none: "", "12 mm", "nan", "0x10", "1e999". */
bool number_parse(std::string_view text, double *ret_value);

/* Shorten a text for an error message: at most 32 characters, '?' for each unprintable one, "..." if cut. */
std::string shorten(std::string_view text);

/* Remove blanks and NULs at the end (and, with `leading`, blanks at the beginning). */
std::string_view trim(std::string_view text, bool leading);

} // namespace tomonode
#endif
