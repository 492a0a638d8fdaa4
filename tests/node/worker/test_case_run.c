/* SPDX-License-Identifier: Apache-2.0 */
/* Several results of the same images: what one case keeps, the next uses instead of the files, with the same result to the byte;
 * nothing is used for other files, other content, or other decisions. */
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

#include <sys/syscall.h>

#include "node/base/digest.h"
#include "node/base/folder.h"
#include "node/cluster/pilot_case.h"
#include "node/worker/case_run.h"
#include "node/worker/detached_case.h"
#include "tests/node/sinogram/sinogram_fixture.h"

#define FILES_MAX 16

static const char conf_text[] =
	"protocols = ("
	" { name = \"osem\"; stored_step = 1e-5; voxel = 1.0; slice_spacing = 3.0; deterministic = true; },"
	" { name = \"fbp\"; algorithm = \"fbp\"; stored_step = 1e-5; voxel = 1.0; slice_spacing = 3.0; deterministic = true; },"
	" { name = \"bits\"; stored_step = 1e-5; stored_bits = 12; voxel = 1.0; slice_spacing = 3.0; deterministic = true; },"
	" { name = \"coarse\"; stored_step = 1e-5; voxel = 2.0; slice_spacing = 3.0; deterministic = true; },"
	" { name = \"scatter\"; stored_step = 1e-5; voxel = 1.0; slice_spacing = 3.0; scatter_correction = true; deterministic = "
	"true; },"
	" { name = \"air\"; stored_step = 1e-5; voxel = 1.0; slice_spacing = 3.0; breast_mask = false; deterministic = true; },"
	" { name = \"strict\"; stored_step = 1e-5; voxel = 1.0; slice_spacing = 3.0; require_quantitative = true; },"
	" { name = \"pet-a\"; kind = \"pet\"; algorithm = \"mlem\"; iterations = 2; matrix = 8; deterministic = true; },"
	" { name = \"pet-b\"; kind = \"pet\"; algorithm = \"osem\"; iterations = 1; subsets = 2; matrix = 8; deterministic = "
	"true; },"
	" { name = \"frames\"; kind = \"pet\"; algorithm = \"mlem\"; iterations = 1; matrix = 8; frames = \"2x60\"; },"
	" { name = \"ramp\"; kind = \"parallel\"; algorithm = \"fbp\"; filter = \"ram-lak\"; matrix = 8; },"
	" { name = \"hann\"; kind = \"parallel\"; algorithm = \"fbp\"; filter = \"hann\"; matrix = 8; } );"
	"profiles = ( { name = \"bench\"; manufacturer = \"Bench*\"; model = \"One\"; axis_height = 40.0; source_axis = 600.0;"
	"  support = 20.0; pitch = 1.0; i0_mode = \"percentile\"; i0 = 90.0; } );";

static struct config *conf;
static struct device *dev;
static char from[64], to[64]; /* folders of the images and of the result */

/* Takes the place of the C library's function: the same wall clock for all results. */
int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
	if (clock_id == CLOCK_REALTIME) {
		*tp = (struct timespec){.tv_sec = 1782726000};
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, clock_id, tp);
}

static int start(void **state)
{
	struct err err = {0};

	if (fixture_start(state) < 0 || config_parse(conf_text, "test.conf", NULL, NULL, &conf, &err) < 0 ||
	    device_open("cpu:2", &dev, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	strcpy(from, fixture_folder);
	strcpy(folder, fixture_folder);
	test_folder(to, sizeof(to));
	return 0;
}

static int stop(void **state)
{
	device_close(dev);
	config_free(conf);
	return fixture_stop(state);
}

/* ---- orders and results ---- */

static void read_row(const char *name, struct instance_row *row)
{
	struct dicom_file *file = NULL;
	struct err err = {0};
	uint8_t head[144];
	int fd = open(in_folder(name), O_RDONLY);

	*row = (struct instance_row){.transfer_syntax = "1.2.840.10008.1.2.1"};
	strcpy(row->file, name);
	assert_int_equal(dicom_open(in_folder(name), &file, &err), 0);
	dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, row->sop_class, sizeof(row->sop_class), &err);
	dicom_get_text(dicom_root(file), TAG_SOP_INSTANCE_UID, row->sop_instance, sizeof(row->sop_instance), &err);
	dicom_close(file);
	assert_int_equal(read(fd, head, sizeof(head)), sizeof(head));
	lseek(fd, 144 + head[140] + 256 * head[141], SEEK_SET);
	assert_int_equal(digest_rest(fd, NULL, NULL, row->digest, &err), 0);
	close(fd);
}

/* An order for all files of the folder. */
static struct case_order order_of_files(void)
{
	struct paths p = find_paths();
	struct case_order order = {.job = 7, .n_files = p.n, .files = calloc(p.n, sizeof(*order.files))};

	for (size_t i = 0; i < p.n; i++)
		read_row(file_name(p.path[i]), &order.files[i]);
	free_paths(&p);
	return order;
}

static struct case_outcome run_with(struct case_order *order, const char *protocol, bool keep, struct case_kept *kept,
				    const struct monitor *monitor)
{
	const struct case_run_conf c = {
		.config = conf, .dev = dev, .kept = kept, .folder = from, .out_dir = to, .monitor = monitor};
	struct case_outcome outcome;

	snprintf(order->protocol, sizeof(order->protocol), "%s", protocol);
	order->keep = keep;
	assert_int_equal(folder_empty(to, NULL), 0);
	case_run(&c, order, &outcome);
	return outcome;
}

/* None is negative or longer than a test. value: s, or an object of them. */
static void check_times(const char *name, const json_t *value)
{
	json_t *member;
	const char *key;

	if (!(json_number_value(value) > -1e-3 && json_number_value(value) < 600)) /* a difference of differences */
		fail_msg("%s: %g", name, json_number_value(value));
	json_object_foreach((json_t *)value, key, member) check_times(key, member);
}

/* Check and remove all members that are times. */
static void mask_times(json_t *value)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;

	json_object_foreach_safe(value, next, key, member)
	{
		if (!strncmp(key, "seconds", 7)) {
			check_times(key, member);
			json_object_del(value, key);
		} else {
			mask_times(member);
		}
	}
	json_array_foreach(value, i, member)
	{
		mask_times(member);
	}
}

