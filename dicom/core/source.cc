/* SPDX-License-Identifier: Apache-2.0 */
/* source.cc - read a file for layout.cc (pread) and for DCMTK's parser (an input stream with a factory). */
#include "dicom/core/source.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace tomonode
{

constexpr size_t window_size = 16384; /* the parser reads the stream in pieces of 2 to 8 bytes */

Source::~Source()
{
	close(fd_);
}

int Source::read(uint64_t offset, void *ret_bytes, size_t n, struct err *err) const
{
	auto *p = static_cast<unsigned char *>(ret_bytes);
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd_, p + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "reading %zu bytes at offset %llu: %s", n, (unsigned long long)offset,
				       strerror(errno));
		if (got == 0)
			return err_set(err, EIO, "the file has become shorter: %zu of %zu bytes at offset %llu", done, n,
				       (unsigned long long)offset);
		done += (size_t)got;
	}
	return 0;
}

uint64_t SpanList::size() const
{
	uint64_t sum = 0;

	for (const Span &s : spans)
		sum += s.size;
	return sum;
}

size_t SpanList::read(uint64_t at, void *ret_bytes, size_t n, struct err *err) const
{
	auto *p = static_cast<unsigned char *>(ret_bytes);
	size_t done = 0;

	for (const Span &s : spans) {
		if (at >= s.size) {
			at -= s.size;
			continue;
		}
		size_t part = (size_t)std::min<uint64_t>(s.size - at, n - done);

		if (source->read(s.offset + at, p + done, part, err) < 0)
			return 0;
		done += part;
		at = 0;
		if (done == n)
			break;
	}
	return done;
}

SpanProducer::SpanProducer(std::shared_ptr<const SpanList> list, uint64_t at)
    : list_(std::move(list)), at_(at), size_(list_->size()), window_at_(at)
{
	at_ = std::min(at_, size_);
}

offile_off_t SpanProducer::read(void *buf, offile_off_t n)
{
	auto *p = static_cast<unsigned char *>(buf);
	offile_off_t done = 0;

	while (done < n && at_ < size_) {
		size_t want = (size_t)(n - done);

		if (at_ >= window_at_ && at_ < window_at_ + window_.size()) {
			size_t skip = (size_t)(at_ - window_at_);
			size_t part = std::min(want, window_.size() - skip);

			memcpy(p + done, window_.data() + skip, part);
			done += (offile_off_t)part;
			at_ += part;
		} else if (want >= window_size) {
			size_t part = list_->read(at_, p + done, want, &error_);

			if (part == 0)
				break;
			done += (offile_off_t)part;
			at_ += part;
		} else {
			window_.resize(window_size);
			window_.resize(list_->read(at_, window_.data(), window_size, &error_));
			window_at_ = at_;
			if (window_.empty())
				break;
		}
	}
	return done;
}

offile_off_t SpanProducer::skip(offile_off_t n)
{
	uint64_t part = std::min<uint64_t>(n > 0 ? (uint64_t)n : 0, size_ - at_);

	at_ += part;
	return (offile_off_t)part;
}

void SpanProducer::putback(offile_off_t n)
{
	if (n > 0 && (uint64_t)n <= at_)
		at_ -= (uint64_t)n;
}

namespace
{

class SpanFactory : public DcmInputStreamFactory
{
      public:
	SpanFactory(std::shared_ptr<const SpanList> list, uint64_t at) : list_(std::move(list)), at_(at)
	{
	}
	DcmInputStream *create() const override
	{
		return new SpanStream(list_, at_);
	}
	DcmInputStreamFactory *clone() const override
	{
		return new SpanFactory(*this);
	}
	/* DCMTK's enumeration has no value for other factories; its code does not use the value of this one. */
	DcmInputStreamFactoryType ident() const override
	{
		return DFT_DcmInputTempFileStreamFactory;
	}

      private:
	std::shared_ptr<const SpanList> list_;
	uint64_t at_;
};

} // namespace

/* The base class only stores the producer's address, so the producer may be constructed after it. */
SpanStream::SpanStream(const std::shared_ptr<const SpanList> &list, uint64_t at)
    : DcmInputStream(&producer_), list_(list), start_(at), producer_(list, at)
{
}

DcmInputStreamFactory *SpanStream::newFactory() const
{
	return new SpanFactory(list_, start_ + (uint64_t)tell());
}

} // namespace tomonode
