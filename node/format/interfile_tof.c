/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_tof.c - the TOF bins of PET projection data: STIR's keys, the order in which a file stores them, and what the
 * configuration of the scanner completes. Headers have times in ps, a michelogram has mm along the ray: ps times half the speed
 * of light.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/tof.h"
#include "node/config/config.h"
#include "node/format/interfile_internal.h"

#define PICOSECONDS_MAX 1e6
#define UNMASHED_MAX 65535
/* TOF bins wholly beyond so many radii hold nothing: of the widest coincidence windows (6 ns to either side) and the smallest
 * rings for heads they do not reach that far. */
#define RADII_MOST 4
#define RESOLUTION_LEAST 10.0 /* ps: less than any detector has, and more than a resolution in ns */

/* ---- read ---- */

/* Read the number that one of two synonymous keys has. */
static int read_synonym(const struct interfile_parser *p, const char *key, const char *other, double *ret)
{
	double second;
	int rc = interfile_line_number(&p->lines, key, 0, INTERFILE_TINY, PICOSECONDS_MAX, ret, p->err);
	int more = rc < 0 ? rc : interfile_line_number(&p->lines, other, 0, INTERFILE_TINY, PICOSECONDS_MAX, &second, p->err);

	if (more <= 0)
		return more < 0 ? more : rc;
	if (rc > 0 && *ret != second)
		return err_set(p->err, EBADMSG, "two values for the same quantity of the TOF bins: %g and %g", *ret, second);
	*ret = second;
	return 1;
}

/* Check that the largest number of bins, mashed, gives n. */
static int check_number(const struct interfile_parser *p, int n, int mashing, bool there)
{
	double most = 0;
	int rc = read_synonym(p, "maximumnumberof(unmashed)toftimebins", "numberoftoftimebins", &most);

	if (rc <= 0)
		return rc;
	if (most > UNMASHED_MAX || fmod(most, mashing) != 0)
		return err_set(p->err, EBADMSG,
			       "%g unmashed TOF time bins with TOF mashing factor %d are no whole number of TOF bins", most,
			       mashing);
	if (most / mashing != n)
		return err_set(p->err, EBADMSG,
			       "%d timing positions, but %g unmashed TOF time bins with TOF mashing factor %d%s are %g TOF bins",
			       n, most, mashing, there ? "" : " (the header has no such key)", most / mashing);
	return 0;
}

static int read_order(struct interfile_parser *p, int n)
{
	double k[MICHELOGRAM_TOF_MAX];
	int order[MICHELOGRAM_TOF_MAX], there, rc;

	rc = interfile_line_numbers(&p->lines, "tofbinorder", 0, -MICHELOGRAM_TOF_MAX, MICHELOGRAM_TOF_MAX, MICHELOGRAM_TOF_MAX,
				    k, &there, p->err);
	if (rc <= 0)
		return rc;
	if (there != n)
		return err_set(p->err, EBADMSG, "TOF bin order: %d numbers for %d TOF bins", there, n);
	for (int i = 0; i < n; i++) {
		if (k[i] != floor(k[i]))
			return err_set(p->err, EBADMSG, "TOF bin order: %g is not an integer", k[i]);
		order[i] = (int)k[i];
	}
	return interfile_tof_order(p->f, order, n, p->err);
}

int interfile_tof_read(struct interfile_parser *p, int n)
{
	double size = 0, resolution = 0;
	int mashing = 1, rc = interfile_line_int(&p->lines, "tofmashingfactor", 0, 1, UNMASHED_MAX, &mashing, p->err);

	if (rc < 0 || (rc = check_number(p, n, mashing, rc > 0)) < 0 ||
	    (rc = read_synonym(p, "sizeofunmashedtoftimebins(ps)", "sizeoftimingbin(ps)", &size)) < 0 ||
	    (rc = read_synonym(p, "toftimingresolution(ps)", "timingresolution(ps)", &resolution)) < 0)
		return rc;
	p->f->m.tof.n = n;
	p->f->m.tof.width = size * mashing * TOF_MM_PER_PS;
	p->f->m.tof.sigma = resolution * TOF_MM_PER_PS / TOF_FWHM_PER_SIGMA;
	rc = read_order(p, n);
	return rc < 0 ? rc : 0;
}

/* ---- the order of the stored bins ---- */

int interfile_tof_order(struct interfile *f, const int *k, int n, struct err *err)
{
	bool there[MICHELOGRAM_TOF_MAX] = {false};

	for (int i = 0; i < n; i++) {
		int bin = n - 1 - (k[i] + n / 2);

		if (bin < 0 || bin >= n)
			return err_set(err, EBADMSG, "TOF bin order: %d; %d TOF bins have %d to %d", k[i], n, -(n / 2),
				       n - 1 - n / 2);
		if (there[bin])
			return err_set(err, EBADMSG, "TOF bin order: %d occurs twice", k[i]);
		there[bin] = true;
		f->tof_bin[i] = (short)bin;
	}
	f->tof_listed = true;
	return 0;
}

