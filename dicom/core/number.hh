/* SPDX-License-Identifier: Apache-2.0 */
/* Convert numbers to and from DICOM decimal strings, independent of the locale. */
#ifndef TOMONODE_DICOM_NUMBER_HH
#define TOMONODE_DICOM_NUMBER_HH

#include <string>
#include <string_view>

namespace tomonode
{

/* Format a value as a decimal string (VR DS) of at most 16 characters. The text is the one with the smallest error, and the
 * shortest of these. Return "" for NaN and infinity. */
std::string ds_format(double value);

/* Parse the whole text as a finite number; blanks before and after it are allowed. Return false for any other text, for example
 * "", "12 mm", "nan", "0x10", "1e999". */
bool number_parse(std::string_view text, double *ret_value);

/* Shorten a text for an error message: at most 32 characters, '?' for each unprintable one, "..." if cut. */
std::string shorten(std::string_view text);

/* Remove blanks and NULs at the end (and, with `leading`, blanks at the beginning). */
std::string_view trim(std::string_view text, bool leading);

} // namespace tomonode
#endif
