/* SPDX-License-Identifier: Apache-2.0 */
/* exam_intensity.c - determine how stored values become intensities: linear or logarithmic, the sign, padding, and the intensity
 * of the unattenuated beam (I0), which no attribute contains.
 *
 * - Pixel Intensity Relationship (0028,1040) LIN or LOG and its sign (0028,1041) decide; MONOCHROME1 or 2 only affects display.
 * A Hologic SCO object has neither: LIN, +1 is assumed.
 * Sign +1: a lower value is less intensity; -1: a higher value is less intensity.
 * - The profile gives the source of I0: `fixed` a stored value; `header_max` the largest value, (0028,0107) or else 2^BitsStored
 * - 1; `percentile` of each view's own values, if they show air (exam_i0.c); `flatfield` an exposure without object, bin by bin.
 * - Exposure: (0018,9332) is in mAs, (0018,1153) in uAs, (0018,1152) in mAs, but some manufacturers write uAs. Only ratios
 * are used, so that the unit has no effect: all projections, and the flat field, have the same attribute. Instead of one of the
 * first two the flat field may have the other, because their units are certain. `air_exposure` is in mAs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/tomo/exam_internal.h"

#define LUT_ENTRIES_MAX 65536 /* of a table of 16-bit values (PS3.3 C.11.1.1.1) */

static int read_relationship(struct exam *exam, const struct header *h, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	struct prep *prep = &exam->prep;
	char text[20];
	long sign;
	int found = header_text(h, TAG_PIXEL_INTENSITY_RELATIONSHIP, text, sizeof(text), err);

	if (found < 0)
		return found;
	if (!found && exam->source == EXAM_SCO)
		return 0; /* it lacks both: assumed linear, a higher value is more intensity */
	if (!found || (strcmp(text, "LIN") && strcmp(text, "LOG")))
		return err_set(err, found ? ENOTSUP : EBADMSG,
			       "Pixel Intensity Relationship (0028,1040) is '%s'; allowed: LIN, LOG", text);
	found = header_long(h, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, 0, &sign, err);
	if (found < 0)
		return found;
	if (!found || (sign != 1 && sign != -1))
		return err_set(err, EBADMSG, "Pixel Intensity Relationship Sign (0028,1041) is %ld; allowed: 1, -1",
			       found ? sign : 0);
	prep->is_log = !strcmp(text, "LOG");
	prep->inverted = !prep->is_log && sign < 0;
	if (!prep->is_log)
		return 0;
	prep->log_zero = p->log_zero;
	prep->log_scale = p->log_scale;
	if (p->log_scale == 0)
		return err_set(err, ENOTSUP, "the values are logarithmic, but the profile '%s' has no log_scale", p->name);
	if ((p->log_scale > 0) != (sign > 0))
		return err_set(err, EBADMSG,
			       "(0028,1041) is %ld and log_scale of the profile '%s' is %g: the sign of one of them is wrong",
			       sign, p->name, p->log_scale);
	return 0;
}

/* A table of PS3.3 C.11.1: the value of `first` and below is entry[0], that of the last entry and above is the last entry. */
struct lut {
	uint16_t entry[LUT_ENTRIES_MAX];
	long n, first;
};

/* Read a table. Its entries have 16 bits, or, if the data are too short for these, 8 bits, the first one in the lower byte. */
static int read_lut(const struct dicom_item *item, struct lut *ret, struct err *err)
{
	size_t words;
	long i;

	if (dicom_get_int(item, TAG_LUT_DESCRIPTOR, 0, &ret->n, err) != 1 ||
	    dicom_get_int(item, TAG_LUT_DESCRIPTOR, 1, &ret->first, err) != 1 ||
	    dicom_get_words(item, TAG_LUT_DATA, ret->entry, LUT_ENTRIES_MAX, &words, err) != 1)
		return err_set(err, EBADMSG, "the table has no LUT Descriptor %s or no LUT Data %s", tag_text(TAG_LUT_DESCRIPTOR),
			       tag_text(TAG_LUT_DATA));
	ret->n = ret->n == 0 ? LUT_ENTRIES_MAX : ret->n & 0xFFFF;
	if (words < (size_t)(ret->n + 1) / 2)
		return err_set(err, EBADMSG, "the table has %ld entries %s, but %zu words of data %s", ret->n,
			       tag_text(TAG_LUT_DESCRIPTOR), words, tag_text(TAG_LUT_DATA));
	for (i = ret->n; words < (size_t)ret->n && i-- > 0;)
		ret->entry[i] = ret->entry[i / 2] >> 8 * (i % 2) & 0xFF;
	return 0;
}

