/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_files.c - the files that each role of a process may use, by Landlock (Linux 5.19 and later). It makes the system calls
 * itself: the C library of Debian 12 has no functions for them, and its kernel headers are older than kernels that it runs on.
 *
 * - The rules list folders and files with the rights below them; nothing else can be opened, created, renamed or removed.
 *   Descriptors that are already open continue to work.
 * - The journal is three files in the spool's own folder, next to everything else, so they are listed one by one. They
 *   are never removed while the node runs (journal_open), because a rule applies to the present file, not to a later one of the
 * same name.
 * - A path that does not exist is skipped: nothing can be read there.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/sandbox/sandbox_internal.h"

/* Rights and fields that the headers of Debian 12 lack, as defined by those of Linux 6.12. */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define NET_BIND_TCP (1ULL << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

#define FS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_RUN (FS_READ | LANDLOCK_ACCESS_FS_EXECUTE)
#define FS_USE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
/* Rights in a working folder: create, write, rename and remove files. */
#define FS_WORK                                                                                                                  \
	(LANDLOCK_ACCESS_FS_READ_DIR | FS_USE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |                   \
	 LANDLOCK_ACCESS_FS_REFER)
/* Rights in a folder that finished files are moved to: its files can be neither read nor written. */
#define FS_COMMIT                                                                                                                \
	(LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REFER)
/* Rights in the folder of the pilots' secrets: read these, record in other files which tokens were used,
 * and write the entries to disk. */
#define FS_TOKENS                                                                                                                \
	(LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG)
#define FS_WORK_FOLDERS (FS_WORK | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR)
#define FS_DEVICE (LANDLOCK_ACCESS_FS_READ_DIR | FS_USE | FS_IOCTL_DEV)
/* Rights that a rule for a file may contain. */
#define FS_OF_FILES (LANDLOCK_ACCESS_FS_EXECUTE | FS_USE | FS_IOCTL_DEV)

struct fence {
	int fd;
	uint64_t fs; /* handled rights: refused where no rule allows them */
	struct err *err;
};

int sandbox_files_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static int allow_path(struct fence *f, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access & f->fs};
	struct stat st;
	int ret = 0;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			       ? 0
			       : err_set(f->err, errno, "sandbox: %s: %s", path, strerror(errno));
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_FILES;
	if (syscall(SYS_landlock_add_rule, f->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		ret = err_set(f->err, errno, "sandbox: cannot allow %s: %s", path, strerror(errno));
	close(rule.parent_fd);
	return ret;
}

static int allow_list(struct fence *f, const char *const *paths, uint64_t access)
{
	int ret = 0;

	for (; ret == 0 && *paths; paths++)
		ret = allow_path(f, *paths, access);
	return ret;
}

static int allow_in_spool(struct fence *f, const struct config *config, const char *name, uint64_t access)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", config->node.spool, name);
	return allow_path(f, path, access);
}

/* Allow reading of the libraries and tables that the C library, OpenMP, OpenSSL and DCMTK open while they run. */
static int allow_system(struct fence *f)
{
	static const char *const read[] = {"/usr",
					   "/lib",
					   "/lib64",
					   "/etc/ld.so.cache",
					   "/etc/localtime",
					   "/etc/ssl/openssl.cnf",
					   "/proc/cpuinfo",
					   "/proc/meminfo",
					   "/proc/stat",
					   "/proc/sys/vm",
					   "/proc/sys/crypto",
					   "/sys/devices/system",
					   "/dev/urandom",
					   NULL};
	static const char *const use[] = {"/dev/null", "/dev/zero", NULL};
	int ret = allow_list(f, read, FS_READ);

	return ret < 0 ? ret : allow_list(f, use, FS_USE);
}

static int allow_journal(struct fence *f, const struct config *config)
{
	int ret = allow_in_spool(f, config, "journal.db", FS_USE);

	if (ret == 0)
		ret = allow_in_spool(f, config, "journal.db-wal", FS_USE);
	return ret < 0 ? ret : allow_in_spool(f, config, "journal.db-shm", FS_USE);
}

/* Messages about peers are appended to the queue there. */
static int allow_audit(struct fence *f, const struct config *config)
{
	return config->node.audit == AUDIT_NONE ? 0 : allow_in_spool(f, config, "audit", FS_USE | LANDLOCK_ACCESS_FS_MAKE_REG);
}

/* Allow the device files of the GPU and the files that the driver's library reads. shared: what processes share, too. */
static int allow_gpu(struct fence *f, bool shared)
{
	static const char *const patterns[] = {"/dev/nvidia*", "/dev/dri/*", "/dev/dxg"};
	static const char *const read[] = {"/proc", "/sys", "/etc/nvidia", "/run/nvidia-persistenced", NULL};
	int ret = allow_list(f, read, FS_READ);

	if (ret == 0)
		ret = allow_path(f, "/proc/self/task", FS_WORK); /* names of threads */
	if (ret == 0 && shared)
		ret = allow_path(f, "/dev/shm", FS_WORK);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		glob_t found = {0};

		if (ret == 0 && glob(patterns[i], 0, NULL, &found) == 0)
			for (size_t k = 0; ret == 0 && k < found.gl_pathc; k++)
				ret = allow_path(f, found.gl_pathv[k], FS_DEVICE);
		globfree(&found);
	}
	return ret;
}