/* The detail with the digest of every object; to be freed. */
static char *result(struct case_order *order, const char *protocol, bool keep, struct case_kept *kept)
{
	struct case_outcome outcome = run_with(order, protocol, keep, kept, NULL);
	char *text;

	if (outcome.why.code)
		fail_msg("%s: %s", protocol, outcome.why.msg);
	mask_times(outcome.detail);
	text = json_dumps(outcome.detail, JSON_SORT_KEYS | JSON_INDENT(1));
	assert_non_null(strstr(text, "\"digest\""));
	case_outcome_clear(&outcome);
	return text;
}

static void hide_files(bool hide)
{
	char away[80];

	snprintf(away, sizeof(away), "%s.away", from);
	if (hide)
		assert_int_equal(rename(from, away) | mkdir(from, 0700), 0);
	else
		assert_int_equal(rmdir(from) | rename(away, from), 0);
}

/* Results of these protocols one after the other, the files hidden after the first, are those that each protocol has alone. */
static void same_in_a_row(const char *const *protocols)
{
	struct case_order order = order_of_files();
	struct case_kept kept = {0};
	char *alone[8], *shared;
	size_t n;

	for (n = 0; protocols[n]; n++)
		alone[n] = result(&order, protocols[n], true, NULL);
	for (size_t i = 0; i < n; i++) {
		shared = result(&order, protocols[i], i + 1 < n, &kept);
		assert_string_equal(shared, alone[i]);
		free(shared);
		assert_int_equal(kept.data.work != NULL, i + 1 < n);
		assert_int_equal(kept.data.bytes > 0, i + 1 < n);
		if (i == 0)
			hide_files(true);
	}
	hide_files(false);
	assert_null(kept.order.files);
	for (size_t i = 0; i < n; i++)
		free(alone[i]);
	case_order_clear(&order);
}

#define ROW(...) same_in_a_row((const char *const[]){__VA_ARGS__, NULL})

/* Air in the outer half of all views but the third, which is prepared twice. */
static void part_air(int view, uint16_t ret[ROWS * COLUMNS])
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			ret[i * COLUMNS + j] = (uint16_t)(view != 2 && j >= COLUMNS / 2 ? 3000 : 400 + 3 * ((i + j + view) % 7));
}

TEST(test_tomosynthesis)
{
	for (int air = 0; air < 2; air++) {
		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .pixels = air ? part_air : NULL});
		ROW("osem", "fbp", "bits");
		ROW("osem", "scatter", "osem", "coarse", "air", "scatter", "scatter");
		ROW("coarse", "coarse");
	}
	fixture_write_bp(NULL);
	ROW("osem", "coarse", "fbp");
}

TEST(test_pet)
{
	fixture_clean();
	write_objects(EMISSION | ADDITIVE | 1u << SINOGRAM_ATTENUATION, 100, N_BASICS, basics);
	ROW("pet-a", "pet-b", "pet-a");
}