/* Check that the tables of a Modality LUT Sequence, which stands in the place of slope and intercept, change no value that the
 * pixels can have. */
static int check_modality_lut(const struct exam *exam, const struct header *h, struct err *err)
{
	const struct dicom_item *root = header_find(h, TAG_MODALITY_LUT_SEQUENCE);
	struct lut *lut;
	int rc = 0;

	if (!root)
		return 0;
	lut = malloc(sizeof(*lut));
	if (!lut)
		return err_set(err, ENOMEM, "no memory for a table of %d values", LUT_ENTRIES_MAX);
	for (size_t k = 0; rc == 0 && k < dicom_item_count(root, TAG_MODALITY_LUT_SEQUENCE); k++) {
		rc = read_lut(dicom_item_at(root, TAG_MODALITY_LUT_SEQUENCE, k), lut, err);
		for (long value = 0; rc == 0 && value < 1L << exam->pixels.bits_stored; value++) {
			long i = value - lut->first, last = lut->n - 1, to = lut->entry[i < 0 ? 0 : i > last ? last : i];

			if (to != value)
				rc = err_set(
					err, EBADMSG,
					"the table maps the stored value %ld to %ld; allowed in a projection: none that changes "
					"a value",
					value, to);
		}
	}
	free(lut);
	return rc < 0 ? err_prefix(err, "Modality LUT Sequence %s", tag_text(TAG_MODALITY_LUT_SEQUENCE)) : 0;
}

/* Check that the stored values are the detector's own: PS3.3 C.8.11.3 allows only the slope 1 and the intercept 0 for
 * projections. */
static int check_rescale(const struct exam *exam, struct err *err)
{
	static const struct {
		uint32_t tag;
		const char *name;
		double allowed;
	} attributes[] = {{TAG_RESCALE_SLOPE, "Rescale Slope", 1}, {TAG_RESCALE_INTERCEPT, "Rescale Intercept", 0}};
	double value;

	for (int i = 0; i < 2 * exam->n_views; i++) {
		struct header h = exam_header(exam, i / 2);
		uint32_t tag = attributes[i % 2].tag;
		int found = header_double(&h, tag, 0, &value, err);

		if (found < 0)
			return err_prefix(err, "%s", file_name(exam->paths[exam->views[i / 2].file]));
		if (found && value != attributes[i % 2].allowed)
			return err_set(err, EBADMSG, "%s: %s %s is %.10g; allowed in a projection: %g",
				       file_name(exam->paths[exam->views[i / 2].file]), attributes[i % 2].name, tag_text(tag),
				       value, attributes[i % 2].allowed);
		if (i % 2 == 0 && check_modality_lut(exam, &h, err) < 0)
			return err_prefix(err, "%s", file_name(exam->paths[exam->views[i / 2].file]));
	}
	return 0;
}

/* Read the padding values. They are US or SS, as their VR says, whatever the pixels are: a value that the unsigned pixels cannot
 * have (PS3.3 C.7.5.1.1.2: it must be valid within Bits Stored) marks none of them. */
static int read_padding(struct exam *exam, const struct header *h, struct err *err)
{
	struct prep *prep = &exam->prep;
	long value, limit, lo, hi;
	int found = header_long(h, TAG_PIXEL_PADDING_VALUE, 0, &value, err);

	if (found <= 0)
		return found;
	found = header_long(h, TAG_PIXEL_PADDING_RANGE_LIMIT, 0, &limit, err);
	if (found < 0)
		return found;
	if (!found)
		limit = value;
	lo = value < limit ? value : limit;
	hi = value < limit ? limit : value;
	if (hi < 0 || lo > (long)prep->max_value) {
		exam_warn(exam,
			  "Pixel Padding Value %s is %ld, which the pixels, of %d bits and unsigned, cannot have: none of them "
			  "is taken as padding.",
			  tag_text(TAG_PIXEL_PADDING_VALUE), value, exam->pixels.bits_stored);
		return 0;
	}
	prep->has_padding = true;
	prep->padding_lo = (int)(lo > 0 ? lo : 0);
	prep->padding_hi = (int)(hi < (long)prep->max_value ? hi : (long)prep->max_value);
	return 0;
}

/* Attributes with an exposure, and their unit. */
static const struct {
	uint32_t tag;
	double mas;
} charge_tags[] = {{TAG_EXPOSURE_IN_MAS, 1}, {TAG_EXPOSURE_IN_UAS, 1e-3}, {TAG_EXPOSURE, 1}};

