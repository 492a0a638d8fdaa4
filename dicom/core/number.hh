/* Numbers as DICOM text: one decimal string in and out, independent of the locale. */
#ifndef TOMONODE_DICOM_NUMBER_HH
#define TOMONODE_DICOM_NUMBER_HH

#include <string>
#include <string_view>

namespace tomonode
{

/* The DS text of a finite value with the smallest error that 16 characters allow, and the shortest of those; "" for NaN and
 * infinity. */
std::string ds_format(double value);

/* The whole text (blanks around it allowed) as a finite number; false when it is none: "", "12 mm", "nan", "0x10", "1e999". */
bool number_parse(std::string_view text, double *ret_value);

/* `text` made fit for an error sentence: at most 32 characters, what cannot be printed as '?', "..." when cut. */
std::string shorten(std::string_view text);

/* Without the blanks and NULs at its end (and, with `leading`, the blanks at its start). */
std::string_view trim(std::string_view text, bool leading);

} // namespace tomonode
#endif
