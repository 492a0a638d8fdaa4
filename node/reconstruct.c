/* reconstruct.c - which kind of case, and whether the protocol is for it. See node/reconstruct.h. */
#include "node/reconstruct.h"

#include <errno.h>
#include <string.h>

#include "node/exam.h"
#include "node/reconstruct_parts.h"

/* The first file tells. One that cannot be read is for the reconstruction of the protocol's kind to refuse. */
static int check_kind(const struct protocol_conf *protocol, const char *const *paths, size_t n_paths, struct err *err)
{
	const char *wanted = config_kind_name(protocol->kind);
	struct exam_facts facts;

	if (n_paths == 0 || exam_read_facts(paths[0], &facts, NULL) < 0 || !facts.kind[0] || !strcmp(facts.kind, wanted))
		return 0;
	return err_set(err, ENOTSUP, "protocol '%s' is for cases of kind %s, and this one is of kind %s", protocol->name, wanted,
		       facts.kind);
}

int reconstruct_case(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		     const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
		     struct reconstruct_report *ret_report, struct err *err)
{
	int rc = check_kind(protocol, paths, n_paths, err);

	if (rc < 0)
		return rc;
	if (protocol->kind == KIND_PARALLEL)
		return reconstruct_parallel(config, protocol, dev, paths, n_paths, out_dir, monitor, ret_report, err);
	if (protocol->kind == KIND_PET)
		return reconstruct_pet(config, protocol, dev, paths, n_paths, out_dir, monitor, ret_report, err);
	return reconstruct_dbt(config, protocol, dev, paths, n_paths, out_dir, monitor, ret_report, err);
}

int reconstruct_hold(int rc, int from, int to, struct err *err)
{
	if (rc != -from)
		return rc;
	if (err)
		err->code = to;
	return -to;
}

void reconstruct_report_clear(struct reconstruct_report *r)
{
	pet_result_report_clear(&r->pet.result);
	ct_result_report_clear(&r->parallel.result);
	memset(r, 0, sizeof(*r));
}
