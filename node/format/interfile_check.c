/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_check.c - keys of projection data that contradict each other, although each is valid by itself; the energy window.
 *
 * Without arc correction, neighbouring rays through the middle of the scanner are R sin(pi / detectors) apart, R = inner radius +
 * depth of interaction (recon/pet/michelogram.h), which STIR writes as "effective central bin size". If the header has another
 * value, one of the four keys is wrong, and so is the size of the image. A header with the "default bin size" in this place (old
 * templates of STIR, earlier versions of this program) has the bin of arc-corrected data there, which is near that distance.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "node/format/interfile_internal.h"

/* Of the distance of neighbouring rays. 0.005: beyond the digits of headers. 0.05: more than an unknown depth of interaction
 * makes of a scanner for patients (2 %); an image whose size is wrong by more is of no use. */
#define BIN_DOUBTFUL 0.005
#define BIN_WRONG 0.05
#define BIN_DEFAULT_WRONG 0.25 /* the default bin in its place: of the examples of STIR, one is off by 9.7 %, others by less */
#define BIN_OTHER_UNIT 4       /* the default bin is within a factor of 2 of the distance; a wrong unit gives a factor of 10 */
#define BIN_FINEST 6	       /* arc-corrected bins are hardly finer than the distance by more than 2; a wrong unit gives 10 */
/* Distances of rings: from scanners for mice to those of 1985, with detectors of 13.5 mm, and some more. */
#define RINGS_LEAST 0.3 /* mm */
#define RINGS_MOST 35.0
#define RINGS_KNOWN_WRONG 0.02 /* of the scanner's own: tables differ by less than 0.2 % */
/* Detectors are not much shorter along the axis than across it: below the first ratio, a tenth of the true distance is likely if
 * ten times as much makes the second one. Long detectors are those of a model (STIR's templates for scatter have rings
 * of 64, 32.5 mm apart), not of a scanner. */
#define RATIO_OTHER_UNIT 0.2
#define RATIO_USUAL 0.5
/* Rings with septa between short detectors are 4 times as far apart; a diameter in another unit makes it 10 times. */
#define RATIO_MOST 8
#define DETECTOR_LONGEST 15.0 /* mm */
/* The mean depth is less than the length of the crystals, which is 30 mm for long ones of BGO ("Performance evaluation of the
 * whole-body PET scanner ECAT EXACT HR+ following the IEC standard", IEEE; "Performance of a BGO PET/CT with Higher Resolution
 * PET Detectors": Discovery STE). */
#define DEPTH_MOST 30.0
#define KEV_MOST 10000.0
#define KEV_REFERENCE 511.0

static const char *length_unit(const struct interfile *f, enum interfile_length length)
{
	return f->in_mm & length ? "mm" : "cm";
}

static double in_unit(const struct interfile *f, enum interfile_length length, double mm)
{
	return f->in_mm & length ? mm : mm / 10;
}

/* length: the one that `key` names first */
static int refuse_bin(const struct interfile *f, const char *key, enum interfile_length length, double stated, double computed,
		      const struct michelogram *m, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;

	return err_set(
		err, EBADMSG,
		"%s (%s) := %g contradicts the distance of neighbouring rays in the middle, %.6g cm, of Number of detectors per "
		"ring := %d, Inner ring diameter (%s) := %g and Average depth of interaction (%s) := %g: one of them is wrong "
		"(cm and mm?), and the image would have another size",
		key, length_unit(f, length), in_unit(f, length, stated), computed / 10, s->detectors,
		length_unit(f, INTERFILE_DIAMETER), in_unit(f, INTERFILE_DIAMETER, 2 * s->radius),
		length_unit(f, INTERFILE_DEPTH), in_unit(f, INTERFILE_DEPTH, s->interaction_depth));
}

