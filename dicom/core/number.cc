/* SPDX-License-Identifier: Apache-2.0 */
/* number.cc - decimal strings (VR DS, PS3.5 section 6.2: at most 16 bytes of 0-9 + - E e .).
 *
 * Both directions use std::to_chars and std::from_chars: exact rounding, no locale. */
#include "dicom/core/number.hh"

#include <charconv>
#include <cmath>
#include <system_error>

namespace tomonode
{

constexpr size_t ds_size = 16;

static bool to_text(double value, std::chars_format format, int precision, std::string *ret_text)
{
	char buf[400];
	auto res = precision < 0 ? std::to_chars(buf, buf + sizeof(buf), value, format)
				 : std::to_chars(buf, buf + sizeof(buf), value, format, precision);

	if (res.ec != std::errc())
		return false;
	ret_text->assign(buf, res.ptr);
	return true;
}

/* Shorten a number without changing its value: "1.2500e-07" -> "1.25e-7", "1.500" -> "1.5", "-0" -> "0". */
static std::string remove_zeros(const std::string &text)
{
	size_t e = text.find('e');
	std::string exponent = e == std::string::npos ? "" : text.substr(e + 1);
	std::string mantissa = text.substr(0, e);

	if (mantissa.find('.') != std::string::npos) {
		mantissa.erase(mantissa.find_last_not_of('0') + 1);
		if (mantissa.back() == '.')
			mantissa.pop_back();
	}
	if (!exponent.empty()) {
		bool negative = exponent[0] == '-';
		size_t first = exponent.find_first_not_of("+-0");

		exponent = first == std::string::npos ? "" : exponent.substr(first);
		if (!exponent.empty())
			mantissa += (negative ? "e-" : "e") + exponent;
	}
	return mantissa == "-0" ? "0" : mantissa;
}

std::string ds_format(double value)
{
	std::string best;
	double best_error = INFINITY;

	if (!std::isfinite(value))
		return best;
	/* try plain decimals first; the form with an exponent replaces them only if its error is smaller */
	for (std::chars_format format : {std::chars_format::fixed, std::chars_format::scientific}) {
		/* precision -1: the shortest text with exactly this value; then 17, 16, ... decimals until the text fits */
		for (int precision = -1; precision != -2; precision = precision < 0 ? 17 : precision == 0 ? -2 : precision - 1) {
			std::string text;
			double back, error;

			if (!to_text(value, format, precision, &text))
				continue;
			text = remove_zeros(text);
			if (text.size() > ds_size || !number_parse(text, &back)) /* also rejects rounding up to infinity */
				continue;
			error = std::fabs(back - value);
			if (best.empty() || error < best_error) {
				best = text;
				best_error = error;
			}
			break; /* fewer decimals have no smaller error */
		}
	}
	return best;
}

bool number_parse(std::string_view text, double *ret_value)
{
	double value;

	text = trim(text, true);
	if (!text.empty() && text[0] == '+') {
		text.remove_prefix(1);
		if (!text.empty() && text[0] == '-')
			return false;
	}
	if (text.empty())
		return false;
	auto res = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::general);
	if (res.ec != std::errc() || res.ptr != text.data() + text.size() || !std::isfinite(value))
		return false;
	*ret_value = value;
	return true;
}

std::string shorten(std::string_view text)
{
	constexpr size_t most = 32;
	std::string out;

	for (char c : text.substr(0, most))
		out += c >= 0x20 && c < 0x7f ? c : '?';
	if (text.size() > most)
		out += "...";
	return out;
}

std::string_view trim(std::string_view text, bool leading)
{
	while (!text.empty() && (text.back() == ' ' || text.back() == '\0'))
		text.remove_suffix(1);
	while (leading && !text.empty() && text.front() == ' ')
		text.remove_prefix(1);
	return text;
}

} // namespace tomonode
