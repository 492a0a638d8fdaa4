/* SPDX-License-Identifier: Apache-2.0 */
/* config_finish.c - checks and defaults that need the complete configuration: names that must exist, combinations of keys, and
 * the two defaults that depend on other settings: the folder of the spool and require_known_peer.
 */
#include <arpa/inet.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/nearest.h"
#include "node/config/certificate_pattern.h"
#include "node/config/config_read.h"
#include "node/config/kind.h"

#define REFUSALS 20   /* default of peer_refusals */
#define SLOWEST 100e3 /* slowest rate, bytes/s */

bool config_is_loopback(const char *address)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Return the default folder of the spool: $TOMONODE_SPOOL; for root /var/lib/tomonode; $XDG_STATE_HOME/tomonode;
 * ~/.local/state/tomonode (XDG base directory specification: relative paths are ignored). */
static int standard_spool(char *ret_path, size_t size)
{
	const char *named = getenv("TOMONODE_SPOOL");
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	struct passwd entry, *found = NULL;
	char buffer[1024];
	int n;

	if (!home && getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found)
		home = found->pw_dir;
	if (named && named[0] == '/')
		n = snprintf(ret_path, size, "%s", named);
	else if (geteuid() == 0)
		n = snprintf(ret_path, size, "/var/lib/tomonode");
	else if (state && state[0] == '/')
		n = snprintf(ret_path, size, "%s/tomonode", state);
	else if (home && home[0] == '/')
		n = snprintf(ret_path, size, "%s/.local/state/tomonode", home);
	else
		return -1;
	return n >= 0 && (size_t)n < size ? 0 : -1;
}

static bool loopback_alone(const struct config *c)
{
	struct listener_conf list[LISTENERS_MAX];
	size_t n = config_listeners(c, list);

	for (size_t i = 0; i < n; i++)
		if (!config_is_loopback(list[i].bind))
			return false;
	return true;
}

static void finish_node(struct config_reader *r)
{
	struct node_conf *node = &r->config->node;
	char spool[sizeof(node->spool)] = "";

	if (!r->peers_checked)
		node->require_known_peer = !loopback_alone(r->config);
	if (!r->refusals_given)
		node->peer_refusals = loopback_alone(r->config) ? 0 : REFUSALS;
	if (!r->associations_given)
		node->peer_associations = loopback_alone(r->config) ? 0 : (node->max_associations + 1) / 2;
	if (node->peer_bytes > 0 && (double)node->peer_bytes < SLOWEST * node->peer_window)
		config_problem(r, r->text->files[0], 1,
			       "key 'peer_bytes' of node: %llu; allowed: at least %.0f in each second of peer_window (%g s); at "
			       "a lower rate senders would time out",
			       (unsigned long long)node->peer_bytes, SLOWEST, node->peer_window);
	if (!node->spool[0]) {
		if (standard_spool(spool, sizeof(spool)) < 0)
			config_problem(r, r->text->files[0], 1,
				       "key 'spool' of node: there is no default folder (no home folder, or a path that is too "
				       "long); allowed: an absolute path of at most %zu bytes",
				       sizeof(spool) - 1);
		else
			memcpy(node->spool, spool, sizeof(spool));
	}
	if (node->audit == AUDIT_FILE && !node->audit_file[0])
		config_problem(r, r->text->files[0], 1,
			       "key 'audit_file' of node: \"\"; allowed: with audit = \"file\" the absolute path of a file");
}

struct entries {
	const struct config *config;
	const struct config_section *section;
};

static const char *entry_name(const void *ctx, size_t i)
{
	const struct entries *e = ctx;
	size_t n;
	const char *list = config_entries(e->config, e->section, &n);

	return i < n ? list + i * e->section->entry_size : NULL; /* the name is each structure's first field */
}

static void join_names(const struct entries *e, char *ret_text, size_t size)
{
	const char *one;
	size_t n = 0;

	snprintf(ret_text, size, "none is there");
	for (size_t i = 0; (one = entry_name(e, i)) && n < size; i++)
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s", i ? ", " : "", one);
}

