/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/seat_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "kernels/order.h"
#include "node/base/digest.h"
#include "node/base/folder.h"

/* Whose a header is. */
struct owner {
	struct patient_identity patient;
	char study[DICOM_UID_SIZE];
};

struct check {
	struct journal *journal;
	const char *spool;
	const struct case_order *order;
	bool known; /* `owner` is set: all objects must have it */
	struct owner owner;
	const char **uids; /* SOP Instance UIDs of the objects */
};

static void read_owner(struct dicom_file *file, struct owner *ret_owner)
{
	*ret_owner = (struct owner){0};
	patient_read(dicom_root(file), NULL, &ret_owner->patient);
	if (dicom_get_text(dicom_root(file), TAG_STUDY_INSTANCE_UID, ret_owner->study, sizeof(ret_owner->study), NULL) != 1)
		ret_owner->study[0] = '\0';
}

static int open_image(const struct check *c, size_t i, struct owner *ret_owner, struct err *err)
{
	const char *name = c->order->files[i].file;
	struct dicom_file *file = NULL;
	struct err why = {0};
	char path[500];

	if (snprintf(path, sizeof(path), "%s/%s", c->spool, name) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "the path of %s in the spool is too long", name);
	if (dicom_open(path, &file, &why) < 0)
		return err_set(err, EIO, "the result cannot be compared with the image %s: %s", name, why.msg);
	read_owner(file, ret_owner);
	dicom_close(file);
	return 0;
}

static bool is_same(const struct owner *a, const struct owner *b)
{
	return !memcmp(&a->patient, &b->patient, sizeof(a->patient)) && !strcmp(a->study, b->study);
}

static int refuse_different(const char *name, const struct owner *object, const struct owner *image, struct err *err)
{
	struct patient_conflict conflict = {0};
	char text[400];

	for (int a = 0; a < PATIENT_ATTRIBUTES; a++)
		if (object->patient.digest[a] != image->patient.digest[a])
			conflict.attributes |= 1u << a;
	if (conflict.attributes) {
		patient_conflict_text(&conflict, "between it and the images", text, sizeof(text));
		return err_set(err, EBADMSG, "the object %s is not of the case: %s", name, text);
	}
	return err_set(err, EBADMSG,
		       "the object %s is not of the case: its Study Instance UID %s is %s, that of the images is %s", name,
		       tag_text(TAG_STUDY_INSTANCE_UID), object->study, image->study);
}

/* Find the image that the object's header is from. The headers of a case usually agree, so that the first one fits. */
static int find_owner(struct check *c, const char *name, const struct owner *object, struct err *err)
{
	const struct case_order *order = c->order;
	struct owner image = {0};
	bool found = false;

	for (size_t i = order->n_files; i-- > 0;) {
		const char *file = order->files[i].file;
		int ret;

		if (order->same_patient && order->header[0] && strcmp(file_name(file), file_name(order->header)) != 0)
			continue;
		ret = open_image(c, i, &image, err);
		if (ret < 0)
			return ret;
		found = true;
		if (is_same(object, &image)) {
			c->owner = image;
			c->known = true;
			return 0;
		}
		if (order->same_patient) /* without a name of a file it is the last one */
			break;
	}
	if (!found)
		return err_set(err, EIO, "the header %s is not among the images of the case", order->header);
	return refuse_different(name, object, &image, err);
}

static int check_owner(struct check *c, const char *name, struct dicom_file *file, struct err *err)
{
	struct owner object;

	read_owner(file, &object);
	if (!c->known)
		return find_owner(c, name, &object, err);
	return is_same(&object, &c->owner) ? 0 : refuse_different(name, &object, &c->owner, err);
}

