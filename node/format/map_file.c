/* SPDX-License-Identifier: Apache-2.0 */
/* map_file.c - see node/format/map_file.h. */
#include "node/format/map_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/base/text_file.h"

#define ATTENUATES 0.002   /* 1/mm: less is air or noise of it; lungs have 0.003 */
#define WATER_LEAST 0.0080 /* 1/mm: soft tissue, fat, plastics */
#define WATER_MOST 0.0115
#define HU_AIR (-500) /* a map with values below has Hounsfield units */
#define HU_WATER 150  /* HU: soft tissue and fat have at most this, or less than none */
#define HU_OFFSET 1000
#define ROUNDING 1e-6 /* of a float */

static const struct {
	const char *name;
	double per_mm; /* that a value of 1 is; 0: not linear */
} units[] = {[MAP_UNKNOWN] = {"unknown", 0},
	     [MAP_PER_CM] = {"1/cm", 0.1},
	     [MAP_PER_MM] = {"1/mm", 1},
	     [MAP_TEN_THOUSANDTHS] = {"10000/cm", 1e-5},
	     [MAP_HU] = {"HU", 0}};
#define UNITS ((int)(sizeof(units) / sizeof(units[0])))

bool map_unit_named(const char *word, enum map_unit *ret)
{
	char text[16];
	size_t n = 0;

	for (; *word && n < sizeof(text) - 1; word++)
		if (!isspace((unsigned char)*word))
			text[n++] = *word;
	text[n] = '\0';
	for (int u = MAP_UNKNOWN + 1; u < UNITS; u++)
		if (!strcasecmp(text, units[u].name)) {
			*ret = (enum map_unit)u;
			return true;
		}
	return false;
}

const char *map_unit_name(enum map_unit unit)
{
	return units[unit].name;
}

/* ---- place ---- */

/* Read 16 numbers, which spaces or commas divide. */
static int read_matrix(const char *path, double m[4][4], struct err *err)
{
	double volume = 0;
	char *text = NULL, *at, *end;
	size_t size = 0;
	int n = 0, rc = text_file_read(path, MAP_FILE_MATRIX, "matrix", &text, &size, err);

	if (rc < 0)
		return rc;
	for (at = text;; at = end) {
		double v;

		at += strspn(at, " \t\r\n,");
		v = strtod(at, &end);
		if (end == at || n == 16 || !isfinite(v))
			break;
		m[n / 4][n % 4] = v;
		n++;
	}
	if (*at || at != text + size || n != 16)
		rc = err_set(err, EBADMSG, "%s: %d numbers, then \"%.20s\"; a matrix has 16 in 4 rows", file_name(path), n, at);
	free(text);
	if (rc < 0)
		return rc;
	if (m[3][0] != 0 || m[3][1] != 0 || m[3][2] != 0 || m[3][3] != 1)
		return err_set(err, EBADMSG, "%s: the last row is %g %g %g %g, not 0 0 0 1", file_name(path), m[3][0], m[3][1],
			       m[3][2], m[3][3]);
	for (int c = 0; c < 3; c++)
		volume += m[0][c] * (m[1][(c + 1) % 3] * m[2][(c + 2) % 3] - m[1][(c + 2) % 3] * m[2][(c + 1) % 3]);
	if (!(volume * MAP_FILE_STRETCH >= 1 && volume <= MAP_FILE_STRETCH))
		return err_set(err, EBADMSG,
			       "%s: it changes volumes by %g: it mirrors them, or is in another unit than mm; allowed: %g to %g",
			       file_name(path), volume, 1.0 / MAP_FILE_STRETCH, (double)MAP_FILE_STRETCH);
	return 0;
}

/* Move the place of the file by a matrix. */
static void move_place(struct volume_file *f, const double m[4][4])
{
	double corner[3], step[3][3];

	for (int r = 0; r < 3; r++) {
		corner[r] = m[r][3];
		for (int c = 0; c < 3; c++)
			corner[r] += m[r][c] * f->corner[c];
		for (int a = 0; a < 3; a++)
			step[a][r] = m[r][0] * f->step[a][0] + m[r][1] * f->step[a][1] + m[r][2] * f->step[a][2];
	}
	memcpy(f->corner, corner, sizeof(corner));
	memcpy(f->step, step, sizeof(step));
}

