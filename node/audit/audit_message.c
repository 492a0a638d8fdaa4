/* SPDX-License-Identifier: Apache-2.0 */
/* audit_message.c - the part of the message grammar of PS3.15 A.5.1 that the node needs. Attributes and elements are written in
 * its order. tests/audit/audit-message.rng is the whole grammar; tests/system/test_audit.py validates the messages with it.
 */
#include "node/audit/audit_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/utf8.h"

#define VALUE_MAX 512 /* maximum number of bytes written of a text, because a datagram is limited */

#define DCM(name, number, text) const struct audit_code name = {number, "DCM", text}
DCM(audit_code_application, "110100", "Application Activity");
DCM(audit_code_start, "110120", "Application Start");
DCM(audit_code_stop, "110121", "Application Stop");
DCM(audit_code_begin, "110102", "Begin Transferring DICOM Instances");
DCM(audit_code_transferred, "110104", "DICOM Instances Transferred");
DCM(audit_code_accessed, "110103", "DICOM Instances Accessed");
DCM(audit_code_deleted, "110105", "DICOM Study Deleted");
DCM(audit_code_patient_record, "110110", "Patient Record");
DCM(audit_code_procedure, "110111", "Procedure Record");
DCM(audit_code_export, "110106", "Export");
DCM(audit_code_import, "110107", "Import");
DCM(audit_code_alert, "110113", "Security Alert");
DCM(audit_code_node_authentication, "110126", "Node Authentication");
DCM(audit_code_restricted, "110132", "Use of Restricted Function");
DCM(audit_code_software, "110131", "Software Configuration");
DCM(audit_code_network_entry, "110108", "Network Entry");
DCM(audit_code_attach, "110124", "Attach");
DCM(audit_code_detach, "110125", "Detach");
DCM(audit_role_application, "110150", "Application");
DCM(audit_role_launcher, "110151", "Application Launcher");
DCM(audit_role_source, "110153", "Source Role ID");
DCM(audit_role_destination, "110152", "Destination Role ID");
DCM(audit_role_source_media, "110155", "Source Media");
DCM(audit_role_destination_media, "110154", "Destination Media");
static DCM(id_study, "110180", "Study Instance UID");
static DCM(id_node, "110182", "Node ID");
static DCM(media_uri, "110037", "URI"); /* PS3.16 CID 405 */
static const struct audit_code id_patient = {"2", "RFC-3881", "Patient Number"};

/* ---- text ---- */

/* Return the number of bytes of the UTF-8 character at `p` if XML 1.0 allows it (section 2.2) and it is no control character; 0:
 * it is not such a character, or exceeds the `left` bytes. */
static size_t character_size(const char *p, size_t left)
{
	uint32_t code;
	size_t n = utf8_decode(p, &code);

	return n > 0 && n <= left && code >= 0x20 && (code < 0x7f || code >= 0xa0) && (code & 0xfffe) != 0xfffe ? n : 0;
}

static void put_text(FILE *to, const char *text)
{
	const char *p = text;
	size_t left = strnlen(text, VALUE_MAX);

	while (left > 0) {
		size_t n = character_size(p, left);

		if (n == 0)
			fprintf(to, "\\x%02x", (unsigned char)*p);
		else if (*p == '&')
			fputs("&amp;", to);
		else if (*p == '<')
			fputs("&lt;", to);
		else if (*p == '>')
			fputs("&gt;", to);
		else if (*p == '"')
			fputs("&quot;", to);
		else if (*p == '\'')
			fputs("&apos;", to);
		else
			fwrite(p, 1, n, to);
		p += n ? n : 1;
		left -= n ? n : 1;
	}
}

static void put_attribute(FILE *to, const char *name, const char *value)
{
	fprintf(to, " %s=\"", name);
	put_text(to, value);
	fputc('"', to);
}

static void put_code(FILE *to, const char *element, const struct audit_code *c)
{
	fprintf(to, "<%s", element);
	put_attribute(to, "csd-code", c->code);
	put_attribute(to, "codeSystemName", c->system);
	put_attribute(to, "originalText", c->meaning);
	fputs("/>", to);
}

/* Write xsd:dateTime in UTC, with its zone. */
static void put_time(FILE *to, double when)
{
	time_t seconds = (time_t)floor(when);
	struct tm tm;
	char text[32];

	if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1899 || tm.tm_year > 8099) {
		seconds = 0;
		gmtime_r(&seconds, &tm);
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(to, " EventDateTime=\"%s.%03dZ\"", text, (int)(1000 * (when - floor(when))) % 1000);
}

/* ---- elements ---- */

static void put_event(FILE *to, const struct audit_message *m)
{
	fprintf(to, "<EventIdentification EventActionCode=\"%c\"", m->action);
	put_time(to, m->time);
	fprintf(to, " EventOutcomeIndicator=\"%d\">", (int)m->outcome);
	put_code(to, "EventID", m->event);
	if (m->type)
		put_code(to, "EventTypeCode", m->type);
	if (m->reason && m->reason[0]) {
		fputs("<EventOutcomeDescription>", to);
		put_text(to, m->reason);
		fputs("</EventOutcomeDescription>", to);
	}
	fputs("</EventIdentification>", to);
}