void config_unknown_name(struct config_reader *r, struct config_place place, const char *what, const char *of, const char *key,
			 const char *wanted, size_t section)
{
	const struct entries e = {r->config, &config_sections[section]};
	char names[400], hint[NEAREST_HINT];

	if (r->incomplete[section])
		return;
	join_names(&e, names, sizeof(names));
	config_problem(r, place.file, place.line, "key '%s' of %s '%s': \"%s\" does not exist%s; allowed: %s", key, what, of,
		       wanted, nearest_hint(nearest_word(wanted, entry_name, &e), hint), names);
}

/* Find the steps that protocols name. */
static void finish_step_names(struct config_reader *r)
{
	for (size_t i = 0; i < r->config->n_protocols; i++) {
		struct protocol_conf *p = &r->config->protocols[i];

		for (size_t k = 0; k < p->steps.n; k++) {
			p->step[k] = NULL;
			for (size_t s = 0; s < r->config->n_steps; s++)
				if (!strcmp(r->config->steps[s].name, p->steps.name[k]))
					p->step[k] = &r->config->steps[s];
			if (!p->step[k])
				config_unknown_name(r, r->places[SECTION_PROTOCOLS][i], "protocol", p->name, "steps",
						    p->steps.name[k], SECTION_STEPS);
		}
	}
}

void config_finish_names(struct config_reader *r)
{
	r->names_only = true;
	finish_step_names(r);
	config_finish_routes(r);
	config_finish_fallbacks(r);
}

static void finish_listeners(struct config_reader *r)
{
	const struct config *c = r->config;
	struct config_place *places = r->places[SECTION_LISTENERS];
	struct listener_conf list[LISTENERS_MAX];
	size_t own = c->node.plain ? 1 : 0, n;

	if (c->n_listeners + own == 0)
		config_problem(r, r->text->files[0], 1,
			       "key 'plain' of node: false; allowed: only true while `listeners` is empty, because the node "
			       "would listen on no port");
	if (c->n_listeners + own > LISTENERS_MAX) {
		config_problem(r, places[0].file, places[0].line, "section 'listeners': %zu entries; allowed: at most %zu",
			       c->n_listeners, LISTENERS_MAX - own);
		return;
	}
	n = config_listeners(c, list);
	for (size_t i = own; i < n; i++) {
		const struct listener_conf *l = &list[i];
		struct config_place place = places[i - own];

		for (size_t k = 0; k < i; k++)
			if (l->port == list[k].port && l->port != 0 && !strcmp(l->bind, list[k].bind))
				config_problem(r, place.file, place.line,
					       "key 'port' of listener '%s': %d; allowed: a port that '%s' does not use", l->name,
					       l->port, list[k].name);
		if (l->tls && !l->certificate[0])
			config_problem(r, place.file, place.line,
				       "key 'certificate' of listener '%s': \"\"; allowed: with TLS an absolute path, here or as "
				       "node.tls_certificate",
				       l->name);
		if (l->tls && l->client_certificate && !l->authorities[0])
			config_problem(
				r, place.file, place.line,
				"key 'authorities' of listener '%s': \"\"; allowed: with client_certificate \"required\" an "
				"absolute path, here or as node.tls_authorities",
				l->name);
	}
}

static void finish_peers(struct config_reader *r)
{
	const struct config *c = r->config;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer_conf *p = &c->peers[i];
		struct config_place place = r->places[SECTION_PEERS][i];

		if (!certificate_pattern_ok(p->certificate))
			config_problem(
				r, place.file, place.line,
				"key 'certificate' of peer '%s': \"%s\"; allowed: sha256: and 64 hexadecimal digits (with or "
				"without colons), or a name",
				p->name, p->certificate);
		if (p->bytes > 0 && (double)p->bytes < SLOWEST * c->node.peer_window)
			config_problem(r, place.file, place.line,
				       "key 'bytes' of peer '%s': %llu; allowed: at least %.0f in each second of "
				       "node.peer_window (%g s)",
				       p->name, (unsigned long long)p->bytes, SLOWEST, c->node.peer_window);
	}
}

