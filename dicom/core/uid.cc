/* SPDX-License-Identifier: Apache-2.0 */
/* uid.cc - UIDs and digests.
 *
 * A generated UID is "2.25." and the decimal value of a UUID (PS3.5 B.2): at most 5 + 39 characters. Version and variant bits are
 * set according to RFC 4122 and its successor RFC 9562: version 4 for a random one, 8 (custom hash) for one from a text. */
#include "dicom/core/internal.hh"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <dcmtk/dcmdata/dcuid.h>

static void sha256(const void *bytes, size_t n, unsigned char ret_digest[32])
{
	unsigned int size = 0;

	/* Abort if SHA-256 fails: a wrong UID or digest must not be used. */
	if (EVP_Digest(n ? bytes : "", n, ret_digest, &size, EVP_sha256(), nullptr) != 1 || size != 32)
		abort();
}

static void uid_from_uuid(unsigned char uuid[16], unsigned version, char ret_uid[DICOM_UID_SIZE])
{
	char digits[40];
	size_t n = sizeof(digits);
	unsigned __int128 value = 0;

	uuid[6] = (unsigned char)((uuid[6] & 0x0f) | version << 4);
	uuid[8] = (unsigned char)((uuid[8] & 0x3f) | 0x80);
	for (int i = 0; i < 16; i++)
		value = value << 8 | uuid[i];
	digits[--n] = '\0';
	do
		digits[--n] = (char)('0' + (int)(value % 10));
	while ((value /= 10) != 0);
	snprintf(ret_uid, DICOM_UID_SIZE, "2.25.%s", digits + n);
}

void dicom_uid_from_text(const char *text, char ret_uid[DICOM_UID_SIZE])
{
	unsigned char digest[32];

	sha256(text, strlen(text), digest);
	uid_from_uuid(digest, 8, ret_uid);
}

void dicom_uid_random(char ret_uid[DICOM_UID_SIZE])
{
	unsigned char uuid[16];
	ssize_t n;

	do
		n = getrandom(uuid, sizeof(uuid), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(uuid)) /* getrandom(2) always returns requests of up to 256 bytes completely */
		abort();
	uid_from_uuid(uuid, 4, ret_uid);
}

void dicom_sha256(const void *bytes, size_t n, char ret_hex[65])
{
	unsigned char digest[32];

	sha256(bytes, n, digest);
	for (int i = 0; i < 32; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

void dicom_hmac_sha256(const void *key, size_t n_key, const void *bytes, size_t n, uint8_t ret_mac[32])
{
	if (!HMAC(EVP_sha256(), key, (int)n_key, static_cast<const unsigned char *>(bytes), n, ret_mac, nullptr))
		abort(); /* as for a UID */
}

namespace tomonode
{

bool uid_valid(const char *uid)
{
	size_t n = strlen(uid);

	if (n < 3 || n >= DICOM_UID_SIZE || uid[n - 1] == '.' || uid[0] < '0' || uid[0] > '2' || uid[1] != '.')
		return false;
	for (size_t i = 0; i < n; i++) {
		bool starts = i == 0 || uid[i - 1] == '.';

		if (uid[i] == '.' ? starts : uid[i] < '0' || uid[i] > '9')
			return false;
		if (starts && uid[i] == '0' && uid[i + 1] != '.' && uid[i + 1] != '\0')
			return false; /* a component with a leading zero is invalid */
	}
	return true;
}

} // namespace tomonode

const char *dicom_uid_name(const char *uid)
{
	const char *name = uid ? dcmFindNameOfUID(uid, nullptr) : nullptr;

	return name ? name : "unknown";
}

bool dicom_is_storage_class(const char *uid)
{
	static const char dicom_root[] = "1.2.840.10008.";
	static const char storage_arc[] = "1.2.840.10008.5.1.4.1.1."; /* also accepts classes newer than DCMTK's list */

	if (!uid || !tomonode::uid_valid(uid))
		return false;
	if (strncmp(uid, dicom_root, strlen(dicom_root)) != 0)
		return strcmp(uid, "1.2.840.10008") != 0;
	if (strncmp(uid, storage_arc, strlen(storage_arc)) == 0)
		return true;
	for (int i = 0; i < numberOfDcmAllStorageSOPClassUIDs; i++)
		if (strcmp(uid, dcmAllStorageSOPClassUIDs[i]) == 0)
			return true;
	return false;
}