static int check_uids(const char *name, struct dicom_file *file, const json_t *object, struct err *err)
{
	static const struct {
		uint32_t tag;
		const char *key, *name;
	} wanted[] = {{TAG_SOP_CLASS_UID, "sop_class", "SOP Class UID"},
		      {TAG_SOP_INSTANCE_UID, "sop_instance", "SOP Instance UID"},
		      {TAG_SERIES_INSTANCE_UID, "series", "Series Instance UID"}};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const char *is = json_string_value(json_object_get(object, wanted[i].key));
		char uid[DICOM_UID_SIZE];

		if (dicom_get_text(dicom_root(file), wanted[i].tag, uid, sizeof(uid), NULL) != 1)
			uid[0] = '\0';
		if (!is || strcmp(uid, is) != 0)
			return err_set(
				err, EBADMSG,
				"the object %s differs from the description of the result: its %s %s is '%s', described as "
				"'%.64s'",
				name, wanted[i].name, tag_text(wanted[i].tag), uid, is ? is : "");
	}
	return 0;
}

static int check_object(struct check *c, const json_t *object, const char *path, const char *name, struct err *err)
{
	struct dicom_file *file = NULL;
	struct err why = {0};
	int ret = dicom_open(path, &file, &why);

	if (ret < 0 && digest_error_is_transient(why.code))
		return err_set(err, why.code, "the object %s cannot be read: %s", name, why.msg);
	if (ret < 0)
		return err_set(err, EBADMSG, "the object %s cannot be read: %s", name, why.msg);
	ret = check_uids(name, file, object, err);
	if (ret == 0)
		ret = check_owner(c, name, file, err);
	dicom_close(file);
	return ret;
}

/* Each instance is one object: the receiver of a second one with its UID keeps either. */
static int check_distinct(struct check *c, size_t n, struct err *err)
{
	qsort(c->uids, n, sizeof(c->uids[0]), order_texts);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(c->uids[i - 1], c->uids[i]))
			return err_set(err, EBADMSG, "two objects of the result have the SOP Instance UID %s", c->uids[i]);
	for (size_t i = 0; i < c->order->n_files; i++) {
		const char *uid = c->order->files[i].sop_instance;

		if (bsearch(&uid, c->uids, n, sizeof(c->uids[0]), order_texts))
			return err_set(err, EBADMSG, "an object of the result has the SOP Instance UID %s of an image", uid);
	}
	return 0;
}

/* An archive would answer for the object of the other study. */
static int check_other_results(const struct check *c, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int64_t other = 0;
		int ret = journal_find_result(c->journal, c->uids[i], c->order->job, &other, err);

		if (ret < 0)
			return ret;
		if (ret == 1)
			return err_set(
				err, EBADMSG,
				"an object of the result has the SOP Instance UID %s of the result of job %lld, which is of "
				"another study",
				c->uids[i], (long long)other);
	}
	return 0;
}

static int check_all(struct check *c, const json_t *list, const char *folder, const char *suffix, struct err *err)
{
	size_t n = json_array_size(list);
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < n; i++) {
		const json_t *object = json_array_get(list, i);
		const char *name = file_name(json_string_value(json_object_get(object, "file")));
		char path[520];

		snprintf(path, sizeof(path), "%.350s/%.130s%s", folder, name, suffix);
		ret = check_object(c, object, path, name, err);
		c->uids[i] = json_string_value(json_object_get(object, "sop_instance"));
	}
	if (ret == 0)
		ret = check_distinct(c, n, err);
	return ret < 0 ? ret : check_other_results(c, n, err);
}

int seat_check_result(struct journal *j, const char *spool, const struct case_order *order, const json_t *detail,
		      const char *folder, const char *suffix, struct err *err)
{
	const json_t *list = json_object_get(detail, "objects");
	struct check c = {
		.journal = j, .spool = spool, .order = order, .uids = calloc(json_array_size(list) + 1, sizeof(c.uids[0]))};
	int ret = c.uids ? check_all(&c, list, folder, suffix, err) : err_set(err, EAGAIN, "no memory for a list of UIDs");

	free(c.uids);
	return ret;
}
