/* SPDX-License-Identifier: Apache-2.0 */
/* bench_node.c - a node that is measured.
 *
 * - The programs that it consists of are this one. What they print goes to files in the folder; an error names them, and they stay.
 * - All exams are copies of one simulated exam, with other last digits in its UIDs.
 * - When a result is delivered is read in the node's journal.
 */
#include "node/command/bench_node.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dicom/network/store_scu.h"
#include "dicom/object/dicom_tags.h"
#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/base/list_grow.h"
#include "node/command/simulate_command.h"
#include "node/jobs/jobs.h"

#define PATH_BYTES 400
#define HEADER_BYTES (64u << 10) /* of a file, in which its UIDs are */
#define DIGITS 9		 /* at the end of a UID, that tell copies apart */
#define OPEN_CASE 999999	 /* the exam of the open case */
#define START_SECONDS 120.0
#define RESULT_SECONDS 1800.0
#define LOOK_US 2000

struct image {
	char *bytes;
	size_t n;
	char uid[4][DICOM_UID_SIZE]; /* of study, series, frame of reference, and object: the last */
};

struct bench_node {
	char folder[PATH_BYTES], sizes[80];
	pid_t pid;
	int port;
	const char *device;	 /* that the node was told to use */
	const struct kind *kind; /* of the exams */
	struct image *images;
	size_t n_images, capacity;
	struct scu_context context;
	struct journal *journal;
	struct jobs jobs;
	long exam, object; /* numbers of the last copies */
	size_t sent;	   /* exams whose delivery is waited for */
	bool failed;	   /* an error names one of its logs, which stays */
};

static int make_path(const struct bench_node *b, const char *name, char ret[PATH_BYTES], struct err *err)
{
	int n = snprintf(ret, PATH_BYTES, "%s/%s", b->folder, name);

	return n < PATH_BYTES ? 0 : err_set(err, ENAMETOOLONG, "the path of %s/%s is too long", b->folder, name);
}

/* ---- programs ---- */

static int start_program(const struct bench_node *b, char *const *argv, const char *log, pid_t *ret_pid, struct err *err)
{
	char path[PATH_BYTES];
	int ret = make_path(b, log, path, err), fd;
	pid_t parent = getpid(), pid;

	if (ret < 0)
		return ret;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() == parent && dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0)
			execv("/proc/self/exe", argv);
		_exit(127);
	}
	close(fd);
	if (pid < 0)
		return err_set(err, errno, "cannot start a process: %s", strerror(errno));
	*ret_pid = pid;
	return 0;
}

