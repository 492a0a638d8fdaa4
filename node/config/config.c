/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - load the configuration, find entries, describe them. The embedded defaults (conf/defaults.conf) are read with the
 * same code as the user's file, so that any test detects an error in them.
 */
#include "node/config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/nearest.h"
#include "node/config/config_read.h"
#include "node/config/config_value.h"
#include "node/config/defaults_conf.h"
#include "node/config/kind.h"

#define EMBEDDED_NAME "defaults.conf (embedded)"

struct config *config_free(struct config *c)
{
	if (!c)
		return NULL;
	free(c->listeners);
	free(c->peers);
	free(c->destinations);
	free(c->routes);
	free(c->protocols);
	free(c->profiles);
	free(c->scanners);
	free(c->steps);
	free(c);
	return NULL;
}

const char *config_embedded(void)
{
	return defaults_conf;
}

/* Read the embedded text and then `user`, if any. */
static int build_config(struct config_reader *r, const struct config_text *user, struct config **ret_config, struct err *err)
{
	struct config_text *embedded = NULL;
	int rc = 0;

	for (int i = 0; rc == 0 && i < KIND_COUNT; i++)
		rc = kind_check(kind_of((enum case_kind)i), err);
	if (rc == 0)
		rc = config_text_copy(config_embedded(), EMBEDDED_NAME, &embedded, err);
	if (rc < 0)
		goto out;
	config_value_defaults(&config_sections[SECTION_NODE], &r->config->node);
	config_value_defaults(&config_sections[SECTION_STATUS], &r->config->status);
	config_value_defaults(&config_sections[SECTION_ALERTS], &r->config->alerts);
	config_value_defaults(&config_sections[SECTION_CLUSTER], &r->config->cluster);
	config_value_defaults(&config_sections[SECTION_SLURM], &r->config->slurm);
	config_read_text(r, embedded, true);
	if (user)
		config_read_text(r, user, false);
	if (r->n_problems == 0)
		config_finish(r);
	else
		config_finish_names(r); /* other checks would report consequences of the problems */
	if (r->n_problems > 0) {
		rc = r->n_problems == 1 ? err_set(err, EINVAL, "%s", r->first)
					: err_set(err, EINVAL, "%s (and %zu more problems)", r->first, r->n_problems - 1);
		goto out;
	}
	*ret_config = r->config;
	r->config = NULL;
out:
	config_reader_clear(r);
	config_text_free(embedded);
	return rc;
}

static int load_config(struct config_text *user, const char *path, void (*report)(void *ctx, const char *problem), void *ctx,
		       struct config **ret_config, struct err *err)
{
	struct config_reader r = {.report = report, .ctx = ctx, .config = calloc(1, sizeof(struct config))};
	int rc;

	if (!r.config)
		return err_set(err, ENOMEM, "configuration: out of memory");
	snprintf(r.config->path, sizeof(r.config->path), "%s", path);
	rc = build_config(&r, user, ret_config, err);
	config_free(r.config);
	return rc;
}

/* Report as one problem that the text could not be read. */
static int report_unreadable(void (*report)(void *ctx, const char *problem), void *ctx, struct err *why, struct err *err)
{
	for (char *at = why->msg; *at; at++) /* keep the message on one line, whatever the file name contains */
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	if (report)
		report(ctx, why->msg);
	return err_set(err, EINVAL, "%s", why->msg);
}

static int load_file(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		     struct config_text **ret_text, struct err *err)
{
	struct config_text *text = NULL;
	struct err why = {0};
	int rc;

	if (path && strlen(path) >= sizeof(((struct config *)0)->path))
		return err_set(err, ENAMETOOLONG, "configuration: a path of %zu bytes; allowed: at most %zu", strlen(path),
			       sizeof(((struct config *)0)->path) - 1);
	if (path && config_text_load(path, &text, &why) < 0)
		return report_unreadable(report, ctx, &why, err);
	rc = load_config(text, path ? path : "", report, ctx, ret_config, err);
	if (rc < 0)
		text = config_text_free(text);
	*ret_text = text;
	return rc;
}