static double read_charge(const struct header *h, uint32_t tag)
{
	double value;

	for (size_t t = 0; t < sizeof(charge_tags) / sizeof(charge_tags[0]); t++)
		if (charge_tags[t].tag == tag && header_double(h, tag, 0, &value, NULL) == 1 && value > 0 && value < 1e9)
			return value * charge_tags[t].mas;
	return 0;
}

double exam_read_charge(const struct header *h, uint32_t tag)
{
	uint32_t other = tag == TAG_EXPOSURE_IN_MAS ? TAG_EXPOSURE_IN_UAS : tag == TAG_EXPOSURE_IN_UAS ? TAG_EXPOSURE_IN_MAS : 0;
	double charge = read_charge(h, tag);

	return charge > 0 ? charge : read_charge(h, other);
}

/* Read the exposure of all views in mAs from the first attribute that each of them has; 0 for all views if there is none, or if
 * the values have mixed units. Used for ratios between views, to the flat field, and to `air_exposure`. */
static void read_charges(struct exam *exam)
{
	for (size_t t = 0; t < sizeof(charge_tags) / sizeof(charge_tags[0]); t++) {
		double lo = INFINITY, hi = 0;
		int n = 0;

		for (; n < exam->n_views; n++) {
			struct header h = exam_header(exam, n);
			double charge = read_charge(&h, charge_tags[t].tag);

			if (!(charge > 0))
				break;
			exam->views[n].charge = charge;
			lo = fmin(lo, charge);
			hi = fmax(hi, charge);
		}
		if (n == exam->n_views && hi / lo <= EXPOSURE_RATIO_MAX) {
			exam->charge_tag = charge_tags[t].tag;
			return;
		}
	}
	for (int i = 0; i < exam->n_views; i++)
		exam->views[i].charge = 0;
}

/* Read one exposure value of every view from the same attribute, and divide by their mean. */
static int read_exposures(struct exam *exam, struct err *err)
{
	static const uint32_t tags[] = {TAG_EXPOSURE_IN_MAS, TAG_EXPOSURE_IN_UAS, TAG_EXPOSURE};
	double sum = 0, lo = INFINITY, hi = 0;
	struct header h = exam_header(exam, 0);
	size_t t = 0;

	while (t < sizeof(tags) / sizeof(tags[0]) && !header_find(&h, tags[t]))
		t++;
	if (t == sizeof(tags) / sizeof(tags[0]))
		return err_set(err, EBADMSG,
			       "the profile '%s' scales I0 by exposure, but the images have no exposure in (0018,1153), "
			       "(0018,1152) or (0018,9332)",
			       exam->profile->name);
	for (int i = 0; i < exam->n_views; i++) {
		struct exam_view *v = &exam->views[i];
		int found;

		h = exam_header(exam, i);
		found = header_double(&h, tags[t], 0, &v->exposure, err);
		if (found < 0)
			return err_prefix(err, "%s", file_name(exam->paths[v->file]));
		if (!found || !(v->exposure > 0))
			return err_set(err, EBADMSG, "%s: exposure %s is %s", file_name(exam->paths[v->file]), tag_text(tags[t]),
				       found ? "not above 0" : "missing, unlike in the first projection");
		sum += v->exposure;
		lo = fmin(lo, v->exposure);
		hi = fmax(hi, v->exposure);
	}
	if (hi / lo > EXPOSURE_RATIO_MAX)
		return err_set(err, EBADMSG, "exposures %s range from %g to %g: their units are mixed", tag_text(tags[t]), lo,
			       hi);
	for (int i = 0; i < exam->n_views; i++)
		exam->views[i].exposure *= exam->n_views / sum;
	return 0;
}

double exam_value_intensity(const struct prep *prep, double value)
{
	return (prep->inverted ? prep->max_value - value : value) - prep->offset;
}

/* Scale I0 of the flat field by the exposures of projection and flat field, if both headers have it. */
static int scale_flatfield(struct exam *exam, struct err *err)
{
	double lo, hi, charge = exam_flatfield_charge(exam, &lo, &hi);

	if (!exam->charge_tag)
		return 0;
	if (!(charge > 0)) {
		exam_warn(exam,
			  "The flat field has no exposure %s, unlike the projections: its level is used for their mean exposure.",
			  tag_text(exam->charge_tag));
		return 0;
	}
	for (int i = 0; i < exam->n_views; i++) {
		exam->views[i].exposure = exam->views[i].charge / charge;
		lo = fmin(lo, exam->views[i].charge);
		hi = fmax(hi, exam->views[i].charge);
	}
	if (hi > EXPOSURE_RATIO_MAX * lo)
		return err_set(
			err, EBADMSG,
			"exposures %s of the projections and the flat field range from %g to %g mAs: their units are mixed",
			tag_text(exam->charge_tag), lo, hi);
	exam->flatfield_scaled = true;
	return 0;
}