static int allow_case(struct fence *f, const struct config *config, bool gpu)
{
	int ret = allow_in_spool(f, config, "instances", FS_READ);

	if (ret == 0)
		ret = allow_in_spool(f, config, "flatfields", FS_READ);
	if (ret == 0)
		ret = allow_in_spool(f, config, "work", FS_WORK_FOLDERS);
	return ret == 0 && gpu ? allow_gpu(f, true) : ret;
}

static int allow_worker(struct fence *f, const struct config *config, bool gpu)
{
	int ret = allow_case(f, config, gpu);

	if (ret == 0)
		ret = allow_in_spool(f, config, "outbox", FS_WORK_FOLDERS);
	for (size_t i = 0; ret == 0 && i < config->n_profiles; i++)
		if (config->profiles[i].flatfield[0])
			ret = allow_path(f, config->profiles[i].flatfield, FS_READ);
	return ret;
}

static int allow_tls(struct fence *f, const char *certificate, const char *key, const char *authorities, const char *crl)
{
	const char *const files[] = {certificate, key, authorities, crl};
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i][0])
			ret = allow_path(f, files[i], FS_READ);
	return ret;
}

/* Allow what is needed to resolve a name, and the system's authorities. */
static int allow_names(struct fence *f)
{
	static const char *const read[] = {"/etc/hosts",     "/etc/resolv.conf",     "/etc/nsswitch.conf",
					   "/etc/host.conf", "/etc/gai.conf",	     "/etc/services",
					   "/etc/ssl/certs", "/run/systemd/resolve", NULL};

	return allow_list(f, read, FS_READ);
}

static int allow_alert(struct fence *f, const struct config *config)
{
	const char *const files[] = {config->alerts.authorities, config->alerts.credentials};
	int ret = allow_names(f);

	for (size_t i = 0; ret == 0 && i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i][0])
			ret = allow_path(f, files[i], FS_READ);
	return ret;
}

/* Allow programs of the system, such as the interpreter of a script. */
static int allow_running(struct fence *f)
{
	static const char *const run[] = {"/usr", "/lib", "/lib64", "/bin", NULL};

	return allow_list(f, run, FS_RUN);
}

