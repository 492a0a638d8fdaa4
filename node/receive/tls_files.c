/* SPDX-License-Identifier: Apache-2.0 */
#include "node/receive/tls_files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "node/deliver/destination.h"

#define DAY 86400.0

struct tls_conf listener_tls(const struct listener_conf *l)
{
	return (struct tls_conf){.certificate = l->certificate,
				 .key = l->key,
				 .authorities = l->client_certificate ? l->authorities : "",
				 .crl = l->client_certificate ? l->crl : "",
				 .server = true,
				 .client_certificate = l->client_certificate};
}

static void format_date(double at, char *ret_text, size_t size)
{
	time_t t = (time_t)at;
	struct tm parts;

	gmtime_r(&t, &parts);
	strftime(ret_text, size, "%Y-%m-%d %H:%M UTC", &parts);
}

static void check_time(const struct tls_context *context, const char *whose, const char *file, double now,
		       const struct tls_files_report *report)
{
	double from, until;
	char text[500], date[40];

	if (!report->expiry || !tls_validity(context, &from, &until))
		return;
	format_date(now < from ? from : until, date, sizeof(date));
	if (now < from)
		snprintf(text, sizeof(text), "%s: the certificate in %s is not valid before %s: check the clock", whose, file,
			 date);
	else if (now >= until)
		snprintf(text, sizeof(text), "%s: the certificate in %s expired on %s: peers will refuse it", whose, file, date);
	else if (until - now < TLS_FILES_DAYS * DAY)
		snprintf(text, sizeof(text), "%s: the certificate in %s expires on %s, in %.0f days", whose, file, date,
			 (until - now) / DAY);
	else
		return;
	report->expiry(report->ctx, text, now < from || now >= until);
}

static void check_crl(const struct tls_context *context, const char *whose, const char *file, double now,
		      const struct tls_files_report *report)
{
	char text[600], date[40];
	double until;

	if (!report->expiry || !tls_crl_until(context, &until) || until - now >= TLS_FILES_CRL_DAYS * DAY)
		return;
	format_date(until, date, sizeof(date));
	snprintf(text, sizeof(text), "%s: a list of revoked certificates in %s %s on %s: %s", whose, file,
		 now >= until ? "ended" : "ends", date,
		 now >= until ? "no peer with a certificate of this authority is accepted until the list is replaced"
			      : "replace the list and reload the configuration");
	report->expiry(report->ctx, text, now >= until);
}

/* Report a key that every user of the machine can read. Reading by its group is accepted, because it may be intended. */
static void check_key(const struct tls_conf *conf, const char *whose, const struct tls_files_report *report)
{
	const char *file = conf->key && conf->key[0] ? conf->key : conf->certificate;
	struct stat st;
	char text[700];

	if (!report->open_key || !file || !file[0] || stat(file, &st) < 0 || !(st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)))
		return;
	snprintf(text, sizeof(text),
		 "%s: the private key in %s is not protected: other users of this machine can %s it (mode %04o). Run chmod 600, "
		 "so that only the user of the node can read it, and replace the key if others may have read it",
		 whose, file, st.st_mode & S_IROTH ? "read" : "change", (unsigned)st.st_mode & 07777);
	report->open_key(report->ctx, text);
}

static int check_one(const struct tls_conf *conf, const char *what, const char *name, double now,
		     const struct tls_files_report *report, struct err *err)
{
	struct tls_context *context = NULL;
	char whose[CONFIG_NAME_SIZE + 16], text[600];
	struct err why = {0};

	snprintf(whose, sizeof(whose), "%s '%s'", what, name);
	if (tls_create(conf, &context, &why) < 0) {
		snprintf(text, sizeof(text), "%s: %s", whose, why.msg);
		if (report->problem)
			report->problem(report->ctx, text);
		return err_set(err, ENOKEY, "%s", text);
	}
	check_time(context, whose, conf->certificate, now, report);
	check_crl(context, whose, conf->crl, now, report);
	check_key(conf, whose, report);
	tls_free(context);
	return 0;
}

int tls_files_check(const struct config *config, double now, const struct tls_files_report *report, struct err *err)
{
	struct listener_conf list[LISTENERS_MAX];
	size_t n = config_listeners(config, list);
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		struct tls_conf conf = listener_tls(&list[i]);

		if (list[i].tls && check_one(&conf, "listener", list[i].name, now, report, ret == 0 ? err : NULL) < 0)
			ret = -ENOKEY;
	}
	for (size_t i = 0; i < config->n_destinations; i++) {
		const struct destination_conf *d = &config->destinations[i];
		struct scu_peer peer = destination_peer(config, d);

		if (d->tls && check_one(&peer.tls, "destination", d->name, now, report, ret == 0 ? err : NULL) < 0)
			ret = -ENOKEY;
	}
	return ret;
}