int config_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		struct err *err)
{
	struct config_text *text = NULL;
	int rc = load_file(path, report, ctx, ret_config, &text, err);

	config_text_free(text);
	return rc;
}

int config_load_text(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		     char **ret_text, struct err *err)
{
	struct config_text *text = NULL;
	int rc = load_file(path, report, ctx, ret_config, &text, err);

	if (rc == 0) {
		*ret_text = text->bytes;
		text->bytes = NULL;
	}
	config_text_free(text);
	return rc;
}

int config_parse(const char *bytes, const char *name, void (*report)(void *ctx, const char *problem), void *ctx,
		 struct config **ret_config, struct err *err)
{
	struct config_text *text = NULL;
	struct err why = {0};
	int rc;

	if (config_text_copy(bytes, name, &text, &why) < 0)
		return report_unreadable(report, ctx, &why, err);
	rc = load_config(text, name, report, ctx, ret_config, err);
	config_text_free(text);
	return rc;
}

/* ---- search for entries ---- */

const struct protocol_conf *config_protocol(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_protocols; i++)
		if (!strcmp(c->protocols[i].name, name))
			return &c->protocols[i];
	return NULL;
}

const struct destination_conf *config_destination(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_destinations; i++)
		if (!strcmp(c->destinations[i].name, name))
			return &c->destinations[i];
	return NULL;
}

/* Return how specific a pattern is: the number of its letters other than wildcards. */
static unsigned count_letters(const char *pattern)
{
	unsigned n = 0;

	for (; *pattern; pattern++)
		n += *pattern != '*' && *pattern != '?';
	return n;
}

/* Return how well the patterns of an entry match; 0: not at all. A serial number outweighs any model, a model any manufacturer;
 * patterns have at most 63 letters. */
static unsigned fit_patterns(const char *of[3], const char *manufacturer, const char *model, const char *serial)
{
	const char *found[3] = {manufacturer, model, serial};

	for (int i = 0; i < 3; i++)
		if (of[i][0] && !pattern_matches(of[i], found[i]))
			return 0;
	return (count_letters(of[2]) << 12) + (count_letters(of[1]) << 6) + count_letters(of[0]) + 1;
}

static void take_over(char *path, const char *standard)
{
	if (!path[0])
		snprintf(path, CONFIG_PATH_SIZE, "%s", standard);
}

/* Replace empty TLS files of a listener or destination by those of the node: key and certificate together, revocation lists and
 * authorities together. */
static void complete_tls_files(const struct node_conf *node, char *certificate, char *key, char *authorities, char *crl)
{
	if (!certificate[0]) { /* certificate and key are inherited together */
		take_over(certificate, node->tls_certificate);
		take_over(key, node->tls_key);
	}
	if (!authorities[0])
		take_over(crl, node->tls_crl);
	take_over(authorities, node->tls_authorities);
}

size_t config_listeners(const struct config *c, struct listener_conf ret_list[LISTENERS_MAX])
{
	size_t n = 0;

	if (c->node.plain) {
		struct listener_conf own = {.name = "node", .port = c->node.port};

		snprintf(own.bind, sizeof(own.bind), "%s", c->node.bind);
		ret_list[n++] = own;
	}
	for (size_t i = 0; i < c->n_listeners && n < LISTENERS_MAX; i++) {
		struct listener_conf *l = &ret_list[n++];

		*l = c->listeners[i];
		if (!l->bind[0])
			snprintf(l->bind, sizeof(l->bind), "%s", c->node.bind);
		if (l->tls)
			complete_tls_files(&c->node, l->certificate, l->key, l->authorities, l->crl);
	}
	return n;
}

const struct profile_conf *config_profile(const struct config *c, const char *manufacturer, const char *model, const char *serial)
{
	const struct profile_conf *best = NULL;
	unsigned most = 1;

	for (size_t i = 0; i < c->n_profiles; i++) {
		const struct profile_conf *p = &c->profiles[i];
		unsigned score =
			fit_patterns((const char *[]){p->manufacturer, p->model, p->serial}, manufacturer, model, serial);

		if (score >= most) { /* equal scores: use the later one, so that entries of the user precede embedded ones */
			best = p;
			most = score;
		}
	}
	return best;
}

