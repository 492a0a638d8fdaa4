/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_write.c - write an Interfile header in the form that STIR writes and reads. Numbers have as many digits as are needed
 * to read the same double again, up to the factor of 10 between mm and cm.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/interfile.h"

struct writer {
	char *text;
	size_t n, size;
	bool full;
};

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(w->text + w->n, w->size - w->n, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= w->size - w->n)
		w->full = true;
	else
		w->n += (size_t)n;
}

static void put_digits(struct writer *w, double v)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	put(w, "%s", text);
}

static void put_number(struct writer *w, const char *key, double v)
{
	put(w, "%s := ", key);
	put_digits(w, v);
	put(w, "\n");
}

static void put_list(struct writer *w, const char *key, const struct michelogram *m,
		     int (*of)(const struct michelogram_segment *))
{
	put(w, "%s := {", key);
	for (int i = 0; i < m->n_segments; i++)
		put(w, "%s%d", i ? "," : " ", of(&m->segments[i]));
	put(w, "}\n");
}

static int first_of(const struct michelogram_segment *s)
{
	return s->first;
}

static int last_of(const struct michelogram_segment *s)
{
	return s->last;
}

static int planes_of(const struct michelogram_segment *s)
{
	return s->n_planes;
}

static void put_start(struct writer *w, const struct interfile *f)
{
	static const char *const formats[] = {"", "signed integer", "unsigned integer", "float"};

	if (f->kind == INTERFILE_PARALLEL)
		put(w,
		    "!INTERFILE  :=\n!imaging modality := CT\nname of data file := %s\n!GENERAL DATA :=\n!type of data := "
		    "PARALLEL\n",
		    f->data_file);
	else
		put(w,
		    "!INTERFILE  :=\n!imaging modality := PT\nname of data file := %s\n!version of keys := STIR3.0\n!GENERAL "
		    "DATA :=\n"
		    "!GENERAL IMAGE DATA :=\n!type of data := PET\n",
		    f->data_file);
	put(w, "imagedata byte order := %s\n", f->big_endian ? "BIGENDIAN" : "LITTLEENDIAN");
	if (f->kind != INTERFILE_PARALLEL)
		put(w, "!PET STUDY (General) :=\n!PET data type := %s\n", f->kind == INTERFILE_IMAGE ? "Image" : "Emission");
	if (f->kind == INTERFILE_IMAGE)
		put(w, "process status := Reconstructed\n");
	put(w, "!number format := %s\n!number of bytes per pixel := %d\n", formats[f->number], f->bytes);
}

static void put_projections(struct writer *w, const struct interfile *f)
{
	const struct michelogram *m = &f->m;
	bool by_view = f->order == INTERFILE_BY_VIEW;

	if (m->arc_corrected || f->corrections[0])
		put(w, "applied corrections := {%s%s%s}\n", m->arc_corrected ? "arc correction" : "",
		    m->arc_corrected && f->corrections[0] ? "," : "", f->corrections);
	else
		put(w, "applied corrections := {None}\n");
	put(w, "number of dimensions := 4\nmatrix axis label [4] := segment\n!matrix size [4] := %d\n", m->n_segments);
	put(w, "matrix axis label [%d] := view\n!matrix size [%d] := %d\n", by_view ? 3 : 2, by_view ? 3 : 2, m->n_angles);
	put(w, "matrix axis label [%d] := axial coordinate\n", by_view ? 2 : 3);
	put_list(w, by_view ? "!matrix size [2]" : "!matrix size [3]", m, planes_of);
	put(w, "matrix axis label [1] := tangential coordinate\n!matrix size [1] := %d\n", m->n_radial);
	put_list(w, "minimum ring difference per segment", m, first_of);
	put_list(w, "maximum ring difference per segment", m, last_of);
	put(w, "Scanner parameters :=\nScanner type := %s\n", f->scanner[0] ? f->scanner : "Unknown");
	put(w, "Number of rings := %d\n", m->scanner.rings);
	if (m->scanner.detectors > 0)
		put(w, "Number of detectors per ring := %d\n", m->scanner.detectors);
	put_number(w, "Inner ring diameter (cm)", m->scanner.radius * 2 / 10);
	put_number(w, "Average depth of interaction (cm)", m->scanner.interaction_depth / 10);
	put_number(w, "Distance between rings (cm)", m->scanner.ring_spacing / 10);
	if (m->scanner.bin > 0)
		put_number(w, "Default bin size (cm)", m->scanner.bin / 10);
	put_number(w, "View offset (degrees)", m->angle_offset);
	put(w, "Maximum number of non-arc-corrected bins := %d\n", m->n_radial);
	put(w, "Default number of arc-corrected bins := %d\n", m->n_radial);
	put(w, "end scanner parameters :=\n");
	if (m->scanner.bin > 0)
		put_number(w, "effective central bin size (cm)", m->scanner.bin / 10);
}