TEST(test_parallel)
{
	static const struct parallel_scan beams = {
		.n_slices = 3, .n_angles = ANGLES, .n_radial = RADIAL, .bin = 1.5, .slice = 2, .arc = 180};
	char *set[] = {"PatientPosition=HFS"};
	struct sinogram_arrays a = {.beams = &beams, .duration = NAN};
	struct sinogram_import import = {.set = set, .n_set = 1, .folder = folder, .chunk = 100, .now = 1782726000};
	struct err err = {0};
	float lines[3 * ANGLES * RADIAL];
	size_t n;

	fixture_clean();
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		lines[i] = (float)i * 0.37f;
	a.values[SINOGRAM_LINES] = lines;
	assert_int_equal(sinogram_write(&a, &import, &n, &err), 0);
	ROW("ramp", "hann", "ramp");
}

/* ---- what is not used ---- */

static void must_fail(struct case_order *order, const char *protocol, struct case_kept *kept, int code, const char *part)
{
	struct case_outcome outcome = run_with(order, protocol, true, kept, NULL);

	if (outcome.why.code != code || !strstr(outcome.why.msg, part))
		fail_msg("%d \"%s\"; wanted %d \"%s\"", outcome.why.code, outcome.why.msg, code, part);
	assert_null(kept->data.work);
	assert_int_equal(kept->data.bytes, 0);
	case_outcome_clear(&outcome);
}

/* Each of these makes it another case: nothing is used, and the missing files are noticed. */
static void change_order(struct case_order *o, int what)
{
	struct instance_row row = o->files[1];

	switch (what) {
	case 0:
		o->files[N_VIEWS - 1].digest[31] ^= 1;
		break;
	case 1:
		strcpy(o->files[2].file, "8.dcm");
		break;
	case 2:
		strcpy(o->files[2].sop_instance, "1.2.3.4.8");
		break;
	case 3:
		strcpy(o->files[2].sop_class, CLASS_PROJECTION_PROCESSING);
		break;
	case 4:
		strcpy(o->files[2].transfer_syntax, "1.2.840.10008.1.2");
		break;
	case 5:
		o->files[1] = o->files[2];
		o->files[2] = row;
		break;
	case 6:
		o->n_files--;
		break;
	case 7:
		o->as_is = true;
		break;
	case 8:
		o->same_patient = true;
		break;
	case 9:
		strcpy(o->header, "1.dcm");
		break;
	case 10:
		o->files[0].digest[0] = '\0';
		break;
	default:
		break;
	}
}

TEST(test_other_case)
{
	struct config *same = conf;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	for (int what = 0; what <= 11; what++) {
		struct case_order order = order_of_files();
		struct case_kept kept = {0};
		struct err err = {0};

		free(result(&order, "osem", true, &kept));
		hide_files(true);
		free(result(&order, "osem", true, &kept)); /* the files are not needed ... */
		change_order(&order, what);
		if (what == 11)
			assert_int_equal(config_parse(conf_text, "test.conf", NULL, NULL, &conf, &err), 0);
		must_fail(&order, "osem", &kept, EBADMSG, "no longer in the spool"); /* ... and here they are */
		hide_files(false);
		case_order_clear(&order);
	}
	config_free(conf);
	conf = same;
}

/* Another exam under the same names: its result is its own, whatever was kept before. */
TEST(test_other_content)
{
	struct case_order order, other;
	struct case_kept kept = {0};
	char *want, *have;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	order = order_of_files();
	free(result(&order, "osem", true, &kept));
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .pixels = part_air});
	other = order_of_files();
	have = result(&other, "osem", true, &kept);
	want = result(&other, "osem", false, NULL);
	assert_string_equal(have, want);
	free(have);
	must_fail(&order, "osem", &kept, EBADMSG, "differ from those that were received"); /* its digests are not those kept */
	free(want);
	case_order_clear(&order);
	case_order_clear(&other);
}

/* ---- errors in between ---- */

static bool cancelled(void *ctx)
{
	(void)ctx;
	return true;
}

static int fail_alloc(struct device *d, size_t n, struct buf *ret, struct err *err)
{
	(void)d;
	(void)n;
	(void)ret;
	return err_set(err, EHWPOISON, "the device fell off the bus");
}

/* After any error nothing is kept; the next result reads the files. */
TEST(test_errors)
{
	const struct monitor stopped = {.cancelled = cancelled};
	const struct device_ops *ops = dev->ops;
	struct device_ops broken = *ops;
	struct case_order order GOES(case_order_clear) = {0};
	struct case_kept kept = {0};
	struct case_outcome outcome;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	order = order_of_files();
	free(result(&order, "osem", true, &kept));
	outcome = run_with(&order, "osem", true, &kept, &stopped);
	assert_int_equal(outcome.why.code, ECANCELED);
	assert_null(kept.data.work);
	case_outcome_clear(&outcome);

	free(result(&order, "osem", true, &kept));
	broken.alloc = fail_alloc;
	dev->ops = &broken;
	must_fail(&order, "fbp", &kept, EHWPOISON, "fell off the bus");
	dev->ops = ops;

	free(result(&order, "osem", true, &kept));
	must_fail(&order, "gone", &kept, ENOKEY, "no longer in the configuration");
	free(result(&order, "osem", true, &kept));
	must_fail(&order, "pet-a", &kept, ENOTSUP, "is for cases of kind pet, but this case is of kind dbt");
	free(result(&order, "osem", true, &kept));
	must_fail(&order, "strict", &kept, EBADMSG, "the attenuation would be relative");
	case_order_clear(&order);

	fixture_clean();
	write_objects(EMISSION, 0, N_BASICS, basics);
	order = order_of_files();
	free(result(&order, "pet-a", true, &kept));
	must_fail(&order, "frames", &kept, ENOTSUP, "cannot be divided");
}

