/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg2000.cc - decode one frame with OpenJPEG, from memory, in the calling thread.
 *
 * OpenJPEG allocates memory by the sizes in the code stream. Therefore the SIZ segment, which must be the first (ISO 15444-1
 * A.3), is compared with the object before the decoder runs. In its strict mode the decoder refuses a code stream that ends too
 * early; otherwise it would return the picture without its fine details. What was left out when the code stream was made, the
 * decoder does not see: jpeg2000_loss.cc. */
#include "dicom/pixels/jpeg2000.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <openjpeg.h>

#include "dicom/core/element.hh"
#include "dicom/pixels/jpeg2000_loss.hh"

namespace tomonode
{

namespace
{

struct Input {
	const unsigned char *bytes;
	size_t size, at;
};

/* Release what OpenJPEG allocated. */
struct Codec {
	opj_codec_t *codec = nullptr;
	opj_stream_t *stream = nullptr;
	opj_image_t *image = nullptr;

	~Codec()
	{
		opj_image_destroy(image);
		opj_stream_destroy(stream);
		opj_destroy_codec(codec);
	}
};

} // namespace

static OPJ_SIZE_T read_input(void *to, OPJ_SIZE_T n, void *data)
{
	auto *in = static_cast<Input *>(data);
	size_t part = std::min<size_t>(n, in->size - in->at);

	if (part == 0)
		return (OPJ_SIZE_T)-1;
	memcpy(to, in->bytes + in->at, part);
	in->at += part;
	return part;
}

static OPJ_OFF_T skip_input(OPJ_OFF_T n, void *data)
{
	auto *in = static_cast<Input *>(data);

	if (n < 0 || (uint64_t)n > in->size - in->at)
		return -1;
	in->at += (size_t)n;
	return n;
}

static OPJ_BOOL seek_input(OPJ_OFF_T at, void *data)
{
	auto *in = static_cast<Input *>(data);

	if (at < 0 || (uint64_t)at > in->size)
		return OPJ_FALSE;
	in->at = (size_t)at;
	return OPJ_TRUE;
}

/* Keep the first message, without its line feed. */
static void keep_message(const char *message, void *data)
{
	auto *text = static_cast<char(*)[160]>(data);

	if (!(*text)[0])
		snprintf(*text, sizeof(*text), "%.*s", (int)strcspn(message, "\n"), message);
}

static void ignore_message(const char *message, void *data)
{
	(void)message;
	(void)data;
}

static int check_size(const std::vector<unsigned char> &code, const struct dicom_pixel_info *info, struct err *err)
{
	/* SOC, SIZ, Lsiz, Rsiz (2 bytes each); Xsiz, Ysiz, XOsiz, YOsiz, four of the tiles (4 each); Csiz (2); Ssiz (1) */
	static const unsigned char start[] = {0xff, 0x4f, 0xff, 0x51};
	constexpr size_t at_size = 8, at_offset = 16, at_components = 40, at_precision = 42;

	if (code.size() <= at_precision || memcmp(code.data(), start, sizeof(start)) != 0)
		return err_set(err, EBADMSG, "cannot be decoded: not a JPEG 2000 code stream");
	const unsigned char *p = code.data();
	uint32_t x1 = be32(p + at_size), y1 = be32(p + at_size + 4), x0 = be32(p + at_offset), y0 = be32(p + at_offset + 4);
	unsigned components = (unsigned)p[at_components] << 8 | p[at_components + 1], precision = (p[at_precision] & 0x7fu) + 1;
	bool is_signed = p[at_precision] & 0x80;

	if (x1 <= x0 || y1 <= y0 || x1 - x0 != (uint32_t)info->columns || y1 - y0 != (uint32_t)info->rows || components != 1)
		return err_set(err, EBADMSG,
			       "cannot be decoded: a JPEG 2000 frame of (%u - %u) x (%u - %u) with %u components in an image of "
			       "%ld x %ld with 1",
			       x1, x0, y1, y0, components, info->columns, info->rows);
	if (precision > (unsigned)info->bits_allocated || is_signed != info->is_signed)
		return err_set(err, EBADMSG,
			       "cannot be decoded: a JPEG 2000 frame of %u bits, %s, in an image of %d bits, %s (0028,0103)",
			       precision, is_signed ? "signed" : "unsigned", info->bits_allocated,
			       info->is_signed ? "signed" : "unsigned");
	return 0;
}

static int fail_decoding(const char *message, struct err *err)
{
	return err_set(err, EBADMSG, "cannot be decoded (JPEG 2000): %s",
		       message[0] ? message : "the code stream is damaged or incomplete");
}

static int run_codec(Codec *c, Input *in, char (*message)[160], struct err *err)
{
	opj_dparameters_t parameters;

	c->codec = opj_create_decompress(OPJ_CODEC_J2K);
	c->stream = opj_stream_default_create(OPJ_TRUE);
	if (!c->codec || !c->stream)
		return err_set(err, ENOMEM, "no memory for a JPEG 2000 decoder");
	opj_set_error_handler(c->codec, keep_message, message);
	opj_set_warning_handler(c->codec, ignore_message, nullptr);
	opj_set_info_handler(c->codec, ignore_message, nullptr);
	opj_stream_set_user_data(c->stream, in, nullptr);
	opj_stream_set_user_data_length(c->stream, in->size);
	opj_stream_set_read_function(c->stream, read_input);
	opj_stream_set_skip_function(c->stream, skip_input);
	opj_stream_set_seek_function(c->stream, seek_input);
	opj_set_default_decoder_parameters(&parameters);
	if (!opj_setup_decoder(c->codec, &parameters) || !opj_decoder_set_strict_mode(c->codec, OPJ_TRUE) ||
	    !opj_read_header(c->stream, c->codec, &c->image))
		return fail_decoding(*message, err);
	if (!opj_decode(c->codec, c->stream, c->image) || !opj_end_decompress(c->codec, c->stream))
		return fail_decoding(*message, err);
	return 0;
}

int jpeg2000_decode(const std::vector<unsigned char> &code, const struct dicom_pixel_info *info, bool proved,
		    uint16_t *ret_values, struct err *err)
{
	size_t n = (size_t)info->rows * (size_t)info->columns;
	Input in = {code.data(), code.size(), 0};
	char message[160] = "";
	Codec c;
	int r = check_size(code, info, err);

	if (r == 0)
		r = jpeg2000_find_loss(code, err);
	if (r > 0 && proved)
		return err_set(err, ENOTSUP,
			       "cannot be decoded: a JPEG 2000 frame of which it cannot be told whether it is lossy");
	if (r >= 0)
		r = run_codec(&c, &in, &message, err);
	if (r < 0)
		return r;
	if (c.image->numcomps != 1 || !c.image->comps[0].data || c.image->comps[0].w != (OPJ_UINT32)info->columns ||
	    c.image->comps[0].h != (OPJ_UINT32)info->rows)
		return fail_decoding(message, err);
	for (size_t i = 0; i < n; i++)
		ret_values[i] = (uint16_t)c.image->comps[0].data[i];
	return 0;
}

} // namespace tomonode