/* Read (0028,0107) of all views now, because only one thread may use the headers. */
static int read_largest(struct exam *exam, struct err *err)
{
	for (int i = 0; i < exam->n_views; i++) {
		struct header h = exam_header(exam, i);
		long value;
		int found = header_long(&h, TAG_LARGEST_IMAGE_PIXEL_VALUE, 0, &value, err);

		if (found < 0)
			return err_prefix(err, "%s", file_name(exam->paths[exam->views[i].file]));
		exam->views[i].largest = found ? value & 0xFFFF : 0;
	}
	return 0;
}

int exam_intensity(struct exam *exam, struct err *err)
{
	const struct profile_conf *p = exam->profile;
	struct header h = exam_header(exam, 0);
	struct prep *prep = &exam->prep;
	int rc;

	*prep = (struct prep){
		.n_u = (int)exam->pixels.columns,
		.n_v = (int)exam->pixels.rows,
		.bin = 1,
		.max_value = ldexp(1, exam->pixels.bits_stored) - 1,
		.offset = p->offset,
		.floor = p->floor,
	};
	if (exam->pixels.is_signed)
		return err_set(err, ENOTSUP, "Pixel Representation (0028,0103) is 1: signed detector values are not supported");
	rc = read_relationship(exam, &h, err);
	if (rc < 0)
		return rc;
	rc = check_rescale(exam, err);
	if (rc < 0)
		return rc;
	rc = read_padding(exam, &h, err);
	if (rc < 0)
		return rc;
	if (prep->is_log)
		return 0;
	read_charges(exam);
	if (p->i0_mode == I0_FLATFIELD || (p->i0_mode == I0_PERCENTILE && p->flatfield[0])) {
		rc = exam_open_flatfield(exam, err);
		if (rc < 0)
			return rc;
	}
	if (p->i0_mode == I0_HEADER_MAX) {
		rc = read_largest(exam, err);
		if (rc < 0)
			return rc;
	}
	/* A percentile of the view depends on its exposure already, a flat field does not. */
	rc = p->scale_by_exposure && exam->flatfields ? scale_flatfield(exam, err) : 0;
	if (rc < 0)
		return rc;
	if (!p->scale_by_exposure || exam->flatfield_scaled || (p->i0_mode == I0_PERCENTILE && !exam->flatfields))
		return 0;
	return read_exposures(exam, err);
}

/* Return the largest stored value. *ret_own: true: it comes from this image's own header and depends on its exposure already. */
static double header_max(const struct exam *exam, int view, bool *ret_own)
{
	long largest = exam->views[view].largest;

	/* With inverted values the largest intensity is the smallest value, but the header contains only the largest. */
	*ret_own = largest > 0 && !exam->prep.inverted;
	return *ret_own ? (double)largest : exam->prep.inverted ? 0 : exam->prep.max_value;
}

double exam_profile_i0(const struct exam *exam, int view, double *ret_value)
{
	const struct profile_conf *p = exam->profile;
	bool own = false;
	double i0;

	*ret_value = p->i0_mode == I0_HEADER_MAX ? header_max(exam, view, &own) : p->i0_mode == I0_FIXED ? p->i0 : -1;
	i0 = *ret_value >= 0 ? exam_value_intensity(&exam->prep, *ret_value) : exam->flatfield_level;
	return own ? i0 : i0 * exam->views[view].exposure;
}

/* Return the largest factor of the open field at the corners of the detector. */
static double largest_factor(const struct prep *prep)
{
	double factor[2], most = 1;

	for (int v = 0; v < 2; v++) {
		open_field_row(&prep->open, 0, prep->n_u - 1, v * (prep->n_v - 1), 2, factor);
		most = fmax(most, fmax(factor[0], factor[1]));
	}
	return most;
}

/* Values at the top of the range are saturated, with unknown intensity, unless the range ends above I0 everywhere: then they are
 * air. */
struct prep exam_view_prep(const struct exam *exam, const struct exam_i0 *i0)
{
	struct prep prep = exam->prep;

	if (!i0) {
		prep.i0 = 1; /* not used */
		return prep;
	}
	prep.i0 = i0->i0;
	prep.open = i0->open;
	prep.flatfield = i0->use_flatfield ? exam->flatfield : NULL;
	prep.has_over_code = i0->over_code >= 0;
	prep.over_code = i0->over_code;
	prep.shadow = i0->shadow;
	if (!prep.inverted && !prep.has_over_code && prep.i0 * largest_factor(&prep) + prep.offset > prep.max_value)
		prep.saturation = prep.max_value;
	return prep;
}