const struct scanner_conf *config_scanner(const struct config *c, const char *manufacturer, const char *model, const char *serial)
{
	const struct scanner_conf *best = NULL;
	unsigned most = 1;

	for (size_t i = 0; i < c->n_scanners; i++) {
		const struct scanner_conf *s = &c->scanners[i];
		unsigned score =
			fit_patterns((const char *[]){s->manufacturer, s->model, s->serial}, manufacturer, model, serial);

		if (score >= most) { /* equal scores: use the later one */
			best = s;
			most = score;
		}
	}
	return best;
}

const struct scanner_conf *config_scanner_named(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_scanners; i++)
		if (!strcmp(c->scanners[i].name, name))
			return &c->scanners[i];
	return NULL;
}

/* ---- --set and descriptions ---- */

int config_set(struct protocol_conf *p, const char *assignment, struct err *err)
{
	const struct config_section *section = config_section_of(&config_sections[SECTION_PROTOCOLS], p);
	const struct config_section *other;
	const char *equals = strchr(assignment, '='), *value = equals ? equals + 1 + strspn(equals + 1, " ") : NULL;
	size_t n = strcspn(assignment, " =");
	const struct key *key;
	char name[64], allowed[400], hint[NEAREST_HINT]; /* allowed: all keys of a kind */
	char kinds[CONFIG_KINDS_TEXT];

	if (!equals || n == 0 || n >= sizeof(name) || assignment + n + strspn(assignment + n, " ") != equals)
		return err_set(err, EINVAL, "\"%.100s\"; allowed: KEY=VALUE", assignment);
	snprintf(name, sizeof(name), "%.*s", (int)n, assignment);
	key = config_key_find(section, name);
	other = key ? NULL : config_section_with(section, name);
	nearest_hint(key ? NULL : config_key_nearest(section, name), hint);
	config_keys_list(section, 2, allowed, sizeof(allowed)); /* after name and kind */
	config_kinds_with(name, kinds);
	if (other)
		return err_set(err, EINVAL, "key '%s': only protocols of kind %s have it, and '%s' is of kind %s%s; allowed: %s",
			       name, kinds, p->name, kind_with(section)->name, hint, allowed);
	if (!key || !strcmp(name, "name") || !strcmp(name, "kind"))
		return err_set(err, EINVAL, "'%s' is no key of kind %s%s; allowed: %s", name, kind_with(section)->name, hint,
			       allowed);
	if (key->type == KEY_NAMES)
		return err_set(err, EINVAL, "key '%s': it cannot be set for one run; allowed: a protocol with other %s", name,
			       name);
	if (config_value_store_text(key, value, p) < 0) {
		const struct key_value v = {.kind = VALUE_TEXT, .text = value};
		char shown[128];

		key_show(&v, shown, sizeof(shown));
		config_value_allowed(key, allowed, sizeof(allowed));
		return err_set(err, EINVAL, "key '%s': %s%s; allowed: %s", name, shown,
			       nearest_hint(config_value_nearest(key, value), hint), allowed);
	}
	return 0;
}

const char *config_key_without_effect(const struct protocol_conf *before, const struct protocol_conf *p, const char *of,
				      char ret_why[KEY_EFFECT_SIZE])
{
	const struct config_section *section = config_section_of(&config_sections[SECTION_PROTOCOLS], p);

	return keys_without_effect(section->keys, section->n_keys, before, p, of, ret_why);
}

/* Write "key=value key=value" for all keys that affect the image. Paths and texts may contain blanks: they are quoted. */
static size_t describe_section(const struct config_section *section, const void *base, char *ret_text, size_t size)
{
	char value[300];
	size_t n = 0;

	if (size)
		ret_text[0] = '\0';
	for (size_t i = 0; i < section->n_keys && n < size; i++) {
		const struct key *key = &section->keys[i];
		const char *quote = key->type == KEY_PATH || key->type == KEY_WORD || key->type == KEY_TEXT ? "\"" : "";

		if (key->flags & KEY_UNDESCRIBED)
			continue;
		config_value_format(key, base, value, sizeof(value));
		if ((key->flags & KEY_SPARSE) && !strcmp(value, key->fallback))
			continue;
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s=%s%s%s", n ? " " : "", key->name, quote, value, quote);
	}
	return n;
}

