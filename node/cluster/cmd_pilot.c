/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode pilot, tomonode pilot-token. */
#include "node/cluster/cmd_pilot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/log.h"
#include "node/cluster/link.h"
#include "node/cluster/pilot.h"
#include "node/cluster/pilot_folder.h"
#include "node/options/options.h"

struct pilot_options {
	const char *node, *id, *secret_file, *device, *folder, *spool, *name;
	const char *certificate, *key, *authorities;
	double patience;
};

static const struct option_spec pilot_option_specs[] = {
	{0, "node", "HOST:PORT", "address of the node", INTO_TEXT(struct pilot_options, node)},
	{0, "id", "ID", "name of the secret, as given to `tomonode pilot-token`", INTO_TEXT(struct pilot_options, id)},
	{0, "secret-file", "FILE", "file with the secret", INTO_TEXT(struct pilot_options, secret_file)},
	{0, "device", "DEVICE", "device to reconstruct on; default auto: the first CUDA device, else the CPU",
	 INTO_TEXT(struct pilot_options, device)},
	{0, "folder", "DIR", "folder for the files of a case; its content is removed; default: a new folder in $TMPDIR",
	 INTO_TEXT(struct pilot_options, folder)},
	{0, "spool", "DIR", "the node's spool, which this machine can read and write (cluster.shared_spool of the node)",
	 INTO_TEXT(struct pilot_options, spool)},
	{0, "name", "NAME", "name for messages; default: the name of this machine", INTO_TEXT(struct pilot_options, name)},
	{0, "certificate", "FILE", "certificate of this machine (PEM), for a node with cluster.certificate",
	 INTO_TEXT(struct pilot_options, certificate)},
	{0, "key", "FILE", "its private key (PEM, without a password); default: in the file of --certificate",
	 INTO_TEXT(struct pilot_options, key)},
	{0, "authorities", "FILE", "authorities (PEM) that the certificate of the node must be from; required with --certificate",
	 INTO_TEXT(struct pilot_options, authorities)},
	{0, "patience", "SECONDS", "time without a connection after which the pilot ends, 1 to 86400; default 600",
	 INTO_REAL(struct pilot_options, patience, 1, 86400)},
	{0},
};

static const struct command_spec pilot_spec = {
	.name = "pilot",
	.usage = "--node HOST:PORT --id ID --secret-file FILE [OPTION]...",
	.summary = "Reconstruct cases on this machine for a node on another one, see docs/cluster.md.",
	.text = "It ends with 0 when the node or SIGTERM ends it, with 6 if the device fails, with 7 if the node refuses it or "
		"cannot\n"
		"be reached. It keeps no file of a case after the node has the result.",
	.options = pilot_option_specs,
	.examples = "tomonode pilot --node node.example.org:11180 --id gpu-1 --secret-file /etc/tomonode/pilot-secret\n",
};

static int read_secret(const char *path, char ret_secret[PILOT_SECRET_SIZE], struct err *err)
{
	FILE *f = fopen(path, "re");
	char text[PILOT_SECRET_SIZE + 2] = "";

	if (!f)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\r\n")] = '\0';
	if (!pilot_secret_is_valid(text))
		return err_set(err, EBADMSG,
			       "%s has no secret; allowed: 64 hexadecimal digits, as `tomonode pilot-token` prints them", path);
	memcpy(ret_secret, text, PILOT_SECRET_SIZE);
	return 0;
}

static int read_certificate(const struct pilot_options *p, struct tls_context **ret_tls, struct err *err)
{
	const struct tls_conf conf = {.certificate = p->certificate, .key = p->key, .authorities = p->authorities};

	return tls_create(&conf, ret_tls, err);
}