void interfile_tof_ascending(struct interfile *f)
{
	f->tof_listed = f->m.tof.n > 0;
	for (int i = 0; i < f->m.tof.n && i < MICHELOGRAM_TOF_MAX; i++)
		f->tof_bin[i] = (short)(f->m.tof.n - 1 - i);
}

size_t interfile_tof_stored(const struct interfile *f, size_t bin)
{
	size_t n = (size_t)f->m.tof.n, i = 0;

	if (n == 0)
		return 0;
	if (!f->tof_listed)
		return n - 1 - bin;
	while (i < n - 1 && (size_t)f->tof_bin[i] != bin)
		i++;
	return i;
}

/* Return the number k of a stored TOF bin, in STIR's order. */
static int order_of(const struct interfile *f, int i)
{
	int n = f->m.tof.n;

	return f->tof_listed ? n - 1 - f->tof_bin[i] - n / 2 : i - n / 2;
}

void interfile_tof_text(const struct interfile *f, char *ret, size_t size)
{
	int n = f->m.tof.n;

	*ret = '\0';
	if (n > 1)
		snprintf(ret, size, "%d, %d ... %d", order_of(f, 0), order_of(f, 1), order_of(f, n - 1));
}

/* ---- write ---- */

void interfile_tof_write(struct interfile_writer *w, const struct interfile *f)
{
	const struct scan_tof *tof = &f->m.tof;

	if (tof->n == 0)
		return;
	interfile_put(w, "TOF mashing factor := 1\nMaximum number of (unmashed) TOF time bins := %d\n", tof->n);
	if (tof->width > 0)
		interfile_put_number(w, "Size of unmashed TOF time bins (ps)", tof->width / TOF_MM_PER_PS);
	if (tof->sigma > 0)
		interfile_put_number(w, "TOF timing resolution (ps)", tof->sigma * TOF_FWHM_PER_SIGMA / TOF_MM_PER_PS);
	if (!f->tof_listed)
		return;
	interfile_put(w, "TOF bin order := {");
	for (int i = 0; i < tof->n; i++)
		interfile_put(w, "%s%d", i ? "," : " ", tof->n - 1 - f->tof_bin[i] - tof->n / 2);
	interfile_put(w, "}\n");
}

/* ---- what the scanner completes ---- */

int interfile_tof_check(const struct michelogram *m, struct err *err)
{
	double reach, largest, ring = m->scanner.radius + m->scanner.interaction_depth;
	double fwhm = m->tof.sigma * TOF_FWHM_PER_SIGMA;

	if (m->tof.n == 0)
		return 0;
	if (fwhm > 2 * ring || fwhm < RESOLUTION_LEAST * TOF_MM_PER_PS)
		return err_set(err, EBADMSG,
			       "TOF timing resolution (ps) := %.6g is a distance of %.4g mm along the ray, but detectors resolve "
			       "%g ps at best, and the rings have a diameter of %.4g mm: another unit is meant (ns and ps?)",
			       fwhm / TOF_MM_PER_PS, fwhm, RESOLUTION_LEAST, 2 * ring);
	if (michelogram_tof_reaches(m, &reach, &largest) && reach - m->tof.width <= RADII_MOST * ring)
		return 0;
	return err_set(err, EBADMSG,
		       "%d TOF bins of %.6g ps (\"Size of unmashed TOF time bins (ps)\" times \"TOF mashing factor\") end %.4g "
		       "mm from the middle of the rings, but the %s %.4g mm: one of these two values is wrong",
		       m->tof.n, m->tof.width / TOF_MM_PER_PS, reach, reach < ring ? "radial bins extend to" : "detectors are at",
		       reach < ring ? largest : ring);
}

int interfile_tof_complete(struct michelogram *m, const struct scanner_conf *known, struct err *err)
{
	struct scan_tof *tof = &m->tof;

	if (tof->n > 0 && tof->width == 0 && known && known->tof_bins > 0) {
		if (known->tof_bins % tof->n != 0)
			return err_set(err, EBADMSG, "%d TOF bins; scanner '%s' has %d, which is no multiple", tof->n,
				       known->name, known->tof_bins);
		tof->width = known->tof_width * (known->tof_bins / tof->n) * TOF_MM_PER_PS;
	}
	if (tof->n > 0 && tof->sigma == 0 && known)
		tof->sigma = known->tof_resolution * TOF_MM_PER_PS / TOF_FWHM_PER_SIGMA;
	if (tof->n == 0 || (tof->width > 0 && tof->sigma > 0))
		return 0;
	return err_set(err, ENOKEY, "the header lacks: %s",
		       tof->width > 0	? "TOF timing resolution"
		       : tof->sigma > 0 ? "size of unmashed TOF time bins"
					: "size of unmashed TOF time bins, TOF timing resolution");
}