/* A step is what identifies its program: another one makes another volume. */
static size_t describe_steps(const struct protocol_conf *p, char *ret_text, size_t size, size_t n)
{
	for (size_t i = 0; i < p->steps.n && n < size; i++) {
		const struct step_conf *s = p->step[i];

		if (!s) /* an unknown name, which refuses the configuration */
			continue;
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s %s sha256=%s%s%s",
				      i	  ? "; "
				      : n ? " steps=\""
					  : "steps=\"",
				      s->name, s->version, s->sha256, s->parameters[0] ? " " : "", s->parameters);
	}
	return p->steps.n > 0 && n < size ? n + (size_t)snprintf(ret_text + n, size - n, "\"") : n;
}

size_t config_describe_protocol(const struct protocol_conf *p, char *ret_text, size_t size)
{
	size_t n = describe_section(config_section_of(&config_sections[SECTION_PROTOCOLS], p), p, ret_text, size);

	return describe_steps(p, ret_text, size, n);
}

void config_describe_changes(const struct protocol_conf *of, const struct protocol_conf *p, char *ret_text, size_t size)
{
	const struct config_section *section = config_section_of(&config_sections[SECTION_PROTOCOLS], p);
	char value[300], other[300];
	size_t n = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];

		if (key->flags & KEY_UNDESCRIBED)
			continue;
		config_value_format(key, p, value, sizeof(value));
		config_value_format(key, of, other, sizeof(other));
		if (strcmp(value, other) != 0 && n + strlen(key->name) + strlen(value) + sizeof(", =") <= size)
			n += (size_t)snprintf(ret_text + n, size - n, "%s%s=%s", n ? ", " : "", key->name, value);
	}
}

bool config_protocol_uses(const char *kind, const char *algorithm, const char *key)
{
	const struct config_section *section = config_section_kind(&config_sections[SECTION_PROTOCOLS], kind);
	const struct key *row = section ? config_key_find(section, key) : NULL;

	return !row || !algorithm[0] || key_is_of(row, algorithm);
}

const char *config_protocol_zero(const char *kind, const char *key)
{
	const struct config_section *section = config_section_kind(&config_sections[SECTION_PROTOCOLS], kind);
	const struct key *row = section ? config_key_find(section, key) : NULL;

	return row ? row->zero : NULL;
}

const char *config_key_unit(const char *kind, const char *key)
{
	const struct config_section *section =
		kind ? config_section_kind(&config_sections[SECTION_PROTOCOLS], kind) : &config_sections[SECTION_PROFILES];
	const struct key *row = section ? config_key_find(section, key) : NULL;

	return row ? row->unit : NULL;
}

size_t config_describe_profile(const struct profile_conf *p, char *ret_text, size_t size)
{
	return describe_section(&config_sections[SECTION_PROFILES], p, ret_text, size);
}

/* Return true if the file's syntax needs quotes around the value of a key. */
static bool is_quoted(const struct key *key, const char *value)
{
	if (key->type == KEY_CHOICE) /* angle_sign = -1 needs none */
		return strspn(value, "-0123456789") != strlen(value);
	return key->type != KEY_INT && key->type != KEY_REAL && key->type != KEY_BOOL;
}

void config_write_profile(const struct profile_conf *p, char *ret_text, size_t size)
{
	const struct config_section *section = &config_sections[SECTION_PROFILES];
	size_t n = (size_t)snprintf(ret_text, size, "profiles = (\n\t{\n");

	for (size_t i = 0; i < section->n_keys && n < size; i++) {
		const struct key *key = &section->keys[i];
		const char *quote;
		char value[300];

		config_value_format(key, p, value, sizeof(value));
		if (!value[0] || ((key->flags & KEY_SPARSE) && !strcmp(value, key->fallback)))
			continue;
		quote = is_quoted(key, value) ? "\"" : "";
		n += (size_t)snprintf(ret_text + n, size - n, "\t\t%s = %s%s%s;\n", key->name, quote, value, quote);
	}
	if (n < size)
		snprintf(ret_text + n, size - n, "\t}\n);\n");
}