/* Allow the program of `alerts` and its files. */
static int allow_exec(struct fence *f, const struct config *config)
{
	static const char *const read[] = {"/etc/passwd", "/etc/group", NULL};
	const struct config_names *files = &config->alerts.exec_files;
	int ret = allow_running(f);

	if (ret == 0)
		ret = allow_names(f);
	if (ret == 0)
		ret = allow_list(f, read, FS_READ);
	for (size_t i = 0; ret == 0 && i < files->n; i++)
		ret = allow_path(f, files->name[i], FS_RUN);
	return ret < 0 || !config->alerts.exec[0] ? ret : allow_path(f, config->alerts.exec, FS_RUN);
}

/* Allow what a delivery needs to resolve a destination's name and to read its certificates. */
static int allow_deliver(struct fence *f, const struct config *config)
{
	int ret = allow_names(f);

	if (ret == 0)
		ret = allow_tls(f, config->node.tls_certificate, config->node.tls_key, config->node.tls_authorities,
				config->node.tls_crl);
	for (size_t i = 0; ret == 0 && i < config->n_destinations; i++) {
		const struct destination_conf *d = &config->destinations[i];

		ret = allow_tls(f, d->certificate, d->key, d->authorities, d->crl);
		if (ret == 0 && d->credentials[0])
			ret = allow_path(f, d->credentials, FS_READ);
	}
	return ret < 0 ? ret : allow_in_spool(f, config, "outbox", FS_READ);
}

/* Allow the program of a step and its files. */
static int allow_program(struct fence *f, const struct step_conf *s)
{
	int ret = allow_path(f, s->program, FS_RUN);

	for (size_t i = 0; ret == 0 && i < s->files.n; i++)
		ret = allow_path(f, s->files.name[i], FS_RUN);
	return ret;
}

/* Allow the folder that a path is in: what is there may be replaced while the process runs. */
static int allow_above(struct fence *f, const char *path)
{
	char *real = realpath(path, NULL), *folder = real ? real : strdup(path); /* a link needs the folder of its target */
	char *slash = folder ? strrchr(folder, '/') : NULL;
	int ret;

	if (!slash) {
		free(folder);
		return err_set(f->err, ENOMEM, "sandbox: no memory for %s", path);
	}
	slash[slash == folder] = '\0';
	ret = allow_path(f, folder, FS_RUN);
	free(folder);
	return ret;
}

static int allow_steps(struct fence *f, const struct config *config, const char *folder, bool gpu)
{
	int ret = allow_running(f);

	if (ret == 0 && gpu)
		ret = allow_gpu(f, false);
	/* to make the rules of a step, which allow no more than it needs: find the device files; name its threads */
	if (ret == 0 && gpu)
		ret = allow_path(f, "/dev", LANDLOCK_ACCESS_FS_READ_DIR);
	if (ret == 0 && gpu)
		ret = allow_path(f, "/proc", FS_WORK);
	for (size_t i = 0; ret == 0 && i < config->n_steps; i++) {
		const struct step_conf *s = &config->steps[i];

		ret = allow_above(f, s->program);
		for (size_t k = 0; ret == 0 && k < s->files.n; k++)
			ret = allow_above(f, s->files.name[k]);
	}
	return ret < 0 ? ret : allow_path(f, folder, FS_WORK_FOLDERS);
}

static int allow_step(struct fence *f, const struct sandbox_step *s)
{
	int ret = allow_running(f);

	if (ret == 0 && s->step->gpu)
		ret = allow_gpu(f, false);
	if (ret == 0)
		ret = allow_program(f, s->step);
	if (ret == 0)
		ret = allow_path(f, s->in, FS_READ);
	if (ret == 0)
		ret = allow_path(f, s->out, FS_WORK);
	return ret < 0 ? ret : allow_path(f, s->scratch, FS_WORK_FOLDERS);
}