/* Take the place, with the axis that is nearest to z as that of the slices, which a body is cut off along otherwise than across. */
static void take_place(struct map_file *m)
{
	const struct volume_file *f = &m->file;
	double most = 0;
	int slice = 2;

	for (int a = 0; a < 3; a++) {
		const double *s = f->step[a];
		double along = fabs(s[2]) / sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);

		if (along > most) {
			most = along;
			slice = a;
		}
	}
	memcpy(m->corner, f->corner, sizeof(m->corner));
	for (int c = 0; c < 3; c++) {
		int a = (slice + 1 + c) % 3; /* the axis of the file that is axis c */

		m->n[c] = f->n[a];
		memcpy(m->step[c], f->step[a], sizeof(m->step[c]));
		m->stride[a] = c == 0 ? 1 : c == 1 ? (size_t)m->n[0] : (size_t)m->n[0] * (size_t)m->n[1];
	}
}

int map_file_open(const struct map_request *r, struct map_file *ret, struct err *err)
{
	struct map_file m = {.unit = r->unit, .kvp = r->kvp};
	double matrix[4][4];
	int rc = volume_file_open(r->path, &m.file, err);

	if (rc == 0 && r->matrix)
		rc = read_matrix(r->matrix, matrix, err);
	if (rc < 0)
		return rc;
	m.moved = r->matrix != NULL;
	if (m.moved)
		move_place(&m.file, (const double(*)[4])matrix);
	m.of_scanner = m.file.form == VOLUME_INTERFILE;
	if (m.of_scanner && m.file.image.of_table && !m.moved)
		return err_set(
			err, ENOTSUP,
			"%s: it has \"$origin offset (mm)\": a map of the table or coils of an mMR, whose place depends on the "
			"position of the table, which is not in it: give matrix=FILE, or the map that the scanner's programs "
			"have placed",
			file_name(r->path));
	if (m.unit == MAP_UNKNOWN && m.of_scanner && m.file.image.unit[0] && !map_unit_named(m.file.image.unit, &m.unit))
		return err_set(err, ENOTSUP, "%s: quantification units := %s; supported: " MAP_FILE_UNITS, file_name(r->path),
			       m.file.image.unit);
	take_place(&m);
	*ret = m;
	return 0;
}

/* ---- values ---- */

struct taking {
	const struct map_file *m;
	float *values; /* in the order of the file */
	double least, most;
	size_t body[UNITS], water[UNITS]; /* voxels that attenuate in this unit, and those of water */
};

static void count_value(struct taking *t, double value)
{
	t->least = fmin(t->least, value);
	t->most = fmax(t->most, value);
	for (int u = MAP_UNKNOWN + 1; u < UNITS; u++) {
		double mu = value * units[u].per_mm;

		t->body[u] += u == MAP_HU ? value > HU_AIR : mu > ATTENUATES;
		t->water[u] += u == MAP_HU ? fabs(value) <= HU_WATER : mu >= WATER_LEAST && mu <= WATER_MOST;
	}
}

static int take_values(void *ctx, size_t at, const double *values, size_t n, struct err *err)
{
	struct taking *t = ctx;
	size_t columns = (size_t)t->m->file.n[0], rows = (size_t)t->m->file.n[1];

	for (size_t i = 0; i < n; i++, at++) {
		if (!isfinite(values[i]))
			return err_set(err, EBADMSG, "%s: voxel %zu, %zu, %zu has the value %g", file_name(t->m->file.path),
				       at % columns, at / columns % rows, at / columns / rows, values[i]);
		t->values[at] = (float)values[i];
		count_value(t, values[i]);
	}
	return 0;
}

/* Return the unit in which the values have water. */
static enum map_unit find_unit(const struct taking *t)
{
	enum map_unit found = MAP_UNKNOWN;
	double most = MAP_FILE_WATER;

	for (int u = MAP_UNKNOWN + 1; u < UNITS; u++) {
		double part = t->body[u] > 0 ? (double)t->water[u] / (double)t->body[u] : 0;

		if ((u == MAP_HU) == (t->least < HU_AIR) && part >= most) {
			most = part;
			found = (enum map_unit)u;
		}
	}
	return found;
}