static int simulate_exam(struct bench_node *b, bool full, struct err *err)
{
	const char *words[SIMULATE_BENCH_WORDS] = {"tomonode", "simulate"};
	char folder[PATH_BYTES];
	int status = 0, ret = make_path(b, "exam", folder, err);
	pid_t pid;

	b->kind = simulate_bench_exam(full, folder, &words[2]);
	if (ret == 0)
		ret = start_program(b, (char *const *)words, "simulate.log", &pid, err);
	if (ret < 0 || (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return ret;
	b->failed = true;
	return err_set(err, EIO, "no exam could be simulated: see %s/simulate.log", b->folder);
}

/* ---- images ---- */

static int read_uids(const char *path, struct image *image, struct scu_context *ret_context, struct err *err)
{
	static const uint32_t tags[] = {TAG_STUDY_INSTANCE_UID, TAG_SERIES_INSTANCE_UID, TAG_FRAME_OF_REFERENCE_UID,
					TAG_SOP_INSTANCE_UID};
	struct dicom_file *file = NULL;
	int ret = dicom_open(path, &file, err);

	for (size_t i = 0; ret >= 0 && i < 4; i++)
		ret = dicom_get_text(dicom_root(file), tags[i], image->uid[i], DICOM_UID_SIZE, err);
	if (ret >= 0)
		ret = dicom_get_text(dicom_root(file), TAG_SOP_CLASS_UID, ret_context->sop_class, DICOM_UID_SIZE, err);
	if (ret >= 0)
		snprintf(ret_context->transfer_syntax, DICOM_UID_SIZE, "%s", dicom_transfer_syntax(file));
	dicom_close(file);
	return ret < 0 ? ret : 0;
}

static int read_image(struct bench_node *b, const char *name, struct err *err)
{
	struct image image = {.bytes = NULL};
	char path[PATH_BYTES];
	int ret = make_path(b, name, path, err);
	struct stat st;
	FILE *f;

	if (ret == 0)
		ret = read_uids(path, &image, &b->context, err);
	f = ret == 0 ? fopen(path, "re") : NULL;
	if (ret == 0 && (!f || fstat(fileno(f), &st) < 0))
		ret = err_set(err, errno, "%s: %s", path, strerror(errno));
	if (ret == 0) {
		image.n = (size_t)st.st_size;
		image.bytes = malloc(image.n);
		if (!image.bytes || !list_grow(&b->images, b->n_images, &b->capacity, sizeof(b->images[0])))
			ret = err_set(err, ENOMEM, "no memory for %s", path);
		else if (fread(image.bytes, 1, image.n, f) != image.n)
			ret = err_set(err, EIO, "%s: it cannot be read", path);
	}
	if (ret == 0)
		b->images[b->n_images++] = image;
	else
		free(image.bytes);
	if (f)
		fclose(f);
	return ret;
}

static int read_exam(struct bench_node *b, struct err *err)
{
	char path[PATH_BYTES], name[300];
	int ret = make_path(b, "exam", path, err);
	DIR *dir = ret == 0 ? opendir(path) : NULL;
	size_t bytes = 0;
	struct dirent *e;

	if (ret == 0 && !dir)
		ret = err_set(err, errno, "%s: %s", path, strerror(errno));
	while (ret == 0 && (e = readdir(dir)))
		if (strstr(e->d_name, ".dcm")) {
			snprintf(name, sizeof(name), "exam/%.250s", e->d_name);
			ret = read_image(b, name, err);
		}
	if (dir)
		closedir(dir);
	for (size_t i = 0; i < b->n_images; i++)
		bytes += b->images[i].n;
	snprintf(b->sizes, sizeof(b->sizes), "%zu images of %.0f kB", b->n_images,
		 b->n_images ? 1e-3 * (double)bytes / (double)b->n_images : 0);
	return ret < 0 || b->n_images ? ret : err_set(err, EIO, "%s has no images", path);
}

static void change_uid(char *bytes, size_t n, const char *uid, long number)
{
	size_t length = strlen(uid);
	char digits[24];

	snprintf(digits, sizeof(digits), "%09ld", number % 1000000000);
	for (char *at = bytes; length > 2 * DIGITS && (at = memmem(at, n - (size_t)(at - bytes), uid, length)); at += length)
		memcpy(at + length - DIGITS, digits, DIGITS);
}

/* Write a copy of an image as part of the exam of a number, as object of another. */
static int write_copy(const struct bench_node *b, const struct image *image, long exam, long object, char ret_path[PATH_BYTES],
		      struct err *err)
{
	size_t n = image->n < HEADER_BYTES ? image->n : HEADER_BYTES;
	char name[60], header[HEADER_BYTES];
	int ret = 0;
	FILE *f;

	memcpy(header, image->bytes, n);
	for (int i = 0; i < 4; i++)
		change_uid(header, n, image->uid[i], i < 3 ? exam : object);
	snprintf(name, sizeof(name), "out/%ld-%ld.dcm", exam, object);
	ret = make_path(b, name, ret_path, err);
	f = ret == 0 ? fopen(ret_path, "we") : NULL;
	if (ret == 0 && (!f || fwrite(header, 1, n, f) != n || fwrite(image->bytes + n, 1, image->n - n, f) != image->n - n))
		ret = err_set(err, errno, "%s: %s", ret_path, strerror(errno));
	if (f && fclose(f) != 0 && ret == 0)
		ret = err_set(err, errno, "%s: %s", ret_path, strerror(errno));
	return ret;
}

/* ---- the node ---- */

static int find_port(struct err *err)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port;

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || getsockname(fd, (struct sockaddr *)&a, &size) < 0)
		port = err_set(err, errno, "no port is free: %s", strerror(errno));
	else
		port = ntohs(a.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

static int write_configuration(const struct bench_node *b, const char *device, bool full, struct err *err)
{
	char path[PATH_BYTES];
	int ret = make_path(b, "node.conf", path, err);
	FILE *f = ret == 0 ? fopen(path, "we") : NULL;
	bool good;

	if (!f)
		return ret < 0 ? ret : err_set(err, errno, "%s: %s", path, strerror(errno));
	good = fprintf(f,
		       "status = { enabled = false; };\n"
		       "node = { bind = \"127.0.0.1\"; port = %d; spool = \"%s/spool\"; device = \"%s\"; quiet_time = 600;%s"
		       " max_associations = 64; };\n"
		       "destinations = ( { name = \"results\"; kind = \"folder\"; path = \"%s/results\"; } );\n"
		       "protocols = ( { name = \"tiny\"; algorithm = \"osem\"; iterations = 1; slice_spacing = 5.0; } );\n"
		       "routes = ( { name = \"bench\"; kind = \"%s\"; protocols = [ \"%s\" ]; destinations = [ \"results\" ]; } );\n",
		       b->port, b->folder, device, geteuid() == 0 ? " user = \"root\";" : "", b->folder, b->kind->name,
		       full ? "dbt-osem" : "tiny") > 0;
	good = fclose(f) == 0 && good;
	return good ? 0 : err_set(err, EIO, "%s cannot be written", path);
}

static int open_association(const struct bench_node *b, struct scu **ret_scu, struct err *err)
{
	const struct scu_peer peer = {.host = "127.0.0.1",
				      .port = b->port,
				      .called = "TOMONODE",
				      .calling = "BENCH",
				      .max_pdu = 131072,
				      .connect_timeout = 30,
				      .acse_timeout = 60,
				      .dimse_timeout = 120};

	return scu_open(&peer, &b->context, 1, ret_scu, err);
}

static int fail_node(struct bench_node *b, struct err *err)
{
	b->pid = 0;
	b->failed = true;
	return err_set(err, EIO, "the node ended: see %s/node.log", b->folder);
}

static int wait_node(struct bench_node *b, struct err *err)
{
	double until = clock_seconds() + START_SECONDS;
	struct scu *scu = NULL;
	struct err why = {0};

	while (open_association(b, &scu, &why) < 0) {
		if (waitpid(b->pid, NULL, WNOHANG) != 0)
			return fail_node(b, err);
		if (clock_seconds() > until)
			return err_set(err, ETIMEDOUT, "the node does not answer after %.0f s: %s", START_SECONDS, why.msg);
		usleep(20000);
	}
	scu_close(scu);
	return 0;
}

int bench_node_start(const struct bench_node_options *o, struct bench_node **ret_node, struct err *err)
{
	struct bench_node *b = calloc(1, sizeof(*b));
	char conf[PATH_BYTES], path[PATH_BYTES], *argv[] = {"tomonode", "serve", "-c", conf, NULL};
	static const char *const folders[] = {"out", "results"};
	int ret = 0;

	if (!b)
		return err_set(err, ENOMEM, "no memory for a node");
	b->device = o->device;
	if (snprintf(b->folder, sizeof(b->folder), "%.300s/tomonode-bench.XXXXXX", o->folder) < 0 || !mkdtemp(b->folder)) {
		ret = err_set(err, errno, "%s: no folder can be created: %s", o->folder, strerror(errno));
		free(b);
		return ret;
	}
	for (size_t i = 0; ret == 0 && i < 2; i++) {
		ret = make_path(b, folders[i], path, err);
		if (ret == 0)
			ret = folder_make(path, err);
	}
	if (ret == 0)
		ret = simulate_exam(b, o->full, err);
	if (ret == 0)
		ret = read_exam(b, err);
	if (ret == 0) {
		b->port = find_port(err);
		ret = b->port < 0 ? b->port : write_configuration(b, o->device, o->full, err);
	}
	if (ret == 0)
		ret = make_path(b, "node.conf", conf, err);
	if (ret == 0)
		ret = start_program(b, argv, "node.log", &b->pid, err);
	if (ret == 0)
		ret = wait_node(b, err);
	if (ret == 0)
		ret = make_path(b, "spool/journal.db", path, err);
	if (ret == 0)
		ret = journal_open_reader(path, &b->journal, err);
	if (ret == 0)
		ret = jobs_refresh(&b->jobs, b->journal, 0, err); /* from the first case on, so that all stay in memory */
	if (ret < 0)
		bench_node_end(b);
	else
		*ret_node = b;
	return ret;
}

struct bench_node *bench_node_end(struct bench_node *b)
{
	static const char *const folders[] = {"exam", "out", "spool", "results"};
	char path[PATH_BYTES];

	if (!b)
		return NULL;
	journal_close(b->journal);
	jobs_clear(&b->jobs);
	if (b->pid > 0) {
		kill(b->pid, SIGTERM);
		waitpid(b->pid, NULL, 0);
	}
	for (size_t i = 0; i < b->n_images; i++)
		free(b->images[i].bytes);
	free(b->images);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (make_path(b, folders[i], path, NULL) == 0)
			folder_remove(path, NULL);
	if (!b->failed)
		folder_remove(b->folder, NULL);
	free(b);
	return NULL;
}

const char *bench_node_sizes(const struct bench_node *b)
{
	return b->sizes;
}

/* ---- sending ---- */

static int store_file(struct scu *scu, const char *path, struct err *err)
{
	uint16_t status = 0;
	int ret = scu_store(scu, path, &status, err);

	return ret == 0 && status != 0
		       ? err_set(err, EPROTO, "the node refused %s with status %04X: %s", path, status, scu_comment(scu))
		       : ret;
}

/* In a process of its own: send files of the open case, an association each. */
static int send_singles(const struct bench_node *b, long first, int n)
{
	struct err err = {0};
	char name[60], path[PATH_BYTES];
	int ret = 0;

	for (int i = 0; ret == 0 && i < n; i++) {
		struct scu *scu = NULL;

		snprintf(name, sizeof(name), "out/%d-%ld.dcm", OPEN_CASE, first + i);
		ret = make_path(b, name, path, &err);
		if (ret == 0)
			ret = open_association(b, &scu, &err);
		if (ret == 0)
			ret = store_file(scu, path, &err);
		scu_close(scu);
	}
	if (ret < 0)
		fprintf(stderr, "tomonode bench node: %s\n", err.msg);
	return ret < 0;
}

int bench_node_associations(struct bench_node *b, int senders, int each, double *ret_seconds, struct err *err)
{
	pid_t pids[BENCH_NODE_SENDERS_MAX];
	long first = b->object + 1;
	char path[PATH_BYTES];
	double began;
	int ret = 0, started = 0;

	for (int i = 0; ret == 0 && i < senders * each; i++)
		ret = write_copy(b, &b->images[0], OPEN_CASE, ++b->object, path, err);
	began = clock_seconds();
	while (ret == 0 && started < senders) {
		pids[started] = fork();
		if (pids[started] == 0)
			_exit(send_singles(b, first + (long)started * each, each));
		if (pids[started] < 0)
			ret = err_set(err, errno, "cannot start a sender: %s", strerror(errno));
		else
			started++;
	}
	for (int i = 0; i < started; i++) {
		int status = 0;

		if (waitpid(pids[i], &status, 0) != pids[i] || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			ret = ret < 0 ? ret : err_set(err, EPROTO, "sender %d did not send all of its images", i + 1);
	}
	*ret_seconds = clock_seconds() - began;
	return ret;
}

/* Send a copy of the exam; ret_last: when the last response came, s since the epoch. */
static int send_exam(struct bench_node *b, double *ret_last, struct err *err)
{
	struct scu *scu = NULL;
	char path[PATH_BYTES];
	int ret = open_association(b, &scu, err);

	b->exam++;
	for (size_t i = 0; ret == 0 && i < b->n_images; i++) {
		ret = write_copy(b, &b->images[i], b->exam, ++b->object, path, err);
		if (ret == 0)
			ret = store_file(scu, path, err);
		unlink(path);
	}
	*ret_last = clock_wall();
	scu_close(scu);
	b->sent += ret == 0;
	return ret;
}

/* A node whose device cannot be used reconstructs on the processor: that is not what was asked for. */
static int check_device(const struct bench_node *b, const struct job_view *v, struct err *err)
{
	if (!strcmp(b->device, "auto") || strchr(b->device, ',') || !strncmp(v->device, b->device, strlen(b->device)))
		return 0;
	return err_set(err, ENODEV, "case %lld was reconstructed by %s, not by %s", (long long)v->id, v->device, b->device);
}

/* Count the delivered cases; ret_last: when the last one was delivered. A case that needs a person is an error. */
static int count_delivered(struct bench_node *b, size_t *ret_n, double *ret_last, struct err *err)
{
	int ret = jobs_refresh(&b->jobs, b->journal, 0, err);

	*ret_n = 0;
	*ret_last = 0;
	for (size_t i = 0; ret == 0 && i < b->jobs.n; i++) {
		const struct job_view *v = b->jobs.list[i];

		if (v->state == JOB_HELD || v->state == JOB_FAILED || v->state == JOB_DEAD_LETTER || v->state == JOB_IMPOSSIBLE)
			ret = err_set(err, EIO, "case %lld is %s: %s", (long long)v->id, job_state_name(v->state), v->reason);
		else if (v->state == JOB_DELIVERED)
			ret = check_device(b, v, err);
		*ret_n += v->state == JOB_DELIVERED;
		if (v->state == JOB_DELIVERED && v->finished > *ret_last)
			*ret_last = v->finished;
	}
	return ret;
}

static int wait_delivered(struct bench_node *b, double *ret_last, struct err *err)
{
	double until = clock_seconds() + RESULT_SECONDS;
	size_t n = 0;
	int ret;

	while ((ret = count_delivered(b, &n, ret_last, err)) == 0 && n < b->sent) {
		if (waitpid(b->pid, NULL, WNOHANG) != 0)
			return fail_node(b, err);
		if (clock_seconds() > until)
			return err_set(err, ETIMEDOUT, "%zu of %zu exams were delivered after %.0f s", n, b->sent,
				       RESULT_SECONDS);
		usleep(LOOK_US);
	}
	return ret;
}

int bench_node_wait(struct bench_node *b, double *ret_seconds, struct err *err)
{
	double sent = 0, delivered = 0;
	int ret = send_exam(b, &sent, err);

	if (ret == 0)
		ret = wait_delivered(b, &delivered, err);
	*ret_seconds = delivered - sent;
	return ret;
}

int bench_node_exams(struct bench_node *b, int n, double *ret_seconds, struct err *err)
{
	double began = clock_wall(), sent, delivered = 0;
	int ret = 0;

	for (int i = 0; ret == 0 && i < n; i++)
		ret = send_exam(b, &sent, err);
	if (ret == 0)
		ret = wait_delivered(b, &delivered, err);
	*ret_seconds = delivered - began;
	return ret;
}