static int allow_role(struct fence *f, enum sandbox_role role, const struct config *config, bool gpu)
{
	int ret;

	switch (role) {
	case SANDBOX_ASSOCIATION:
		ret = allow_in_spool(f, config, "incoming", FS_WORK);
		if (ret == 0)
			ret = allow_audit(f, config);
		return ret < 0 ? ret : allow_in_spool(f, config, "instances", FS_COMMIT);
	case SANDBOX_INDEX:
	case SANDBOX_NAMES:
		return allow_in_spool(f, config, "instances", FS_READ);
	case SANDBOX_WORKER:
		return allow_worker(f, config, gpu);
	case SANDBOX_REPORT:
		return allow_in_spool(f, config, "outbox", FS_READ);
	case SANDBOX_DELIVER:
		return allow_deliver(f, config);
	case SANDBOX_FOLDER:
		ret = allow_in_spool(f, config, "outbox", FS_READ);
		for (size_t i = 0; ret == 0 && i < config->n_destinations; i++)
			if (config->destinations[i].kind == DESTINATION_FOLDER)
				ret = allow_path(f, config->destinations[i].path, FS_WORK_FOLDERS);
		return ret;
	case SANDBOX_ALERT:
		return allow_alert(f, config);
	case SANDBOX_EXEC:
		return allow_exec(f, config);
	case SANDBOX_SEAT:
		ret = allow_worker(f, config, false);
		if (ret == 0)
			ret = allow_audit(f, config);
		return ret < 0 ? ret : allow_in_spool(f, config, "pilots", FS_TOKENS);
	case SANDBOX_CASE:
		return allow_case(f, config, gpu);
	case SANDBOX_HTTP:
		return 0;
	case SANDBOX_STEPS: /* in sandbox_files_restrict() */
	case SANDBOX_STEP:
	case SANDBOX_LISTENER:
		break;
	}
	return err_set(f->err, EINVAL, "sandbox: no files for role %d", (int)role);
}

int sandbox_files_restrict(enum sandbox_role role, const struct config *config, bool gpu, const char *folder,
			   const struct sandbox_step *step, int abi, struct err *err)
{
	struct ruleset_attr attr = {.fs = LANDLOCK_ACCESS_FS_EXECUTE | FS_WORK_FOLDERS | LANDLOCK_ACCESS_FS_MAKE_CHAR |
					  LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
					  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM};
	struct fence f = {.fd = -1, .err = err};
	size_t size = sizeof(attr.fs);
	int ret;

	attr.fs &= abi >= 3 ? ~0ULL : ~FS_TRUNCATE;
	attr.fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
	if (abi >= 4) { /* listening sockets are open already; deliveries connect to configured addresses, and DCMTK makes a
			   connection to itself over a port that it opens (dicom/network/connect.cc) */
		attr.net = role == SANDBOX_DELIVER || role == SANDBOX_ALERT || role == SANDBOX_EXEC
				   ? 0
				   : NET_BIND_TCP | NET_CONNECT_TCP;
		size += sizeof(attr.net);
	}
	if (abi >= 6) { /* CUDA MPS, if it is used, connects to the driver's server */
		attr.scoped = gpu && !sandbox_is_of_steps(role) ? SCOPE_SIGNAL : SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
		size += sizeof(attr.scoped);
	}
	f.fs = attr.fs;
	f.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (f.fd < 0)
		return err_set(err, errno, "sandbox: cannot restrict files (Landlock ABI %d): %s", abi, strerror(errno));
	ret = allow_system(&f);
	if (ret == 0 && role != SANDBOX_HTTP && role != SANDBOX_NAMES && role != SANDBOX_REPORT && role != SANDBOX_CASE &&
	    role != SANDBOX_ALERT && role != SANDBOX_EXEC && !sandbox_is_of_steps(role))
		ret = allow_journal(&f, config);
	if (ret == 0)
		ret = role == SANDBOX_STEPS  ? allow_steps(&f, config, folder, gpu)
		      : role == SANDBOX_STEP ? allow_step(&f, step)
					     : allow_role(&f, role, config, gpu);
	if (ret == 0 && syscall(SYS_landlock_restrict_self, f.fd, 0) < 0)
		ret = err_set(err, errno, "sandbox: cannot restrict files: %s", strerror(errno));
	close(f.fd);
	return ret;
}