static int run_pilot(const struct options *o, const struct pilot_options *p)
{
	struct pilot_conf conf = {.address = p->node,
				  .id = p->id,
				  .name = p->name,
				  .device = p->device,
				  .root = p->spool ? p->spool : p->folder,
				  .shared = p->spool != NULL,
				  .patience = p->patience};
	const char *tmp = getenv("TMPDIR");
	char host[65] = "", folder[300];
	struct tls_context *tls = NULL;
	struct err err = {0};
	int code, lock_fd = -1;

	if (read_secret(p->secret_file, conf.secret, &err) < 0 || (p->certificate && read_certificate(p, &tls, &err) < 0))
		return options_fail_err(o, &err);
	conf.tls = tls;
	gethostname(host, sizeof(host) - 1);
	conf.name = p->name ? p->name : host;
	if (!conf.root) {
		lock_fd = pilot_folder_create(tmp ? tmp : "/tmp", folder, sizeof(folder), &err);
		if (lock_fd < 0)
			return options_fail_err(o, &err);
		conf.root = folder;
	}
	log_start(LOG_TO_STDERR, 0, LOG_INFO, "pilot");
	code = pilot_run(&conf);
	pilot_clean(&conf, conf.root == folder);
	if (lock_fd >= 0)
		close(lock_fd);
	tls_free(tls);
	return code;
}

int cmd_pilot(int argc, char **argv)
{
	struct pilot_options p = {.device = "auto", .patience = 600};
	struct options o;
	struct err err = {0};
	int id;

	options_begin(&o, &pilot_spec, argc, argv);
	o.into = &p;
	while ((id = options_next(&o)) >= 0)
		;
	if (id == OPTION_STOP)
		return o.code;
	if (!p.node || !p.id || !p.secret_file)
		return options_fail(&o, CODE_USAGE, "--node, --id and --secret-file are required");
	if (link_check_address(p.node, &err) < 0)
		return options_fail(&o, CODE_USAGE, "--node %s", err.msg);
	if (!pilot_id_is_valid(p.id))
		return options_fail(&o, CODE_USAGE, "--id %s is not allowed: 1 to 63 letters, digits, '-' and '_'", p.id);
	if (!p.certificate != !p.authorities || (p.key && !p.certificate))
		return options_fail(&o, CODE_USAGE, "--certificate and --authorities are given together, --key only with them");
	if (p.folder && p.spool)
		return options_fail(&o, CODE_USAGE, "--folder and --spool exclude each other");
	return run_pilot(&o, &p);
}

enum { TOKEN_REMOVE = OPTION_LONG };

static const struct option_spec token_option_specs[] = {
	{'c', "config", "FILE", "configuration of the node"},
	{TOKEN_REMOVE, "remove", NULL,
	 "remove the secret: connections with it are refused, a connected pilot is dropped, and its case goes to another one"},
	{0},
};

static const struct command_spec token_spec = {
	.name = "pilot-token",
	.usage = "-c FILE [--remove] ID",
	.summary = "Make the secret that the node shares with the pilots of this ID, and print it.",
	.text = "It is stored in SPOOL/pilots/ID, readable by the node's user only. Run it as that user.",
	.options = token_option_specs,
	.min_arguments = 1,
	.max_arguments = 1,
	.examples = "tomonode pilot-token -c /etc/tomonode/tomonode.conf gpu-1\n",
};

int cmd_pilot_token(int argc, char **argv)
{
	struct config *config = NULL;
	char secret[PILOT_SECRET_SIZE];
	const char *path = NULL;
	struct err err = {0};
	struct options o;
	bool remove_it = false;
	int id, ret;

	options_begin(&o, &token_spec, argc, argv);
	while ((id = options_next(&o)) >= 0) {
		if (id == 'c')
			path = o.value;
		remove_it = remove_it || id == TOKEN_REMOVE;
	}
	if (id == OPTION_STOP)
		return o.code;
	if (!remove_it && !strncmp(argv[o.first], LINK_TEST_ID, strlen(LINK_TEST_ID)))
		return options_fail(&o, CODE_USAGE,
				    "ID %s is not allowed: those that begin with '" LINK_TEST_ID "' are of `tomonode check`",
				    argv[o.first]);
	ret = options_config(&o, path, &config);
	if (ret != CODE_OK)
		return ret;
	ret = remove_it ? pilot_secret_remove(config->node.spool, argv[o.first], &err)
			: pilot_secret_create(config->node.spool, argv[o.first], secret, &err);
	config_free(config);
	if (ret < 0)
		return options_fail_err(&o, &err);
	if (!remove_it)
		puts(secret);
	return CODE_OK;
}
