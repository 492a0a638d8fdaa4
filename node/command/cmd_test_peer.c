/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_test_peer.c - `tomonode test-peer NAME`: test whether results can be delivered to a destination.
 *
 * Steps, each with its duration and its result in words: association, whether it accepts the objects that the routes send there,
 * C-ECHO, C-STORE of a small object, and whether it accepts requests for storage commitment, if they are configured; for a
 * DICOMweb service one, STOW-RS of the object. No commitment is requested: the report would come to the node, which knows of no
 * request. The object is a Secondary Capture of a fictitious patient, "TOMONODE^TEST", with new UIDs, so that it is recognised in
 * the archive.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dicom/network/commit.h"
#include "dicom/network/store_scu.h"
#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"
#include "kernels/clock.h"
#include "node/base/nearest.h"
#include "node/command/commands.h"
#include "node/deliver/deliver.h"
#include "node/deliver/destination.h"
#include "node/options/options.h"
#include "node/reconstruct/reconstruct.h"
#include "node/sandbox/user.h"

#define IMPLICIT_LITTLE_ENDIAN "1.2.840.10008.1.2"
#define EXPLICIT_LITTLE_ENDIAN "1.2.840.10008.1.2.1"
#define JPEG_LS_LOSSLESS "1.2.840.10008.1.2.4.80"
#define PICTURE 64     /* rows and columns */
#define CONTEXTS_MAX 9 /* the classes of results, each also compressed, and that of the test object */

static const struct option_spec option_table[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults", .type = OPTION_INTO_TEXT},
	{0},
};
static const struct command_spec spec = {
	.name = "test-peer",
	.usage = "[-c FILE] [--json] NAME",
	.summary = "Test a destination: C-ECHO and C-STORE, or STOW-RS, of a small object of the patient TOMONODE^TEST.",
	.text = "NAME is a destination of the configuration. A DICOM peer must also accept the classes of the results that the "
		"routes send to it, and storage commitment if it is configured. The destination keeps the object; remove it "
		"there.",
	.options = option_table,
	.json = true,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode test-peer pacs\n",
};

struct test {
	const struct options *o;
	const struct destination_conf *to;
	json_t *steps;
	char sop_instance[DICOM_UID_SIZE];
	double began;
	bool ours;	      /* the failure is on this side, not at the peer */
	const char *refusing; /* the AE title that did not accept an association; NULL: all did */
	bool stored;
	struct scu_context contexts[CONTEXTS_MAX]; /* of the test object, then those of the results */
	size_t n_contexts;
};

static void step_begin(struct test *t)
{
	t->began = clock_seconds();
}

static void step_end(struct test *t, const char *step, bool ok, const char *answer)
{
	double ms = 1e3 * (clock_seconds() - t->began);

	json_array_append_new(t->steps, json_pack("{s:s, s:b, s:f, s:s}", "step", step, "ok", ok, "ms", ms, "answer", answer));
	if (!t->o->json)
		printf("%-12s %-6s %8.1f ms  %s\n", step, ok ? "ok" : "FAILED", ms, answer);
}