/* A pilot's case: what ends it before it has a result is no outcome, so that another pilot gets it; everything else is one. */
TEST(test_of_a_pilot)
{
	const struct monitor stopped = {.cancelled = cancelled};
	const struct device_ops *ops = dev->ops;
	struct device_ops broken = *ops;
	struct pilot_case c = {.config = (char *)conf_text};
	struct err err = {0};
	char root[64];

	broken.alloc = fail_alloc;
	test_folder(root, sizeof(root));
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(symlink(from, test_path(root, "instances")) | mkdir(test_path(root, "work"), 0700), 0);
	c.order = order_of_files();
	c.order.place.number = 1;
	for (size_t i = 0; i < c.order.n_files; i++) {
		char name[140];

		snprintf(name, sizeof(name), "instances/%s", c.order.files[i].file);
		snprintf(c.order.files[i].file, sizeof(c.order.files[i].file), "%.40s", name);
	}
	for (int way = 0; way < 4; way++) { /* cancelled, a broken device, an error, a result */
		static const int code[] = {ECANCELED, EHWPOISON, 0, 0};
		json_t *body;
		int rc;

		mkdir(test_path(root, "work/7-1"), 0700);
		strcpy(c.order.protocol, way == 2 ? "strict" : "osem");
		body = pilot_case_encode(&c);
		assert_int_equal(json_dump_file(body, test_path(root, "work/7-1.order"), 0), 0);
		json_decref(body);
		dev->ops = way == 1 ? &broken : ops;
		rc = detached_case_run(root, 7, 1, dev, NULL, way == 0 ? &stopped : NULL, &err);
		if (rc != -code[way])
			fail_msg("way %d: %d \"%s\"", way, rc, err.msg);
		dev->ops = ops;
		assert_int_equal(access(test_path(root, "work/7-1.outcome"), F_OK), code[way] ? -1 : 0);
	}
	case_order_clear(&c.order);
}

/* ---- memory ---- */

struct room {
	size_t free, held; /* bytes */
	int freed;
};

static int reserve(void *ctx, size_t device, size_t host)
{
	struct room *r = ctx;

	if (device + host == 0) {
		r->held = 0;
		r->freed++;
	}
	if (r->held && device + host > r->free)
		return -EAGAIN;
	r->held = device + host;
	return 0;
}

/* Where the memory does not allow it nothing is kept; where the next plan does not fit beside what is kept, this is freed first.
 */
TEST(test_memory)
{
	struct room room = {.free = SIZE_MAX};
	const struct monitor monitor = {.ctx = &room, .reserve = reserve};
	struct case_order order GOES(case_order_clear) = {0};
	struct case_kept kept = {0};
	struct case_outcome outcome;
	size_t plan, with;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	order = order_of_files();
	outcome = run_with(&order, "osem", false, &kept, &monitor);
	plan = room.held;
	case_outcome_clear(&outcome);
	room.held = 0;
	outcome = run_with(&order, "osem", true, &kept, &monitor);
	with = room.held;
	case_outcome_clear(&outcome);
	assert_int_equal(with - plan, kept.data.bytes);
	assert_int_equal(kept.data.bytes, N_VIEWS * ROWS * COLUMNS * (2 + 2 * sizeof(float)));

	room = (struct room){.free = with - 1, .held = kept.data.bytes};
	outcome = run_with(&order, "osem", true, &kept, &monitor);
	assert_int_equal(outcome.why.code, 0);
	case_outcome_clear(&outcome);
	assert_int_equal(room.freed, 1); /* then everything was read again, and not kept */
	assert_int_equal(room.held, plan);
	assert_null(kept.data.work);

	for (size_t less = 0; less < 2; less++) { /* the control group */
		room = (struct room){.free = SIZE_MAX};
		dev->host_memory = with - less;
		outcome = run_with(&order, "osem", true, &kept, &monitor);
		assert_int_equal(outcome.why.code, 0);
		case_outcome_clear(&outcome);
		assert_int_equal(kept.data.work == NULL, less);
	}
	dev->host_memory = 0;
}

TESTS_SETUP(start, stop);