static bool is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static void put_party(FILE *to, const struct audit_party *p)
{
	char titles[128];

	fputs("<ActiveParticipant", to);
	put_attribute(to, "UserID", p->user && p->user[0] ? p->user : "unknown");
	if (p->aet && p->aet[0]) {
		snprintf(titles, sizeof(titles), "AETITLES=%s", p->aet);
		put_attribute(to, "AlternativeUserID", titles);
	}
	if (p->name)
		put_attribute(to, "UserName", p->name);
	fprintf(to, " UserIsRequestor=\"%s\"", p->requestor ? "true" : "false");
	if (p->host && p->host[0]) {
		put_attribute(to, "NetworkAccessPointID", p->host);
		put_attribute(to, "NetworkAccessPointTypeCode", is_address(p->host) ? "2" : "1");
	}
	fputc('>', to);
	if (p->role)
		put_code(to, "RoleIDCode", p->role);
	if (p->media) {
		fputs("<MediaIdentifier>", to);
		put_code(to, "MediaType", &media_uri);
		fputs("</MediaIdentifier>", to);
	}
	fputs("</ActiveParticipant>", to);
}

/* Write the start of a participant object. type, role: ParticipantObjectTypeCode and ParticipantObjectTypeCodeRole, PS3.15
 * A.5.1.2. The grammar requires a name: the identifier is repeated there. */
static void begin_object(FILE *to, const char *id, int type, int role, const struct audit_code *id_type)
{
	const char *known = id && id[0] ? id : "unknown";

	fputs("<ParticipantObjectIdentification", to);
	put_attribute(to, "ParticipantObjectID", known);
	fprintf(to, " ParticipantObjectTypeCode=\"%d\" ParticipantObjectTypeCodeRole=\"%d\">", type, role);
	put_code(to, "ParticipantObjectIDTypeCode", id_type);
	fputs("<ParticipantObjectName>", to);
	put_text(to, known);
	fputs("</ParticipantObjectName>", to);
}

static void end_object(FILE *to)
{
	fputs("</ParticipantObjectIdentification>", to);
}

static void put_study(FILE *to, const struct audit_study *s)
{
	begin_object(to, s->study, 2, 3, &id_study); /* type 2: system object; role 3: report, which is the role of a study */
	if (s->n_classes > 0)
		fputs("<ParticipantObjectDescription>", to);
	for (size_t i = 0; i < s->n_classes; i++) {
		fputs("<SOPClass", to);
		if (s->classes[i].uid[0])
			put_attribute(to, "UID", s->classes[i].uid);
		fprintf(to, " NumberOfInstances=\"%zu\"/>", s->classes[i].instances);
	}
	if (s->n_classes > 0)
		fputs("</ParticipantObjectDescription>", to);
	end_object(to);
}

/* Write each patient once: skip a study whose patient was written for an earlier study. */
static void put_patients(FILE *to, const struct audit_message *m)
{
	for (size_t i = 0; i < m->n_studies; i++) {
		const char *patient = m->studies[i].patient ? m->studies[i].patient : "";
		bool before = false;

		for (size_t k = 0; k < i; k++)
			before |= !strcmp(m->studies[k].patient ? m->studies[k].patient : "", patient);
		if (before)
			continue;
		begin_object(to, patient, 1, 1, &id_patient); /* type 1: person; role 1: patient */
		end_object(to);
	}
}

/* Write the subject of an alert (PS3.15 A.5.3.11); its description is encoded in base64, so that it can contain any byte. */
static void put_alert(FILE *to, const struct audit_message *m)
{
	const char *reason = m->reason ? m->reason : "";
	size_t n = strnlen(reason, VALUE_MAX);
	unsigned char coded[4 * (VALUE_MAX / 3 + 1) + 1];

	EVP_EncodeBlock(coded, (const unsigned char *)reason, (int)n);
	begin_object(to, m->alert, 2, 13, &id_node); /* type 2: system object; role 13: security resource */
	fprintf(to, "<ParticipantObjectDetail type=\"Alert Description\" value=\"%s\"/>", (const char *)coded);
	end_object(to);
}

static void put_message(FILE *to, const struct audit_message *m)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?><AuditMessage>", to);
	put_event(to, m);
	for (size_t i = 0; i < m->n_parties; i++)
		put_party(to, &m->parties[i]);
	fputs("<AuditSourceIdentification", to);
	if (m->site && m->site[0])
		put_attribute(to, "AuditEnterpriseSiteID", m->site);
	put_attribute(to, "AuditSourceID", m->source);
	fputs("><AuditSourceTypeCode csd-code=\"4\"/></AuditSourceIdentification>", to); /* 4: application server process */
	for (size_t i = 0; i < m->n_studies; i++)
		put_study(to, &m->studies[i]);
	put_patients(to, m);
	if (m->alert)
		put_alert(to, m);
	fputs("</AuditMessage>", to);
}

int audit_message_write(const struct audit_message *m, char **ret_text, struct err *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);
	bool bad;

	if (!to)
		return err_set(err, ENOMEM, "no memory for an audit message");
	put_message(to, m);
	bad = ferror(to);
	if (fclose(to) != 0 || bad) {
		free(text);
		return err_set(err, ENOMEM, "no memory for an audit message");
	}
	*ret_text = text;
	return 0;
}

void audit_study_count(struct audit_study *study, const char *sop_class, size_t instances)
{
	size_t i = 0;

	while (i < study->n_classes && strcmp(study->classes[i].uid, sop_class) != 0)
		i++;
	if (i == AUDIT_CLASSES_MAX)
		i--;
	if (i == study->n_classes) {
		snprintf(study->classes[i].uid, sizeof(study->classes[i].uid), "%s", sop_class);
		study->n_classes++;
	}
	study->classes[i].instances += instances;
}