/* Write the attributes of a Secondary Capture that archives require. */
static int fill_header(struct dicom_item *root, struct err *err)
{
	static const struct {
		uint32_t tag;
		const char *text;
	} texts[] = {
		{DICOM_TAG(0x0008, 0x0008), "DERIVED\\SECONDARY\\OTHER"},
		{DICOM_TAG(0x0008, 0x0060), "OT"},
		{DICOM_TAG(0x0008, 0x0064), "SYN"},
		{DICOM_TAG(0x0008, 0x0070), "tomonode"},
		{DICOM_TAG(0x0008, 0x1030), "tomonode test-peer"},
		{DICOM_TAG(0x0008, 0x103E), "phantom, not a patient"},
		{DICOM_TAG(0x0010, 0x0010), "TOMONODE^TEST"},
		{DICOM_TAG(0x0010, 0x0020), "TOMONODE-TEST"},
		{DICOM_TAG(0x0020, 0x0010), "TEST"},
		{DICOM_TAG(0x0028, 0x0004), "MONOCHROME2"},
	};
	static const uint32_t empty[] = {DICOM_TAG(0x0008, 0x0050), DICOM_TAG(0x0008, 0x0090), DICOM_TAG(0x0010, 0x0030),
					 DICOM_TAG(0x0010, 0x0040), DICOM_TAG(0x0020, 0x0020)};
	static const struct {
		uint32_t tag;
		long value;
	} numbers[] = {
		{DICOM_TAG(0x0020, 0x0011), 1},	 {DICOM_TAG(0x0020, 0x0013), 1},       {DICOM_TAG(0x0028, 0x0008), 1},
		{DICOM_TAG(0x0028, 0x0002), 1},	 {DICOM_TAG(0x0028, 0x0010), PICTURE}, {DICOM_TAG(0x0028, 0x0011), PICTURE},
		{DICOM_TAG(0x0028, 0x0100), 16}, {DICOM_TAG(0x0028, 0x0101), 16},      {DICOM_TAG(0x0028, 0x0102), 15},
		{DICOM_TAG(0x0028, 0x0103), 0},
	};
	char uid[DICOM_UID_SIZE], text[16];
	time_t now = time(NULL);
	struct tm local;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		rc = dicom_put_text(root, texts[i].tag, texts[i].text, err);
	for (size_t i = 0; rc >= 0 && i < sizeof(empty) / sizeof(empty[0]); i++)
		rc = dicom_put_empty(root, empty[i], err);
	for (size_t i = 0; rc >= 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		rc = dicom_put_int(root, numbers[i].tag, numbers[i].value, err);
	for (uint16_t element = 0x000D; rc >= 0 && element <= 0x000E;
	     element++) { /* (0020,000D) and (0020,000E): UIDs of study and series */
		dicom_uid_random(uid);
		rc = dicom_put_text(root, DICOM_TAG(0x0020, element), uid, err);
	}
	localtime_r(&now, &local);
	strftime(text, sizeof(text), "%Y%m%d", &local);
	if (rc >= 0)
		rc = dicom_put_text(root, DICOM_TAG(0x0008, 0x0020), text, err);
	strftime(text, sizeof(text), "%H%M%S", &local);
	if (rc >= 0)
		rc = dicom_put_text(root, DICOM_TAG(0x0008, 0x0030), text, err);
	return rc;
}

/* Draw a cross on a ramp: the orientation is visible, and the picture cannot be mistaken for a breast. */
static void draw_cross(uint16_t *values)
{
	for (int row = 0; row < PICTURE; row++)
		for (int column = 0; column < PICTURE; column++)
			values[row * PICTURE + column] =
				row == column || row == PICTURE - 1 - column ? 65535 : (uint16_t)(row * 512 + column);
}

static int write_object(const char *path, const char *sop_instance, struct err *err)
{
	struct dicom_file *file = NULL;
	struct dicom_writer *w = NULL;
	uint16_t values[PICTURE * PICTURE];
	int rc = dicom_new(CLASS_SECONDARY_CAPTURE, sop_instance, &file, err);

	if (rc < 0)
		goto out;
	rc = fill_header(dicom_root(file), err);
	if (rc < 0)
		goto out;
	rc = dicom_writer_open(path, file, NULL, &w, err);
	if (rc < 0)
		goto out;
	draw_cross(values);
	rc = dicom_writer_frame(w, values, err);
	if (rc < 0)
		goto out;
	rc = dicom_writer_close(w, err);
	w = NULL;
out:
	dicom_writer_abort(w);
	dicom_close(file);
	return rc;
}

/* Make a file of the test object in a folder of its own. The caller calls remove_object(). */
static int make_object(struct test *t, char *ret_path, size_t size, struct err *err)
{
	const char *base = getenv("TMPDIR");
	char folder[4096];

	if (snprintf(folder, sizeof(folder), "%s/tomonode-XXXXXX", base && base[0] ? base : "/tmp") >= (int)sizeof(folder) ||
	    !mkdtemp(folder)) {
		ret_path[0] = '\0';
		return err_set(err, EIO, "no temporary folder in %s: %s", base && base[0] ? base : "/tmp", strerror(errno));
	}
	snprintf(ret_path, size, "%s/test.dcm", folder);
	dicom_uid_random(t->sop_instance);
	return write_object(ret_path, t->sop_instance, err);
}

static void remove_object(char *path)
{
	char *name = strrchr(path, '/');

	if (!name)
		return;
	unlink(path);
	*name = '\0';
	rmdir(path);
}

static int store_object(struct test *t, void *session, struct err *err)
{
	const struct destination_kind_actions *actions = destination_actions(t->to);
	struct store_result result = {.outcome = DELIVER_TRANSIENT};
	char path[4200], answer[540];
	int rc = make_object(t, path, sizeof(path), err);

	t->ours = rc < 0;
	step_begin(t);
	if (rc >= 0)
		actions->store(session, path, t->sop_instance, &result);
	remove_object(path);
	if (rc >= 0 && result.code)
		rc = err_set(err, result.code, "%s", result.reason);
	if (rc < 0) {
		step_end(t, actions->verb, false, err->msg);
		return rc;
	}
	t->stored = result.outcome == DELIVER_STORED;
	snprintf(answer, sizeof(answer), "%s%s%s", result.status, result.status[0] ? ": " : "", result.reason);
	step_end(t, actions->verb, t->stored, answer);
	return t->stored ? 0
			 : err_set(err, EACCES, "destination '%s' responded to %s with %s", t->to->name, actions->verb, answer);
}

/* Return true if results for the destination `name` may come to `to`: it is the same, or a fallback of it. */
static bool leads_to(const struct config *config, const char *name, const struct destination_conf *to)
{
	const struct destination_conf *d = config_destination(config, name);

	for (size_t i = 0; d && i <= config->n_destinations; i++) {
		if (d == to)
			return true;
		d = config_destination(config, d->fallback);
	}
	return false;
}

static void add_context(struct test *t, const char *sop_class, const char *transfer_syntax)
{
	struct scu_context *c = &t->contexts[t->n_contexts];

	for (size_t i = 0; i < t->n_contexts; i++)
		if (!strcmp(t->contexts[i].sop_class, sop_class) && !strcmp(t->contexts[i].transfer_syntax, transfer_syntax))
			return;
	if (t->n_contexts == CONTEXTS_MAX)
		return;
	snprintf(c->sop_class, sizeof(c->sop_class), "%s", sop_class);
	snprintf(c->transfer_syntax, sizeof(c->transfer_syntax), "%s", transfer_syntax);
	t->n_contexts++;
}

/* Add what the routes send to the destination. */
static void add_results(struct test *t, const struct config *config)
{
	for (size_t i = 0; i < config->n_routes; i++) {
		const struct route_conf *route = &config->routes[i];
		bool used = false;

		for (size_t k = 0; k < route->destinations.n; k++)
			used = used || leads_to(config, route->destinations.name[k], t->to);
		for (size_t k = 0; used && k < route->protocols.n; k++) {
			const struct protocol_conf *p = config_protocol(config, route->protocols.name[k]);
			const char *classes[RECONSTRUCT_CLASSES_MAX];
			size_t n = p ? reconstruct_classes(p, classes) : 0;

			for (size_t c = 0; c < n; c++)
				add_context(t, classes[c],
					    p->compression == COMPRESSION_JPEGLS ? JPEG_LS_LOSSLESS : EXPLICIT_LITTLE_ENDIAN);
		}
	}
}

/* Does the peer accept what the routes send to it? */
static int check_results(struct test *t, const struct scu *scu, struct err *err)
{
	char good[400] = "", bad[400] = "";
	int rc = 0;

	step_begin(t);
	for (size_t i = 1; i < t->n_contexts; i++) {
		bool accepted = scu_accepts(scu, &t->contexts[i]);
		char *text = accepted ? good : bad;
		size_t n = strlen(text);

		snprintf(text + n, sizeof(good) - n, "%s%s", n ? ", " : "", dicom_uid_name(t->contexts[i].sop_class));
	}
	if (bad[0])
		rc = err_set(err, ENOTSUP, "destination '%s' does not accept what the routes send to it: %s", t->to->name, bad);
	step_end(t, "results", rc == 0, rc < 0 ? err->msg : good);
	return rc;
}

/* Would the peer take a request for storage commitment? */
static int check_commitment(struct test *t, const struct config *config, struct err *err)
{
	const struct scu_context context = {COMMIT_CLASS, IMPLICIT_LITTLE_ENDIAN};
	struct scu_peer peer = destination_commitment_peer(config, t->to);
	struct scu *scu = NULL;
	int rc;

	step_begin(t);
	rc = scu_open(&peer, &context, 1, &scu, err);
	if (rc >= 0 && !scu_accepts(scu, &context))
		rc = err_set(err, ENOTSUP, "destination '%s' does not accept requests for storage commitment", t->to->name);
	scu_close(scu);
	step_end(
		t, "commitment", rc >= 0,
		rc < 0 ? err->msg
		       : "it accepts associations for requests; none was made: a case that becomes delivered proves that it answers them");
	return rc;
}

/* The steps of an open association. All are tried; the first failure is returned. */
static int run_association(struct test *t, const struct config *config, struct scu *scu, struct err *err)
{
	struct err other = {0};
	int rc = t->n_contexts > 1 ? check_results(t, scu, err) : 0, ret;

	step_begin(t);
	ret = scu_echo(scu, rc < 0 ? &other : err);
	step_end(t, "C-ECHO", ret >= 0, ret >= 0 ? "success" : rc < 0 ? other.msg : err->msg);
	if (ret >= 0 && (t->n_contexts == 1 || scu_accepts(scu, &t->contexts[0])))
		ret = store_object(t, scu, rc < 0 ? &other : err);
	rc = rc < 0 ? rc : ret;
	if (t->to->commitment)
		ret = check_commitment(t, config, rc < 0 ? &other : err);
	if (t->to->commitment && rc >= 0 && ret < 0)
		t->refusing = destination_commitment_peer(config, t->to).called;
	return rc < 0 ? rc : ret;
}

static int run_steps(struct test *t, const struct config *config, struct err *err)
{
	const struct destination_kind_actions *actions = destination_actions(t->to);
	void *session = NULL;
	int rc;

	add_context(t, CLASS_SECONDARY_CAPTURE, EXPLICIT_LITTLE_ENDIAN);
	add_results(t, config);
	step_begin(t);
	rc = actions->open(config, t->to, t->contexts, t->n_contexts, &session, err);
	if (actions->association || rc < 0)
		step_end(t, actions->association ? "association" : actions->verb, rc >= 0, rc < 0 ? err->msg : "accepted");
	t->refusing = rc < 0 ? t->to->aet : NULL;
	t->ours = rc < 0 && !actions->association && !actions->check; /* nothing was sent; a folder is the peer itself */
	if (rc >= 0)
		rc = actions->association ? run_association(t, config, session, err) : store_object(t, session, err);
	if (actions->close)
		actions->close(session);
	return rc;
}

/* Write what is known if the peer ended the association without a reason; "": it gave a reason, or was not asked. */
static void hint_cause(const struct test *t, const struct config *config, const struct err *err, char *ret, size_t size)
{
	const struct destination_conf *to = t->to;

	ret[0] = '\0';
	if (!destination_actions(to)->association)
		return;
	if (!t->refusing && (err->code == ECONNRESET || err->code == ECONNABORTED))
		snprintf(
			ret, size,
			"It had accepted an association of %s, and ended it without a reason; its log may have one, such as a right "
			"that %s does not have there",
			config->node.aet, config->node.aet);
	else if (err->code == ECONNABORTED || (err->code == ECONNRESET && !to->tls)) /* else TLS failed: nothing was asked */
		snprintf(
			ret, size,
			"It gave no reason; its log may have one. It was asked by AE title %s, from this machine's address%s, for "
			"AE title %s: compare these with what is registered there",
			config->node.aet, to->tls ? ", with the certificate of this destination" : "", t->refusing);
}

static int refuse_name(const struct options *o, const struct config *config, const char *name)
{
	char names[1024] = "", hint[NEAREST_HINT];
	size_t n = 0;

	for (size_t i = 0; i < config->n_destinations && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", config->destinations[i].name);
	return options_fail(o, CODE_NOT_FOUND, "no destination '%s' in %s%s; there %s %s", name,
			    config->path[0] ? config->path : "the embedded defaults",
			    nearest_hint(nearest_in_array(name, config->n_destinations ? config->destinations[0].name : NULL,
							  config->n_destinations, sizeof(config->destinations[0])),
					 hint),
			    config->n_destinations == 1 ? "is" : "are", n ? names : "none");
}

/* What needs no connection is tested with the rights that the node has. */
static int become_user(const struct config *config, const struct destination_conf *to, struct err *err)
{
	struct user user;

	if (!destination_actions(to)->check || geteuid() != 0 || !config->node.user[0])
		return 0;
	umask(0027);
	return user_look_up(config->node.user, 0, &user, err) < 0 ? -err->code : user.change ? user_become(&user, err) : 0;
}

int cmd_test_peer(int argc, char **argv)
{
	struct config *config = NULL;
	struct err err = {0};
	struct options o;
	struct test t = {.o = &o};
	const char *path = NULL;
	char why[500];
	int code, rc;

	options_begin(&o, &spec, argc, argv);
	o.into = &path;
	if (options_next(&o) == OPTION_STOP)
		return o.code;
	code = options_config(&o, path, &config);
	if (code != CODE_OK)
		return code;
	t.to = config_destination(config, argv[o.first]);
	if (!t.to) {
		code = refuse_name(&o, config, argv[o.first]);
		goto out;
	}
	rc = become_user(config, t.to, &err);
	if (rc < 0) {
		code = options_fail(&o, options_code(&err), "%s", err.msg);
		goto out;
	}
	t.steps = json_array();
	destination_actions(t.to)->describe(t.to, why, sizeof(why));
	if (!o.json)
		printf("%s: %s%s%s\n", t.to->name, why, destination_actions(t.to)->association ? ", our AE title is " : "",
		       destination_actions(t.to)->association ? config->node.aet : "");
	rc = run_steps(&t, config, &err);
	code = rc >= 0 ? CODE_OK : t.ours ? CODE_FAILED : CODE_PEER;
	hint_cause(&t, config, &err, why, sizeof(why));
	if (o.json) {
		json_t *root = json_pack("{s:b, s:i, s:s, s:s, s:o}", "ok", rc >= 0, "code", code, "destination", t.to->name,
					 "sop_instance", t.sop_instance, "steps", json_incref(t.steps));

		if (root && rc < 0)
			json_object_set_new(root, "error", json_string(err.msg));
		if (root && why[0])
			json_object_set_new(root, "hint", json_string(why));
		rc = options_json(root);
		code = rc == CODE_OK ? code : rc;
	} else if (rc < 0) {
		fprintf(stderr, "tomonode test-peer: %s%s%s\n", err.msg, why[0] ? "\n" : "", why);
	} else if (t.stored) {
		printf("The object %s of the patient TOMONODE^TEST is now at the destination.\n", t.sop_instance);
	}
out:
	json_decref(t.steps);
	config_free(config);
	return code;
}