/* Arc-corrected bins have a size of their own, near that of neighbouring rays. They lie within the rings. */
static int check_arc(const struct interfile *f, const struct michelogram *m, double computed, struct err *err)
{
	double reach = m->n_radial / 2 * m->scanner.bin, ring = m->scanner.radius + m->scanner.interaction_depth;
	double stated = f->central_bin, usual = f->default_bin;

	if (stated > 0 && usual > 0 && (stated > BIN_OTHER_UNIT * usual || usual > BIN_OTHER_UNIT * stated))
		return err_set(err, EBADMSG,
			       "effective central bin size (%s) := %g contradicts Default bin size (%s) := %g: one of them is "
			       "wrong (cm and mm?), and the image would have another size",
			       length_unit(f, INTERFILE_CENTRAL_BIN), in_unit(f, INTERFILE_CENTRAL_BIN, stated),
			       length_unit(f, INTERFILE_DEFAULT_BIN), in_unit(f, INTERFILE_DEFAULT_BIN, usual));
	if (stated > 0 && stated < computed / BIN_FINEST && 2 * computed <= DETECTOR_LONGEST)
		return refuse_bin(f, "effective central bin size", INTERFILE_CENTRAL_BIN, stated, computed, m, err);
	if (!(reach > 1.5 * ring))
		return 0;
	return err_set(
		err, EBADMSG,
		"matrix size [1] := %d with bins of %g cm reaches to %g cm from the middle, beyond the detectors at %g cm (half "
		"of Inner ring diameter, and Average depth of interaction): one of them is wrong (cm and mm?)",
		m->n_radial, m->scanner.bin / 10, reach / 10, ring / 10);
}

int interfile_check_bins(struct interfile *f, const struct michelogram *m, struct err *err)
{
	double computed = (m->scanner.radius + m->scanner.interaction_depth) * sin(M_PI / m->scanner.detectors), off;

	if (m->arc_corrected)
		return check_arc(f, m, computed, err);
	if (f->central_bin > 0) {
		bool same = f->central_bin == f->default_bin;

		off = fabs(f->central_bin / computed - 1);
		if (off > (same ? BIN_DEFAULT_WRONG : BIN_WRONG))
			return refuse_bin(f,
					  same && !(f->in_mm & INTERFILE_CENTRAL_BIN) == !(f->in_mm & INTERFILE_DEFAULT_BIN)
						  ? "effective central bin size and Default bin size"
						  : "effective central bin size",
					  INTERFILE_CENTRAL_BIN, f->central_bin, computed, m, err);
		if (off > BIN_DOUBTFUL)
			interfile_note(
				f,
				"effective central bin size (%s) := %g differs by %.2g %% from the distance of neighbouring "
				"rays in the middle that follows from detectors and radius, %.6g cm. The latter is used.",
				length_unit(f, INTERFILE_CENTRAL_BIN), in_unit(f, INTERFILE_CENTRAL_BIN, f->central_bin),
				100 * off, computed / 10);
	} else if (f->default_bin > BIN_OTHER_UNIT * computed ||
		   (f->default_bin > 0 && f->default_bin < computed / BIN_OTHER_UNIT)) {
		return refuse_bin(f, "Default bin size", INTERFILE_DEFAULT_BIN, f->default_bin, computed, m, err);
	} else if (f->default_bin > 0 && fabs(f->default_bin / computed - 1) > BIN_DEFAULT_WRONG) {
		interfile_note(f,
			       "Default bin size (%s) := %g differs by %.2g %% from the distance of neighbouring rays in the "
			       "middle that follows from detectors and radius, %.6g cm. The latter is used; one of them may be "
			       "wrong, and with it the size of the image.",
			       length_unit(f, INTERFILE_DEFAULT_BIN), in_unit(f, INTERFILE_DEFAULT_BIN, f->default_bin),
			       100 * fabs(f->default_bin / computed - 1), computed / 10);
	}
	return 0;
}

int interfile_check_rings(const struct interfile *f, const struct michelogram *m, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;
	double beside = 2 * (s->radius + s->interaction_depth) * sin(M_PI / fmax(s->detectors, 2)),
	       ratio = s->ring_spacing / beside;

	if (!(s->ring_spacing >= RINGS_LEAST && s->ring_spacing <= RINGS_MOST))
		return err_set(
			err, EBADMSG,
			"Distance between rings is %g mm (%g cm); allowed: %g to %g mm: another unit is meant (m, cm or mm?)",
			s->ring_spacing, s->ring_spacing / 10, RINGS_LEAST, RINGS_MOST);
	if (s->interaction_depth > DEPTH_MOST)
		return err_set(err, EBADMSG,
			       "Average depth of interaction is %g mm (%g cm); allowed: at most %g mm, the length of long "
			       "crystals: another unit is meant (%g mm instead of %g cm?)",
			       s->interaction_depth, s->interaction_depth / 10, DEPTH_MOST, s->interaction_depth / 10,
			       s->interaction_depth / 10);
	if (beside > DETECTOR_LONGEST || (ratio > RATIO_OTHER_UNIT && ratio < RATIO_MOST) || 10 * ratio < RATIO_USUAL)
		return 0;
	return err_set(
		err, EBADMSG,
		"Distance between rings is %g mm, and detectors of a ring are %.3g mm apart (Number of detectors per ring := "
		"%d, Inner ring diameter (%s) := %g): %s (cm and mm?)",
		s->ring_spacing, beside, s->detectors, length_unit(f, INTERFILE_DIAMETER),
		in_unit(f, INTERFILE_DIAMETER, 2 * s->radius),
		ratio < 1 ? "ten times as much is meant" : "a larger diameter or a smaller distance is meant");
}