static void finish_gates(struct config_reader *r, const struct protocol_conf *p, struct config_place place)
{
	struct pet_gates gates = {0};
	struct err err;

	if (pet_gates_parse_cycle(p->pet.gate_cycle, &gates, &err) < 0)
		config_problem(r, place.file, place.line, "key 'gate_cycle' of protocol '%s': %s", p->name, err.msg);
	if (p->pet.gates > 0 && p->pet.frames[0])
		config_problem(r, place.file, place.line,
			       "keys 'gates' and 'frames' of protocol '%s': gates of time frames are not supported", p->name);
}

static void finish_protocols(struct config_reader *r)
{
	for (size_t i = 0; i < r->config->n_protocols; i++) {
		const struct protocol_conf *p = &r->config->protocols[i];
		struct config_place place = r->places[SECTION_PROTOCOLS][i];
		struct pet_images frames;
		struct err err;

		if (pet_frames_parse(p->pet.frames, &frames, &err) < 0)
			config_problem(r, place.file, place.line, "key 'frames' of protocol '%s': %s", p->name, err.msg);
		finish_gates(r, p, place);
		if ((p->pet.corrections & PET_CORRECT_SCATTER) && !(p->pet.corrections & PET_CORRECT_ATTENUATION))
			config_problem(r, place.file, place.line,
				       "key 'corrections' of protocol '%s': \"scatter\" needs \"attenuation\", whose map of "
				       "attenuation it is simulated with",
				       p->name);
		if (p->slab_thickness > 0 && p->slab_step > p->slab_thickness)
			config_problem(r, place.file, place.line,
				       "key 'slab_step' of protocol '%s': %g; allowed: at most slab_thickness, %g mm, so that "
				       "each slice is in a slab",
				       p->name, p->slab_step, p->slab_thickness);
	}
}

static void finish_steps(struct config_reader *r)
{
	const struct config *c = r->config;

	for (size_t i = 0; i < c->n_steps; i++) {
		const struct step_conf *s = &c->steps[i];
		struct config_place place = r->places[SECTION_STEPS][i];

		if (strspn(s->sha256, "0123456789abcdef") != 64)
			config_problem(r, place.file, place.line,
				       "key 'sha256' of step '%s': \"%s\"; allowed: 64 hexadecimal digits in lower case, as "
				       "sha256sum prints them",
				       s->name, s->sha256);
	}
	for (size_t i = 0; c->cluster.port > 0 && i < c->n_protocols; i++)
		if (c->protocols[i].steps.n > 0)
			config_problem(r, r->places[SECTION_PROTOCOLS][i].file, r->places[SECTION_PROTOCOLS][i].line,
				       "key 'steps' of protocol '%s': pilots do not run steps; allowed: with port = 0 of cluster",
				       c->protocols[i].name);
}

static void finish_profiles(struct config_reader *r)
{
	for (size_t i = 0; i < r->config->n_profiles; i++) {
		const struct profile_conf *p = &r->config->profiles[i];
		struct config_place place = r->places[SECTION_PROFILES][i];

		if (p->i0_mode == I0_PERCENTILE && !(p->i0 > 0 && p->i0 <= 100))
			config_problem(r, place.file, place.line,
				       "key 'i0' of profile '%s': %g; allowed: with i0_mode percentile above 0 up to 100 percent",
				       p->name, p->i0);
		if (p->i0_mode == I0_FIXED && !(p->i0 > 0))
			config_problem(r, place.file, place.line,
				       "key 'i0' of profile '%s': %g; allowed: with i0_mode fixed a stored value above 0",
				       p->name, p->i0);
		if (p->i0_mode == I0_FLATFIELD && !p->flatfield[0])
			config_problem(r, place.file, place.line,
				       "key 'flatfield' of profile '%s': \"\"; allowed: with i0_mode flatfield a DICOM file's "
				       "absolute path",
				       p->name);
		if (p->open_field_fit && p->i0_mode != I0_PERCENTILE)
			config_problem(r, place.file, place.line,
				       "key 'open_field_fit' of profile '%s': true; allowed: with i0_mode percentile, because "
				       "the fit needs the air of the projections",
				       p->name);
		if (p->angle_at_detector && !(fabs(p->axis_height) < p->source_axis))
			config_problem(r, place.file, place.line,
				       "key 'angle_about' of profile '%s': detector; allowed: with axis_height below source_axis "
				       "= %g mm",
				       p->name, p->source_axis);
		if (!(p->axis_height + p->source_axis > p->support))
			config_problem(r, place.file, place.line,
				       "key 'support' of profile '%s': %g; allowed: below the source at axis_height + "
				       "source_axis = %g mm",
				       p->name, p->support, p->axis_height + p->source_axis);
	}
}