static int decide_unit(struct map_file *m, const struct taking *t, struct err *err)
{
	const char *name = file_name(m->file.path);
	enum map_unit found = find_unit(t);

	if (!(t->most > 0) && found != MAP_HU)
		return err_set(err, EBADMSG, "%s: no value is above 0: nothing attenuates", name);
	if (m->unit == MAP_UNKNOWN && found == MAP_UNKNOWN)
		return err_set(
			err, EBADMSG,
			"%s: its unit is not known: values up to %.4g, and no part of a body that is water (0.096/cm) in %s: state "
			"it, as unit=1/cm",
			name, t->most, MAP_FILE_UNITS);
	if (m->unit == MAP_UNKNOWN && found == MAP_TEN_THOUSANDTHS)
		return err_set(
			err, EBADMSG,
			"%s: values up to %.4g with water at about 1000: 10000/cm, or a CT whose offset of 1000 or 1024 is missing: state "
			"unit=10000/cm, or subtract the offset and state unit=HU",
			name, t->most);
	m->found = m->unit == MAP_UNKNOWN;
	if (m->found)
		m->unit = found;
	if (found != MAP_UNKNOWN && found != m->unit)
		return err_set(err, EBADMSG, "%s: its unit is stated as %s, but its values, up to %.4g, have water in %s%s", name,
			       map_unit_name(m->unit), t->most, map_unit_name(found),
			       m->unit == MAP_HU && found == MAP_TEN_THOUSANDTHS ? ", or an offset of 1000 or 1024 is missing"
										 : "");
	if (m->unit != MAP_HU && m->kvp > 0)
		return err_set(err, EBADMSG, "%s: a tube voltage is stated, %g kV, but its unit is %s, not HU", name, m->kvp,
			       map_unit_name(m->unit));
	if (m->unit != MAP_HU && t->most * units[m->unit].per_mm > MAP_FILE_MOST * (1 + ROUNDING))
		return err_set(
			err, EBADMSG,
			"%s: values up to %.4g, which in %s are %.4g/cm; of a body and a table it is %g/cm at most: another "
			"unit, or no map",
			name, t->most, map_unit_name(m->unit), 10 * t->most * units[m->unit].per_mm, 10 * MAP_FILE_MOST);
	return 0;
}

static void convert_values(struct map_file *m, const float *values)
{
	const int *n = m->file.n;
	double scale = m->unit == MAP_HU ? 1 : 1e5 * units[m->unit].per_mm, offset = m->unit == MAP_HU ? 0 : HU_OFFSET;

	for (int k = 0; k < n[2]; k++)
		for (int j = 0; j < n[1]; j++)
			for (int i = 0; i < n[0]; i++)
				m->hu[(size_t)i * m->stride[0] + (size_t)j * m->stride[1] + (size_t)k * m->stride[2]] =
					(int16_t)lrint(fmin(fmax((double)*values++ * scale - offset, INT16_MIN), INT16_MAX));
}

size_t map_file_bytes(const struct map_file *m)
{
	return volume_file_count(&m->file) * (sizeof(float) + sizeof(*m->hu));
}

int map_file_read(struct map_file *m, struct err *err)
{
	size_t n = volume_file_count(&m->file);
	struct taking t = {.m = m, .values = malloc(n * sizeof(float)), .least = INFINITY, .most = -INFINITY};
	int rc = 0;

	m->hu = malloc(n * sizeof(*m->hu));
	if (!t.values || !m->hu)
		rc = err_set(err, ENOMEM, "%s: no memory for %zu voxels", file_name(m->file.path), n);
	if (rc == 0)
		rc = volume_file_read(&m->file, take_values, &t, err);
	if (rc == 0)
		rc = decide_unit(m, &t, err);
	if (rc == 0)
		convert_values(m, t.values);
	free(t.values);
	if (rc < 0)
		map_file_clear(m);
	return rc;
}

void map_file_clear(struct map_file *m)
{
	free(m->hu);
	m->hu = NULL;
}