int interfile_check_scanner(const struct interfile *f, const struct scanner_conf *named, struct err *err)
{
	double stated = f->m.scanner.ring_spacing, known = named ? named->scanner.ring_spacing : 0;

	if (f->kind != INTERFILE_PROJECTIONS || !(stated > 0) || !(known > 0) || fabs(stated / known - 1) <= RINGS_KNOWN_WRONG)
		return 0;
	return err_set(err, EBADMSG,
		       "Scanner type := %.60s has rings at a distance of %g mm (scanner '%s' of the configuration), but Distance "
		       "between rings is %g mm: one of the two keys is wrong",
		       f->scanner, known, named->name, stated);
}

int interfile_check_mirrors(const struct michelogram *m, struct err *err)
{
	for (int i = 0; i < m->n_segments; i++)
		for (int k = 0; k < m->n_segments; k++) {
			const struct michelogram_segment *s = &m->segments[i], *t = &m->segments[k];

			if (s->last < 0 && t->first > 0 && t->first <= -s->first && t->last >= -s->last &&
			    (t->first != -s->last || t->last != -s->first))
				return err_set(
					err, EBADMSG,
					"segments %d and %d have the ring differences %d to %d and %d to %d, which overlap with "
					"opposite signs but are not opposite: one of minimum and maximum ring difference per "
					"segment is wrong",
					k, i, -t->last, -t->first, -s->last, -s->first);
		}
	return 0;
}

int interfile_read_shape(struct interfile_parser *p)
{
	char value[40];

	for (size_t i = 0; i < p->lines.n; i++) {
		const struct interfile_line *line = &p->lines.line[i];

		if (strncmp(line->key, "scannergeometry", strlen("scannergeometry")) != 0)
			continue;
		interfile_normalise(line->value, value, sizeof(value));
		if (!strcmp(value, "generic"))
			return err_set(
				p->err, ENOTSUP,
				"line %d: %.80s := %.40s; the places of the detectors are in a crystal map, which is not read; "
				"supported: Cylindrical",
				line->number, line->name, line->value);
		if (!strcmp(value, "blocksoncylindrical"))
			interfile_note(
				p->f,
				"Scanner geometry := BlocksOnCylindrical: the detectors are taken to be on a cylinder, and the "
				"image is distorted by as much as flat blocks differ from it.");
	}
	return 0;
}

/* Read a number that is above 0 if it is known. */
static int read_known(const struct interfile_parser *p, const char *key, double most, double *ret)
{
	double v = 0;
	int rc = interfile_line_number(&p->lines, key, 1, -1e9, most, &v, p->err);

	*ret = rc > 0 && v > 0 ? v : 0;
	return rc < 0 ? rc : 0;
}

int interfile_read_energy(struct interfile_parser *p)
{
	struct interfile *f = p->f;
	double low, high, resolution, reference;
	int windows = 1, rc = interfile_line_int(&p->lines, "numberofenergywindows", 0, 0, 1000, &windows, p->err);

	if (rc < 0 || (rc = read_known(p, "energywindowlowerlevel", KEV_MOST, &low)) < 0 ||
	    (rc = read_known(p, "energywindowupperlevel", KEV_MOST, &high)) < 0 ||
	    (rc = read_known(p, "energyresolution", 100, &resolution)) < 0 ||
	    (rc = read_known(p, "referenceenergy(inkev)", KEV_MOST, &reference)) < 0)
		return rc;
	if (high > 0 && low >= high)
		return err_set(p->err, EBADMSG, "energy window lower level[1] := %g, but energy window upper level[1] := %g", low,
			       high);
	if (windows == 1) {
		f->energy_low = low;
		f->energy_high = high;
	}
	/* STIR: a fraction, at the reference energy; it falls with the root of the energy. Above 1 it can only be percent. */
	f->energy_resolution =
		resolution * (resolution > 1 ? 1 : 100) * sqrt((reference > 0 ? reference : KEV_REFERENCE) / KEV_REFERENCE);
	return 0;
}