static void finish_scanners(struct config_reader *r)
{
	for (size_t i = 0; i < r->config->n_scanners; i++) {
		const struct scanner_conf *s = &r->config->scanners[i];
		struct config_place place = r->places[SECTION_SCANNERS][i];
		double reach = s->scanner.radius + s->scanner.interaction_depth;

		if (s->span % 2 == 0 && s->span != 2)
			config_problem(r, place.file, place.line,
				       "key 'span' of scanner '%s': %d; allowed: an odd number, or 2 for GE's grouping", s->name,
				       s->span);
		if (s->max_difference >= s->scanner.rings)
			config_problem(r, place.file, place.line,
				       "key 'max_difference' of scanner '%s': %d; allowed: below the %d rings", s->name,
				       s->max_difference, s->scanner.rings);
		if (s->arc_corrected && (s->n_radial / 2) * s->scanner.bin > reach)
			config_problem(r, place.file, place.line,
				       "key 'radial' of scanner '%s': %d bins of %g mm; allowed: bins within radius + "
				       "interaction_depth, %g mm, of the axis",
				       s->name, s->n_radial, s->scanner.bin, reach);
		if (!s->arc_corrected && s->n_radial > s->scanner.detectors)
			config_problem(r, place.file, place.line,
				       "key 'radial' of scanner '%s': %d bins without arc correction; allowed: at most the %d "
				       "detectors of a ring",
				       s->name, s->n_radial, s->scanner.detectors);
		if (s->ecat_counts > 0 && s->calibration > 0)
			config_problem(r, place.file, place.line,
				       "key 'ecat_counts' of scanner '%s': %g beside calibration = %g; allowed: one of both",
				       s->name, s->ecat_counts, s->calibration);
		if (s->tof_bins > 0 && !(s->tof_width > 0 && s->tof_resolution > 0))
			config_problem(r, place.file, place.line,
				       "key 'tof_bins' of scanner '%s': %d without tof_width and tof_resolution", s->name,
				       s->tof_bins);
	}
}

/* A certificate is used together with the authorities of the other end's. */
static void finish_certificate(struct config_reader *r, const char *section, const char *certificate, const char *key,
			       const char *authorities)
{
	if (!certificate[0] != !authorities[0])
		config_problem(r, r->text->files[0], 1,
			       "key '%s' of %s: \"\"; allowed: certificate and authorities together, or neither",
			       certificate[0] ? "authorities" : "certificate", section);
	if (key[0] && !certificate[0])
		config_problem(r, r->text->files[0], 1, "key 'key' of %s: \"%s\"; allowed: only with a certificate", section,
			       key);
}

static void finish_cluster(struct config_reader *r)
{
	const struct config *c = r->config;

	if (c->cluster.port > 0 && (c->cluster.port == c->node.port || (c->status.enabled && c->cluster.port == c->status.port)))
		config_problem(
			r, r->text->files[0], 1,
			"key 'port' of cluster: %d, which is the port of DICOM or of the status page; allowed: another port",
			c->cluster.port);
	if (c->node.executor == EXECUTOR_PILOTS && c->cluster.port == 0)
		config_problem(
			r, r->text->files[0], 1,
			"key 'executor' of node: \"pilots\"; allowed: only with a port in `cluster`, to which they connect");
	finish_certificate(r, "cluster", c->cluster.certificate, c->cluster.key, c->cluster.authorities);
}

