/* SPDX-License-Identifier: Apache-2.0 */
/* The open file from which a data set is read; its descriptor is shared by all objects that may still read from it.
 *
 * `Source` reads at an offset (thread-safe). `SpanStream` joins several parts ("spans") of the file to one stream for DCMTK's
 * parser. The parser skips large values; they are read through the descriptor on request. The file may be removed and the data
 * set may be closed before that. */
#ifndef TOMONODE_DICOM_SOURCE_HH
#define TOMONODE_DICOM_SOURCE_HH

#include <cstdint>
#include <memory>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcistrma.h>

#include "kernels/err.h"

namespace tomonode
{

class Source
{
      public:
	Source(int fd, uint64_t size) : fd_(fd), size_(size)
	{
	} /* takes ownership of fd */
	~Source();
	Source(const Source &) = delete;
	Source &operator=(const Source &) = delete;

	uint64_t size() const
	{
		return size_;
	}
	int fd() const
	{
		return fd_;
	}
	/* Read exactly n bytes at `offset`. EIO: also if the file has become shorter. */
	int read(uint64_t offset, void *ret_bytes, size_t n, struct err *err) const;

      private:
	int fd_;
	uint64_t size_;
};

/* A part of a file: offset and size in bytes. */
struct Span {
	uint64_t offset, size;
};

/* A list of spans, read as one contiguous stream. */
struct SpanList {
	std::shared_ptr<const Source> source;
	std::vector<Span> spans;

	uint64_t size() const;
	/* Read up to n bytes, beginning at position `at` of the stream. Return their number; 0: end of the stream, or an
	 * error in `err`. */
	size_t read(uint64_t at, void *ret_bytes, size_t n, struct err *err) const;
};

/* Supplies the bytes of a SpanList to a DCMTK stream, beginning at position `at`. */
class SpanProducer : public DcmProducer
{
      public:
	SpanProducer(std::shared_ptr<const SpanList> list, uint64_t at);
	OFBool good() const override
	{
		return OFTrue;
	}
	OFCondition status() const override
	{
		return EC_Normal;
	}
	/* Also after a read error: the parser asks again for bytes that do not come, without end. */
	OFBool eos() override
	{
		return at_ >= size_ || error_.code != 0;
	}
	offile_off_t avail() override
	{
		return (offile_off_t)(size_ - at_);
	}
	offile_off_t read(void *buf, offile_off_t n) override;
	offile_off_t skip(offile_off_t n) override;
	void putback(offile_off_t n) override;
	/* The last read error (code 0: none), which DCMTK takes for the end. */
	const struct err &error() const
	{
		return error_;
	}

      private:
	std::shared_ptr<const SpanList> list_;
	struct err error_ = {};
	uint64_t at_, size_;
	std::vector<unsigned char> window_; /* bytes of the stream from window_at_ on */
	uint64_t window_at_;
};

/* A DCMTK input stream of the bytes of a SpanList, beginning at position `at`. */
class SpanStream : public DcmInputStream
{
      public:
	SpanStream(const std::shared_ptr<const SpanList> &list, uint64_t at);
	DcmInputStreamFactory *newFactory() const override;
	const struct err &error() const
	{
		return producer_.error();
	}

      private:
	std::shared_ptr<const SpanList> list_;
	uint64_t start_;
	SpanProducer producer_;
};

} // namespace tomonode
#endif