static void put_image(struct writer *w, const struct interfile *f)
{
	put(w, "number of dimensions := 3\n");
	for (int c = 0; c < 3; c++) {
		char key[60];

		put(w, "matrix axis label [%d] := %c\n!matrix size [%d] := %d\n", c + 1, "xyz"[c], c + 1, f->n[c]);
		snprintf(key, sizeof(key), "scaling factor (mm/pixel) [%d]", c + 1);
		put_number(w, key, f->spacing[c]);
		snprintf(key, sizeof(key), "first pixel offset (mm) [%d]", c + 1);
		put_number(w, key, f->first[c]);
	}
}

static void put_parallel(struct writer *w, const struct interfile *f)
{
	const struct parallel_scan *s = &f->beams;

	put(w, "!number of slices := %d\n!number of angles := %d\n!number of radial bins := %d\n", s->n_slices, s->n_angles,
	    s->n_radial);
	put_number(w, "!bin size (mm)", s->bin);
	put_number(w, "slice spacing (mm)", s->slice);
	put_number(w, "axis offset (mm)", s->offset);
	if (s->angle) {
		put(w, "angles (degrees) := {");
		for (int a = 0; a < s->n_angles; a++) {
			put(w, "%s", a ? "," : "");
			put_digits(w, s->angle[a]);
		}
		put(w, "}\n");
	} else {
		put_number(w, "first angle (degrees)", s->first_angle);
		put_number(w, "arc (degrees)", s->arc);
	}
	put(w, "unit := %s\n", f->unit[0] ? f->unit : INTERFILE_ATTENUATION);
}

static void put_study(struct writer *w, const struct interfile *f)
{
	static const char *const rotations[][2] = {{"S", "supine"}, {"P", "prone"}, {"DR", "right"}, {"DL", "left"}};

	if (strlen(f->date) == 8)
		put(w, "study date (yyyy:mm:dd) := %.4s:%.2s:%.2s\n", f->date, f->date + 4, f->date + 6);
	if (strlen(f->time) == 6)
		put(w, "study time (hh:mm:ss) := %.2s:%.2s:%.2s\n", f->time, f->time + 2, f->time + 4);
	for (size_t i = 0; f->position[0] && i < sizeof(rotations) / sizeof(rotations[0]); i++)
		if (!strcmp(f->position + 2, rotations[i][0]))
			put(w, "patient orientation := %s\npatient rotation := %s\n",
			    f->position[0] == 'H' ? "head_in" : "feet_in", rotations[i][1]);
	put_number(w, "image scaling factor[1]", f->scale);
	put(w, "data offset in bytes[1] := %llu\nnumber of time frames := 1\n", (unsigned long long)f->offset);
	if (f->duration > 0)
		put_number(w, "image duration (sec)[1]", f->duration);
	if (isfinite(f->start))
		put_number(w, "image relative start time (sec)[1]", f->start);
	put(w, "!END OF INTERFILE :=\n");
}

int interfile_write(const struct interfile *f, char **ret_text, struct err *err)
{
	struct writer w = {.size = INTERFILE_TEXT_MAX};
	struct interfile check;
	int rc;

	if (f->number < INTERFILE_SIGNED || f->number > INTERFILE_FLOAT)
		return err_set(err, EINVAL, "Interfile: number format %d", (int)f->number);
	w.text = malloc(w.size);
	if (!w.text)
		return err_set(err, ENOMEM, "Interfile: no memory for a header");
	put_start(&w, f);
	if (f->kind == INTERFILE_IMAGE)
		put_image(&w, f);
	else if (f->kind == INTERFILE_PARALLEL)
		put_parallel(&w, f);
	else
		put_projections(&w, f);
	put_study(&w, f);
	if (w.full) {
		rc = err_set(err, EINVAL, "Interfile: a header of more than %d bytes", INTERFILE_TEXT_MAX);
		goto out;
	}
	/* Check by reading it again: a header that cannot be read, for example with a line end in a name or a size of 0, is not
	 * written. */
	rc = interfile_parse(w.text, w.n, &check, err);
	if (rc < 0) {
		err_prefix(err, "Interfile: the header to be written would not be readable");
		goto out;
	}
	interfile_clear(&check);
	*ret_text = w.text;
	return 0;
out:
	free(w.text);
	return rc;
}