static void finish_slurm(struct config_reader *r)
{
	const struct slurm_conf *slurm = &r->config->slurm;
	bool on = r->config->node.executor & EXECUTOR_SLURM;

	finish_certificate(r, "slurm", slurm->certificate, slurm->key, slurm->authorities);
	if (on && !slurm->certificate[0] != !r->config->cluster.certificate[0])
		config_problem(r, r->text->files[0], 1,
			       "key 'certificate' of slurm: \"%s\"; allowed: one if cluster has one, else none",
			       slurm->certificate);

	if (slurm->min > slurm->max)
		config_problem(r, r->text->files[0], 1, "key 'min' of slurm: %d; allowed: at most max, %d", slurm->min,
			       slurm->max);
	if ((r->config->node.executor & EXECUTOR_SLURM) && r->config->cluster.port == 0)
		config_problem(
			r, r->text->files[0], 1,
			"key 'executor' of node: with slurm; allowed: only with a port in `cluster`, to which pilots connect");
}

void config_finish(struct config_reader *r)
{
	finish_step_names(r);
	finish_node(r);
	finish_listeners(r);
	finish_peers(r);
	config_finish_destinations(r);
	config_finish_routes(r);
	finish_protocols(r);
	finish_profiles(r);
	finish_scanners(r);
	finish_steps(r);
	config_finish_status(r);
	config_finish_alerts(r);
	finish_cluster(r);
	finish_slurm(r);
}

void config_warn(const struct config *c, void (*report)(void *ctx, const char *warning), void *ctx)
{
	struct listener_conf list[LISTENERS_MAX];
	char text[400];
	bool asked = false;
	size_t n;

	n = config_listeners(c, list);
	for (size_t i = 0; i < n; i++) {
		bool verified = list[i].tls && list[i].client_certificate;

		asked = asked || verified;
		if (c->node.require_known_peer || verified || config_is_loopback(list[i].bind))
			continue;
		snprintf(text, sizeof(text),
			 "%s%.63s listens on %.63s and require_known_peer is false: anybody on the network may send",
			 strcmp(list[i].name, "node") != 0 ? "listener " : "", list[i].name, list[i].bind);
		report(ctx, text);
	}
	for (size_t i = 0; c->node.require_known_peer && i < c->n_peers; i++) {
		const struct peer_conf *p = &c->peers[i];

		if (!p->aet[0] && !p->host[0] && !p->certificate[0]) {
			snprintf(text, sizeof(text), "peer '%s' has neither aet, host nor certificate: anybody may send",
				 p->name);
			report(ctx, text);
		}
		if (p->certificate[0] && !asked) {
			snprintf(text, sizeof(text),
				 "peer '%s' needs a certificate, but no listener asks for one (tls and client_certificate): it "
				 "will be rejected",
				 p->name);
			report(ctx, text);
		}
	}
	if (c->node.require_known_peer && c->n_peers == 0)
		report(ctx, "require_known_peer is true and `peers` is empty: nobody may send");
	for (size_t i = 0; i < c->n_destinations; i++) {
		const struct destination_conf *d = &c->destinations[i];
		const char *aet = d->commitment_aet[0] ? d->commitment_aet : d->aet;
		bool admitted = !c->node.require_known_peer;

		for (size_t k = 0; k < c->n_peers; k++)
			admitted = admitted || !strcmp(c->peers[k].aet, aet);
		if (d->commitment && !admitted) {
			snprintf(text, sizeof(text),
				 "destination '%s' is asked for storage commitment, but its AE title '%s' is not in `peers`: a "
				 "report on an association of its own will be rejected",
				 d->name, aet);
			report(ctx, text);
		}
	}
	for (size_t i = 0; i < c->n_protocols; i++)
		if (c->protocols[i].dbt.algorithm == ALGORITHM_FBP && !(c->protocols[i].stored_offset < 0)) {
			snprintf(text, sizeof(text),
				 "protocol '%s' has algorithm fbp and stored_offset %g: negative values will be stored as %g",
				 c->protocols[i].name, c->protocols[i].stored_offset, c->protocols[i].stored_offset);
			report(ctx, text);
		}
	config_warn_status(c, report, ctx);
	if (c->n_routes == 0)
		report(ctx, "`routes` is empty: every case will be held");
}
